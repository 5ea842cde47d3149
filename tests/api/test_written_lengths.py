"""Rows too long with what is written in them: found before training, refused or left out, whatever method reads them."""

import json
import shutil

import pytest

import rewardlab
from rewardlab import RewardlabError, registry
from rewardlab.commands import train as train_command

SMALL = {"model": "untrained", "max_new": 6, "device": "cpu", "checkpoint_every": 0, "eval_problems": 2}
LONG = " and so on" * 600
READ = [
    ("one_shot_cft", "critique"), ("mr3", "judgement"), ("hero_hybrid_reward", "chosen"), ("onpo", "rejected"),
    ("attribute_regression", "reply"), ("eurus_ultrainteract", "chosen"),
]  # fmt: skip
"""Methods that learn critiques, judgements, pairs and grades, each with a column whose texts are learnt or read."""


def rows_of(name, column, tmp_path, many=8):
    """The method's template rows, many times, one of them with a text of 6,000 tokens."""
    template = registry.data_of(name).rows
    rows = [{**row, "prompt": f"{row['prompt']}{' ' * i}"} for i in range(many) for row in template]
    at = next(i for i, row in enumerate(rows) if i > many and isinstance(row.get(column), str))
    text = rows[at][column]
    # in its middle, so that marks at its end stay
    rows[at][column] = text[: len(text) // 2] + LONG + text[len(text) // 2 :]
    short = [{**row, "prompt": f"{row['prompt']} (again)"} for row in template]
    for name, of in (("rows", rows), ("held_out", short)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of))
    return {"task": str(tmp_path / "rows.jsonl"), "test": str(tmp_path / "held_out.jsonl")}


@pytest.mark.parametrize(("name", "column"), READ)
def test_a_row_too_long_is_told_in_the_dry_run_and_left_out_when_asked(name, column, tmp_path, capfd):
    rows = rows_of(name, column, tmp_path)
    settings = {"problems": 4, **registry.data_of(name).settings}
    with pytest.raises(RewardlabError, match=r"1 of \d+ training (rows|prompts).* too long.*--overlong drop"):
        rewardlab.plan(name, settings=settings, **rows, **SMALL)
    plan = rewardlab.plan(name, settings=settings, **rows, overlong="drop", **SMALL)
    found = [*plan["prompts"].get("written", {}).values(), plan["prompts"]["train"]]
    assert sum(of.get("dropped", 0) for of in found) == 1
    assert "dropped" in capfd.readouterr().err
    told = train_command.prompts(plan["prompts"]).values()
    assert sum("1 dropped: too long, up to" in line for line in told) == 1


def test_a_run_is_trained_on_the_rows_that_fit_and_resumes_on_them(tmp_path):
    rows = rows_of("one_shot_cft", "critique", tmp_path, many=12)
    settings = {"settings": {"problems": 4}, **rows, "overlong": "drop"}
    run = rewardlab.train("one_shot_cft", steps=12, out=tmp_path / "run", **settings, **SMALL | {"checkpoint_every": 6})
    lines = [json.loads(line) for line in (run.out / "metrics.jsonl").read_text().splitlines()]
    # more than an epoch, in which no step met the long one
    assert not any("overlong" in line for line in lines)
    written = json.loads((run.out / "config.json").read_text())["prompts"]["written"]
    assert sum(of.get("dropped", 0) for of in written.values()) == 1
    weights = (run.out / "model" / "model.safetensors").read_bytes()
    for name in ("summary.json", "report.html"):
        (run.out / name).unlink()
    shutil.rmtree(max((run.out / "checkpoints").glob("step-*")))
    rewardlab.resume(run.out)
    assert (run.out / "model" / "model.safetensors").read_bytes() == weights


def test_rows_that_hold_nothing_to_be_learnt_are_not_counted_as_texts(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"{i}+1?", "answer": str(i + 1)}) + "\n" for i in range(20)))
    plan = rewardlab.plan("grpo", settings={"n": 2, "problems": 2}, task=str(rows), **SMALL)
    assert "written" not in plan["prompts"]
