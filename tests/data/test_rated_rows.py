"""Rows of rated replies that are no pairs: methods of pairs name the command that reads them, which does."""

import json
import shlex

import pytest

from rewardlab import api, registry
from rewardlab.api.checking import check_columns
from rewardlab.commands import cli
from rewardlab.data.rated_rows import objects, read_by
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from tests.helpers.checkpoints import checkpoint

HELPSTEER = [
    {"prompt": f"{i}?", "response": f"{i} {j}", "helpfulness": j, "correctness": j, "coherence": 4, "complexity": 1, "verbosity": 2}
    for i in range(4)
    for j in range(2)
]
LISTS = {
    "completions, scores": [{"prompt": f"{i}?", "completions": ["a", "b"], "scores": [5, 1]} for i in range(4)],
    "replies, ratings": [{"prompt": f"{i}?", "replies": ["a", "b"], "ratings": [5, 1], "models": ["x", "y"]} for i in range(4)],
    "other names": [{"prompt": f"{i}?", "candidates": ["a", "b"], "worth of each": [5, 1]} for i in range(4)],
    "objects": [
        {"prompt": f"{i}?", "completions": [{"response": "a", "overall_score": 5}, {"response": "b", "overall_score": 1}]}
        for i in range(4)
    ],
    "single replies": [{"prompt": f"{i}?", "reply": "ab"[j], "score": 5 - 4 * j} for i in range(4) for j in range(2)],
    "of TRL's KTO": [{"prompt": f"{i}?", "completion": "ab"[j], "label": not j} for i in range(4) for j in range(2)],
}


def refused(file, rows):
    """What `bradley_terry` says of the rows."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(RewardlabError, match="bradley_terry needs 2 columns that the data lacks") as told:
        check_columns(registry.build("bradley_terry"), registry.task(str(file)))
    return str(told.value)


@pytest.mark.parametrize("form", LISTS)
def test_the_command_that_makes_pairs_of_scored_replies_is_named_and_does(form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # a file may be called as a world is
    told = refused(tmp_path / "notes.jsonl", LISTS[form])
    (line,) = (line for line in told.splitlines() if "rewardlab data pairs" in line)
    command = shlex.split(line[line.index("rewardlab data pairs") :])
    assert cli.main(command[1:]) == 0
    problems = registry.task("pairs.jsonl").train.problems
    assert [(p.meta["chosen"], p.meta["rejected"], p.meta["gap"]) for p in problems] == [
        ("a", "b", 4 if form != "of TRL's KTO" else 1)
    ] * len(problems)


def test_the_command_names_the_column_of_the_prompt(tmp_path, monkeypatch):
    """UltraFeedback has the prompt in `instruction`: without its name the command that is told would be refused."""
    monkeypatch.chdir(tmp_path)
    rows = [{"instruction": row["prompt"], "completions": row["completions"]} for row in LISTS["objects"]]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = registry.task("rows.jsonl", prompt_column="instruction")
    with pytest.raises(RewardlabError, match="rewardlab data pairs") as told:
        check_columns(registry.build("dpo"), task)
    (line,) = (line for line in str(told.value).splitlines() if "rewardlab data pairs" in line)
    assert cli.main(shlex.split(line[line.index("rewardlab data pairs") :])[1:]) == 0
    assert registry.task("pairs.jsonl", prompt_column="instruction").train.problems[0].meta["chosen"] == "a"


def test_replies_rated_by_attribute_are_what_attribute_regression_reads(tmp_path):
    """HelpSteer calls the reply `response`."""
    file = tmp_path / "helpsteer.jsonl"
    told = refused(file, HELPSTEER)
    assert (
        f"rewardlab train attribute_regression --task {file} learns from them; pairs by helpfulness: rewardlab data pairs" in told
    )
    check_columns(registry.build("attribute_regression"), registry.task(str(file)))
    few = refused(file, [{k: v for k, v in row.items() if k not in ("coherence", "complexity")} for row in HELPSTEER])
    assert "--attributes helpfulness=1,correctness=1,verbosity=1 learns" in few


def test_an_export_that_is_measured_names_it_too(tmp_path):
    checkpoint(tmp_path / "model", tokenizer(), "LlamaForSequenceClassification", num_labels=1)
    (file := tmp_path / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in LISTS["completions, scores"]))
    with pytest.raises(RewardlabError, match=r"is measured on pairs.*these are lists of scored replies; pairs of them:"):
        api.evaluate(str(tmp_path / "model"), str(file), device="cpu")


def test_other_rows_are_none_of_rated_replies():
    for row in ({}, {"answer": "5"}, {"reply": "a"}, {"reply": "", "score": 1}, {"score": 1}, {"replies": ["a", "b"]}):
        assert read_by(row, "rows.jsonl") == ""
    assert objects([{"response": "a"}]) is objects(["a"]) is objects([]) is None
