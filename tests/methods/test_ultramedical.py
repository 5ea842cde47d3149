"""UltraMedical: SFT, DPO on annotated pairs, then rounds of DPO on the best and the worst of the policy's own replies."""

from __future__ import annotations

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled
from tests.helpers.extremes import at_the_ends, watch

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i), chosen=f"{i}7", rejected=f"{i}3") for i in range(10, 18)]
TASK = Task("pairs", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4)
STEPS = {"sft_steps": 1, "annotated_steps": 1, "round_steps": 2}


@reward
def last_token(trajectory):
    """Something that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1])


def begun() -> Ops:
    recipe = registry.build("ultramedical", {"score": last_token(), "problems": 4, "n": 4, "lr": 1e-3} | STEPS)
    run = Run(untrained().copy("policy"), steps=6, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = run.policy.copy("reference")
    return Ops(recipe, run, TASK, RunConfig())


def step(ops: Ops) -> tuple[list[list[str]], dict[str, float], bool]:
    """A training step: the replies by group, what was logged, and whether the reference is the policy that it began with."""
    began = {name: x.clone() for name, x in ops.run.policy.state().items()}
    ops.run.metrics = {}
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    same = all(torch.equal(x, began[name]) for name, x in ops.run.reference.state().items())
    assert ops.step_data is not None
    return [[t.reply for t in group] for group in ops.step_data.groups], ops.run.metrics, same


def test_the_stages_and_the_rounds():
    ops = begun()
    (imitated, _, _), (annotated, loss, from_sft) = step(ops), step(ops)
    recorded = {p.meta["chosen"]: p.meta["rejected"] for p in PROBLEMS}
    assert all(row[0] in recorded and len(row) == 1 for row in imitated)
    assert all(recorded[row[0]] == row[1] for row in annotated)
    # DPO begins where its reference is: every pair costs log 2
    assert from_sft
    assert loss["loss"] == pytest.approx(0.6931, abs=1e-3)
    sampled, rounds = watch(ops.run.reference), []
    for _ in range(4):
        sampled.clear()
        rounds.append(step(ops))
        # n own replies to each problem; the best is chosen, and the worst rejected
        assert len(sampled) == 16
        assert set(at_the_ends(ops, sampled)) == {(True, True)}
    assert [logged["round"] for _, logged, _ in rounds] == [1, 1, 2, 2]
    # the reference, which writes the replies, is the policy at the start of its round
    assert [same for *_, same in rounds] == [True, False, True, False]
    assert not any(recorded.get(row[0]) == row[1] for groups, *_ in rounds for row in groups)
    assert all(len(row) == 2 for groups, *_ in rounds for row in groups)


def test_annotated_pairs_may_be_those_of_several_graded_replies():
    recipe = registry.build("coig_p+ultramedical", {"gap": 3.0, "pairs": 8})
    assert str(recipe.rollout).startswith("paired(inner=recorded(")
    assert "inner=taught_first(pairs=8" in str(recipe.loop)
    assert [learner.name for learner in recipe.also] == ["reward_model"]
