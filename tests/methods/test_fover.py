"""FoVer: what its model learns from, and that it alone learns."""

import pytest
import torch
import torch.nn.functional as F

from rewardlab import build, registry
from rewardlab.core import Outputs, Run, Trajectory, ask, rollout
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import RunConfig
from rewardlab.text.splitters import mark
from tests.helpers.rows import batch_of, steps


def batch(*rows):
    return batch_of([[("r" + "d" * 6, {"derived_steps": steps(row)}) for row in rows]])


def test_weights_of_labels_are_those_of_leaving_out_the_surplus():
    (prm,) = build("fover").also
    # inner labels: 3 right, 1 wrong, so that a third of each right one stays; last ones: 1 right, 1 wrong
    weight = prm.recipe.weighting(batch({2: 1.0, 4: 1.0, 6: 0.0}, {1: 0.0, 3: 1.0, 5: 1.0}))
    expected = torch.zeros(2, 7)
    expected[0, [2, 4, 6]] = torch.tensor([1 / 3, 1 / 3, 1.0])
    expected[1, [1, 3, 5]] = torch.tensor([1.0, 1 / 3, 1.0])
    assert torch.allclose(weight, expected / 4)
    # where every step is right nothing is learnt, as in a dataset of equally many
    assert not prm.recipe.weighting(batch({2: 1.0, 4: 1.0}, {1: 1.0})).any()
    # every label of a kind that is not balanced weighs the same
    (prm,) = build("fover", {"balanced": False}).also
    assert prm.recipe.weighting(batch({2: 1.0}, {1: 0.0})).unique().numel() == 2


def test_the_loss_is_that_of_each_label():
    labels = batch({2: 1.0, 4: 0.0})
    values = torch.tensor([[0.0, 9.0, 2.0, 9.0, 1.0, 0.0, 0.0]])
    (prm,) = build("fover").also
    loss = prm.recipe.objective(Outputs(torch.zeros(1, 7), value=values), labels, Run(None))
    right, wrong = -F.logsigmoid(torch.tensor(2.0)), -F.logsigmoid(torch.tensor(-1.0))
    assert loss[0].tolist() == pytest.approx([0, 0, float(right), 0, float(wrong), 0, 0])


@rollout
def taught(problems, run):
    """The first line of the solution, and one that does not follow: an untrained policy writes no line that does."""
    texts = [f"{p.meta['steps'][0]}\n{len(p.meta['premises']) + 2} and 1:z" for p in problems]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return [[mark(t, "newline", run.policy.pieces)] for t in run.policy.write(prompts, texts)]


def test_held_out_steps_are_checked_by_what_their_problem_has():
    steps_of = build("fover").measure.settings["steps"]
    policy = untrained(0)

    def labels(problem, text):
        (t,) = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), [text])
        return [x for _, x in steps_of([[mark(t, "newline", policy.pieces)]], Run(policy))[0][0].steps]

    # p and p->q give q; nothing gives r
    assert labels(ask("Show q.", "q", premises=["p->q", "p"]), "3 mp 1 2:q\n4 mp 1 2:r") == [1.0, 0.0]
    # 7 * 2 is not 15
    assert labels(ask("(4+3)*2?", "14", steps=["4+3=7", "7*2=14"]), "4+3=7\n7*2=15") == [1.0, 0.0]


def test_the_model_learns_the_checkers_labels_and_the_policy_does_not_learn():
    policy, task = untrained(0), registry.task("formal", test_size=4)
    prm = policy.copy("prm", value_head=True)
    recipe = build("fover", {"problems": 4, "k": 2, "balanced": False})
    run = Run(policy, models={"prm": prm}, steps=1, max_new=8, verify=registry.part("reward", task.verifier))
    before = [{k: v.clone() for k, v in m.state().items()} for m in (policy, prm)]
    standard_loop(recipe.but(rollout=taught()), run, Ops(recipe, run, task, RunConfig()))
    # half of the lines follow
    assert run.metrics["prm/loss"] > 0
    assert torch.equal(before[0]["embed"], policy.state()["embed"])
    assert not torch.equal(before[1]["value_head"], prm.state()["value_head"])
    assert recipe.measure(list(task.test), run.detached())["n"] == 8
