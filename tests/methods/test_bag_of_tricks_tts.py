"""Best of N, votes and budgets by hand; StrictPRMBench's files as they are published."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.bag_of_tricks_tts import benchmark, figures, marks, outputs, read
from rewardlab.scoreboard.choices import chosen, expected_best, points
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict


def item(answers, right, tokens=None, name="p"):
    candidates = [
        {"steps": [f"step of {i}"], "extracted_answer": a, "is_correct": r, "num_tokens": t}
        for i, (a, r, t) in enumerate(zip(answers, right, tokens or [None] * len(answers), strict=True))
    ]
    (found,) = read({"problem_id": name, "problem": {"question": "q", "dataset": "gsm8k"}, "candidates": candidates}, "file")
    return found


def test_the_best_of_k_is_the_mean_over_all_choices_of_k_with_ties_and_silence():
    reward, worth = np.array([0.3, 0.9, 0.3, -math.inf, 0.1]), [1.0, 0.0, 0.0, 1.0, 1.0]
    for k in range(1, 6):
        by_hand = []
        for few in itertools.combinations(range(5), k):
            top = max(reward[list(few)])
            best = [worth[i] for i in few if reward[i] == top]
            by_hand.append(0.0 if top == -math.inf else sum(best) / len(best))
        assert expected_best(reward, worth, k) == pytest.approx(sum(by_hand) / len(by_hand))


def test_a_vote_weighs_answers_and_no_answer_does_not_vote():
    one = item(["7", "7", "", "8", "8"], [False, False, False, True, True])
    found = marks(one, Verdict((0.1, 0.2, 0.9, 0.8, 0.7)))
    assert found["best_of_n"] == 0.0  # the reply without an answer
    assert found["majority"] == 0.0  # of equally frequent answers the first
    assert found["vote"] == 1.0
    assert (found["pass_at_1"], found["pass_at_n"]) == (0.4, 1.0)
    assert marks(one, Verdict((-9.0, -8.0, -1.0, -2.0, -3.0)))["vote"] == 1.0


def test_a_budget_of_tokens_counts_replies_in_their_order():
    one = item(["7", "8", "8"], [False, True, True], [600, 424, 1])
    found = marks(one, Verdict((0.1, 0.2, 0.3)))
    assert (found["best_at_1024"], found["majority_at_1024"], found["majority_at_4096"]) == (1.0, 0.0, 1.0)
    assert marks(item(["7", "8"], [False, True], [5000, 1]), Verdict((0.1, 0.2)))["best_at_1024"] == 0.0
    assert "best_at_1024" not in marks(item(["7"], [True]), Verdict((0.1,)))


def test_sets_count_alike_and_silence_is_wrong():
    items = [item(["7"], [True]), item(["7"], [False], name="q"), item(["7"], [True], name="r")]
    items[2] = type(items[2])(**{**items[2].__dict__, "subset": "math500"})
    found = figures(Marks.of(items, [marks(i, Verdict((1.0,))) for i in items]))
    assert (found["gsm8k"], found["math500"], found["best_of_n"]) == (0.5, 1.0, 0.75)
    assert marks(items[0], Verdict())["best_of_n"] == 0.0


def test_comparisons_count_as_points():
    one = item(["7", "8", "9"], [False, True, False])
    won = points(one, Verdict(orders={(1, 0): 1.0, (0, 1): 0.0, (1, 2): 0.5}))
    assert won.tolist() == [0.0, 1.5, 0.5]
    assert chosen(won) == 1
    # a comparison is won or not, however sure the rater is
    assert points(one, Verdict(orders={(1, 0): 0.6, (1, 2): 0.7})).tolist() == [0.0, 2.0, 0.0]
    assert chosen(points(one, Verdict())) is None


def test_files_of_candidates_and_answers_are_joined_by_problem(tmp_path):
    lines = [{"problem_id": p, "candidate_index": k, "steps": [f"{p}{k}"]} for p in "ab" for k in (0, 1)]
    for line in lines[::2]:
        line["problem"] = {"question": line["problem_id"], "dataset": "gsm8k"}
    about = [
        {"problem_id": p, "candidate_index": k, "extracted_answer": str(k), "is_correct": k == 1} for p in "ab" for k in (0, 1)
    ]
    for name, rows in (("candidates_x", lines), ("answers_x", about)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = benchmark.items(tmp_path)
    assert [(i.id, i.replies, i.worth) for i in found] == [("a", ("a0", "a1"), (0.0, 1.0)), ("b", ("b0", "b1"), (0.0, 1.0))]


@pytest.fixture(scope="module")
def items():
    try:
        return benchmark.items()
    except RewardlabError:
        pytest.skip("StrictPRMBench is not at hand: set REWARDLAB_DATA")


@pytest.mark.slow
def test_what_the_samples_come_to(items):
    assert len(items) == 1000
    assert sum(len(i.replies) for i in items) == 32000
    found = Marks.of(items, [marks(i, Verdict()) for i in items])
    for name, sample, vote, reached in (("gsm8k", 0.8419, 0.856, 0.962), ("math500", 0.6545, 0.708, 0.850)):
        own = found.only(name)
        assert own.mean("pass_at_1") == pytest.approx(sample, abs=5.1e-5)
        assert own.mean("majority") == pytest.approx(vote)
        assert own.mean("pass_at_n") == pytest.approx(reached)


@pytest.mark.slow
def test_the_best_of_32_of_one_model_by_four_rules(items):
    path = Path(benchmark.files()[0]).parent / "steps_qwen_prm_math500.jsonl.gz"
    known = {}
    for rater, name, verdict in outputs(path):
        known.setdefault(rater, {})[name] = verdict
    own = [i for i in items if i.subset == "math500"]
    for rule, value in (("product", 0.744), ("gm", 0.738), ("min", 0.738), ("last", 0.710)):
        verdicts = known[f"qwen_prm/{rule}"]
        found = [i.worth[chosen(points(i, verdicts[i.id]))] for i in own]
        assert np.mean(found) == pytest.approx(value)
