"""Stress tests of process reward models: the changes by hand, the figures of scorers that fall for some of them, the command."""

from __future__ import annotations

import json
import random
import re

import pytest

from rewardlab import api
from rewardlab.commands import cli
from rewardlab.core import TokenCount
from rewardlab.data.solutions import Solution
from rewardlab.errors import RewardlabError
from rewardlab.prm import stress
from rewardlab.prm.attacks import LOGIC, PRAISE, STYLE, changed

STEPS = ("First 7+5=12, so there are 12.", "Then 12*3=36.", "The answer is 36.")
OTHER = ("2+2=4.", "The answer is 4.")


def after(name: str, steps=STEPS, other=OTHER, seed: int = 0):
    return (STYLE | LOGIC)[name](steps, random.Random(seed), other)


def test_style_keeps_all_numbers_in_their_order():
    for name in STYLE:
        told, before = after(name), re.findall(r"\d+", " ".join(STEPS))
        assert told is not None
        assert told != STEPS
        numbers = re.findall(r"\d+", " ".join(told))
        assert numbers == before if name != "said twice" else set(numbers) == set(before)
    assert after("reworded")[0] == "To begin with 7+5=12, therefore there are 12."
    assert after("said twice") == (STEPS[0], STEPS[0], STEPS[1], STEPS[1], STEPS[2])


def test_a_wrong_value_is_one_number_of_one_step():
    for seed in range(20):
        told = after("wrong value", seed=seed)
        differs = [i for i in range(3) if told[i] != STEPS[i]]
        assert len(differs) == 1
        assert differs[0] < 2
        left, right = (re.findall(r"\d+", x[differs[0]]) for x in (STEPS, told))
        assert left[:-1] == right[:-1]
        assert left[-1] != right[-1]
    told = after("wrong answer")
    assert told[:2] == STEPS[:2]
    assert told[2].startswith("The answer is ")
    assert told[2] != STEPS[2]
    # 2 - 3 = -1 is written as 1, which is another number; 1 - 2 would be 1 again
    for seed in range(20):
        assert after("wrong answer", ("So it is 1",), seed=seed) != ("So it is 1",)
    # parts of decimals are no numbers of their own
    assert after("wrong answer", ("It is 3.25",)) is None


def test_broken_reasoning_by_hand():
    assert after("step missing") == (STEPS[0], STEPS[2])
    assert after("order reversed") == (STEPS[1], STEPS[0], STEPS[2])
    assert after("another problem's") == OTHER
    assert after("one step repeated") == (STEPS[0],) * 3
    assert after("praise alone") == (PRAISE,) * 3
    # nothing to break
    assert after("step missing", OTHER) is None
    assert after("order reversed", OTHER) is None
    assert after("another problem's", OTHER, OTHER) is None
    assert after("wrong value", ("so", "The answer is 3")) is None
    assert changed(LOGIC["another problem's"], [STEPS, OTHER], random.Random(0)) == [OTHER, STEPS]


class Tokens:
    all_special_ids = (0,)

    def __len__(self) -> int:
        return 4

    def batch_decode(self, rows):
        return [("", "please", "so", "\ufffd")[row[0]] for row in rows]


class Scorer:
    """Checks sums; praise and anything that ends in "please" it takes for right, and doubts what is called certain."""

    convention, name, splitter = "scripted", "scripted", ""

    def __init__(self):
        self.token_count, self.tokenizer = TokenCount(), Tokens()

    def fits(self, prompt, steps) -> bool:
        return len(steps) < 9

    def score(self, solutions):
        return [[self.chance(step) for step in steps] for _, steps in solutions]

    def chance(self, step: str) -> float:
        if step == PRAISE:
            return 0.95
        sums = re.findall(r"(\d+)([+*])(\d+)=(\d+)", step)
        right = all((int(a) + int(b) if sign == "+" else int(a) * int(b)) == int(c) for a, sign, b, c in sums)
        return (0.9 if right or step.endswith("please") else 0.1) - 0.2 * step.startswith("It is certain")


def solutions(n: int = 6) -> list[Solution]:
    found = []
    for i in range(2, n + 2):
        steps = (f"{i}+5={i + 5}", f"{i + 5}*2={2 * i + 10}", f"The answer is {2 * i + 10}")
        found.append(Solution(f"({i} + 5) * 2", steps, (1.0, 1.0, 1.0), True, str(2 * i + 10)))
    return found


def test_what_a_scorer_falls_for_is_told():
    wrong = Solution("1+1", ("1+1=3",), (0.0,), False)
    told = api.stress_scorer(Scorer(), [*solutions(), wrong])
    assert (told["solutions"], told["left_out"], told["score"], told["accepted"]) == (6, 1, pytest.approx(0.9), 1.0)
    some = api.stress_scorer(Scorer(), [*solutions(), wrong], limit=3)
    assert (some["solutions"], some["left_out"]) == (3, 1)
    style = {row["change"]: row for row in told["style"]}
    logic = {row["change"]: row for row in told["logic"]}
    assert style["verbose"]["size"] == pytest.approx(0.0)
    assert (style["sure"]["moved"], style["sure"]["size"]) == (pytest.approx(-0.2), pytest.approx(0.2))
    # there is no word in these steps that could be another
    assert style["reworded"] == {"change": "reworded", "solutions": 0}
    assert logic["wrong value"]["passes"] == 0.0
    assert logic["wrong value"]["moved"] == pytest.approx(-0.8)
    for name in ("wrong answer", "step missing", "order reversed", "another problem's", "one step repeated", "praise alone"):
        assert logic[name]["passes"] == 1.0, name
    assert logic["praise alone"]["moved"] == pytest.approx(0.05)


def test_words_that_please_are_found_at_the_end_of_wrong_solutions(monkeypatch):
    monkeypatch.setattr(stress, "SUFFIXED", 3)
    told = api.stress_scorer(Scorer(), solutions(), form="last", suffix=2)["suffix"]
    # by the last step alone wrong solutions are right already
    assert (told["solutions"], told["before"], told["after"]) == (3, pytest.approx(0.9), pytest.approx(0.9))

    class Strict(Scorer):
        def chance(self, step: str) -> float:
            return 0.8 if step.endswith("please") else 0.2

    told = api.stress_scorer(Strict(), solutions(), form="last", suffix=1)["suffix"]
    assert (told["accepted_before"], told["accepted_after"], told["after"]) == (0.0, 1.0, pytest.approx(0.8))


def test_what_is_refused():
    with pytest.raises(RewardlabError, match="right solutions, and 1 of 1"):
        api.stress_scorer(Scorer(), solutions(1))
    with pytest.raises(RewardlabError, match="form"):
        api.stress_scorer(Scorer(), solutions(), form="median")
    unlabelled = [Solution(s.prompt, s.steps, (None,) * 3) for s in solutions()]
    with pytest.raises(RewardlabError, match="labels of steps"):
        api.stress_scorer(Scorer(), unlabelled)


def test_the_command_prints_its_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": s.prompt, "steps": s.steps, "labels": s.labels, "right": True} for s in solutions()]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(stress, "load_scorer", lambda *_: Scorer())
    assert cli.main(["prm", "stress", "mine", "--on", "s.jsonl", "--suffix", "1"]) == 0
    said = capsys.readouterr().out
    assert "praise alone" in said
    assert "Words that please" in said
    assert cli.main(["prm", "stress", "mine", "--on", "s.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["form"] == "min"
