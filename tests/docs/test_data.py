"""The worked example of docs/DATA.md: its commands do what it says, from one file to an order and to pairs."""

from pathlib import Path

import tutorials

from rewardlab.commands import cli
from rewardlab.data.files import read
from rewardlab.models import embedded

PAGE = Path(__file__).parents[2] / "docs" / "DATA.md"


def rows(path: str) -> list[dict]:
    return [entry.row for entry in read(path) if entry.row]


def test_the_example_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # an untrained policy solves nothing: its replies are judged by their length, so that some are accepted and some are not
    Path("even.py").write_text("def even(completion):\n    return float(len(completion) % 2 == 0)\n")
    smaller = {"--model": "untrained", "--max-new": "8", "--samples": "4", "--reward": "even.py:even"}
    monkeypatch.setitem(tutorials.SMALL, "data pass-rate", smaller)
    monkeypatch.setattr(embedded, "embedded", lambda device="auto", dtype="auto", task=None: embedded.untrained(task=task))
    codes = []
    wrong = tutorials.run(PAGE.read_text("utf-8"), lambda argv: codes.append(cli.main(argv)))
    assert not wrong, "\n".join(wrong)
    # the second command meets a broken line
    assert codes == [0, 1, *[0] * 7]
    # one question about four pictures
    assert len(rows("seen_once.jsonl")) == 4
    # one of them has no answer
    assert (len(rows("clean.jsonl")), len(rows("rated.jsonl"))) == (140, 139)
    kept, ordered = rows("kept.jsonl"), rows("ordered.jsonl")
    assert 30 < len(kept) == len(ordered) < 140
    assert all(0.1 <= row["pass_rate"] <= 0.9 for row in kept)
    assert [row["stage"] for row in ordered] == sorted(row["stage"] for row in ordered)
    assert {row["stage"] for row in ordered} == {1, 2, 3}
    assert ordered[0]["pass_rate"] == max(row["pass_rate"] for row in kept)
    assert all(row["gap"] == 1 for row in rows("pairs.jsonl"))
    assert len(rows("mixed.parquet")) == 12
