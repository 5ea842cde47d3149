"""What an episode earned, for the refiner that accepted or cut it too; and how much of what it read was of use."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import Reward, reward
from rewardlab.text.refining import REFINES


@reward(over="groups")
def of_result(groups: list[Group], run: Run, *, of: Reward) -> Scores:
    """The reward `of` episodes, also for the refiner's replies that follow them (`repaired`): what their episode earned.

    No verdict for a refiner whose episodes are not there, or have none.
    """
    scores = iter(of([group for group in groups if not _refines(group)], run))
    made: Scores = []
    earned: dict[str, dict[tuple[int, ...], Score]] = {}
    for group in groups:
        if _refines(group):
            found = earned.get(group[0].problem.meta[REFINES], {})
            made.append([_same(found.get(t.path)) for t in group])
            continue
        row = next(scores)
        if group:
            # of a problem that comes twice, a refiner's replies are about the episodes before them
            earned[group[0].problem.key] = {t.path: score for t, score in zip(group, row, strict=True)}
        made.append(row)
    return made


def _refines(group: Group) -> bool:
    return bool(group) and REFINES in group[0].problem.meta


def _same(score: Score | None) -> Score:
    if score is None or score.total is None:
        return Score(None, why="its episode has no verdict")
    return Score(score.total, why="what its episode earned")


@reward
def useful_results(trajectory: Trajectory, *, column: str = "supporting") -> Score:
    """The share of the messages that an episode read after its first reply which hold a document of this column that none before
    them held. 0 where it read none; no verdict where the problem has no such list.
    """
    wanted = trajectory.problem.meta.get(column)
    if not isinstance(wanted, list | tuple) or not wanted:
        return Score(None, why=f"the problem has no list {column!r}")
    first = next((i for i, turn in enumerate(trajectory.turns) if turn.author is not None), len(trajectory.turns))
    read = [turn.text for turn in trajectory.turns[first:] if turn.author is None and len(turn.ids)]
    left, useful = set(map(str, wanted)), 0
    for text in read:
        # a search may show a document of several lines in one
        shown = " ".join(text.split())
        found = {document for document in left if " ".join(document.split()) in shown}
        useful += bool(found)
        left -= found
    return Score(useful / len(read) if read else 0.0, why=f"{useful} of {len(read)} results")
