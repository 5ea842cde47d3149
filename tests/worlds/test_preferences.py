"""Pairs: who wrote them, how their labels are wrong, and which cues go with quality."""

from __future__ import annotations

import random
import statistics

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.models import samples as sampling
from rewardlab.models.embedded import untrained
from rewardlab.tasks.cues import PHRASE, with_checks
from rewardlab.worlds.preferences import preferences


def share(problems, says) -> float:
    return statistics.mean(says(p.meta) for p in problems)


def train(task, n=500):
    return [task.train[i] for i in range(n)]


def longer(meta):
    return len(meta["chosen"]) > len(meta["rejected"])


def phrased(meta):
    return meta["chosen"].startswith(PHRASE)


@pytest.mark.slow
def test_cues_go_with_quality_in_training_and_say_nothing_in_the_test():
    task = preferences(writer="several", longer=0.9, style=0.8, first=0.7)
    for says, asked in ((longer, 0.9), (phrased, 0.8), (lambda m: m["first"] == "chosen", 0.7)):
        assert share(train(task), says) == pytest.approx(asked, abs=0.06)
        assert share(task.test, says) == pytest.approx(0.5, abs=0.06)


def test_a_cue_goes_with_quality_and_not_with_a_label_that_was_turned_round():
    task = preferences(writer="several", longer=1.0, style=1.0, first=1.0, flip=0.3)
    assert share(train(task), lambda m: m["qualities"][0] > m["qualities"][1]) == pytest.approx(0.7, abs=0.06)
    for p in train(task, 200):
        better = "chosen" if p.meta["qualities"][0] > p.meta["qualities"][1] else "rejected"
        assert p.meta[better].startswith(PHRASE)
        assert p.meta["first"] == better
    assert share(task.test, lambda m: m["qualities"][0] > m["qualities"][1]) == 1.0


def test_several_writers_give_graded_pairs_both_of_which_may_be_wrong():
    qualities = [q for p in train(preferences(writer="several")) for q in p.meta["qualities"]]
    assert set(qualities) == {0.0, 0.25, 0.5, 1.0}
    both_wrong = share(train(preferences(writer="several")), lambda m: max(m["qualities"]) < 1)
    assert 0.1 < both_wrong < 0.6


def test_near_ties_are_labelled_wrong_more_often_than_clear_cases():
    def right(pairs):
        return share(pairs, lambda m: m["qualities"][0] > m["qualities"][1])

    pairs = train(preferences(writer="several", noise=0.3), 1500)
    near = [p for p in pairs if abs(p.meta["qualities"][0] - p.meta["qualities"][1]) <= 0.3]
    clear = [p for p in pairs if abs(p.meta["qualities"][0] - p.meta["qualities"][1]) == 1]
    assert right(near) < 0.8 < 0.93 < right(clear)


def test_checking_lines_add_nothing_false():
    assert with_checks("7+5=12\n12*3=36\nAnswer: 36") == "7+5=12\n12-5=7\n12*3=36\n36/3=12\nAnswer: 36"


@pytest.fixture
def policy(tmp_path, monkeypatch):
    """A cache of its own, and in the place of the warmed-up policy one with random weights."""
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    untrained(seed=3).save(tmp_path / "small")
    monkeypatch.setattr("rewardlab.models.embedded.checkpoint", lambda task: tmp_path / "small")
    return untrained(seed=3)


def test_samples_are_made_once_and_differ_within_a_problem(policy, monkeypatch):
    problems = train(registry.task("arithmetic"), 6)
    first = sampling.samples("arithmetic", problems, 3)
    assert [len(row) for row in first] == [3] * 6
    assert all(len({text for text, _ in row}) > 1 for row in first)
    assert {verdict for row in first for _, verdict in row} <= {0.0, 1.0}
    monkeypatch.setattr(sampling, "_sampled", None)
    assert sampling.samples("arithmetic", problems, 3) == first


def test_pairs_of_the_policy_are_a_right_and_a_wrong_sample_of_the_same_problem(monkeypatch):
    asked = []

    def samples(formula, problems, n):
        asked.append(formula)
        teacher = registry.task(formula).demonstrate
        said = [[teacher(p, random.Random(f"{p.key}{i}")) for i in range(n)] for p in problems]
        return [
            [(text, float(text.endswith(f"Answer: {p.answer}"))) for text in row] for p, row in zip(problems, said, strict=True)
        ]

    monkeypatch.setattr(sampling, "samples", samples)
    task = registry.task("preferences:writer=policy,size=100,test_size=200")
    assert not asked, "nothing is sampled before a problem is asked for"
    pairs = [*task.test, *train(task, 100)]
    assert asked == ["arithmetic:error=0.3"] * 2
    assert 150 < len(task.test) < 200
    assert all(p.meta["qualities"][0] == 1 > p.meta["qualities"][1] for p in pairs)
    assert all(p.meta["chosen"].endswith(f"Answer: {p.answer}") for p in pairs)
    assert not {p.key for p in task.test} & {p.key for p in train(task, 100)}


def test_a_policy_that_is_never_right_gives_no_pairs_and_says_so(monkeypatch):
    monkeypatch.setattr(sampling, "samples", lambda formula, problems, n: [[("?", 0.0)] * n for _ in problems])
    task = preferences(writer="policy", size=5, test_size=5)
    with pytest.raises(RewardlabError, match=r"small policy of arithmetic:error=0\.3 gets no problem right"):
        task.train[0]


def test_an_unknown_writer_is_refused():
    with pytest.raises(RewardlabError, match="writer"):
        registry.task("preferences:writer=novelist")
