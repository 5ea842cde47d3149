"""DCS: the score by hand, how scores are read as beliefs, rows of MMLU, options of a language model, and training with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.distributional_correctness_score import belief, benchmark, dcs, figures, marks, read, trained
from rewardlab.methods.benchmarks.distributional_correctness_score import questions as sampled
from rewardlab.models.embedded import tokenizer
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.raters import load_rater
from tests.helpers.checkpoints import checkpoint

ROW = {"question": "What is 6 * 7?", "choices": ["42", "48", "13"], "answer": 0, "type": "elementary_mathematics"}


def told(*scores):
    (item,) = read(ROW, "mmlu_stem")
    return figures(Marks.of([item] * len(scores), [marks(item, Verdict(s)) for s in scores]))


def test_the_score_by_hand():
    assert dcs(0.5, 0.2, 0.3) == pytest.approx(0.3 * 0.7)
    assert dcs(1.0, 0.0, 0.0) == 1.0
    assert dcs(0.0, 1.0, 0.0) == -1.0
    assert dcs(0.0, 0.0, 1.0) == 0.0
    # a wrong answer that costs half
    assert dcs(0.5, 0.5, 0.0, 2.0, 1.0) == 0.5
    with pytest.raises(ValueError, match="at least"):
        dcs(0.5, 0.5, 0.0, 1.0, 2.0)


def test_hedging_to_idk_and_to_a_wrong_option_differ_in_the_score_alone():
    # 0.6 (1 - 0.4) against 0.6 - 0.4
    idk, wrong = told((0.6, 0.0, 0.0, 0.4)), told((0.6, 0.4, 0.0, 0.0))
    assert (idk["dcs"], wrong["dcs"]) == (pytest.approx(0.36), pytest.approx(0.2))
    for name in ("accuracy", "brier", "confidence_weighted", "ternary"):
        assert idk[name] == pytest.approx(wrong[name])


def test_what_is_said_is_what_has_the_most_mass():
    found = told((0.1, 0.2, 0.2, 0.5), (0.6, 0.4, 0.0, 0.0), (0.1, 0.8, 0.1, 0.0))
    assert found["abstains"] == found["accuracy"] == pytest.approx(1 / 3)
    assert found["ternary"] == pytest.approx(0.0)
    assert found["confidence_weighted"] == pytest.approx(0.2)
    assert found["brier"] == pytest.approx((0.81 + 0.04 + 0.04 + 0.25 + 0.32 + 0.81 + 0.64 + 0.01) / 3)


def test_scores_are_read_by_softmax_whatever_their_sign():
    logs = np.log([0.2, 0.1, 0.1, 0.1])
    assert belief(logs) == pytest.approx([0.4, 0.2, 0.2, 0.2])
    assert belief(np.array([-1000.0, -1001.0])) == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)])
    # a reward model, all of whose scores lie below 0 on one question and above on the other
    for shift in (-9.0, 9.0):
        found = told(tuple(shift + math.log(x) for x in (0.4, 0.2, 0.1, 0.3)))
        assert found["dcs"] == pytest.approx((0.4 - 0.3) * (1 - 0.3))
        assert found["p_idk"] == pytest.approx(0.3)


def test_whether_scores_are_chances_is_one_answer_for_all_questions_of_a_rater():
    """The first row adds up to 1, and the second does not: softmax of both."""
    e = math.e
    # right e / (e + 3), wrong 2 / (e + 3), idk 1 / (e + 3); then right e / (2e + 2), wrong (e + 1) / (2e + 2), idk 1 / (2e + 2)
    first, second = (e - 2) * (e + 2) / (e + 3) ** 2, (e - e - 1) * (2 * e + 1) / (2 * e + 2) ** 2
    assert told((1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0))["dcs"] == pytest.approx((first + second) / 2)
    assert told((1.0, 0.0, 0.0, 0.0), (0.5, 0.5, 0.0, 0.0))["dcs"] == pytest.approx((1 + 0) / 2)
    # without a verdict nothing is said of how scores are meant
    assert told((1.0, 0.0, 0.0, 0.0), ())["dcs"] == pytest.approx((1 - 1) / 2)


def test_of_a_judge_of_pairs_all_mass_lies_on_what_wins_most():
    (item,) = read(ROW, "mmlu_stem")
    won = {(0, j): 1.0 for j in (1, 2, 3)} | {(3, j): 1.0 for j in (1, 2)}
    assert figures(Marks.of([item], [marks(item, Verdict(orders=won))]))["dcs"] == 1.0


def test_a_question_without_a_verdict_counts_as_a_wrong_answer():
    assert told((0.6, 0.4, None, 0.0))["dcs"] == -1.0
    assert told((0.0, 1.0, 0.0, 0.0))["dcs"] == told((None,) * 4)["dcs"]


def test_rows_of_mmlu_and_broken_ones():
    (item,) = read(ROW, "mmlu_stem")
    assert item.replies == ("A", "B", "C", "?")
    assert item.worth == (1.0, -1.0, -1.0, 0.0)
    assert "elementary mathematics" in item.question
    assert "B. 48" in item.question
    (letter,) = read(ROW | {"answer": "C"}, "mmlu")
    assert letter.worth == (-1.0, -1.0, 1.0, 0.0)
    for broken in ({"answer": 3}, {"answer": -1}, {"choices": ["42"]}):
        with pytest.raises(ValueError, match="place of one"):
            list(read(ROW | broken, "mmlu"))


def test_the_data_at_hand_is_read():
    try:
        items = benchmark.items()
    except RewardlabError as problem:
        pytest.skip(str(problem))
    # of 3,018 rows, two stand twice
    assert 3000 < len(items) <= 3018
    assert {len(item.replies) for item in items} == {5}


def test_options_without_the_end_token_are_the_chances_of_the_next_token(tmp_path):
    import torch

    model, words = checkpoint(tmp_path, tokenizer(), "LlamaForCausalLM")
    (item,) = [Item("a", users("2+3=?"), ("5", "7", "?"), (1.0, -1.0, 0.0))]
    (verdict,) = load_rater(f"likelihood:{tmp_path}?norm=sum&end=no", "cpu", "float32").judge([item], benchmark)
    text = words.apply_chat_template([{"role": "user", "content": "2+3=?"}], tokenize=False, add_generation_prompt=True)
    with torch.no_grad():
        logits = model(words(text, add_special_tokens=False, return_tensors="pt")["input_ids"]).logits[0, -1].log_softmax(-1)
    ids = [words(reply, add_special_tokens=False)["input_ids"] for reply in item.replies]
    assert list(verdict.scores) == pytest.approx([float(logits[i]) for (i,) in ids], abs=1e-4)
    (by_length,) = load_rater(f"likelihood:{tmp_path}?norm=characters&end=no", "cpu", "float32").judge([item], benchmark)
    assert list(by_length.scores) == pytest.approx([s / 2 for s in verdict.scores], abs=1e-4)
    with pytest.raises(RewardlabError, match="end token"):
        load_rater(f"likelihood:{tmp_path}?end=perhaps")


@pytest.mark.slow
def test_a_network_trained_with_the_score_abstains_where_nothing_can_be_known():
    rng = np.random.default_rng(0)
    seen, _, known = sampled(rng, 1000)
    said = {name: trained(name, seed=1)(seen).argmax(1) == 4 for name in ("dcs", "accuracy")}
    assert said["accuracy"].mean() < 0.05
    assert said["dcs"][~known].mean() > said["dcs"][known].mean() + 0.3
