"""ProcessBench: F1 of first errors by hand, the two that are not the same, odd rows, and its counts."""

import collections
import json
import math

import pytest

from rewardlab.commands.scoreboard import show
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.processbench import benchmark, figures, lacking, marks, read
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict
from rewardlab.scoreboard.raters import Rater
from rewardlab.scoreboard.run import scoreboard


def item(name, label):
    (found,) = read({"id": name, "problem": "q", "steps": ["a", "b", "c"], "label": label}, "file")
    return found


def figures_of(items, chances):
    verdicts = [Verdict(steps=(c,)) if c is not None else Verdict() for c in chances]
    return figures(Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)]))


def test_three_definitions_on_unequal_sets():
    items = [item("gsm8k-0", 1), item("gsm8k-1", 0), item("gsm8k-2", -1), item("math-0", 2), item("math-1", -1), item("math-2", -1)]
    said = [(0.9, 0.1, 0.9), (0.9, 0.1, 0.9), (0.9, 0.9, 0.9), (0.9, 0.9, 0.1), (0.9, 0.4, 0.9), (0.6, 0.7, 0.8)]
    found = figures_of(items, said)
    # gsm8k: 1 of 2 errors, 1 of 1 right; math: 1 of 1 and 1 of 2
    assert found["gsm8k"] == found["math"] == found["f1"] == pytest.approx(2 / 3)
    assert (found["error_accuracy"], found["correct_accuracy"]) == (0.75, 0.75)
    # together: 2 of 3 and 2 of 3; an error is said to be in 4, and is in 3 of these
    assert found["pooled_f1"] == pytest.approx(2 / 3)
    assert found["detection_f1"] == pytest.approx(6 / 7)


def test_no_verdict_is_wrong_and_a_chance_of_one_half_says_wrong():
    items = [item("math-0", 0), item("math-1", -1)]
    assert figures_of(items, [None, None])["f1"] == 0.0
    assert figures_of(items, [None, None])["detection_f1"] == 0.0
    assert figures_of(items, [(0.5, 0.9, 0.9), (0.51, 0.9, 0.9)])["f1"] == 1.0
    assert figures_of(items, [(0.9, 0.1, 0.9), (0.51, 0.9, 0.5)])["f1"] == 0.0


@pytest.mark.slow
def test_of_few_items_the_headline_is_of_the_sets_that_have_both_kinds_and_says_which_are_left_out(tmp_path, monkeypatch, capsys):
    whole = [item("gsm8k-0", 1), item("gsm8k-1", -1)]
    few = [*whole, item("math-0", 1), item("omnimath-0", -1)]
    right = {1: (0.9, 0.1, 0.9), None: (0.9, 0.9, 0.9)}
    found = figures_of(few, [right[None if i.worth[0] else 1] for i in few])
    assert (found["f1"], found["gsm8k"], found["error_accuracy"], found["correct_accuracy"]) == (1.0, 1.0, 1.0, 1.0)
    assert math.isnan(found["math"])
    assert lacking(whole) == ""
    assert lacking(few) == "f1 is the mean of 1 of 3 sets: math has no right solution here, omnimath has no wrong solution here"
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    rows = [{"id": f"math-{k}", "problem": f"q{k}", "steps": ["a", "b", "c"], "label": 1} for k in range(3)]
    (tmp_path / "math.json").write_text(json.dumps(rows))
    show(scoreboard([Sure("sure")], "processbench", data=tmp_path / "math.json", limit=2))
    assert "f1 is left out: math has no right solution here; more items may tell more: a larger --limit" in capsys.readouterr().out


class Sure(Rater):
    asks = ("steps",)

    def fingerprint(self):
        return "sure"

    def judge(self, items, benchmark):
        return [Verdict(steps=tuple((0.9,) * len(steps) for steps in item.steps)) for item in items]


@pytest.mark.parametrize("label", [3, -2, "x", None])
def test_a_label_that_names_no_step_is_refused(label):
    with pytest.raises(ValueError, match="label"):
        item("math-0", label)


def test_the_published_counts():
    try:
        items = benchmark.items()
    except RewardlabError:
        pytest.skip("ProcessBench is not at hand: set REWARDLAB_DATA")
    assert collections.Counter(i.subset for i in items) == {"gsm8k": 400, "math": 1000, "olympiadbench": 1000, "omnimath": 1000}
    flawed = collections.Counter(i.subset for i in items if i.worth[0] == 0.0)
    assert flawed == {"gsm8k": 207, "math": 594, "olympiadbench": 661, "omnimath": 759}
