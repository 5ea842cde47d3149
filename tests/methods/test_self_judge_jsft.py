"""Self-Judge: letters read in both orders, pairs of today's replies, what JSFT imitates, and tournaments."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import Replies

from rewardlab import registry
from rewardlab.api import answer
from rewardlab.core import Run, Score, Task, Trajectory, Turn, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.judges.self_judge_jsft import (
    own_preference,
    preferences,
    replies_and_judgements,
    self_judge_jsft,
    self_judgement,
    self_tournament,
)
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

FORM, SAYS = "{prompt}|{first}|{second}", "It is {mark}."
ASKED = {"form": FORM, "says": SAYS}
PROBLEM = ask("Name a large number.", chosen="7", rejected="3")


class Judge(Replies):
    """It says A with the chance .8 where the number that stands first is larger, .4 where it is smaller, .6 of equal ones."""

    def __init__(self, replies=()):
        super().__init__(replies)
        self.read_prompts = []

    def read(self, trajectories, messages):
        self.read_prompts += [t.problem.question for t in trajectories]
        return list(trajectories)

    def score(self, trajectories):
        return [self._scored(t) for t in trajectories]

    def _scored(self, t):
        _, first, second = t.problem.question.split("|")
        chance = 0.8 if int(first) > int(second) else 0.4 if int(first) < int(second) else 0.6
        p = {"It is A.": chance, "It is B.": 1 - chance}[t.reply]
        # other tokens are as likely in both, and do not count
        return np.array([-3.0] * (len(t) - 1) + [math.log(p / 2)], np.float32)


class Short(Judge):
    """A judge whose context holds fewer tokens than its own answer has."""

    context = 5


def group(*replies: str) -> list[Trajectory]:
    return [Trajectory(PROBLEM, (Turn("policy", np.zeros(1, np.int64), text=x),), "end") for x in replies]


def run_of(judge: Judge, seed: int = 0) -> Run:
    return Run(policy=judge, reference=judge, seed=seed)


# ---- letters ----------------------------------------------------------------------------------------------------------


def test_a_pair_is_judged_in_both_orders_by_the_chances_of_the_letters():
    """7 before 3: p(A) = .8; 3 before 7: p(A) = .4, so that the 7 has 1 - .4 = .6; together .7, and of 3 over 7 .3."""
    judge = Judge()
    (pair, back, same) = preferences(
        [(PROBLEM, "7", "3"), (PROBLEM, "3", "7"), (PROBLEM, "5", "5")], run_of(judge), model="policy", **ASKED
    )
    assert pair == pytest.approx((0.8, 0.6))
    assert back == pytest.approx((0.4, 0.2))
    # a taste for the first place cancels
    assert sum(same) / 2 == pytest.approx(0.5)
    assert judge.read_prompts[:2] == ["Name a large number.|7|3", "Name a large number.|3|7"]


def test_the_gold_answer_is_not_shown():
    judge = Judge()
    preferences([(ask("Sum?", "7"), "7", "3")], run_of(judge), model="policy", form="{prompt}{answer}|{first}|{second}", says=SAYS)
    assert judge.read_prompts == ["Sum?|7|3", "Sum?|3|7"]


def test_what_does_not_fit_is_no_judgement():
    assert preferences([(PROBLEM, "7", "3")], run_of(Short()), model="policy", **ASKED) == [None]
    assert [s.value for s in own_preference(model="policy", **ASKED)([group("7", "3")], run_of(Short()))[0]] == [None, None]
    assert preferences([], run_of(Judge()), model="policy", **ASKED) == []


def test_a_reply_is_worth_its_mean_preference_over_the_others():
    """5 over 3 and 9 over 5 by .7 to .3 each, as 9 over 3: (.3 + .7) / 2, .3 and .7. A reply alone has no verdict."""
    run = run_of(Judge())
    scores, (alone,) = own_preference(model="policy", **ASKED)([group("5", "3", "9"), group("4")], run)
    assert [s.value for s in scores] == pytest.approx([0.5, 0.3, 0.7])
    assert alone.value is None
    # of each pair first stands with .8 and .4
    assert run.metrics["first_place"] == pytest.approx(0.6)


def test_held_out_pairs_are_judged_over_both_orders():
    """Chosen 7 over 3: right, and right in either order (.8, .6). Chosen 3 over 7: wrong in both. Equal ones: a tie, .6 and .4."""
    rows = [PROBLEM, ask("Q", chosen="3", rejected="7"), ask("Q", chosen="4", rejected="4")]
    found = self_judgement(**ASKED)(rows, run_of(Judge()))
    assert found["judged"] == pytest.approx(0.5)
    assert found["one_order"] == pytest.approx(0.5)
    assert found["first_place"] == pytest.approx(0.6)
    assert self_judgement(**ASKED)(rows[:1], run_of(Judge()))["judged"] == 1.0


# ---- pairs of today's replies -------------------------------------------------------------------------------------------


def test_the_better_of_two_own_replies_is_chosen_and_equal_ones_make_no_pair():
    recipe = self_judge_jsft(**ASKED)
    pairs = recipe.rollout([PROBLEM, ask("Another?")], run_of(Judge(["3", "7", "4", "4"])))
    assert [[t.reply for t in pair] for pair in pairs] == [["7", "3"]]
    assert recipe.rollout.settings["n"] == 2
    assert recipe.rollout.settings["top_p"] == 0.9


def test_the_frozen_reference_judges_and_today_s_policy_where_it_is_named():
    backwards = Judge(["3", "7"])
    backwards._scored = lambda t: -Judge()._scored(t)
    run = Run(policy=backwards, reference=Judge())
    assert [t.reply for t in self_judge_jsft(**ASKED).rollout([PROBLEM], run)[0]] == ["7", "3"]
    assert [t.reply for t in self_judge_jsft(judge="policy", **ASKED).rollout([PROBLEM], run)[0]] == ["3", "7"]


# ---- what JSFT imitates -------------------------------------------------------------------------------------------------


def test_a_reply_and_the_judgements_of_both_orders_are_imitated():
    rows = replies_and_judgements(**ASKED)([PROBLEM], run_of(Judge()))
    assert [(t.problem.question, t.reply) for (t,) in rows] == [
        ("Name a large number.", "7"),
        ("Name a large number.|7|3", "It is A."),
        ("Name a large number.|3|7", "It is B."),
    ]
    with pytest.raises(RewardlabError, match="rejected"):
        replies_and_judgements(**ASKED)([ask("Q", chosen="7")], run_of(Judge()))


def test_after_jsft_the_policy_is_its_own_reference_and_judge():
    rows = [ask(f"{i}+{i}=?", str(2 * i), chosen=f"{i}7", rejected=f"{i}3") for i in range(10, 18)]
    task = Task("pairs", Shuffled(rows), rows[:2], "final_number", max_new=4)
    recipe = registry.build("self_judge_jsft", {"jsft_steps": 2, **ASKED}).but(problems=2, lr=1e-3)
    run = Run(untrained().copy("policy"), steps=4, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = run.policy.copy("reference")
    start = {name: x.clone() for name, x in run.policy.state().items()}
    ops = Ops(recipe, run, task, RunConfig())

    def same(state) -> bool:
        return all(torch.equal(x, state[name]) for name, x in run.reference.state().items())

    recipe.loop(recipe, run, ops)
    assert same(start)
    assert "first_place" not in run.metrics
    run.step += 1
    recipe.loop(recipe, run, ops)
    learnt = {name: x.clone() for name, x in run.policy.state().items()}
    assert same(start)
    run.step += 1
    recipe.loop(recipe, run, ops)
    # pairs are sampled and judged now, by and beside the policy that imitation made
    assert 0 <= run.metrics["first_place"] <= 1
    assert same(learnt)
    assert not same(start)


# ---- tournaments, settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_a_tournament_finds_the_best_in_one_comparison_less_than_there_are_replies(count):
    replies = [str(i) for i in range(count)]
    for seed in range(5):
        judge = Judge()
        best = self_tournament(**ASKED)(group(*replies), [Score(None)] * count, run_of(judge, seed))
        assert best.reply == str(count - 1)
        # each in both orders
        assert len(judge.read_prompts) == 2 * (count - 1)


def test_prompts_are_answered_by_a_tournament():
    recipe = self_judge_jsft(candidates=4, **ASKED)
    assert (recipe.rollout.settings["n"], recipe.learns) == (4, False)
    policy = untrained(0, task=registry.task("arithmetic", test_size=1))
    assert isinstance(answer(recipe, policy, prompt="2+3=?", max_new=4)["answer"], str)


def test_a_form_without_a_pair_and_an_answer_without_a_letter_are_refused():
    with pytest.raises(RewardlabError, match="no single place for its letter"):
        self_judge_jsft(says="It is A.")
    with pytest.raises(RewardlabError, match="second"):
        self_judge_jsft(form="{prompt}|{first}")
    with pytest.raises(RewardlabError, match="not pairwise"):
        self_judge_jsft(form="deepseek_grm")
