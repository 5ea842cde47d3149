"""Rewards of a reward model: its score of a reply, and whether it prefers the reply to the reference policy's."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Sampling, Score, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.models.embedded import untrained
from rewardlab.rewards.model import model_score, preferred
from rewardlab.rewards.reward import reward


@reward
def number_said(trajectory):
    return Score(None, why="not a number") if trajectory.reply == "?" else float(trajectory.reply)


def reply(text: str, question: str = "how much?") -> Trajectory:
    return Trajectory(ask(question), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def chance(margin: float) -> float:
    return 1 / (1 + math.exp(-margin))


def totals(groups, *written: str, n: int = 1) -> list[list[float | None]]:
    """The rewards where the reference policy writes these replies, in order."""
    run = Run(policy=None, reference=Replies(written))
    return [[s.total for s in row] for row in preferred(inner=number_said(), n=n)(groups, run)]


def test_a_reply_as_good_as_the_reference_earns_a_half_and_far_above_it_more_earns_nothing():
    # margins 0, 1, -1, 20, 2000 to a reference that scores 3
    found = totals([[reply(text) for text in ("3", "4", "2", "23", "2003", "-9999")]], "3")
    assert found == [pytest.approx([0.5, chance(1), chance(-1), 1.0, 1.0, 0.0], abs=1e-6)]
    assert found[0][4] - found[0][3] < 1e-8


def test_the_mean_is_over_chances_and_not_over_scores():
    # references 0 and 4: for a reply of 4 the chances are sigmoid(4) and 1/2, and not sigmoid(4 - 2)
    assert totals([[reply("4")]], "0", "4", n=2) == [[pytest.approx((chance(4) + 0.5) / 2)]]


def test_every_prompt_has_references_of_its_own():
    found = totals([[reply("1"), reply("2")], [reply("1", "and here?")]], "1", "2")
    assert found == [pytest.approx([0.5, chance(1)]), [pytest.approx(chance(-1))]]


def test_a_reply_without_a_score_gets_none_and_references_without_one_are_left_out():
    assert totals([[reply("?"), reply("1")]], "1") == [[None, 0.5]]
    assert totals([[reply("1")]], "?", "1", n=2) == [[0.5]]
    assert totals([[reply("1")], [reply("1", "and here?")]], "?", "1") == [[None], [0.5]]


def test_the_raw_score_and_that_of_the_references_are_logged():
    run = Run(policy=None, reference=Replies(["3", "5"]))
    (first, _) = preferred(inner=number_said())([[reply("4")], [reply("4", "and here?")]], run)
    assert first[0].terms["number_said"].value == 4.0
    assert first[0].terms["number_said"].weight is None
    assert run.metrics["reference_score"] == 4.0


@pytest.fixture(scope="module")
def policy():
    return untrained()


def test_the_score_is_the_value_at_the_end_of_the_reply(policy):
    model = policy.copy("reward_model", value_head=True)
    torch.nn.init.normal_(model.model.value_head, generator=torch.Generator().manual_seed(1))
    problems = [ask("1+1=?"), ask("2+3=?")]
    prompts = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = policy.extend(prompts * 2, Sampling(5), torch.Generator().manual_seed(0))
    scores = model_score()([rows[:1], rows[1:]], Run(policy, models={"reward_model": model}))
    assert [len(row) for row in scores] == [1, 3]
    found = [s.value for row in scores for s in row]
    assert found == pytest.approx(end_values(model, [ended(policy, t) for t in rows]).tolist(), abs=1e-5)
    assert len(set(found)) > 2


def ended(policy, t: Trajectory) -> Trajectory:
    """The row with the token that ends a reply, which it was taught to be scored at."""
    end = policy.tokenizer.eos_token_id
    return t if int(t.ids[-1]) == end else t.plus(Turn(None, np.array([end], np.int64)), t.stop)


@pytest.mark.parametrize(("stop", "closed"), [("length", True), ("stop", True), ("end", True), (None, False)])
def test_a_reply_that_was_cut_off_is_scored_as_if_it_had_ended_there(policy, stop, closed):
    """As model:PATH scores it; a value before the end token is one that nobody has taught. What goes on is valued where it is."""
    model = policy.copy("reward_model", value_head=True)
    torch.nn.init.normal_(model.model.value_head, generator=torch.Generator().manual_seed(1))
    (prompt,) = policy.read([Trajectory(p := ask("1+1=?"))], [p.prompt])
    (whole,) = policy.write([prompt], ["2 or so"])
    cut = replace(whole.cut(len(whole) - 1), stop=stop)
    ((score,),) = model_score()([[cut]], Run(policy, models={"reward_model": model}))
    wanted, other = end_values(model, [whole, cut] if closed else [cut, whole])
    assert score.value == pytest.approx(wanted, abs=1e-5)
    assert abs(wanted - other) > 1e-3


def test_a_cut_off_reply_that_fills_the_context_gives_up_its_last_token_for_the_end(policy):
    model = policy.copy("reward_model", value_head=True)
    (prompt,) = policy.read([Trajectory(p := ask("1+1=?"))], [p.prompt])
    room = model.context - len(prompt)
    full = prompt.plus(Turn("policy", np.full(room, 7, np.int64)), "length")
    ((score,),) = model_score()([[full]], Run(policy, models={"reward_model": model}))
    assert score.value == pytest.approx(float(end_values(model, [ended(policy, full.cut(len(full) - 1))])[0]), abs=1e-5)


def test_a_model_that_reads_other_tokens_is_refused(policy):
    other = untrained(task=registry.task("facts")).copy("reward_model", value_head=True)
    with pytest.raises(RewardlabError, match="tokenizer"):
        model_score()([[]], Run(policy, models={"reward_model": other}))
    with pytest.raises(RewardlabError, match="reward_model"):
        model_score()([[]], Run(policy))
