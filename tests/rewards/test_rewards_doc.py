"""The examples of docs/REWARDS.md run, and its table of arguments is complete."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rewardlab.audit.loading import load, parse
from rewardlab.audit.target import Row
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.user.functions import PLURAL, SINGULAR
from rewardlab.rewards.user.given import ONCE

PAGE = (Path(__file__).parents[2] / "docs" / "REWARDS.md").read_text("utf-8")
FILES = dict(re.findall(r"```python\n# file: (\w+\.py)\n(.*?)```", PAGE, flags=re.S))
SHAPES = ("open_r1", "trl", "verl", "openrlhf", "asked_of_a_judge")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, code in FILES.items():
        (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)


def attempt(reply: str) -> Trajectory:
    return Trajectory(ask("What?", "4"), (Turn(None, np.arange(2), text="What?"), Turn("policy", np.arange(3), text=reply)))


def scores(written, *replies):
    (row,) = read_reward(written)([[attempt(reply) for reply in replies]], Run(None))
    return row


@pytest.mark.parametrize("name", SHAPES)
def test_the_shapes_of_the_page_pay_right_replies_in_training_and_audit(name, folder):
    assert [s.value for s in scores(f"shapes.py:{name}", "It is 4", "5")] == [1.0, 0.0]
    target = load(parse(f"shapes.py:{name}"))
    assert [target.score([Row("What?", "4", reply, {})])[0].value for reply in ("It is 4", "5")] == [1.0, 0.0]


def test_the_other_examples_of_the_page(folder):
    assert [s.value for s in scores("shapes.py:open_r1_format", "<think>a</think>", "b")] == [1.0, 0.0]
    assert [s.value for s in scores("shapes.py:of_a_group", "a", "a", "b")] == [0.5, 0.5, 1.0]
    assert [s.value for s in scores('"mine.py:states" + 0.1 * "mine.py:short"', "4", "5" * 50)] == [1.1, 0.0]
    assert scores("by_steps.py", "ab")[0].steps == ((2, 0.5), (4, 1.0))
    assert [s.value for s in scores("decorated.py:polite(worth=2)", "please", "now")] == [2.0, 0.0]
    assert [s.value for s in scores("decorated.py:unlike_the_others", "a", "a")] == [0.5, 0.5]
    assert scores("decorated.py:at_every_token", "ab")[0].steps == ((2, 0.1), (3, 0.1), (4, 0.1))


def test_the_table_names_every_argument():
    table = PAGE.split("## Arguments")[1].split("## What it returns")[0]
    named = set(re.findall(r"`(\w+)`", table))
    assert {*SINGULAR, *PLURAL, *ONCE, "group"} - named == set()
