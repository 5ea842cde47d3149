"""CREAM: pairs of the policy's own ranking, a label as sure as two iterates agree, rounds of iterates."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import Replies, batch_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Task, Trajectory, Turn, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.intrinsic import cream
from rewardlab.methods.intrinsic.cream import consistency
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.objectives.pairs import dpo_loss, soft_dpo_loss
from rewardlab.rewards.implicit import implicit_reward
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.ranked import ranked_twice
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled
from rewardlab.util.ranking import kendall_tau

PROMPTS = [ask("Q1"), ask("Q2")]


def test_kendalls_tau_by_hand():
    assert kendall_tau([1, 2, 3], [10, 20, 30]) == 1
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1
    # of three pairs two are alike: (2 - 1) / 3
    assert kendall_tau([1, 2, 3], [1, 3, 2]) == pytest.approx(1 / 3)
    # the first of equal ones is lower: 1, 2 against 2, 1
    assert kendall_tau([5, 5], [2, 1]) == -1
    assert math.isnan(kendall_tau([1], [1]))


# ---- what a model's likelihoods imply --------------------------------------------------------------------------------


class Model(Replies):
    """Every token of a text costs the model so many nats."""

    def __init__(self, nats, replies=()):
        super().__init__(replies)
        self.nats = nats

    def score(self, trajectories):
        return [np.full(len(t), -self.nats[t.reply], np.float32) for t in trajectories]


def reply(text: str, tokens: int = 2) -> Trajectory:
    turns = (Turn(None, np.zeros(3, np.int64)), Turn("policy", np.zeros(tokens, np.int64), text=text))
    return Trajectory(PROMPTS[0], turns, "end")


def test_the_implicit_reward_is_a_sum_over_tokens_and_of_the_base_itself_a_mean():
    now, start = Model({"a": 1.0, "b": 3.0, "": 1.0}), Model({"a": 2.0, "b": 1.0, "": 1.0})
    run = Run(now, reference=start)
    group = [reply("a", 2), reply("b", 4), reply("", 0)]
    assert [s.total for s in implicit_reward()([group], run)[0]] == [2.0, -8.0, None]
    run = Run(start, reference=start)
    assert [s.total for s in implicit_reward()([group], run)[0]] == [-2.0, -1.0, None]
    assert implicit_reward()([[]], run) == [[]]


# ---- pairs -----------------------------------------------------------------------------------------------------------


@reward
def first(trajectory):
    return None if trajectory.reply == "?" else float(trajectory.reply.split()[0])


@reward
def second(trajectory):
    return float(trajectory.reply.split()[1]) if " " in trajectory.reply else None


def pairs(*replies: str, n: int) -> list:
    run = Run(Model({}, replies))
    return ranked_twice(by=first(), again=second(), n=n, model="policy")(PROMPTS[: len(replies) // n], run)


def test_best_and_worst_by_the_first_and_how_far_the_second_agrees():
    groups = pairs("1 1", "2 3", "3 2", "9 0", "5 1", "7 2", n=3)
    assert [[t.reply for t in group] for group in groups] == [["3 2", "1 1"], ["9 0", "5 1"]]
    # two pairs of three alike: tau 1/3; of 9 0, 5 1, 7 2 one (5 before 7): tau -1/3
    assert [group[0].problem.meta["consistency"] for group in groups] == pytest.approx([2 / 3, 1 / 3])


def test_equal_texts_count_once_and_what_has_no_score_not_at_all():
    (group,) = pairs("1 2", "1 2", "1 2", "2 1", "?", "9", n=6)
    assert [t.reply for t in group] == ["2 1", "1 2"]
    assert group[0].problem.meta["consistency"] == 0
    # the second prompt has one text only, and is left out
    assert len(pairs("1 2", "2 1", "4 4", "4 4", n=2)) == 1


def test_how_many_labels_are_true_is_logged_where_the_verifier_knows():
    @reward
    def verify(trajectory):
        return {"3 2": 1.0, "1 1": 0.0, "9 0": 0.0, "5 1": 1.0}.get(trajectory.reply)

    run = Run(Model({}, ["1 1", "3 2", "9 0", "5 1", "7 7", "8 8"]), verify=verify())
    ranked_twice(by=first(), again=second(), n=2, model="policy")([*PROMPTS, ask("Q3")], run)
    # the first pair is right, the second is not, and of the third nothing is known
    assert run.metrics["true_labels"] == 0.5
    assert pairs("1 1", "3 2", n=2)


def test_without_any_pair_a_reply_stands_beside_itself():
    (group,) = pairs("4 4", "4 4", n=2)
    assert [t.reply for t in group] == ["4 4", "4 4"]
    assert group[1].problem.meta["consistency"] is None


# ---- the loss --------------------------------------------------------------------------------------------------------


def batch(*sure: float | None):
    made = batch_of(
        [[("rdd", {}), ("rd", {})] for _ in sure], {"ref": [[0, -1, -1], [0, -1], [0, -2, -2], [0, -2]][: 2 * len(sure)]}
    )
    for (t, _), p in zip(made.rows, [x for x in sure for _ in range(2)], strict=True):
        object.__setattr__(t, "problem", ask("Q", consistency=p))
    return made


def loss(made, **settings):
    # log pi of the preferred -1.5 and of the other -3, with the reference at -2 and -1: the margin is .5 + 2
    out = Outputs(logprobs=torch.tensor([[0, -0.5, -1.0], [0, -3.0, 0]]))
    return float(soft_dpo_loss(beta=0.2, **settings)(out, made, Run(None)))


def test_the_loss_is_dpos_both_ways_as_far_as_the_label_is_sure():
    z = 0.2 * 2.5
    forth, back = math.log(1 + math.exp(-z)), math.log(1 + math.exp(z))
    made = batch(0.7)
    made.credit = consistency(label="pair")(made.reward, made, Run(None))
    assert loss(made) == pytest.approx(0.7 * forth + 0.3 * back, abs=1e-6)
    assert loss(made, label=0.5) == pytest.approx((forth + back) / 2, abs=1e-6)
    made.credit = consistency(label="sure")(made.reward, made, Run(None))
    out = Outputs(logprobs=torch.tensor([[0, -0.5, -1.0], [0, -3.0, 0]]))
    assert loss(made) == pytest.approx(float(dpo_loss(beta=0.2)(out, made, Run(None))), abs=1e-6)


def test_a_rounds_consistency_is_the_mean_so_far_and_a_step_counts_once():
    run = Run(None)
    part, first_step, later = consistency(), batch(0.8, 0.6), batch(1.0)
    for _ in range(2):
        assert part(first_step.reward, first_step, run)[:, 1].tolist() == pytest.approx([0.7] * 4)
    run.step = 1
    # (.8 + .6 + 1) / 3
    assert part(later.reward, later, run)[:, 1].tolist() == pytest.approx([0.8] * 2)
    assert run.metrics["consistency"] == 1.0


def test_a_step_without_a_pair_leaves_a_rounds_consistency_as_it_is():
    run, made_up = Run(None), batch(None)
    assert consistency()(made_up.reward, made_up, run)[:, 1].tolist() == [0.5] * 2
    run.step = 1
    sure = batch(0.8)
    assert consistency()(sure.reward, sure, run)[:, 1].tolist() == pytest.approx([0.8] * 2)
    run.step = 2
    assert consistency()(made_up.reward, made_up, run)[:, 1].tolist() == pytest.approx([0.8] * 2)
    assert consistency(label="pair")(made_up.reward, made_up, run)[:, 1].tolist() == [0.5] * 2


# ---- rounds ----------------------------------------------------------------------------------------------------------

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i), chosen=f"{i}7") for i in range(10, 18)]
TASK = Task("pairs", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4)


def begun(**settings) -> Ops:
    recipe = registry.build("cream", {"sft_steps": 1, "round_steps": 1, "n": 3, **settings}).but(problems=2, lr=1e-3)
    run = Run(untrained().copy("policy"), steps=4, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = run.policy.copy("reference")
    run.models = {learner.name: learner_model(learner, run.policy) for learner in recipe.also}
    return Ops(recipe, run, TASK, RunConfig())


def same(model, state) -> bool:
    return all(torch.equal(x, state[name]) for name, x in model.state().items())


def weights(model) -> dict:
    return {name: x.clone() for name, x in model.state().items()}


def test_each_iterate_is_the_next_ones_reference_and_then_its_past():
    ops = begun()
    run, iterates = ops.run, [weights(ops.run.policy)]
    for step in range(3):
        run.metrics = {}
        ops.recipe.loop(ops.recipe, run, ops)
        run.step += 1
        iterates.append(weights(run.policy))
        assert run.metrics["round"] == step
        # the first round is of SFT, which reads neither
        assert same(run.reference, iterates[max(0, step)])
        assert same(run.models["previous"], iterates[max(0, step - 1)])
        assert same(run.models["initial"], iterates[0])
        assert not same(run.policy, iterates[-2])
    assert 0 <= run.metrics["consistency"] <= 1
    # a new round, a new mean
    assert len(run.memory["cream.consistency"]) == 1
    assert len(ops.step_data.groups[0]) == 2


def test_without_sft_the_model_before_it_must_be_named():
    with pytest.raises(RewardlabError, match="initial"):
        registry.build("cream", {"sft_steps": 0})
    assert {x.init for x in registry.build("cream", {"sft_steps": 0, "initial": "runs/base"}).also} == {"runs/base"}


def test_runs_of_older_versions_are_read_by_the_name_that_the_scale_had():
    """`sft_lr_scale` was called `faster`; a saved recipe with it loads, and means the same."""
    recipe = registry.build("cream", {"sft_lr_scale": 3.0})
    saved = recipe.to_json()
    saved["loop"]["with"]["faster"] = saved["loop"]["with"].pop("sft_lr_scale")
    assert registry.load_recipe(saved).loop == recipe.loop


def test_the_rival_smooths_every_label_by_the_same_constant():
    """What is left to CREAM where C hardly varies: the claim tells it from label smoothing at the C that its runs had."""
    made = batch(0.8, 0.4)
    assert consistency(label="constant", at=0.9)(made.reward, made, Run(None)).unique().tolist() == pytest.approx([0.9])
    rival = registry.build("cream", cream.claim.versus_settings)
    assert rival.credit.settings["label"] == "constant"
    assert registry.build("cream", cream.claim.settings).but(credit=rival.credit) == rival
