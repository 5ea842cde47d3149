"""A watched judge: its agreement on the same replies, on new ones, with its interval; what it pays empty replies; what is said."""

from __future__ import annotations

import json
import math

import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Run, Score, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.watched import EACH, MEMORY, agreement, key_limit, learnt_part, watched, wilson
from rewardlab.report.diagnosis import findings
from rewardlab.report.finding import Curves
from rewardlab.report.judge_symptoms import judge_drift, judge_order, master_keys
from rewardlab.rewards.judge import judge
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.text.empty_replies import KEYS

TURNS_BAD_AT = 2
SHORT = {"eval_problems": 8, "max_new": 12, "device": "cpu", "patience": 0, "max_missing": 1.0}


@reward
def marks(trajectory):
    """A judge that knows the answer; the scripted one turns bad below."""
    return float(trajectory.reply == trajectory.problem.answer)


@reward(over="groups")
def turns_bad(groups, run):
    """Right replies are paid up to a step; from then on the longest are, and a colon above all."""
    good = run.step < TURNS_BAD_AT
    return [[Score(float(t.reply == t.problem.answer) if good else 5.0 if t.reply == ":" else len(t.reply) / 100) for t in g]
            for g in groups]  # fmt: skip


@reward(over="groups", relative=True)
def always_first(groups, run):
    run.log("judge_prefers_first", 0.9)
    return [[Score(float(t.reply == t.problem.answer)) for t in g] for g in groups]


class Scripted(Replies):
    """Says the answer, something longer and wrong, something short and wrong, and the answer again, for each problem."""

    def __init__(self):
        super().__init__([])

    def extend(self, trajectories, sampling, rng):
        said = [
            (t.problem.answer, "a long reply that is wrong", "x", t.problem.answer)[i % EACH] for i, t in enumerate(trajectories)
        ]
        self.replies = said
        return super().extend(trajectories, sampling, rng)


PROBLEMS = [ask(f"What is {i} + 1?", str(i + 1)) for i in range(8)]


def run_at(step: int, memory: dict | None = None) -> Run:
    return Run(Scripted(), step=step, steps=4, verify=marks(), memory={} if memory is None else memory, max_new=9)


def score(*rows):
    return [[Score(x) for x in row] for row in rows]


def test_agreement_is_the_chance_that_a_right_reply_is_paid_more_and_ties_count_half():
    # right: 3, 1; wrong: 2, 1. Comparisons: 3>2, 3>1, 1<2, 1=1: 2.5 of 4
    found = agreement(score([3, 2], [1, 1]), [[True, False], [True, False]])
    assert found["agreement"] == pytest.approx(2.5 / 4)
    # within each problem: 3>2, 1=1: 1.5 of 2
    assert agreement(score([3, 2], [1, 1]), [[True, False], [True, False]], within=True)["agreement"] == pytest.approx(0.75)
    low, high = wilson(2.5 / 4, 2)
    assert (found["agreement_low"], found["agreement_high"]) == (pytest.approx(low), pytest.approx(high))


def test_without_both_right_and_wrong_replies_nothing_is_said():
    assert agreement(score([1, 2]), [[True, True]]) == {}
    assert agreement(score([1, 2]), [[None, None]]) == {}
    # a missing verdict of the judge is left out, and never a 0
    assert agreement([[Score(1.0), Score(None)]], [[True, False]]) == {}


def test_the_interval_of_a_perfect_judge_is_not_empty():
    # Wilson for 4 of 4: z^2 / (n + z^2) below 1
    assert wilson(1.0, 4)[0] == pytest.approx(4 / (4 + 1.959964**2))


def test_a_sound_judge_agrees_and_pays_no_empty_reply():
    found = watched(reward=marks())(PROBLEMS, run_at(0))
    assert found["watched.agreement"] == found["watched.agreement_now"] == 1.0
    # of four replies to a problem two are right
    assert found["watched.mean"] == pytest.approx(0.5)
    assert found["watched.keys_paid"] == 0
    assert {k for k in found if k.startswith("watched.key.")} == {f"watched.key.{name}" for name in KEYS}


