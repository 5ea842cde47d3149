"""PEAR: penalise right replies for thinking entropy above the entropy of the answer.

    r = 1 - P if right,  0 if wrong;    P = min(most, max(0, H_think - alpha H_answer))

H is the mean entropy of the policy over the tokens of a phase, in nats, whatever was sampled. Thinking ends at a marker, which
belongs to neither phase; a reply without one is all thinking, and its H_answer is 0. Replies that explore are longer, so less
entropy makes them shorter, without a budget. Measured against the answer's, entropy is not pressed down everywhere.

Huang et al. 2025, arXiv:2510.08026, by a note that quotes its equations; its code was not at hand. alpha = 1 and that a reply
without a marker is all thinking are the paper's. That P is at most 1 is ours: there a right reply with more excess than a nat earns
less than a wrong one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores, Trajectory
from rewardlab.data.columns import Data
from rewardlab.evals.length import entropy_of_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat
from rewardlab.util.outputs import entropies

MARKERS = ("</think>", "Answer:", "\\boxed{")


def phases(pieces: Sequence[str], markers: Sequence[str]) -> tuple[slice, slice]:
    """The tokens before and after the first of `markers` that the text has; pieces: the text of each token."""
    text, ends = "".join(pieces), list(accumulate(map(len, pieces)))
    marker = next((m for m in markers if m in text), None)
    if marker is None:
        return slice(0, len(pieces)), slice(len(pieces), None)
    at = text.index(marker)
    # the tokens that hold the marker's first and last character: they may hold other characters too
    return slice(0, bisect_right(ends, at)), slice(bisect_left(ends, at + len(marker)) + 1, None)


def excess(entropy: np.ndarray, pieces: Sequence[str], markers: Sequence[str], alpha: float, most: float) -> float:
    """P of a reply, from the entropy and the text of each of its tokens."""
    think, answer = (float(part.mean()) if len(part := entropy[phase]) else 0.0 for phase in phases(pieces, markers))
    return min(most, max(0.0, think - alpha * answer))


@reward(over="groups")
def hesitation(
    groups: list[Group],
    run: Run,
    *,
    alpha: NonNegativeFloat = 1.0,
    max_penalty: PositiveFloat = 1.0,
    markers: tuple[str, ...] = MARKERS,
) -> Scores:
    """P of every right reply, 0 of a wrong one; a reply without a verdict gets none."""
    verdicts = correct()(groups, run)
    judged = [pair for rows in zip(groups, verdicts, strict=True) for pair in zip(*rows, strict=True)]
    # a wrong reply's entropy is not asked for: it costs a pass over its tokens
    right = [t for t, v in judged if v.value is not None and v.value >= 1.0]
    found = {
        id(t): _excess_of(t, h, run, alpha, max_penalty, markers) for t, h in zip(right, entropies(run.policy, right), strict=True)
    }
    if found:
        run.log("hesitation", float(np.mean(list(found.values()))))
    return [
        [Score(None, why=v.why) if v.value is None else Score(found.get(id(t), 0.0)) for t, v in zip(group, row, strict=True)]
        for group, row in zip(groups, verdicts, strict=True)
    ]


def _excess_of(t: Trajectory, entropy: np.ndarray, run: Run, alpha: float, most: float, markers: Sequence[str]) -> float:
    return excess(entropy[t.mask], run.policy.pieces(t.ids[t.mask]), markers, alpha, most)


def pear(base: Recipe | None = None, *, alpha: float = 1.0, max_penalty: float = 1.0, markers: tuple[str, ...] = MARKERS) -> Recipe:
    """alpha: how much of the answer's entropy is allowed to thinking.  max_penalty: the most that a right reply can lose.
    markers: texts that end thinking, the first that a reply has.
    """
    base = base or grpo()
    return base.but(reward=(base.reward or correct()) - hesitation(alpha=alpha, max_penalty=max_penalty, markers=markers))


fidelity = "core"
left_out = "the KL to the reference."

data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A tank holds 120 litres and is 3/8 full. How many litres are missing?", "answer": "75"},
        {"prompt": "Solve $3x - 7 = 11$. Think between <think> and </think>, then put $x$ in \\boxed{}.", "answer": "6"},
        {"prompt": 'What is the next number: 2, 6, 12, 20, ...? End with a line "Answer: number".', "answer": "30"},
    ],
)

claim = Claim(
    says="right replies become shorter than GRPO's after equal updates, at comparable accuracy, though no length is rewarded",
    versus="grpo", task="arithmetic:biased=0.9,error=0.1,corrected=0.5,difficulty=[1,3]",
    measure="log_right_length", direction="lower", margin=0.05,
    settings={"problems": 8}, versus_settings={"problems": 8}, by=entropy_of_right(rollout=independent(n=4)),
    problems=250, steps=70, guard=Within("pass@1", low=-0.03),
    fault=Within("before.entropy_to_length", low=0.2, says="longer right replies hesitate more"),
    moved=Within("right_entropy", high=-0.005, says="right replies hesitate less"),
    tried="40 and 70 steps: hesitation fell by .004 and .003, not .005; as written here, three seeds: by .0006; "
    "redundant=0.4: longer right replies hesitate less there at the start (entropy_to_length -0.5): a check is certain",
    finding="Right replies hesitate as much as GRPO's (.054 nats on both sides, .119 at the start) and are as long (21.4 "
    "tokens): beside 1 for being right, the difference of two small entropies moves nothing here.",
)  # fmt: skip
