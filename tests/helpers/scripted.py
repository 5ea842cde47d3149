"""A policy that says what a table tells it to, one character a token: searches over it can be worked out by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch

from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.core.policy import TokenCount
from rewardlab.policies.text import TextPolicy
from rewardlab.rewards.reward import reward

END = 0


class ScriptedPolicy:
    """says: the reply so far -> what may follow it, each in one step.

    Rows of one call with the same reply take these in turn, and begin anew after the last one. What follows ends the reply, unless
    it ends in a line break. `calls` holds the rows of every call.
    """

    name, step, context = "policy", 0, 1000
    device = torch.device("cpu")
    check_fits = TextPolicy.check_fits

    def __init__(self, says):
        self.says, self.calls, self.token_count = says, [], TokenCount()

    def read(self, trajectories, messages):
        return [t.plus(Turn(None, np.array([1]), text="?")) for t in trajectories]

    def extend(self, trajectories, sampling, rng):
        self.calls.append([t.reply for t in trajectories])
        taken = Counter()
        return [self._longer(t, sampling, taken) for t in trajectories]

    def _longer(self, t, sampling, taken):
        key = (id(t.problem), t.reply)
        said = self.says(t) if callable(self.says) else self.says[t.reply]
        text = said[taken[key] % len(said)]
        taken[key] += 1
        steps = [i + 1 for i, c in enumerate(text) if c in sampling.stop]
        text, ended = (text[: steps[0]], False) if steps else (text, not text.endswith("\n"))
        ids = [ord(c) for c in text] + [END] * ended
        cut, ids = len(ids) > sampling.max_new, np.array(ids[: sampling.max_new])
        self.token_count.generated += len(ids)
        zeros = np.zeros(len(ids), np.float32)
        stop = "length" if cut else "end" if ended else "stop"
        return t.plus(Turn(self.name, ids, zeros, zeros, self.decode(ids), step=0), stop)

    def decode(self, ids):
        return "".join(chr(i) for i in ids if i != END)

    def pieces(self, ids):
        return ["" if i == END else chr(i) for i in ids]


@reward
def last_digit(trajectory: Trajectory) -> Score:
    """A tenth of the last digit; no verdict where a question mark comes after it."""
    text = trajectory.reply.strip()
    return Score(None) if text.endswith("?") else Score(int(next((c for c in reversed(text) if c.isdigit()), "0")) / 10)


def searched(search, says, problems=1, max_new=100, seed=0):
    """The replies that a search finds to each of so many problems, its groups, and the policy."""
    policy = ScriptedPolicy(says)
    groups = search([ask(f"{i}?") for i in range(problems)], Run(policy, seed=seed, max_new=max_new))
    return [[t.reply for t in group] for group in groups], groups, policy
