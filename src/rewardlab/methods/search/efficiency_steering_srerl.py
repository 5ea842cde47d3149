"""Efficiency steering and SRE-RL: a model's own short right replies as a steering direction of activations, or as a reward.

    steering:   h <- h + alpha v at a layer, for every token;    v = mean h(shortest right) - mean h(longest right), over problems
    SRE-RL:     r = 1 + w (longest - len) / (longest - shortest) if right, 0 if wrong;    over the group's right replies

Right replies of one model to one problem differ much in length, and the shortest mostly suffice: it can be brief already. What
its brief replies have in common is one direction of its activations, which needs no training; or the group's own shortest right
reply is what the others are paid for being near to.

Zhao et al. 2025, arXiv:2506.15647 (abstract and our row; no code was found). (inferred): h is averaged over the
tokens of each reply, the middle layer, alpha = 1, one pair of the shortest and the longest of 8 replies to a problem; the linear
form of the reward, w = 0.5, and that right replies that are all as long earn all of it.

By default the policy is trained by SRE-RL; half of the held-out problems then give a direction, and the
other half shows what it does. `solutions`: instead, a file of the --model's own solutions (prompt, steps, right), as `rewardlab prm
label` writes it: nothing is trained, and the method answers steered by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Scores, Trajectory, Update, ask, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.data.step_formats import read_solutions
from rewardlab.errors import RewardlabError
from rewardlab.evals.length import length_of_right
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.length import brevity_among_right
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.vote import majority
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.util.outputs import forward_batch

# ---- Replies sampled while a direction is added to what a layer passes on, and how that direction is found -----------

Pair = tuple[Trajectory, Trajectory]
BATCH = 32
"""Rows whose activations are computed at a time."""


@rollout(wraps="inner")
def activation_steering(
    problems: list[Problem], run: Run, *, inner: Rollout, solutions: str, strength: float = 1.0, layer: int = -1
) -> list[Group]:
    """The samples of `inner` with `strength` times a direction added to a decoder layer's output at every token.

    The direction is `contrast` of the shortest and the longest right solution to each prompt of the file `solutions`, which the
    policy itself should have written: rows of prompt, steps and right (data/solutions.py), steps joined by newlines. It is found
    once, with the weights of that moment, and kept in run.memory.  layer: counted from 0; -1: the middle one.
    """
    key = f"steered {solutions} {layer}"
    if key not in run.memory:
        run.memory[key] = contrast(run.policy, _recorded(solutions, run), layer)
    with added(run.policy, strength * run.memory[key], layer):
        return inner(problems, run)


def added(policy: Any, direction: Tensor, layer: int) -> Any:
    """A context in which `direction` (hidden,) is added to what the layer passes on for every token."""
    return policy.inserted(_place(policy, layer), lambda x: x + direction.to(x))


def shortest_and_longest(groups: Sequence[Group], verdicts: Scores) -> list[Pair]:
    """Of each group its shortest and its longest right row, in sampled tokens; of equal ones the first. Groups in which all right
    rows are as long as each other say nothing about length, and have no pair.
    """
    right = [
        [t for t, s in zip(group, row, strict=True) if s.value is not None and s.value >= 1.0 and t.mask.any()]
        for group, row in zip(groups, verdicts, strict=True)
    ]
    return [pair for rows in right if rows and (pair := _extremes(rows))]


def _extremes(rows: Sequence[Trajectory]) -> Pair | None:
    lengths = [int(t.mask.sum()) for t in rows]
    least, most = min(lengths), max(lengths)
    return (rows[lengths.index(least)], rows[lengths.index(most)]) if least < most else None


def contrast(policy: Any, pairs: Sequence[Pair], layer: int = -1) -> Tensor:
    """(hidden,) what the layer passes on at the sampled tokens of the first rows of the pairs, minus that of the second ones.

    Each row counts as the mean over its tokens, so that a long one weighs as much as a short one.
    """
    if not pairs:
        raise RewardlabError("no problem has two right solutions of different lengths, so there is no direction to steer in")
    rows, at = [t for pair in pairs for t in pair], _place(policy, layer)
    means = torch.cat([_means(policy, rows[i : i + BATCH], at) for i in range(0, len(rows), BATCH)])
    return means[0::2].mean(0) - means[1::2].mean(0)


def _means(policy: Any, rows: Sequence[Trajectory], layer: int) -> Tensor:
    """(B, hidden) the mean over each row's sampled tokens."""
    batch = forward_batch(rows, policy.device)
    table, mask = policy.activation_table(batch, layer), batch.mask[:, :, None]
    return (table * mask).sum(1) / mask.sum(1)


def _place(policy: Any, layer: int) -> int:
    return policy.depth // 2 if layer == -1 else layer


