"""What a judgement of the policy's is paid: whether its verdict is right."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.judges.cases import agrees, all_alike
from rewardlab.judges.forms import Reading
from rewardlab.judges.named import form_of
from rewardlab.rewards.reward import reward


def reading_of(trajectory: Trajectory, form: str, kind: str = "pairwise") -> tuple[Reading, tuple[float, ...]] | str:
    """What a judgement says of the replies that its question shows, and what these are worth; or why that is not known."""
    worth = trajectory.problem.meta.get("worth")
    if not worth:
        return "the problem is no question to a judge: it has no column 'worth'"
    return form_of(form, kind).read(trajectory.reply, len(worth)), tuple(map(float, worth))


@reward
def right_judgement(
    trajectory: Trajectory, *, form: str = "", kind: str = "pairwise", right: float = 1.0, wrong: float = -1.0
) -> Score:  # fmt: skip
    """`right` where the judgement finds the best of the replies to be the best, alone; `wrong` where it does not, or has no mark
    that can be read, so that silence is never worth more than an error.

    Of a single reply: where judgement and label lie on one side of 1/2. No verdict where all replies are worth the same.  form,
    kind: as in `judgements`.
    """
    found = reading_of(trajectory, form, kind)
    if isinstance(found, str):
        return Score(None, why=found)
    reading, worth = found
    if all_alike(worth):
        return Score(None, why="all replies are worth the same, so that no judgement is right")
    if reading.values is None:
        return Score(wrong, why=reading.said)
    return Score(right if agrees(reading.values, worth) else wrong, why=f"said {reading.said}", extracted=reading.said)


@reward
def judged_rightly(trajectory: Trajectory, *, form: str = "", kind: str = "") -> Score:
    """1 for a right judgement and 0 for any other, as the verifier of a task says it; `right_judgement` pays -1 for these.

    kind: empty: a verdict where the question shows one reply, else a preference.
    """
    kind = kind or ("verdict" if len(trajectory.problem.meta.get("worth") or ()) == 1 else "pairwise")
    return right_judgement(form=form, kind=kind, wrong=0.0)([[trajectory]])[0][0]
