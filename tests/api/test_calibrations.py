"""Pairs in a file relabelled by scores that Elo ratings calibrate: columns, rows that are left out, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from rewardlab.api import calibrate_file
from rewardlab.commands import cli
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from tests.helpers.checkpoints import checkpoint

PAIRS = [
    {"prompt": "Why?", "chosen": "!!!!", "rejected": "so", "chosen_model": "loud", "rejected_model": "plain", "chosen_by": "Ann"},
    {"prompt": "How?", "chosen": "no", "rejected": "!!!", "chosen_model": "plain", "rejected_model": "loud"},
]


def likes_noise(rows):
    return [float(reply.count("!")) for _, reply in rows]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written("in.jsonl", PAIRS)
    Path("elo.csv").write_text("model,elo\nloud,1000\nplain,1200\n")


def written(name: str, rows: list) -> None:
    Path(name).write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


def read(name: str) -> list[dict]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def test_pairs_are_relabelled_by_calibrated_scores():
    document = calibrate_file("in.jsonl", "out.jsonl", model=likes_noise, elo="elo.csv", temperature=0.01)
    # loud scores 4 and 3, plain 0 twice, and 24% of these comparisons should be loud's: the mean of sigmoid((4 + o) / T) and
    # sigmoid((3 + o) / T) is .24 for o a little below -4, so that both of its replies lose
    expected = 1 / (1 + 10**0.5)
    offset = document["offsets"]["loud"] - document["offsets"]["plain"]
    assert sum(1 / (1 + math.exp(-(score + offset) / 0.01)) for score in (3.0, 4.0)) / 2 == pytest.approx(expected, abs=1e-4)
    first, second = read("out.jsonl")
    assert (first["chosen"], first["rejected"], first["flipped"]) == ("so", "!!!!", True)
    assert (second["chosen"], second["rejected"], second["flipped"]) == ("no", "!!!", False)
    assert first["rejected_score"] - first["chosen_score"] == pytest.approx(4 + offset)
    # loud won both pairs at first, and loses both
    assert document["mismatch_before"]["loud"] == pytest.approx((1 - expected) / (1 - expected))
    assert document["mismatch_after"]["loud"] == pytest.approx(-expected / (1 - expected))
    assert document["flipped"] == 0.5


def test_a_reply_that_takes_the_other_ones_place_brings_its_columns():
    rows = [
        {**PAIRS[0], "chosen_score": 2.0, "rejected_score": 1.0, "chosen_elo": 1000, "rejected_elo": 3000},
        {**PAIRS[1], "chosen_score": 1.0, "rejected_score": 2.0, "chosen_elo": 3000, "rejected_elo": 1000},
        {**PAIRS[0], "chosen_model": "plain", "chosen_score": 1.0, "rejected_score": 5.0, "chosen_elo": 3000, "rejected_elo": 3000},
    ]
    written("in.jsonl", rows)
    document = calibrate_file("in.jsonl", "out.jsonl")
    first, second, same = read("out.jsonl")
    assert (first["chosen"], first["rejected"], first["chosen_model"], first["rejected_elo"]) == ("so", "!!!!", "plain", 1000)
    assert first["rejected_by"] == "Ann"
    assert (first["flipped"], second["flipped"]) == (True, False)
    # both by one model: its label stays, whatever the scores
    assert (same["chosen"], same["flipped"]) == ("!!!!", False)
    assert document["flipped"] == pytest.approx(1 / 3)


def test_rows_that_do_not_say_who_wrote_them_are_left_out():
    written("in.jsonl", [PAIRS[0], "broken", {**PAIRS[0], "rejected": " "}, {**PAIRS[0], "chosen_model": None}, PAIRS[1]])
    document = calibrate_file("in.jsonl", "out.jsonl", model=likes_noise, elo="elo.csv")
    assert [row["prompt"] for row in read("out.jsonl")] == ["Why?", "How?"]
    assert document["dropped"] == {"broken": 1, "no pair": 1, "incomplete": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0}, "temperature must be a number above 0"),
        ({"model": None}, "no row of in.jsonl has a column chosen_score"),
        ({"elo": None}, "no row of in.jsonl has a column chosen_elo"),
        ({"model": "nowhere"}, "nowhere"),
        ({"model": lambda rows: [math.nan] * len(rows)}, "has a score that is not finite"),
    ],
)
def test_mistakes_are_said(change, message):
    with pytest.raises(RewardlabError, match=message):
        calibrate_file("in.jsonl", "out.jsonl", **{"model": likes_noise, "elo": "elo.csv", **change})
    assert not Path("out.jsonl").exists()


def test_the_command_scores_with_a_reward_model(capsys):
    checkpoint(Path("rm"), tokenizer(), "LlamaForSequenceClassification", seed=0, num_labels=1)
    line = "data calibrate in.jsonl --model rm --elo elo.csv --device cpu --out out.jsonl"
    assert cli.main(line.split()) == 0
    assert "mismatch_after" in capsys.readouterr().out
    assert len(read("out.jsonl")) == 2
