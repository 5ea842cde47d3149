"""Recorded replies whose steps are marked."""

from rewardlab.core import Run, ask
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.recorded import recorded


def test_steps_of_recorded_replies_are_marked_where_they_end():
    run = Run(untrained(0))
    (group,) = recorded(steps="newline")([ask("Start with 7. Add 5.", "12", solution="7+5=12\nAnswer: 12")], run)
    (row,) = group
    pieces = run.policy.pieces(row.ids)
    assert [pieces[at] for at in row.steps] == ["\n", "<|im_end|>"]
    assert recorded()([row.problem], run)[0][0].steps == ()
