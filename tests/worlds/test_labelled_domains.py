"""Labelled solutions of five domains: which labels are worth nothing, and what trusted and held-out ones say."""

from __future__ import annotations

from collections import Counter

import pytest

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
    task = labelled_domains(each=100, trusted=10)
    rows, shares = task.train.problems, []
    assert Counter(p.meta["domain"] for p in rows) == {"two": 200, "three": 100, "four": 200, "five": 100, "six": 100, None: 10}
    for p in rows:
        true, labels = [float(x) for x in gold(p)], p.meta["labels"]
        assert p.meta["right"] == bool(true[-1])
        match p.meta["domain"]:
            case None:
                assert p.meta["trusted"]
                assert labels is None
            case "two":
                assert set(labels) == {1.0}
            case "four":
                shares.append((true, [1.0 - x for x in labels]))
            case _:
                shares.append((true, labels))
    for true, labels in shares:
        # from a wrong step no continuation ends right; the last line is what it is
        assert labels[-1] == true[-1]
        assert all((x == 0 or right) and 8 * x == round(8 * x) for x, right in zip(labels, true, strict=True))
    # the line before the answer leaves nothing to err in, the first of four leaves three: .8^3 = .512
    assert {labels[-2] for true, labels in shares if true[-2]} == {1.0}
    first = [labels[0] for true, labels in shares if len(true) == 5 and true[0]]
    assert sum(first) / len(first) == pytest.approx(0.512, abs=0.1)
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
