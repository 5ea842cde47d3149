"""Solutions with labels: true ones where they are held out, and of what annotators err in."""

from __future__ import annotations

import pytest

from rewardlab.worlds.labelled_solutions import labelled_solutions


def test_steps_are_right_up_to_the_first_that_is_not_the_gold_one():
    for problem in labelled_solutions().test[:64]:
        labels, steps = problem.meta["labels"], problem.meta["steps"]
        assert labels == sorted(labels, reverse=True)
        assert len(labels) == len(steps)
        assert problem.meta["right"] == (steps[-1] == f"Answer: {problem.answer}")
        # all steps of a solution are right only if its answer is
        assert problem.meta["right"] or labels[-1] == 0.0


def test_there_are_several_solutions_to_a_held_out_question_and_one_to_learn_from():
    task = labelled_solutions(several=4)
    assert [len({p.question for p in task.test[i : i + 4]}) for i in (0, 4)] == [1, 1]
    assert len({tuple(p.meta["steps"]) for p in task.test[:4]}) > 1
    assert len({task.train[i].question for i in range(50)}) == 50
    assert not {p.question for p in task.test} & {task.train[i].question for i in range(200)}


def test_annotators_turn_some_labels_round_and_none_of_whole_solutions():
    true, noisy = labelled_solutions(), labelled_solutions(noise=0.25)
    pairs = [(true.train[i].meta, noisy.train[i].meta) for i in range(300)]
    turned = [a != b for t, n in pairs for a, b in zip(t["labels"], n["labels"], strict=True)]
    assert sum(turned) / len(turned) == pytest.approx(0.25, abs=0.04)
    assert all(t["right"] == n["right"] and t["steps"] == n["steps"] for t, n in pairs)
    assert noisy.test[:8] == true.test[:8]
