"""Whether a method that samples several replies learns from the best and the worst of them."""

from __future__ import annotations

from typing import Any

from rewardlab.engine.step import Ops


def watch(model: Any) -> list:
    """What the model samples from now on."""
    sampled, plain = [], model.extend
    model.extend = lambda *inputs: sampled.extend(rows := plain(*inputs)) or rows
    return sampled


def at_the_ends(ops: Ops, sampled: list) -> list[tuple[bool, bool]]:
    """For each group learnt from: whether its first reply is a best one of those sampled, and its last one a worst.

    A reply is as good as its last token's number.
    """
    found = []
    for group in ops.step_data.groups:
        scores = {t.reply: float(t.ids[-1]) for t in reversed(sampled) if t.problem.key == group[0].problem.key}
        found.append((scores[group[0].reply] == max(scores.values()), scores[group[-1].reply] == min(scores.values())))
    return found
