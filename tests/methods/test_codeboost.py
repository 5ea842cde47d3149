"""CodeBoost: predictions of outputs, errors and masked lines, on pieces of code of which no two are alike."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rewardlab import data, registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.data.cliques import unlike
from rewardlab.errors import RewardlabError
from rewardlab.methods.curricula.codeboost import clique_coverage
from rewardlab.sandbox import ProgramRun, Sandbox
from rewardlab.tasks.sources import Shuffled
from rewardlab.worlds.snippets import augmented, from_python, portable, snippets

FORWARD = {"language": "list", "stdout": "10", "stderr": ""}
FAILS = {"language": "list", "stdout": "", "stderr": "line 1\nline 2"}
BACKWARD = {"language": "list", "stdout": "10", "stderr": "", "masked": "keep > 3; <MASK>", "input": "[4, 6, 1]"}


TRACEBACK = """Traceback (most recent call last):
  File "<program>", line 2, in <module>
KeyError: 'k'"""


def reply(out: str | None = None, err: str | None = None, code: str | None = None) -> str:
    parts = {"stdout": out, "stderr": err, "code": code}
    return "".join(f"<{tag}>{text}</{tag}>" for tag, text in parts.items() if text is not None)


def totals(*texts: str, answer=FORWARD, **settings) -> list[float | None]:
    rows = [Trajectory(ask("?", answer, code="x"), (Turn("policy", np.zeros(2, np.int64), text=t),), "end") for t in texts]
    run = Run(policy=None, verify=registry.part("reward", "snippet_run"))
    return [s.total for s in registry.build("codeboost", settings).reward([rows], run)[0]]


# the output is worth .45, the error .225, the form .05 for each of two blocks
def test_output_error_and_form_are_paid():
    found = totals(reply("10", ""), reply("\n10\n", ""), reply("11", ""), reply("10", "oops"), reply("10"), reply(err=""), "10")
    assert found == pytest.approx([0.775, 0.775, 0.325, 0.55, 0.5, 0.275, 0])
    # one line of two, and another that is not there: 1 / 3
    failing = totals(reply("", "line 2\nline 3"), reply("", "line 1\nline 2"), reply("1", ""), answer=FAILS)
    assert failing == pytest.approx([0.1 + 0.45 + 0.225 / 3, 0.775, 0.1])
    assert totals(reply("10", ""), reply("10", "oops"), form=0.0, error=1.0) == pytest.approx([1, 0.5])
    assert totals(reply("10", ""), answer=None) == totals(reply("10"), answer={"language": "c"}) == [None]


def test_a_line_that_is_put_in_is_run():
    # sum and any other line that gives 10;   max gives 6;   sorted again it is a list;   after last no list is left: an error
    found = totals(*(reply(code=c) for c in ("sum", "sort; sum", "max", "sum; sort", "nonsense")), reply("10", ""), answer=BACKWARD)
    assert found == pytest.approx([0.775, 0.775, 0.325, 0.1, 0.1, 0])
    assert totals(reply(code="sum"), answer={**BACKWARD, "masked": "no mask"}) == [None]
    for text in ("", "<code>", "</code>sum<code>", "<code>" * 20_000):
        assert totals(text, answer=BACKWARD) == [0]


def test_of_pieces_that_are_alike_one_is_kept():
    pytest.importorskip("networkx")
    texts = ["sort, then sum", "Sort, then sum", "sort then sum", "keep even", "keep even!", "reverse"]
    kept = unlike(texts, 0.5)
    assert len(kept) == 3
    assert 5 in kept
    # the middle one is like both others, which are not alike
    chain = ["a a", "a b", "b b"]
    assert unlike(chain, 0.3) == [0, 2]
    assert unlike([], 0.5) == []
    # more than are searched through: copies still leave one
    assert unlike(["sum the list"] * 40, 0.5) == [0]
    with pytest.raises(RewardlabError, match="20,001 rows, more than"):
        unlike(["x"] * 20_001)


def test_the_file_tool_leaves_out_what_is_alike(tmp_path):
    pytest.importorskip("networkx")
    codes = ["x = 1\nprint(x)", "x = 2\nprint(x)", "import os", "for i in a: b += i"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"code": c}) + "\n" for c in codes))
    told = data.clique_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert told["dropped"] == {"alike": 1}
    assert len((tmp_path / "b.jsonl").read_text().splitlines()) == 3
    with pytest.raises(RewardlabError, match="above 0"):
        data.clique_file(tmp_path / "a.jsonl", tmp_path / "c.jsonl", threshold=0.0)


def test_training_goes_on_with_the_clique(monkeypatch):
    pytest.importorskip("networkx")
    codes = ["sum the list", "sum the list 2", "reverse it", "reverse it 3", "unique"]
    train = Shuffled([ask(c, "1", code=c) for c in codes])
    seen, run, recipe = [], Run(policy=None, memory={}), registry.build("codeboost")
    ops = SimpleNamespace(task=replace(snippets(test_size=1), train=train), position=0)
    ops.standard_step = lambda recipe: seen.append(len(ops.task.train))
    for _ in range(2):
        recipe.loop(recipe, run, ops)
    assert seen == [3, 3]
    # a run that is resumed has the whole file again
    ops.task = replace(ops.task, train=train)
    recipe.loop(recipe, run, ops)
    assert seen[-1] == 3
    for task, message in ((snippets(test_size=1), "set clique=0"), (replace(ops.task, train=Shuffled([ask("x", "1")])), "`code`")):
        ops.task = task
        with pytest.raises(RewardlabError, match=message):
            recipe.loop(recipe, replace(run, memory={}), ops)
    assert registry.build("codeboost", {"clique": 0.0}).loop is None


def test_most_pieces_are_copies_and_some_fail():
    task, verify = snippets(test_size=1), registry.part("reward", "snippet_run")
    problems = [task.train[i] for i in range(120)]
    assert all(v.correct for v in verify.check_all([(p.meta["solution"], p.answer) for p in problems]))
    assert 0.6 < sum(p.meta["kind"] == "forward" for p in problems) / 120 < 0.9
    assert sum(bool(p.answer["stderr"]) for p in problems) > 2
    pytest.importorskip("networkx")
    found = clique_coverage()(problems, Run(policy=None))
    assert 0 < found["kept"] < 0.6
    assert 0 < found["covered.random"] < 1
    assert found["covered.clique"] <= 1
    said = [task.demonstrate(p, random.Random(i)) for i, p in enumerate(problems)]
    assert (
        0.7 < sum(bool(v.correct) for v in verify.check_all([(s, p.answer) for s, p in zip(said, problems, strict=True)])) / 120 < 1
    )


def test_numbers_and_signs_are_changed_but_not_indices():
    code = "x = 3\ny = a[0] + 25\nz2 = x * 1.5"
    assert augmented(code, random.Random(0), 0.0) == code
    changed = augmented(code, random.Random(0), 1.0)
    assert "a[0]" in changed
    assert "z2" in changed
    assert "1.5" in changed
    assert "x = 3" not in changed
    assert "a[0] + " not in changed


def test_an_error_reads_alike_on_every_machine():
    said = """Traceback (most recent call last):
  File "/tmp/run 7/main.py", line 3, in <module>
    f(a + b)
    ~~^^^~~~
  File "C:\\lib\\json.py", line 12, in f
