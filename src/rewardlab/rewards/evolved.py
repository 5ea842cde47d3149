"""What a program is worth that was made of another one: its score, scaled, and penalties for what is no new program."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Scores, Term, Trajectory
from rewardlab.core.domain import NonNegativeFloat, PositiveFloat
from rewardlab.core.score import derive
from rewardlab.rewards.reward import Reward, reward
from rewardlab.text.evolution import MEMORY, PARENT, program_of

NONE, LAZY, WRONG = -0.4, -0.3, -0.2
"""Of a reply without a program, of one that is known, and of one that does not work."""


def shaped(score: float, low: float, high: float, power: float, scale: float) -> float:
    """scale ((score - low) / (high - low))^power, the score cut to [low, high]."""
    return scale * ((min(high, max(low, score)) - low) / (high - low)) ** power


@reward(over="groups")
def child_reward(
    groups: list[Group], run: Run, *, of: Reward, known: bool = False, lazy: NonNegativeFloat = -LAZY, least: float = 0.0,
    most: float = 1.0, power: PositiveFloat = 1.0, scale: PositiveFloat = 1.0,
) -> Scores:  # fmt: skip
    """The reward `of` a program from `least` to `most`, shaped; instead of it -.4 for a reply without a program, `lazy` off for one
    that is its parent, or, with `known`, stood in the problem's database before this step, and -.2 where `of` pays nothing.

    For replies to problems with the column `parent`, as `evolving` makes them.  Logged: lazy, the share of such replies.
    """
    tables, scores = run.memory.get(MEMORY, {}), of(groups, run)
    old = {key: {e["program"] for e in table if e["step"] < run.step} for key, table in tables.items()} if known else {}
    judged = [
        [_judged(t, s, old, (lazy, least, most, power, scale)) for t, s in zip(*rows, strict=True)]
        for rows in zip(groups, scores, strict=True)
    ]
    flat = [is_lazy for row in judged for _, is_lazy in row]
    run.log("lazy", sum(flat) / max(1, len(flat)))
    return [
        [derive("child_reward", None if x is None else Term(x), [s]) for (x, _), s in zip(*rows, strict=True)]
        for rows in zip(judged, scores, strict=True)
    ]


def _judged(t: Trajectory, score: Score, old: dict[str, set[str]], how: tuple[float, ...]) -> tuple[float | None, bool]:
    program, meta = program_of(t.reply), t.problem.meta
    lazy, *rest = how
    if not program:
        return NONE, False
    if program == meta.get(PARENT) or program in old.get(str(meta.get("database")), ()):
        return -lazy, True
    if score.total is None:
        return None, False
    return (shaped(score.total, *rest) if score.total > 0 else WRONG), False