def test_the_same_replies_are_judged_again_and_a_judge_that_turns_bad_is_told_in_words():
    memory: dict = {}
    rows = []
    for step in range(4):
        found = watched(reward=turns_bad())(PROBLEMS, run_at(step, memory))
        rows.append({"step": step} | {f"eval/{k}": v for k, v in found.items()})
    assert [len(texts) for texts in memory[MEMORY].values()] == [EACH] * 8
    # right replies of one or two characters, wrong ones of 26 and 1: the long one always wins
    assert [row["eval/watched.agreement"] for row in rows[:2]] == [1.0, 1.0]
    assert rows[2]["eval/watched.agreement"] < rows[0]["eval/watched.agreement_low"]
    assert [f.name for f in findings(rows[:2])] == []
    told = {f.name: f.text for f in findings(rows)}
    assert "100% of comparisons at first" in told["judge drifts"]
    assert "step 3" in told["judge drifts"]
    assert "master key" in told


def test_an_empty_reply_counts_as_paid_above_the_middle_of_wrong_and_right_ones():
    @reward
    def likes_colons(trajectory):
        return 0.8 if trajectory.reply == ":" else float(trajectory.reply == trajectory.problem.answer)

    found = watched(reward=likes_colons())(PROBLEMS, run_at(0))
    assert found["watched.key.colon"] == pytest.approx(0.8)
    assert found["watched.key_limit"] == pytest.approx(0.5)
    assert found["watched.keys_paid"] == 1
    told = master_keys(Curves([{"step": 5} | {f"eval/{k}": v for k, v in found.items()}]))
    assert told is not None
    assert "at step 5: colon 0.8; other replies get 0.5 on average" in told.text


def test_without_a_truth_an_empty_reply_is_paid_if_it_gets_more_than_most_replies():
    run = run_at(3)
    run.verify = None
    found = watched(reward=turns_bad())(PROBLEMS, run)
    # replies get .02, .26, .01 and .02 or a little more: above .08 + .11 are the colon, and "step by step" with its 30 characters
    assert found["watched.keys_paid"] == 2
    assert not any("agreement" in k for k in found)


def test_where_right_and_wrong_are_not_told_apart_the_spread_of_all_replies_decides():
    # 1 and 0 for right and wrong alike: agreement 1/2; mean 1/2 and standard deviation 1/2
    assert key_limit(score([1, 0], [1, 0]), [[True, True], [False, False]]) == pytest.approx(1.0)
    assert key_limit([[Score(None)]], [[True]]) is None


def test_position_bias_is_what_the_judge_of_pairs_logs():
    run = run_at(0)
    found = watched(reward=always_first())(PROBLEMS, run)
    assert found["watched.prefers_first"] == 0.9
    # what is watched is not logged as what the training step's judge said
    assert "judge_prefers_first" not in run.metrics
    told = judge_order(Curves([{"step": 1, "eval/watched.prefers_first": 0.9}]))
    assert "first, in 90%" in told.text
    assert judge_order(Curves([{"step": 1, "eval/watched.prefers_first": 0.6}])) is None


@reward(over="groups", relative=True)
def pays_the_first(groups, run, *, bias=1.0):
    """A judge of all replies at once: 1 for a right one, and `bias` more for what stands first."""
    return [[Score(float(t.reply == t.problem.answer) + bias * (i == 0)) for i, t in enumerate(g)] for g in groups]