ValueError: <object at 0x7f3a>
"""
    lines = portable(said).split("\n")
    assert lines[1:] == [
        '  File "main.py", line 3, in <module>', "    f(a + b)", '  File "json.py", line 12, in f', "ValueError: <object at 0x0>",
    ]  # fmt: skip
    # of a long one whole lines at its end
    long = portable("\n".join(f"line {i}" for i in range(2000)))
    assert len(long) <= 4000
    assert long.startswith("line ")
    assert long.endswith("line 1999")
    # on one's own machine and on another one it earns the same
    gold = {"language": "python", "stdout": "", "stderr": portable(said)}
    assert totals(reply("", portable(said)), reply("", said), answer=gold) == pytest.approx([0.775] * 2)


@pytest.mark.slow
def test_python_is_run_in_the_sandbox():
    try:
        Sandbox().run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))
    rows = [
        {"code": "print(int(input()) * 2)", "input": "4"},
        {"code": "print(1)\nx = {}['k']"},
        {"code": "while True: pass"},
        {"code": "import time\nprint(time.time_ns())"},
    ]
    first, second = from_python(rows, forward=1.0, augment=0.0, seconds=1.0)
    assert (first.answer["stdout"], first.answer["stderr"]) == ("8\n", "")
    assert (second.answer["stdout"], second.answer["stderr"]) == ("1\n", TRACEBACK)
    # two of its three lines, and another one instead: 2 / 4
    guess = reply("1\n", TRACEBACK.replace("'k'", "k"))
    assert totals(second.meta["solution"], guess, answer=second.answer) == pytest.approx([0.775, 0.1 + 0.45 + 0.225 / 2])
    assert "Reply:" in first.question
    (masked,) = from_python(rows[:1], forward=0.0, augment=0.0)
    assert totals(masked.meta["solution"], reply(code="print(8)"), reply(code="1 / 0"), answer=masked.answer) == pytest.approx(
        [0.775, 0.775, 0.1]
    )
    # what is wanted is printed, and then it hangs
    verdict = registry.part("reward", "snippet_run", seconds=1.0).check(
        reply(code="print(8, flush=True)\nwhile True: pass"), masked.answer
    )
    assert (verdict.correct, verdict.parts) == (False, {"form": 1.0, "stdout": 0.0, "stderr": 0.0})
    # it writes to stderr before it hangs: that is no error to predict
    assert from_python([{"code": "import sys\nprint('x', file=sys.stderr, flush=True)\nwhile True: pass"}], seconds=1.0) == []
