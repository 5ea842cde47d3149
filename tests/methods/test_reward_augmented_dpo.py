"""Reward-augmented DPO: each pair under two goals, told in the prompt; the highest goal where it is measured."""

from __future__ import annotations

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Message, Run, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.reward_augmented_dpo import TOLD, with_system_prompt
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.goals import under_both_goals
from rewardlab.rollouts.recorded import recorded
from rewardlab.runs.config import RunConfig


@pytest.fixture(scope="module")
def policy():
    return untrained()


def pair(better, worse, question="Corn?"):
    return ask(question, chosen="12+3", rejected="7", chosen_score=better, rejected_score=worse)


def pairs_of(policy, problems, run=None, **settings):
    return registry.build("reward_augmented_dpo", {"told": "Score {goal}."} | settings).rollout(problems, run or Run(policy))


def test_under_the_rejected_replys_score_the_rejected_reply_is_preferred(policy):
    under_high, under_low = pairs_of(policy, [pair(9, 7.25)])
    assert [t.reply for t in under_high] == ["12+3", "7"]
    assert [t.reply for t in under_low] == ["7", "12+3"]
    assert [t.problem.prompt[0] for t in under_high] == [Message("system", "Score 9.")] * 2
    # 7.25 to one digit, and the same goal before both replies of a pair
    assert [t.problem.prompt[0] for t in under_low] == [Message("system", "Score 7.2.")] * 2
    # the model reads the goal, and decides the reply and its end, as without it
    (plain,) = recorded(fields=("chosen", "rejected"))([pair(9, 7)], Run(policy))
    for t in (*under_high, *under_low):
        assert policy.decode(t.ids).count("Score") == 1
        same = next(x for x in plain if x.tag == t.tag)
        assert t.ids[t.mask].tolist() == same.ids[same.mask].tolist()


def test_a_label_that_the_scores_contradict_makes_no_difference(policy):
    wrong = ask("Corn?", chosen="7", rejected="12+3", chosen_score=3, rejected_score=8)
    orders = {t[0].problem.prompt[0].text: [x.reply for x in t] for t in pairs_of(policy, [wrong])}
    assert orders == {"Score 8.": ["12+3", "7"], "Score 3.": ["7", "12+3"]}


def test_equal_scores_and_missing_ones_teach_nothing_under_a_goal(policy):
    apart = pair(8, 2, "Rice?")
    alike = [pair(5, 5), pair(5, 5.04), pair(5, None), pair(None, None)]
    run = Run(policy)
    assert {t.problem.question for g in pairs_of(policy, [*alike, apart], run) for t in g} == {"Rice?"}
    assert run.metrics["scored_apart"] == pytest.approx(1 / 5)
    assert len(pairs_of(policy, [pair(5, 5.04)], digits=2)) == 2
    asked = []
    run = Run(policy, more_problems=lambda n: asked.append(n) or [apart] * n)
    assert len(pairs_of(policy, alike, run)) == 8
    assert asked == [4]
    with pytest.raises(RewardlabError, match="none of 4 pairs"):
        pairs_of(policy, alike)


def test_replies_that_are_no_pairs_are_refused(policy):
    single = under_both_goals(inner=recorded(fields=("chosen",)), by=registry.part("reward", "score_in_data"))
    with pytest.raises(RewardlabError, match="1 replies"):
        single([pair(2, 1)], Run(policy))


def test_an_own_system_message_stays_and_where_steps_end_moves_with_the_prompt(policy):
    said = ask("?", system="Be brief.", chosen="1\n2", rejected="3", chosen_score=2, rejected_score=1)
    assert said.told("Score 2.").prompt == (Message("system", "Be brief.\n\nScore 2."), Message("user", "?"))
    marked = under_both_goals(
        inner=recorded(fields=("chosen", "rejected"), steps="newline"), by=registry.part("reward", "score_in_data")
    )
    for t in (t for group in marked([said], Run(policy)) for t in group):
        assert max(t.steps) == len(t) - 1
        assert all(t.mask[at] for at in t.steps)


@pytest.mark.slow
def test_held_out_problems_are_asked_for_the_best_and_the_two_goals_pull_apart(policy):
    task = registry.task("notes", test_size=4)
    quality = registry.part("reward", "note_quality")
    recipe = registry.build("reward_augmented_dpo", {"score": 10 * quality, "problems": 4, "lr": 3e-3})
    assert recipe.measure == with_system_prompt(inner=registry.build("dpo").measure, system=TOLD.replace("{goal}", "10"))
    run = Run(policy.copy("policy"), max_new=4, verify=quality)
    run.reference = policy.copy("reference")
    ops = Ops(recipe, run, task, RunConfig())
    groups = ops.rollout(ops.problems())
    assert len(groups) == 8
    batch = ops.collate(groups, None)
    for _ in range(10):
        ops.update(batch)
    # nothing but the goal tells which of the two is to gain
    gain = torch.where(batch.mask, run.policy.evaluate(batch).logprobs - batch.ref, 0.0).sum(1).detach()
    assert (gain[::2] - gain[1::2]).mean() > 1
    for below in ("sft", "kto"):
        with pytest.raises(RewardlabError, match="does not compare the replies of a pair"):
            registry.build(f"{below}+reward_augmented_dpo")
