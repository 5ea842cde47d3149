"""Guide-GRPO: resample all-wrong groups with a hint, and learn from them as if without it.

    all n replies to x wrong: sample n again from pi_old(. | x, h);  A within the group that is learnt from
    ratio_t = pi(y_t | x, y_<t) / pi_old(y_t | x, h, y_<t);    loss = -A ratio / (ratio + c),   c their 90th percentile
    other groups: loss = -min(ratio A, clip(ratio, 1 - eps, 1 + eps) A)

Groups that are all wrong teach nothing. With a hint some of their replies are right; learnt from after the hint, they would teach
to use hints. After the plain prompt they are off-policy, which the ratio says, and the policy learns to do without. Their ratios
are far from 1: ratio / (ratio + c) bounds them, and takes the gradient from none, as a clip would. Prompts that are solved get no
hint: it would only take the policy away from what it can do.

Nath et al. 2025, arXiv:2506.13923, and vaskar-open-source-research/guide_rl, eb5c802 (core_algos.py, ray_trainer.py,
guide_grpo_qwen.sh): the guided replies take the place of the plain ones, the loss of each, n = 8, eps = 0.2, no KL. c is of one
reply, as in its micro-batches of one; there padding counts too. There the prompt with its hint is a column of the data. (inferred):
where in the prompt the hint stands.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Group, Objective, Outputs, Problem, Recipe, Rollout, Run, Trajectory, objective, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rollouts.goals import reprompted
from rewardlab.settings.domain import PositiveShare
from rewardlab.text.filled import filled

# ----------------------------------------------------------------------------------------------------------------------
#
# A hint where all replies are wrong, which is taken away again before anything is learnt from what was said with it.

GUIDED = "guided"
"""The tag of rows that were written with a hint and stand after the prompt without it."""


@rollout(wraps="inner")
def hint_on_failure(
    problems: list[Problem], run: Run, *, inner: Rollout, column: str = "hint", told: str = "{question} Hint: {hint}",
    everywhere: bool = False, plain: bool = True,
) -> list[Group]:  # fmt: skip
    """The groups of `inner`, with all-wrong ones resampled with a hint in the prompt.

    plain: the new replies stand after the prompt without the hint, as if they had been said to it, with the log-probs that they had
    with it: so the importance ratio of a token is pi(token | prompt) / pi_old(token | prompt, hint).  False: the hint stays.
    told: the question with its hint.  column: of the hint; where it is empty, the first line of the column `solution` is one, and a
    group without either stays as it is.
    everywhere: all groups are.  Replies without a verdict count neither way; a group without any verdict keeps its replies.
    Logs the share of groups that were guided, and of these the share in which a reply was right.
    """
    groups = inner(problems, run)
    hints = [_hint_of(group[0].problem, column) for group in groups]
    wrong = [everywhere or _all_wrong([s.value for s in row]) for row in run.verdicts(groups)]
    # without a hint it stays as it is, as a group of GRPO
    failed = [g for g in range(len(groups)) if wrong[g] and hints[g]]
    if failed:
        # asked for by the groups, since the sampler may have dropped problems or taken further ones
        asked = [groups[g][0].problem for g in failed]
        # by the sampler itself: what filters groups around it may give back fewer than were asked for, or others
        hinted = [p.reworded(filled(told, question=p.question, hint=hints[g])) for p, g in zip(asked, failed, strict=True)]
        again = inner.innermost(hinted, run)
        new = [[_taught(t, p, run) if plain else t for t in group] for p, group in zip(asked, again, strict=True)]
        for g, group in zip(failed, new, strict=True):
            groups[g] = group
        run.log("rescued", float(np.mean([any(s.value is not None and s.value >= 1 for s in row) for row in run.verdicts(new)])))
    run.log("guided", len(failed) / max(1, len(groups)))
    return groups


def _all_wrong(verdicts: list[float | None]) -> bool:
    known = [v for v in verdicts if v is not None]
    return bool(known) and max(known) < 1


def _hint_of(problem: Problem, column: str) -> str:
    """The hint of a problem; "" where it has none."""
    hint, solution = problem.meta.get(column), problem.meta.get("solution")
    if isinstance(hint, str) and hint.strip():
        return hint
    return solution.strip().partition("\n")[0] if isinstance(solution, str) else ""


def _taught(t: Trajectory, problem: Problem, run: Run) -> Trajectory:
    moved = reprompted(t, problem, run)
    # no step's weights said this to this prompt: in low precision the trainer would put its own log-probs in place of the recorded
    turns = tuple(turn if turn.author is None else replace(turn, step=-1) for turn in moved.turns)
    return replace(moved, turns=turns, tag=GUIDED)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@objective(unit="token", needs=("old",), wraps="inner")
def bounded_where_guided(out: Outputs, batch: Batch, run: Run, *, inner: Objective, percentile: PositiveShare = 0.9) -> Tensor:
    """-A ratio / (ratio + c) in hinted rows (`hint_on_failure`), and the objective `inner` in all others.

    c: this percentile of the ratios of the row, without gradient.
    """
    loss = inner(out, batch, run)
    rows = torch.tensor([t.tag == GUIDED for t, _ in batch.rows], device=batch.mask.device)
    where = batch.mask & rows[:, None]
    if not bool(where.any()):
        return loss
    ratio = torch.where(where, out.logprobs - batch.old, 0.0).exp()
    of_rows = [r[w].quantile(percentile) if bool(w.any()) else r.new_ones(()) for r, w in zip(ratio.detach(), where, strict=True)]
    # ratios of 0 would divide by nothing
    c = torch.stack(of_rows).clamp(min=1e-4)[:, None]
    return torch.where(where, -batch.credit * ratio / (ratio + c), loss)


def bounded(of: Objective | None) -> Objective:
    """An objective in which each term with a ratio of tokens is bounded in guided rows."""
    terms = [(scale, leaf, leaf.unit == "token" and leaf.wants == ("logprobs",) and "old" in leaf.needs)
             for scale, leaf in (of.terms() if of else ())]  # fmt: skip
    if not any(ratio for *_, ratio in terms):
        raise RewardlabError(f"replies to hints are off-policy, and need an objective of tokens by their ratio, not {of}")
    made = [(scale, bounded_where_guided(inner=leaf) if ratio else leaf) for scale, leaf, ratio in terms]
    first, *others = [leaf if scale == 1 else scale * leaf for scale, leaf in made]
    return sum(others, start=first)


def guide_grpo(
    base: Recipe | None = None, *, n: int = 8, everywhere: bool = False, plain: bool = True, column: str = "hint"
) -> Recipe:
    """n: replies per prompt.  everywhere: hints for all prompts.  plain: the hint is taken away again.  column: of the hints."""
    base = base or grpo(n=n)
    hinted = hint_on_failure(inner=base.required("rollout"), column=column, everywhere=everywhere, plain=plain)
    return base.but(rollout=hinted, objective=bounded(base.objective) if plain else base.objective)


fidelity = "core"
left_out = (
    "dropping groups that are all right or all wrong and refilling the batch, with hints and without; writing the hints, "
    "by a stronger model that may not tell the solution; and the variant for PPO"
)
data = Data(
    answer="the gold answer",
    hint=Column(
        "a hint, shown where all replies are wrong; without it, the first line of `solution` is one",
        optional=True,
        setting="column",
    ),
    solution=Column("a solution, whose first line is the hint where there is no `hint`", optional=True),
    idle={"hint, solution": "gives no group a hint"},
    rows=[
        {"prompt": "Ann has 3 apples and buys 2 bags of 4. How many has she?", "answer": "11", "hint": "2 bags of 4 are 8 apples."},
        {"prompt": "What is half of 46?", "answer": "23", "solution": "Half of 40 is 20.\nHalf of 6 is 3.\nAnswer: 23"},
        {"prompt": "A train leaves at 9 and arrives at 14. How many hours is that?", "answer": "5", "hint": "Subtract 9 from 14."},
    ],
)

claim = Claim(
    says="where most prompts are never solved, the right solutions become likelier without a hint than with GRPO",
    versus="grpo", task="hinted", measure="gold_logprob", direction="higher", margin=0.082, settings={"problems": 8},
    versus_settings={"problems": 8}, problems=500, steps=20, guard=Within("pass@1", low=-0.03),
    fault=Within("train.signal", high=0.6, says="share of groups whose replies are not all right or all wrong"),
    moved=Within("train.signal", low=0.1), learns=None,
    tried="60 prompts, frozen: .53 never right in 8 replies, .40 with a signal; of those never right .75 are rescued by the hint; "
    "as written here: -.019, sd .082",
    finding="25% right before; 14% with hints and 15% without at the end. Hints rescue nearly half of the groups that are all "
    "wrong, but in 20 steps neither side learns",
)  # fmt: skip
baseline = "grpo"
