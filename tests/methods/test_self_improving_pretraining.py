"""Self-improving pretraining: which candidates are learnt from, and what is said of who won."""

from __future__ import annotations

import pytest
import torch
from rows import row_of

from rewardlab import registry
from rewardlab.api.inputs import begin_run
from rewardlab.core import Run, Score, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.imitation.self_improving_pretraining import extremes, self_improving_pretraining, windows
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed

ROWS = [row_of("rd") for _ in range(12)]


def picked(*values: float | None) -> list[int]:
    """The places of best and worst among rows with these rewards."""
    group, scores = ROWS[: len(values)], [Score(v, why="no judge") for v in values]
    pairs, paid = extremes([group], [scores])
    assert [[row[0].total, row[1].total] for row in paid] == [[max_of(values), min_of(values)] for _ in pairs]
    return [next(i for i, t in enumerate(group) if t is row) for pair in pairs for row in pair]


def max_of(values):
    return max(v for v in values if v is not None)


def min_of(values):
    return min(v for v in values if v is not None)


@pytest.mark.parametrize(
    ("rewards", "places"),
    [
        ((0.1, 0.9, 0.5), [1, 0]),
        ((0.9, 0.9, 0.5, 0.5), [0, 2]),  # the first of equals
        ((None, 0.2, 0.4, None), [2, 1]),  # no verdict is neither the best nor the worst
        ((0.5, 0.5, 0.5), []),
        ((None, 0.5), []),
        ((None, None), []),
        ((0.5,), []),
    ],
)
def test_the_best_is_set_against_the_worst(rewards, places):
    assert picked(*rewards) == places


@reward
def known(trajectory):
    """The rewrite is best, the original worst; of the rollouts nothing is better than either."""
    return {"text": 0.0, "better": 1.0}.get(trajectory.tag, 0.5)


PROBLEMS = [ask(f"Once upon {i}", None, text="a bad end", better="a good end") for i in range(4)]
TASK = Task("stories", Listed(PROBLEMS), (), "exact_match")


def one_step(**settings) -> Ops:
    recipe = self_improving_pretraining(original="text", rewrite="better", n=2, problems=2, **settings).but(reward=known())
    config = RunConfig(max_new=4, steps=1, eval_problems=0).settled()
    run = begin_run(recipe, untrained().copy("policy"), TASK, config)
    ops = Ops(recipe, run, TASK, config)
    recipe.loop(recipe, run, ops)
    return ops


def likelihood(ops: Ops, field: str) -> float:
    prompts = ops.run.policy.read([type(ops.step_data.groups[0][0])(p) for p in PROBLEMS], [p.prompt for p in PROBLEMS])
    rows = ops.run.policy.write(prompts, [p.meta[field] for p in PROBLEMS])
    return sum(float(x[t.mask].sum()) for t, x in zip(rows, ops.run.policy.score(rows), strict=True))


def test_a_step_learns_from_one_pair_of_each_group():
    ops = one_step(lr=1e-2)
    assert [[t.tag for t in pair] for pair in ops.step_data.groups] == [["better", "text"]] * 2
    assert {name: value for name, value in ops.run.metrics.items() if name.startswith("won/")} == {
        "won/better": 1.0, "won/rollout": 0.0, "won/text": 0.0,
    }  # fmt: skip
    # at the start policy and reference are equal: the loss is log 2
    assert ops.run.metrics["loss"] == pytest.approx(0.6931, abs=1e-3)
    # DPO moves the two apart
    before = one_step(lr=1e-9)
    assert likelihood(ops, "better") - likelihood(ops, "text") > likelihood(before, "better") - likelihood(before, "text") + 0.1


def test_the_filtered_likelihood_is_of_the_best_alone():
    before, after = one_step(lr=1e-9, loss="nll"), one_step(lr=1e-2, loss="nll")
    pairs = after.step_data.groups
    best = [pair[0] for pair in pairs]
    by_hand = [row[t.mask] for t, row in zip(best, before.run.policy.score(best), strict=True)]
    assert after.run.metrics["loss"] == pytest.approx(-float(sum(x.sum() for x in by_hand)) / sum(map(len, by_hand)), rel=1e-4)
    assert likelihood(after, "better") > likelihood(before, "better")


def test_where_all_are_equal_nothing_is_learnt():
    @reward
    def same(trajectory):
        return 1.0

    recipe = self_improving_pretraining(original="text", n=2, problems=2).but(reward=same())
    config = RunConfig(max_new=4, steps=1, eval_problems=0).settled()
    run = begin_run(recipe, untrained().copy("policy"), TASK, config)
    before = {k: v.clone() for k, v in run.policy.state().items()}
    recipe.loop(recipe, run, Ops(recipe, run, TASK, config))
    assert all(torch.equal(before[k], v) for k, v in run.policy.state().items())
    assert run.metrics["won/rollout"] == run.metrics["won/text"] == 0.0


def test_candidates_are_a_choice():
    assert self_improving_pretraining(original="", n=4).rollout.name == "independent"
    assert self_improving_pretraining(n=4).rollout.settings["fields"] == ("solution",)
    with pytest.raises(RewardlabError, match="ppo has another"):
        registry.build("ppo+self_improving_pretraining")


def test_a_judge_is_a_model_of_the_run_unless_it_is_served():
    own = registry.build("self_improving_pretraining", {"judge": "copy:policy"})
    served = registry.build("self_improving_pretraining", {"judge": "openai:http://localhost:8000/v1#judge"})
    assert [learner.init for learner in own.also] == ["copy:policy"]
    assert own.reward.settings["model"] == "judge"
    assert not served.also
    assert served.reward.settings["model"].startswith("openai:")


def test_raw_windows_are_one_text_without_breaks_and_ends():
    policy = untrained(hidden=32, layers=1)
    run = Run(policy, max_new=3, seed=1)
    (group,) = windows(n=2, fields=("text", "better"))(PROBLEMS[:1], run)
    assert [t.tag for t in group] == ["text", "better", *[t.tag for t in group[2:]]]
    assert len(group) == 4
    begins = policy.tokenizer("Once upon 0")["input_ids"]
    for t, text in zip(group, ("a bad end", "a good end"), strict=False):
        whole = policy.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert t.ids.tolist() == [*begins, *whole[:3]]
        assert t.mask.tolist() == [False] * len(begins) + [True] * 3
        assert t.stop == "length"
    for t in group[2:]:
        assert t.ids[: len(begins)].tolist() == begins
        assert t.turns[1].sampled is not None
    with pytest.raises(RewardlabError, match="missing"):
        windows(fields=("missing",))(PROBLEMS, run)


def test_a_step_of_raw_windows():
    ops = one_step(raw=True)
    assert ops.run.metrics["won/better"] == 1.0
    assert str(ops.recipe.measure) == "own_reward(reward=correct(), rollout=windows(n=1))"
