"""LASER: a bonus for right replies within a length budget that adapts to difficulty and to current lengths.

    laser     r = [right] + alpha [right] [len <= L]
    laser-d   r = [right] + alpha [right] [len <= L_d],    d: easy, medium or hard, by the share of the group that is right
    laser-de  as laser-d, and a wrong reply of more than L_d tokens earns alpha too: what is not solved may be explored
    L_d = max(L, smallest l with floor(C_d P(len <= l | d)) >= 1),    C_d = floor(2n/3), floor(n/3), 1

P is measured on problems for monitoring, n replies each, before the first step and then every so many steps; C_d is the least
number of right replies that a group of n in class d has. So L_d is the smallest budget under which one of them is to be expected.
A step instead of a slope pays nothing for being shorter than the budget, so answers are not squeezed for their last tokens.

Liu et al. 2025, arXiv:2505.15612, and its released scripts (hkust-nlp/Laser, 78b09dd): alpha, n = 8, every 20 steps, floor, and
that P counts wrong replies too. There 500 problems are monitored for batches of 128; lengths are tried 1,024 apart, here each; a
wrong reply earns -1/2 and an ill-formed one -1, here 0. (inferred): a wrong reply earns nothing for its length if it was cut off
or repeats itself, as Phi-4's penalty counts it; the code has a detector of its own.
"""

from dataclasses import replace
from typing import Any, Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Loop, Recipe, Run, Score, Scores, Trajectory, loop
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.length import length_of_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.repetition import repeated
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveInt

Variant = Literal["laser", "laser-d", "laser-de"]
MEMORY = "laser.budgets"
LEAST = {"easy": 2 / 3, "medium": 1 / 3, "hard": 0.0}
"""The least share of right replies in a class, from the easiest on."""


def class_of(verdicts: list[Score]) -> str:
    judged = [v.value >= 1.0 for v in verdicts if v.value is not None]
    share = sum(judged) / len(judged) if judged else 0.0
    return next(d for d, least in LEAST.items() if share >= least)


def budgets(groups: list[Group], verdicts: Scores, least: int) -> dict[str, int]:
    """L_d of each class that some group is in."""
    found = {}
    for d, share in LEAST.items():
        rows = [group for group, row in zip(groups, verdicts, strict=True) if class_of(row) == d]
        lengths = sorted(int(t.mask.sum()) for group in rows for t in group)
        if lengths:
            certain = max(1, int(len(rows[0]) * share))  # C_d
            # floor(C P) >= 1 where C times the replies within the budget is at least all of them
            found[d] = max(least, lengths[-(-len(lengths) // certain) - 1])
    return found


@loop(wraps="inner")
def monitored(
    recipe: Recipe, run: Run, ops: Any, *, least: PositiveInt, problems: PositiveInt, every: PositiveInt, inner: Loop | None = None
) -> None:
    """Training steps (of the loop `inner`, if there is one); every `every` steps, budgets are first re-measured on `problems`."""
    if run.step % every == 0:
        # under another name, so that nothing is logged; innermost, since a filter of rollouts would drop the easiest problems
        sampler = Recipe(rollout=recipe.required("rollout").innermost, reward=correct())
        monitor = replace(ops.policy, name="monitor", recipe=sampler)
        groups = ops.rollout([ops.task.train[i] for i in range(problems)], monitor)
        run.memory[MEMORY] = budgets(groups, ops.score(groups, monitor), least)
    for d, tokens in run.memory[MEMORY].items():
        run.log(f"budget/{d}", tokens)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


@reward(over="groups")
def within_budget(groups: list[Group], run: Run, *, variant: Variant = "laser-d", length: PositiveInt | None = None) -> Scores:
    """1 for replies that earn the bonus, 0 for others. A class that nothing is known of has no budget to exceed."""
    known = {} if variant == "laser" else run.memory.get(MEMORY, {})

    def earns(t: Trajectory, right: bool, tokens: int | None) -> bool:
        within = tokens is None or int(t.mask.sum()) <= tokens
        explores = variant == "laser-de" and t.stop != "length" and not repeated(t.ids[t.mask])
        return within if right else explores and not within

    rows = []
    for group, row in zip(groups, correct()(groups, run), strict=True):
        tokens = length if variant == "laser" else known.get(class_of(row))
        paid = (None if v.value is None else float(earns(t, v.value >= 1.0, tokens)) for t, v in zip(group, row, strict=True))
        rows.append([Score(value, why=v.why) for value, v in zip(paid, row, strict=True)])
    return rows


def laser(
    base: Recipe | None = None, *, variant: Variant = "laser-d", length: int | None = None, alpha: float = 0.5,
    monitor: int = 32, every: int = 20,
) -> Recipe:  # fmt: skip
    """length: L, in tokens: the budget of laser, the least one of the others.  alpha: the bonus.  monitor: problems for it.
    every: steps between two measurements of the budgets.
    """
    if variant == "laser" and length is None:
        raise RewardlabError("laser needs its budget in tokens: length=... (laser-d and laser-de measure theirs)")
    base = base or grpo()
    paid = (base.reward or correct()) + alpha * within_budget(variant=variant, length=length)
    if variant == "laser":
        return base.but(reward=paid)
    return base.but(reward=paid, loop=monitored(least=length or 1, problems=monitor, every=every, inner=base.loop))


fidelity = "core"
left_out = (
    "the base of the released scripts, whose reward alone is here: clipped higher (.28), the mean over tokens, a KL and a bonus "
    "for entropy of .001 each, two updates a batch, a temperature of .6, and budgets of no less than 1,024 tokens"
)

data = Data(
    prompt="the question; the first `monitor` of them are also those that the budgets are measured on",
    answer="the gold answer",
    rows=[
        {"prompt": "A shirt costs $25 after a discount of 20%. What did it cost before?", "answer": "31.25"},
        {"prompt": "How many diagonals has a convex polygon with 10 sides? Put your answer in \\boxed{}.", "answer": "35"},
        {"prompt": "What is 15% of 240?", "answer": "36"},
    ],
)

claim = Claim(
    says="right replies become shorter than GRPO's after equal updates, at the same accuracy",
    versus="grpo", task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="log_right_length", direction="lower",
    margin=0.085, settings={"problems": 8}, versus_settings={"problems": 8}, by=length_of_right(rollout=independent(n=1)),
    steps=40, guard=Within("pass@1", low=-0.03), fault=Within("right_length", low=31.0, says="tokens of right replies"),
    finding="Right replies shorten from 36.7 tokens to 29.8, with GRPO alone to 34.5, and no fewer are right (67%, 64%; 33% "
    "at the start).",
)  # fmt: skip