def _recorded(solutions: str, run: Run) -> list[Pair]:
    """The pairs of a file of solutions, as the policy would have written them."""
    by_prompt: dict[str, list[str]] = {}
    for solution in read_solutions(solutions):
        if solution.right:
            by_prompt.setdefault(solution.prompt, []).append("\n".join(solution.steps))
    pairs = []
    for prompt, texts in by_prompt.items():
        asked = run.policy.read([Trajectory(ask(prompt))] * len(texts), [ask(prompt).prompt] * len(texts))
        pairs.append(_extremes([_as_sampled(a, b, run) for a, b in zip(asked, run.policy.write(asked, texts), strict=True)]))
    return [pair for pair in pairs if pair]


def _as_sampled(before: Trajectory, row: Trajectory, run: Run) -> Trajectory:
    """The row with the policy as the author of what was written after the prompt."""
    n = len(before.turns)
    return replace(row, turns=(*row.turns[:n], *(replace(turn, author=run.policy.name) for turn in row.turns[n:])))


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@measure
def steered_length(
    problems: list[Problem], run: Run, *, strength: float = 1.0, layer: int = -1, n: PositiveInt = 1, examples: PositiveInt = 8,
    temperature: NonNegativeFloat = 1.0,
) -> dict[str, float]:  # fmt: skip
    """`length_of_right` on the second half of the problems, and the same steered, where numbers begin with steered_.

    The direction is that of the first half, with `examples` replies to each, of which `pairs` problems had two right ones of
    different lengths.  steered_gain: steered pass@1 minus plain.  Without a pair, as where there is only one problem, nothing is
    steered.
    """
    half, count = len(problems) // 2, {"pairs": 0.0}
    sampled = independent(n=examples, temperature=temperature)(problems[:half], run) if half else []
    pairs = shortest_and_longest(sampled, run.verify(sampled, run) if half else [])
    # the same random numbers for both
    measured = length_of_right(rollout=independent(n=n, temperature=temperature))
    plain = after = measured(problems[half:], run.for_evaluation())
    if pairs:
        with added(run.policy, strength * contrast(run.policy, pairs, layer), layer):
            after = measured(problems[half:], run.for_evaluation())
        count = {"pairs": float(len(pairs))}
    gain = {"steered_gain": after["pass@1"] - plain["pass@1"]}
    return plain | count | gain | {f"steered_{name}": after[name] for name in ("pass@1", "right_length", "log_right_length")}


def efficiency_steering_srerl(
    base: Recipe | None = None, *, brevity: float = 0.5, strength: float = 1.0, layer: int = -1, n: int = 1, examples: int = 8,
    temperature: float = 1.0, solutions: str = "",
) -> Recipe:  # fmt: skip
    """brevity: w, the weight of brevity in SRE-RL.  strength: alpha, negative to make replies longer.  layer: counted from 0; -1:
    the middle one.  n: replies to each problem when answering (the majority is given) and when measuring.  examples: replies to
    each problem that the direction is found from.  temperature: of these replies.  solutions: answer steered by this file.
    """
    sampled = independent(n=n, temperature=temperature)
    alone = Recipe(name="efficiency_steering_srerl", rollout=sampled, measure=accuracy(), update=Update())
    base = base or (alone if solutions else grpo())
    if solutions:
        answered = activation_steering(inner=base.rollout or sampled, solutions=solutions, strength=strength, layer=layer)
        return base.but(rollout=answered, select=majority())
    return base.but(
        reward=(base.reward or correct()) + brevity * brevity_among_right(),
        measure=steered_length(strength=strength, layer=layer, n=n, examples=examples, temperature=temperature),
    )


fidelity = "reading"
left_out = (
    "how the paper finds its layer, its strength and its pairs, and the formula of its reward: only its abstract and summaries "
    "were found, and these are ours"
)
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "Ben has $20 and spends a quarter of it. How many dollars are left?", "answer": "15"},
        {"prompt": "What is $3(4 + 5) - 7$?", "answer": "20"},
        {"prompt": "A train takes 2 hours for 150 km. How far does it go in 5 hours, in km?", "answer": "375"},
        {"prompt": "What is half of 46, plus 4?", "answer": "27"},
    ],
)

check = Check(
    says="with the direction from its long to its short right replies added, right replies are shorter and as many",
    versus=None, task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="steered_log_right_length", direction="lower",
    margin=0.05, against="log_right_length", settings={"problems": 8}, steps=1, guard=Within("steered_gain", low=-0.03),
    fault=Within("right_length", low=31.0, says="tokens of right replies"), learns=None,
    tried="strengths 2, 4 and 8 at layers 0, 1 and 2, 500 problems: lengths move by .01, in no order, and accuracy falls",
    finding="right replies have 37 tokens with the direction added and without it, and 29% are right. Lines are repeated at random "
    "here, so that no reply is briefer as a whole than others, and there is no such direction to find",
)  # fmt: skip
baseline = "grpo"
