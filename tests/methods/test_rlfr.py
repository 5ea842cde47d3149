"""RLFR: what lies off the flow of right replies costs."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from rows import batch_of, outcome

from rewardlab.api.inputs import begin_run
from rewardlab.core import Run, Task, ask, loop
from rewardlab.engine.step import Ops
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.intrinsic.rlfr import FLOW, Flow, along_the_flow, check, costs, deviations, rlfr, with_previous
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed

PROBLEMS = [ask(f"Add {i}", str(i), solution=f"it is {i}") for i in range(4)]
TASK = Task("sums", Listed(PROBLEMS), PROBLEMS[:2], "final_number")


@reward
def letters(trajectory):
    return sum(c.isalpha() for c in trajectory.reply)


def test_costs_by_hand():
    deviation = torch.tensor([[9.0, 2, 4, 6, 5.6], [9, 3, 3, 9, 9], [9, 1, 2, 3, 4]])
    chosen = torch.tensor([[0, 1, 1, 1, 1], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]]).bool()
    # (2 4 6 5.6 - 2) / 4 = 0 .5 1 .9: those above .6;   equal ones and none are no cost
    wanted = torch.tensor([[0, 0, 0, 1, 0.9], [0] * 5, [0] * 5])
    torch.testing.assert_close(costs(deviation, chosen, 0.6, 15), wanted)
    assert costs(deviation, chosen, 0.6, 1)[0].tolist() == [0, 0, 0, 1, 0]
    assert costs(deviation, chosen, 0.4, 3)[0].tolist() == pytest.approx([0, 0, 0.5, 1, 0.9])


class Known:
    """States of two entries, at each position its number."""

    depth, device = 4, torch.device("cpu")

    def activation_table(self, batch, layer):
        place = torch.arange(batch.width).expand(batch.mask.shape).float()
        return torch.stack([place, -place], 2) + 1


def test_each_token_pays_for_the_rest_of_its_reply_and_rows_without_a_verdict_do_not():
    batch = batch_of([[("rdddd", {"a": outcome(1.0)}), ("rdd", {"a": outcome(0.0)}), ("rddd", {"a": outcome(None)})]])
    run, part = Run(policy=Known()), along_the_flow(by=deviations(), coef=0.1, threshold=0.0)
    a = torch.where(batch.mask, 2.0, 0.0)
    found = part(a, batch, run)
    paid = (a - found)[0, 1:].tolist()
    # the most costly token 1, times coef; costs add up towards the start
    assert paid == sorted(paid, reverse=True)
    assert max(x - y for x, y in pairwise([*paid, 0.0])) == pytest.approx(0.1)
    # a reply without a verdict keeps its credit
    assert torch.equal(found[2], a[2])
    assert {"deviation", "flow_loss"} <= run.metrics.keys()
    assert torch.equal(along_the_flow(by=deviations(), coef=0.0)(a, batch, Run(policy=Known())), a)


@pytest.mark.slow
def test_the_flow_learns_states_and_finds_others_off():
    g = torch.Generator().manual_seed(0)
    table = torch.randn(8, 6, 4, generator=g)
    table[..., 2:] = table[..., :2]
    chosen, memory = torch.ones(8, 6).bool(), {}
    chosen[:, -1] = False
    losses = [Flow(memory, [(0.5, table)], 2, 3e-3, 0).learn([(0.5, table)], chosen, 0.8, g) for _ in range(150)]
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
    flow, other = Flow(memory, [(0.5, table)], 2, 3e-3, 0), table.clone()
    other[..., 2:] *= -1
    known, off = (float(flow.deviations([(0.5, x)], chosen, 0.8, g).mean().detach()) for x in (table, other))
    assert off > 1.5 * known


def test_only_right_replies_teach_it_and_it_resumes_bit_for_bit():
    def run_of(verdict):
        run = Run(policy=Known())
        for run.step in range(2):
            batch = batch_of([[("rddd", {"a": outcome(verdict)}), ("rddd", {"a": outcome(0.0)})]])
            along_the_flow(by=deviations())(batch.reward, batch, run)
        return run

    assert "weights" not in run_of(0.0).memory[FLOW]
    one, two = run_of(1.0), run_of(1.0)
    assert one.memory[FLOW]["optimiser"]["state"][0]["step"] == 2
    assert all(torch.equal(w, two.memory[FLOW]["weights"][k]) for k, w in one.memory[FLOW]["weights"].items())


def test_whole_steps_with_solutions_first():
    recipe = rlfr(grpo(n=4), fit_steps=3).but(reward=letters(), problems=2)
    config = RunConfig(max_new=6, steps=2, eval_problems=2).settled()
    run = begin_run(recipe, untrained().copy("policy"), TASK, config)
    ops = Ops(recipe, run, TASK, config)
    for run.step in range(2):
        recipe.loop(recipe, run, ops)
    # three steps on solutions, and one at each training step that had right replies
    assert 3 <= run.memory[FLOW]["optimiser"]["state"][0]["step"] <= 5
    assert rlfr(fit_steps=0).loop is None
    assert check.by.settings["scorer"].settings["time"] == deviations().settings["time"]


@pytest.mark.parametrize(("told", "fits"), [((0, 3), True), ((), False)])
def test_rows_without_a_solution_are_passed_over_in_the_first_fit(told, fits):
    problems = [ask(f"Add {i}", str(i), **({"solution": f"it is {i}"} if i in told else {"solution": ""})) for i in range(4)]
    task = Task("sums", Listed(problems), problems[:2], "final_number")
    recipe = rlfr(grpo(n=2), fit_steps=2).but(reward=letters(), problems=2)
    config = RunConfig(max_new=4, steps=1, eval_problems=2).settled()
    run = begin_run(recipe, untrained().copy("policy"), task, config)
    ops = Ops(recipe, run, task, config)
    taught = []

    @loop
    def none(recipe, run, ops):
        taught.append("weights" in run.memory[FLOW])

    recipe.loop.but(inner=none())(recipe, run, ops)
    # two steps of two rows each: either has one with a solution, or none has
    assert taught == [fits]
    assert ops.position == 4
    # a run whose flow learnt nothing at first begins like one without a first fit
    recipe.loop(recipe, run, ops)
    assert "mean" in run.memory[FLOW]


def test_the_first_fit_is_at_a_time_of_its_own_for_each_state():
    table, g = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0)), torch.Generator().manual_seed(1)
    flow, chosen, heard = Flow({}, [(0.5, table)], 1, 1e-3, 0), torch.ones(4, 6).bool(), []
    chosen[:, 0] = False
    plain = flow.field.forward
    flow.field.forward = lambda x, s, context, height: heard.append(s) or plain(x, s, context, height)
    flow.learn([(0.5, table)], chosen, None, g)
    (times,) = heard
    assert times.shape == (20, 1)
    assert len(times.unique()) == 20
    assert ((times > 0) & (times < 1)).all()


def test_positions_with_a_token_before_them():
    batch = batch_of([[("ddrd", {"a": outcome(1.0)}), ("rd", {"a": outcome(0.0)})]])
    assert with_previous(batch).tolist() == [[False, True, False, True], [False, True, False, False]]


def test_the_context_of_a_state_is_the_one_before_it():
    g = torch.Generator().manual_seed(0)
    table, later, earlier = torch.randn(1, 3, 4, generator=g), [], []
    flow, chosen = Flow({}, [(0.5, table)], 1, 1e-3, 0), torch.tensor([[False, True, False]])
    with torch.no_grad():
        flow.field.out.weight.fill_(1.0)
        for p in flow.field.blocks.parameters():
            p.fill_(0.1)

    def off(x):
        return float(flow.deviations([(0.5, x)], chosen, 0.8, torch.Generator().manual_seed(1)).detach())

    later, earlier = table.clone(), table.clone()
    later[:, 2], earlier[:, 0] = 5.0, 5.0
    assert off(later) == off(table)
    assert off(earlier) != off(table)


@pytest.mark.parametrize(
    ("paid", "verdict", "learns"), [(0.1, None, False), (1.0, None, True), (0.4, 1.0, True), (2.0, 0.0, False)]
)
def test_the_verdict_decides_what_the_flow_learns_and_a_small_reward_teaches_nothing(paid, verdict, learns):
    @reward
    def verifier(trajectory):
        return verdict

    run = Run(policy=Known(), verify=None if verdict is None else verifier())
    batch = batch_of([[("rddd", {"a": outcome(paid)}), ("rddd", {"a": outcome(paid)})]])
    along_the_flow(by=deviations())(batch.reward, batch, run)
    assert ("weights" in run.memory[FLOW]) is learns
