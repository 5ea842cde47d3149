"""Strengths of the pairs in a file, by several reward models: columns, flips, labels, and rows that are no pairs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from rewardlab import registry
from rewardlab.api import strength_file, train
from rewardlab.api.checking import check_columns
from rewardlab.commands import cli
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from tests.helpers.checkpoints import checkpoint


def likes(letter: str):
    """A scorer that counts a letter in the reply."""
    return lambda rows: [float(reply.count(letter)) for _, reply in rows]


PAIRS = [
    {"prompt": "Why?", "chosen": "aab", "rejected": "b", "chosen_by": "Ann"},
    {"prompt": "How?", "chosen": "b", "rejected": "aaaa"},
    {"prompt": "Who?", "chosen": "b", "rejected": "a"},
    {"prompt": "When?", "chosen": "abbb", "rejected": "bb"},
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written("in.jsonl", PAIRS)


def written(name: str, rows: list) -> None:
    Path(name).write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


def read(name: str) -> list[dict]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def test_each_pair_gets_the_mean_and_the_spread_over_models():
    document = strength_file("in.jsonl", "out.jsonl", models=[likes("a"), likes("b")])
    # differences by a: 2, -4, -1, 1;  by b: 0, 1, 1, 1
    assert [(row["strength"], row["strength_std"]) for row in read("out.jsonl")] == [
        (1.0, 1.0),
        (-1.5, 2.5),
        (0.0, 1.0),
        (1.0, 0.0),
    ]
    assert [row["chosen"] for row in read("out.jsonl")] == [row["chosen"] for row in PAIRS]
    assert (document["written"], document["below_0"], document["strength"]) == (4, 0.25, pytest.approx(0.125))


def test_the_weakest_below_0_are_flipped_with_all_that_is_theirs():
    document = strength_file("in.jsonl", "out.jsonl", models=[likes("a")], flip=0.25, labels="margins")
    rows = read("out.jsonl")
    assert [row["flipped"] for row in rows] == [False, True, False, False]
    assert rows[1] == {
        "prompt": "How?", "chosen": "aaaa", "rejected": "b", "strength": 4.0, "strength_std": 0.0, "chosen_score": 4.0,
        "rejected_score": 0.0, "flipped": True,
    }  # fmt: skip
    # one that is not flipped keeps its strength as a margin below 0
    assert [row["chosen_score"] - row["rejected_score"] for row in rows] == [2.0, 4.0, -1.0, 1.0]
    assert rows[0]["chosen_by"] == "Ann"
    assert document["flipped"] == 0.25


def test_votes_are_how_many_models_prefer_each_reply():
    strength_file("in.jsonl", "out.jsonl", models=[likes("a"), likes("b"), likes("c")], labels="votes")
    assert [(row["chosen_score"], row["rejected_score"]) for row in read("out.jsonl")] == [
        (2.0, 1.0),
        (1.5, 1.5),
        (1.5, 1.5),
        (2.5, 0.5),
    ]


def test_rows_that_are_no_pairs_are_left_out_with_their_place():
    written(
        "in.jsonl",
        [PAIRS[0], "broken", {"prompt": "Who?", "chosen": "a", "rejected": " "}, {"prompt": "", "chosen": "a"}, PAIRS[1]],
    )
    document = strength_file("in.jsonl", "out.jsonl", models=[likes("a")])
    assert [row["prompt"] for row in read("out.jsonl")] == ["Why?", "How?"]
    assert document["broken_lines"] == [f"line 2: {read('out.dropped.jsonl')[0]['why']}"]
    left = [(row["place"], row["reason"]) for row in read("out.dropped.jsonl")]
    assert left[:2] == [("line 2", "broken"), ("line 3", "no pair")]
    assert left[2][0] == "line 4"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": []}, "name at least one"),
        ({"flip": 1.5}, "flip must be a number from 0 to 1"),
        ({"models": ["nowhere"]}, "nowhere"),
        ({"models": [lambda rows: [math.nan] * len(rows)]}, "scorer 1 gave pair 1 a score that is not finite"),
    ],
)
def test_mistakes_are_said(change, message):
    with pytest.raises(RewardlabError, match=message):
        strength_file("in.jsonl", "out.jsonl", **{"models": [likes("a")], **change})
    assert not Path("out.jsonl").exists()


def test_a_column_of_the_file_is_not_overwritten():
    written("in.jsonl", [{**row, "rejected_score": 1} for row in PAIRS])
    with pytest.raises(RewardlabError, match="have a column rejected_score, which would be overwritten"):
        strength_file("in.jsonl", "out.jsonl", models=[likes("a")], labels="votes")
    strength_file("in.jsonl", "out.jsonl", models=[likes("a")])


def test_the_command_reads_sequence_classifiers_and_bradley_terry_its_result(capsys):
    for seed in (0, 1):
        checkpoint(Path(f"rm{seed}"), tokenizer(), "LlamaForSequenceClassification", seed=seed, num_labels=1)
    line = "data strength in.jsonl --models model:rm0,rm1 --flip 0.5 --labels margins --device cpu --out out.jsonl"
    assert cli.main(line.split()) == 0
    rows = read("out.jsonl")
    assert all(row["strength_std"] > 0 for row in rows)
    assert len({row["strength"] for row in rows}) == 4
    recipe = registry.build("bradley_terry", {"labels": "margins", "problems": 2})
    check_columns(recipe, registry.task("out.jsonl"))
    done = train(recipe, "untrained", registry.task("out.jsonl"), steps=1, eval_problems=1, device="cpu", out="run")
    assert done.summary["steps"] == 1
