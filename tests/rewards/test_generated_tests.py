"""Programs judged by generated tests: the matrix, the choice among equals, and who gets how many tests."""

import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rewards import generated_tests
from rewardlab.rewards.generated_tests import allocated, passed_generated, usable

GOLD = {"io": [["[1, 2]", "3"], ["[5, 5]", "10"]]}
GENERATED = [["[1, 2]", "3"], ["[2, 2]", "4"], ["[3]", "4"], ["[]", "0"]]
"""Of the sum; the third is wrong."""


def paid(replies, problem=None, verifier="list_program", **settings):
    policy = untrained(0)
    problem = problem or ask("Sum?", GOLD, generated=GENERATED)
    (prompt,) = policy.read([Trajectory(problem)], [problem.prompt])
    run = Run(policy, verify=registry.part("reward", verifier))
    return passed_generated(**settings)([policy.write([prompt] * len(replies), replies)], run)[0]


def test_a_program_is_paid_for_tests_that_it_passes_and_a_little_for_company():
    # sum passes all but the wrong test, written in two ways; max is right of [] alone; `* 1; sum; + 1` of the wrong one alone
    scores = paid(["max", "sum", "* 1; sum", "sum; + 1", "no program"])
    assert [s.total for s in scores] == pytest.approx([1 + 1 / 6, 3 + 2 / 6, 3 + 2 / 6, 1 + 1 / 6, 0 + 1 / 6])


def test_the_first_tests_alone_are_run():
    assert [s.total for s in paid(["max", "+ 1; max"], each=2)] == pytest.approx([0 + 1 / 3, 1 + 1 / 3])


def test_gold_verdicts_are_kept_for_the_probe_and_pay_nothing():
    right, wrong = paid(["sum", "max"], labels=True)
    assert (right.terms["correct"].value, wrong.terms["correct"].value) == (1.0, 0.0)
    assert right.total == pytest.approx(3 + 1 / 3)
    assert "correct" not in paid(["sum"])[0].terms


@pytest.mark.parametrize("generated", [None, [], "assert", [["[1]"]], ["assert ("]])
def test_without_tests_that_can_be_run_there_is_no_verdict(generated):
    (score,) = paid(["sum"], ask("Sum?", GOLD, generated=generated))
    assert score.missing


def test_without_a_verifier_nothing_can_be_run():
    with pytest.raises(RewardlabError, match="needs the task's verifier"):
        passed_generated()([], Run(None))


def test_asserts_run_in_the_sandbox_and_one_that_cannot_be_read_takes_no_other_with_it():
    tests = ["assert add(1, 2) == 3", "assert add(", "assert add(2, 2) == 5", "import os; os._exit(0)"]
    assert usable(tests) == [tests[0], tests[2], tests[3]]
    problem = ask("Add.", {"tests": "assert add(1, 1) == 2"}, generated=tests[:3])
    right, wrong = paid(["def add(a, b):\n    return a + b", "def add(a, b):\n    return 5"], problem, "code")
    # each passes one of the two: the right one and the wrong one differ in which
    assert (right.total, wrong.total) == (pytest.approx(1 + 1 / 3), pytest.approx(1 + 1 / 3))


class Writer(Replies):
    """A model that writes these tests, in turn."""

    context = 10_000

    def __init__(self, replies):
        super().__init__(replies)
        self.asked = []

    def read(self, trajectories, messages):
        self.asked += [m[-1].text for m in messages]
        return [Trajectory(t.problem) for t in trajectories]

    def extend(self, trajectories, sampling, rng):
        return Replies([self.replies[i % len(self.replies)] for i in range(len(trajectories))]).extend(trajectories, sampling, rng)


def judged(groups, writer, verifier="code", models=None, **settings):
    policy = untrained(0)
    read = [(policy.read([Trajectory(p)], [p.prompt])[0], replies) for p, replies in groups]
    run = Run(policy, verify=registry.part("reward", verifier), models={"writer": writer, **(models or {})}, max_new=20)
    rows = [policy.write([prompt] * len(replies), replies) for prompt, replies in read]
    return passed_generated(writer="writer", **settings)(rows, run), run


def test_a_model_writes_the_tests_where_there_are_none():
    case = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(add(2, 3), {})"
    writer = Writer(["assert add(1, 2) == 3", "No test.", case.format(5), case.format(6)])
    problem = ask("Add.", {"tests": "assert add(1, 1) == 2"})
    programs = ["def add(a, b):\n    return a + b", "def add(a, b):\n    return 3"]
    (scores,), run = judged([(problem, programs)], writer, each=4)
    # three of four replies are tests, one of them wrong; the second program passes the first test alone
    assert [s.total for s in scores] == pytest.approx([2 + 1 / 3, 1 + 1 / 3])
    assert writer.asked[0].endswith(f"### Problem\nAdd.\n\n### Program\n{programs[0]}")
    assert len(writer.asked) == 1
    assert run.metrics["completions"] == 4
    # tests that are there come first
    (scores,), _ = judged([(ask("Sum?", GOLD, generated=GENERATED), ["sum"])], writer, "list_program")
    assert scores[0].total == pytest.approx(3 + 1 / 2)
    assert len(writer.asked) == 1


def test_written_pairs_and_a_writer_that_writes_no_test():
    (scores,), _ = judged([(ask("Sum?", GOLD), ["sum", "max"])], Writer(['["[2, 2]", "4"]', "[[1], 1]"]), "list_program", each=2)
    assert [s.total for s in scores] == pytest.approx([2 + 1 / 3, 1 + 1 / 3])
    (scores,), _ = judged([(ask("Sum?", GOLD), ["sum"])], Writer(["I cannot."]), "list_program", each=2)
    assert scores[0].missing


def test_hard_problems_have_more_tests_written(monkeypatch):
    monkeypatch.setattr(generated_tests, "said_rates", lambda groups, run, probe: [0.95, 0.2])
    writer = Writer([f'["[{i}]", "{i}"]' for i in range(40)])
    _, run = judged([(ask("Sum?", GOLD), ["sum"] * 4), (ask("Max?", GOLD), ["max"] * 4)], writer, "list_program", each=4, probe="p")
    assert run.metrics["completions"] == 8
    assert run.metrics["tests_most"] > 4


def test_hard_problems_are_given_more_tests_and_the_budget_is_kept():
    # the gains of .9 are .9, .09, .009, and those of .2 .2, .16, .128, ... .0137 (the thirteenth); what is hopeless gains nothing
    assert allocated([0.9, 0.2, 0.0], [20, 20, 20], 15) == [2, 13, 0]
    # no more than there are; the rest goes to others
    assert allocated([0.5, 0.5], [2, 20], 10) == [2, 8]
    assert allocated([0.5, 0.5], [0, 3], 10) == [0, 3]
    # one test of what is sure gains all there is
    assert allocated([0.0, 1.0], [5, 5], 1) == [0, 1]
    assert allocated([0.0, 1.0], [5, 5], 6) == [3, 3]
    assert allocated([], [], 6) == []