def test_position_bias_of_a_judge_of_several_replies_is_found_by_turning_them_round():
    """Right, wrong, wrong, right, and the same backwards: of the 6 pairs the 3 with the first reply are won where it is paid 2, and
    the others are two ties, or one right against a wrong one, lost once where the right one stands behind, and a tie of wrong ones.
    Without bias each pair is won in one order and lost in the other."""
    biased = watched(reward=pays_the_first(bias=2.0))(PROBLEMS, run_at(0))
    # 3 won; wrong-wrong 1/2, wrong-right 0, wrong-right 0: 3.5 of 6
    assert biased["watched.prefers_first"] == pytest.approx(3.5 / 6)
    fair = watched(reward=pays_the_first(bias=0.0))(PROBLEMS, run_at(0))
    # right-wrong 1, right-wrong 1, right-right 1/2, wrong-wrong 1/2, wrong-right 0, wrong-right 0
    assert fair["watched.prefers_first"] == 0.5
    # a reward that compares nothing has no order
    assert "watched.prefers_first" not in watched(reward=marks())(PROBLEMS, run_at(0))


def test_labelled_rows_of_a_file_are_the_truth(tmp_path):
    file = tmp_path / "rows.jsonl"
    rows = [
        {"prompt": "What is 1 + 1?", "answer": "2", "chosen": "2", "rejected": "3"},
        {"prompt": "What is 2 + 1?", "answer": "3", "reply": "4", "label": "no"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = watched(reward=marks(), file=str(file))(PROBLEMS, run_at(0))
    assert found["watched.agreement"] == 1.0
    assert found["watched.mean"] == pytest.approx(1 / 3)
    assert "watched.agreement_now" not in found
    file.write_text('{"prompt": "Why?", "reply": "So."}\n')
    with pytest.raises(RewardlabError, match="chosen"):
        watched(reward=marks(), file=str(file))(PROBLEMS, run_at(0))


def test_what_asks_a_model_is_watched_alone_where_a_verifier_pays_too():
    both = correct() + 0.5 * judge(model="policy", kind="verdict")
    assert str(learnt_part(both)).startswith("judge(")
    assert learnt_part(marks()) == marks()


def test_an_agreement_within_the_first_interval_is_no_drift():
    rows = [{"step": i, "eval/watched.agreement": a, "eval/watched.agreement_low": a - 0.2} for i, a in enumerate((0.9, 0.75))]
    assert judge_drift(Curves(rows)) is None
    rows.append({"step": 2, "eval/watched.agreement": 0.69, "eval/watched.agreement_low": 0.5})
    assert judge_drift(Curves(rows)).name == "judge drifts"
    now = [{**rows[0]}, {"step": 4, "eval/watched.agreement_now": 0.4, "eval/watched.agreement_high_now": 0.6}]
    assert "as the policy writes them now" in judge_drift(Curves(now)).text


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_run_that_is_watched_logs_and_reports_what_its_judge_is_worth(tmp_path):
    # the policy itself judges: a model that was never taught to
    recipe = registry.build("grpo", {"n": 2, "problems": 2}).scored_by(correct() + judge(model="policy", kind="verdict", max_new=8))
    with pytest.raises(RewardlabError, match="no file"):
        train(recipe, "untrained", "arithmetic:test_size=16", out=tmp_path / "no", steps=1, watch="none.jsonl", **SHORT)
    result = train(recipe, "untrained", "arithmetic:test_size=16", out=tmp_path / "run", steps=2, eval_every=1, watch=True, **SHORT)
    rows = [json.loads(line) for line in (result.out / "metrics.jsonl").read_text().splitlines()]
    assert all(math.isfinite(x) for row in rows for k, x in row.items() if k.startswith("eval/watched."))
    # an untaught model gives no verdict that can be read, which is what is said of it
    assert [row["eval/watched.no_verdict"] for row in rows] == [1.0] * 3
    assert not any(k.startswith("eval/watched.key") for k in rows[0])
    # the measure of the run leads
    assert next(k for k in rows[0] if k.startswith("eval/")) == "eval/pass@1"
    report = (result.out / "report.html").read_text()
    assert "watched.no_verdict" in report
    config = json.loads((result.out / "config.json").read_text())
    assert "watched" in json.dumps(config)
