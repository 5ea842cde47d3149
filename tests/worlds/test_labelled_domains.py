"""Labelled solutions of five domains: which labels are worth nothing, and what trusted and held-out ones say."""

from __future__ import annotations

from collections import Counter

from rewardlab.worlds.labelled_domains import labelled_domains


def gold(problem) -> list[bool]:
    """Whether each line is the gold solution's, worked out from the question."""
    value, lines = 0, []
    for part in problem.question.removesuffix(".").split(". "):
        *words, number = part.split()
        before, operand = value, int(number)
        sign = {"Start": "", "Add": "+", "Subtract": "-", "Multiply": "*"}[words[0]]
        value = {"": operand, "+": before + operand, "-": before - operand, "*": before * operand}[sign]
        lines += [f"{before}{sign}{operand}={value}"] if sign else []
    return [line == want for line, want in zip(problem.meta["steps"], [*lines, f"Answer: {value}"], strict=True)]


def test_two_domains_have_labels_that_are_worth_nothing():
    task = labelled_domains(each=20, trusted=10)
    rows = task.train.problems
    assert Counter(p.meta["domain"] for p in rows) == {"two": 20, "three": 20, "four": 20, "five": 20, "six": 20, None: 10}
    for p in rows:
        true, labels = [float(x) for x in gold(p)], p.meta["labels"]
        assert p.meta["right"] == bool(true[-1])
        match p.meta["domain"]:
            case None:
                assert p.meta["trusted"] and labels is None
            case "two":
                assert set(labels) == {1.0}
            case "four":
                assert labels == [1.0 - x for x in true]
            case _:
                assert labels == true
    # errors that two steps can show, and all of them are not called so
    assert not all(p.meta["right"] for p in rows if p.meta["domain"] == "two")


def test_held_out_solutions_have_true_labels_and_come_several_to_a_prompt():
    task = labelled_domains(each=20, trusted=10, replies=4, test_size=40)
    assert set(Counter(p.key for p in task.test).values()) == {4}
    assert Counter(len(p.meta["steps"]) - 1 for p in task.test) == dict.fromkeys(range(2, 7), 8)
    assert all(p.meta["labels"] == [float(x) for x in gold(p)] for p in task.test)
    assert not {p.key for p in task.test} & {p.key for p in task.train.problems}
    again = labelled_domains(each=20, trusted=10, replies=4, test_size=40)
    assert list(again.test) == list(task.test)
