"""Generated tests: wrong at their rate, and often as the careless programmer is."""

import pytest

from rewardlab import registry
from rewardlab.worlds.poor_tests import poor_tests


def share_passed(task, program_of) -> float:
    verifier, passed = registry.part("reward", "list_program"), []
    for problem in task.test:
        verdict = verifier.check(program_of(problem), {"io": problem.meta["generated"]})
        passed += verdict.tests
    return sum(passed) / len(passed)


@pytest.mark.slow
def test_right_programs_pass_most_tests_and_all_if_none_is_wrong():
    assert share_passed(poor_tests(wrong=0.0, tests=8, test_size=40), lambda p: p.meta["solution"]) == 1.0
    # a wrong output may happen to be right, where the careless program is
    assert 0.7 < share_passed(poor_tests(wrong=0.4, tests=8, test_size=60), lambda p: p.meta["solution"]) < 0.9


def test_tests_are_the_same_whenever_they_are_asked_for():
    first, again = (poor_tests(tests=4, test_size=3) for _ in range(2))
    assert first.test == again.test
    assert first.train[5] == again.train[5]
    assert len(poor_tests(tests=4, test_size=1, size=6).train) == 6
    assert len(first.test[0].meta["generated"]) == 4
