"""The verifier of tasks from reasoning-gym: each generator's own scorer."""

from __future__ import annotations

import math

from rewardlab.core import Score, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveFloat
from rewardlab.text.answers import after_answer

from . import client as gym

OPEN, CLOSE = "<answer>", "</answer>"


@reward
def reasoning_gym_answer(trajectory: Trajectory, *, seconds: PositiveFloat = 5.0) -> Score:
    """The score of the generator's `score_answer`, in [0, 1]; only 1 is right.

    The problem's meta holds generator, options and entry, as the task `reasoning_gym` writes them. A scorer that raises, takes more
    than `seconds`, or dies on the answer gives 0. No verdict: an entry that cannot be read.
    """
    meta, answer = trajectory.problem.meta, stated(trajectory.reply)
    try:
        scored = gym.ask(
            "score", seconds, generator=meta["generator"], settings=meta["options"], entry=meta["entry"], answer=answer
        )
    except KeyError as e:
        return Score(None, why=f"the problem does not say its {e.args[0]}")
    except gym.Ended as e:
        return Score(0.0, why=f"scoring {answer[:60]!r} {e}")
    except RewardlabError as e:
        return Score(None, why=str(e))
    if "raised" in scored:
        return Score(0.0, why=f"the scorer failed on {answer[:60]!r}: {scored['raised']}")
    value = scored["value"]
    if not math.isfinite(value):
        return Score(0.0, why=f"the scorer gave {value} for {answer[:60]!r}")
    value = min(max(value, 0.0), 1.0)
    return Score(value, why="right" if value == 1.0 else f"said {answer[:60]!r}: {value:.3g}")


def stated(reply: str) -> str:
    """The answer of a reply: in its last <answer> ... </answer>, else the line after its last "Answer:", else all of it."""
    end = reply.rfind(CLOSE)
    begin = reply.rfind(OPEN, 0, max(end, 0))
    if begin >= 0:
        return reply[begin + len(OPEN) : end].strip()
    return after_answer(reply) or reply.strip()
