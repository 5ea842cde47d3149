"""One right and one wrong reply of several, and what was seen of them all."""

from __future__ import annotations

import pytest
from lengths import group_of, run_at

from rewardlab.core import Run, rollout
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.oreal import right_wrong_pair


@rollout
def listed(problems, run, *, kinds: tuple[str, ...]):
    return [group_of(k, range(1, len(k) + 1)) for k in kinds]


def test_groups_without_both_are_dropped_and_the_pass_rate_is_that_of_all_with_a_verdict():
    run = run_at()
    groups = right_wrong_pair(inner=listed(kinds=("rwww", "ww", "rw?", "??")))([], run)
    assert [[t.reply for t in group] for group in groups] == [["4", "5"], ["4", "5"]]
    seen = [(group[1].problem.meta["pass_rate"], group[1].problem.meta["judged"]) for group in groups]
    assert seen == [(0.25, 4), (0.5, 2)]
    assert run.metrics == pytest.approx({"mixed": 1 / 2, "pass_rate": (0.25 + 0 + 0.5) / 3})


def test_each_reply_has_its_chance():
    rows = [right_wrong_pair(inner=listed(kinds=("rrrwww",)))([], run_at(step)) for step in range(40)]
    assert {len(group[0]) for (group,) in rows} == {3, 4, 5}  # with two tokens of prompt
    assert {len(group[1]) for (group,) in rows} == {6, 7, 8}


def test_where_no_group_has_both_all_stay_with_their_pass_rate():
    groups = right_wrong_pair(inner=listed(kinds=("rr", "w", "?")))([], run_at())
    assert [len(g) for g in groups] == [2, 1, 1]
    assert [g[0].problem.meta["pass_rate"] for g in groups] == [1, 0, 0]


def test_a_run_without_a_verifier_is_refused():
    with pytest.raises(RewardlabError, match="needs the task's verifier"):
        right_wrong_pair(inner=listed(kinds=("rw",)))([], Run(policy=None))
