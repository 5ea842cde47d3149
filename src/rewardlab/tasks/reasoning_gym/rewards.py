"""The verifier of tasks from reasoning-gym: each generator's own scorer."""

from __future__ import annotations

import math

from rewardlab.core import Score, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.text.answers import after_answer

from . import client as gym

OPEN, CLOSE = "<answer>", "</answer>"


@reward
def reasoning_gym_answer(trajectory: Trajectory, *, seconds: float = 5.0) -> Score:
    """What the generator's `score_answer` gives, in [0, 1]; only 1 is right.

    The problem's meta holds generator, options and entry, as the task `reasoning_gym` writes them. A scorer that raises, takes more
    than `seconds`, or is brought down by the answer gives 0. No verdict: an entry that cannot be read.
    """
    meta, said = trajectory.problem.meta, stated(trajectory.reply)
    try:
        given = {"generator": meta["generator"], "given": meta["options"], "entry": meta["entry"]}
        found = gym.ask("score", seconds, **given, answer=said, seconds=seconds)
    except KeyError as e:
        return Score(None, why=f"the problem does not say its {e.args[0]}")
    except gym.Ended as e:
        return Score(0.0, why=f"scoring {said[:60]!r} {e}")
    except RewardlabError as e:
        return Score(None, why=str(e))
    if "raised" in found:
        return Score(0.0, why=f"the scorer failed on {said[:60]!r}: {found['raised']}")
    value = found["value"]
    if not math.isfinite(value):
        return Score(0.0, why=f"the scorer gave {value} for {said[:60]!r}")
    value = min(max(value, 0.0), 1.0)
    return Score(value, why="right" if value == 1.0 else f"said {said[:60]!r}: {value:.3g}")


def stated(reply: str) -> str:
    """The answer of a reply: in its last <answer> ... </answer>, else the line after its last "Answer:", else all of it."""
    end = reply.rfind(CLOSE)
    begin = reply.rfind(OPEN, 0, max(end, 0))
    if begin >= 0:
        return reply[begin + len(OPEN) : end].strip()
    return after_answer(reply) or reply.strip()
