"""HAPO: reward a right reply by its length relative to the shortest right reply to the prompt so far.

    f = cos(min(pi/2 * len / h, pi)),    h: tokens of the shortest right reply to this prompt before this step
    r = 1 + w max(f, worst) if right,    w min(f, 0) if wrong;    while a prompt has no h, length earns nothing

At len = h the length term is 0: a reply as short as the best so far earns what it did, and a shorter one earns more. A wrong reply
is not penalised for being shorter than h, so trying a short solution costs nothing. `worst` above -1 keeps every right reply above
every wrong one.

Huang et al. 2025, arXiv:2505.11225. Cosine, minimum, w = 1 and worst = -0.7 are those of the released training script
(HCY123902/HAPO, ed54590). Prompts must come again, or there is never an h: train on a file of problems, or give a generated task a
size.
"""

import math

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores
from rewardlab.data.columns import Data
from rewardlab.evals.length import length_of_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent

MEMORY = "hapo.shortest"


def length_term(length: int, shortest: float | None, right: bool, worst: float) -> float:
    """f for a reply of `length` tokens, bounded for right and for wrong replies; 0 while the prompt has no `shortest`."""
    if shortest is None:
        return 0.0
    # min: beyond twice the shortest length the cosine would rise again
    f = math.cos(min(math.pi / 2 * length / shortest, math.pi))
    return max(f, worst) if right else min(f, 0.0)


@reward(over="groups")
def shorter_than_before(groups: list[Group], run: Run, *, worst: float = -0.7) -> Scores:
    """The length term of every reply; replies without a verdict get none.

    run.memory holds for each prompt [step of its last visit, h before that step, h after it]. Scoring a step again reads the same
    h before it, so calling this reward twice changes nothing.
    """
    memory = run.memory.setdefault(MEMORY, {})
    before: dict[str, float | None] = {}
    for key in {t.problem.key for group in groups for t in group}:
        # the step is stored with both values so that a repeated call within a step still compares with the earlier one
        step, h_before, h_after = memory.get(key, (None, None, None))
        before[key] = h_before if step == run.step else h_after
    scores = []
    for group, verdicts in zip(groups, correct()(groups, run), strict=True):
        row = []
        for t, verdict in zip(group, verdicts, strict=True):
            key, length = t.problem.key, int(t.mask.sum())
            if verdict.value is None:
                row.append(Score(None, why=verdict.why))
                continue
            right, h = verdict.value >= 1.0, before[key]
            # several rows share a prompt: h is updated from row to row but compared with only from the next step on
            after = memory[key][2] if key in memory else h
            if right:
                after = length if after is None else min(after, length)
            memory[key] = [run.step, h, after]
            row.append(Score(length_term(length, h, right, worst), why="no right reply before" if h is None else f"h = {h}"))
        scores.append(row)
    return scores


def hapo(base: Recipe | None = None, *, weight: float = 1.0, worst: float = -0.7) -> Recipe:
    """weight: of the length term, w.  worst: its least value for a right reply."""
    base = base or grpo()
    return base.but(reward=(base.reward or correct()) + weight * shorter_than_before(worst=worst))


fidelity = "core"
left_out = "the sampling of the released run, two replies a prompt at a temperature of .7, and the KL that its version of TRL adds"

data = Data(
    prompt="the question; it must come again in later epochs, or there is no earlier reply to compare with",
    answer="the gold answer",
    again="compares right replies with earlier ones to the same prompt",
    rows=[
        {"prompt": "A rectangle is 7 cm wide and has an area of 84 square cm. How long is it, in cm?", "answer": "12"},
        {"prompt": "Simplify $\\sqrt{72}$. Put your answer in \\boxed{}.", "answer": "6\\sqrt{2}"},
        {"prompt": "Tom is twice as old as Ann, and together they are 36. How old is Ann?", "answer": "12"},
    ],
)

claim = Claim(
    says="right replies become shorter than GRPO's after equal updates, with at most a few points of accuracy lost",
    versus="grpo", task="arithmetic:biased=0.75,error=0.1,redundant=0.4,size=128", measure="log_right_length", direction="lower",
    margin=0.05, settings={"problems": 8}, versus_settings={"problems": 8}, by=length_of_right(rollout=independent(n=1)),
    steps=40, guard=Within("pass@1", low=-0.03), fault=Within("right_length", low=31.0, says="tokens of right replies"),
    finding="Right replies shorten from 36.7 tokens to 29.6, with GRPO alone to 35.3, and as many are right (63%, 61%; 33% at "
    "the start).",
)  # fmt: skip
