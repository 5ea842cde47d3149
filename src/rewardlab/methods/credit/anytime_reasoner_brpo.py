"""AnytimeReasoner: truncate thinking at several budgets, and reward each prefix by the accuracy of answers forced there.

    r_j = mean reward of the answers after b_j tokens,     R_s = sum_{j >= s} p_j r_j,     A = R_s - V for the tokens before b_s
    BRPO: V = (s V1 + (S - s) V2) / S, s = 0 .. S - 1;     V2: mean of R_s over the traces of the problem
    V1 = (sum_{j < s} 2^j r_j / sum_{j < s} 2^j) sum_{j >= s} p_j
    answers: reward less the mean of those after the same thinking

Rewards at all budgets say where in the thinking an answer was found. How right the answers were before says much about how right
they will be, and it is known before the next tokens: as a baseline it leaves the gradient its mean, and takes variance from it.

Qi et al. 2025, arXiv:2505.13438. V, its weights, budgets of equal distance, p (uniform, or linear in b_j), no division by the
deviation, the answers' own group, and one policy and one loss for thinking and answers are those of the authors' code as a fork
keeps it (wjurayj/AnytimeReasoner, 068a38b, verl/verl/trainer/ppo/brpo.py), and so are n = 8, S = 4, 4 answers of about 128 tokens
(README.md). Budgets after the end of a trace share one mean here.

Where thinking ends: mark ("</think>", or what stands before an answer). There thinking ends with </think>, and an answer is asked
for by two line breaks and **Final Answer**: mark="</think>", ask="\\n\\n**Final Answer**\\n" (DELIMITER in brpo.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Group, Problem, Recipe, Rollout, Run, Sampling, Score, Scores, Trajectory, Turn, credit, rollout
from rewardlab.credit.group import center
from rewardlab.credit.tokens import over_steps
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.advantages import advantage_variance
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt

# ---- Credit of thinking that is judged at several budgets ------------------------------------------------------------


def budget_advantages(rewards: Tensor, prior: Tensor, baseline: str) -> Tensor:
    """(n, S) advantages from what n traces earn at S budgets, whose probabilities are `prior` (S,).

    R_s = sum_{j >= s} p_j r_j.  group: less its mean over the traces.  budget: less (s V1 + (S - s) V2) / S for s = 0 .. S - 1, V2
    that mean, and V1 the trace's own rewards before s, of which each counts twice as much as the one before, times sum_{j>=s} p_j.
    """
    n, size = rewards.shape
    after = (rewards * prior).flip(1).cumsum(1).flip(1)
    if baseline == "none":
        return after
    group = after.mean(0, keepdim=True) if n > 1 else torch.zeros_like(after)
    if baseline == "group":
        return after - group
    weight = 2.0 ** torch.arange(size, dtype=rewards.dtype, device=rewards.device)
    before, total = (rewards * weight).cumsum(1) - rewards * weight, weight.cumsum(0) - weight
    own = before / total.clamp(min=1) * prior.flip(0).cumsum(0).flip(0)
    share = torch.arange(size, device=rewards.device) / size
    return after - (share * own + (1 - share) * group)


@credit
def relative_to_budgets(
    a: Tensor, batch: Batch, run: Run, *, cuts: PositiveInt = 4, prior: Literal["uniform", "linear"] = "uniform",
    baseline: Literal["budget", "group", "none"] = "budget",
) -> Tensor:  # fmt: skip
    """Rows tagged "thinking" get `budget_advantages`, each token that of the budget in which it stands; all others, reward less
    mean of the group.  A trace that ends early earns at the budgets left what it earned at the last.

    prior: of the budgets; linear: as their lengths.  Rows without a verdict get nothing.
    """
    p = torch.ones(cuts, device=a.device) if prior == "uniform" else torch.arange(1.0, cuts + 1, device=a.device)
    out = (center() >> to_go())(a, batch, run)
    for g in range(batch.groups):
        rows = ((batch.group == g) & batch.rewarded.any(1)).nonzero().squeeze(1)
        if not len(rows) or batch.rows[int(rows[0])][0].tag != "thinking":
            continue
        ends = [batch.rewarded[i].nonzero().squeeze(1) for i in rows]
        paid = torch.stack(
            [a[i, at[torch.arange(cuts, device=a.device).clamp(max=len(at) - 1)]] for i, at in zip(rows, ends, strict=True)]
        )
        advantages = budget_advantages(paid, p / p.sum(), baseline)
        for i, at, row in zip(rows, ends, advantages, strict=True):
            table = torch.zeros_like(a[i]).scatter(0, at, row[: len(at)])
            out[i] = over_steps(table[None], batch.rewarded[i][None], batch.mask[i][None])[0]
    return out


# ---- Thinking paid by the answers that are given to it at several budgets --------------------------------------------


@reward(over="groups", steps=True)
def by_its_answers(groups: list[Group], run: Run, *, inner: Reward) -> Scores:
    """The reward `inner` of rows tagged "answer"; for rows tagged "thinking", at the end of each budget, the mean over the budget's
    answers.

    A group of thinking is followed by the groups of its answers, row by row and budget by budget, as `under_budgets` has them. No
    verdict on thinking where the answers of one of its budgets have none. All other rows are paid by `inner`.
    """
    paid = [g for g, group in enumerate(groups) if group[0].tag != "thinking"]
    scores: dict[int, list[Score]] = dict(zip(paid, inner([groups[g] for g in paid], run), strict=True)) if paid else {}
    means: dict[int, float | None] = {g: _mean(row) for g, row in scores.items()}
    for g in sorted(set(range(len(groups))) - set(paid)):
        following = iter(range(g + 1, g + 1 + sum(len(t.steps) for t in groups[g])))
        scores[g] = [_thinking([(at, means[next(following)]) for at in t.steps]) for t in groups[g]]
    return [scores[g] for g in range(len(groups))]


def _mean(row: list[Score]) -> float | None:
    known = [s.total for s in row if s.total is not None]
    return sum(known) / len(known) if known else None


def _thinking(steps: list[tuple[int, float | None]]) -> Score:
    known = [(at, paid) for at, paid in steps if paid is not None]
    return Score(None, why="answers without a verdict") if len(known) < len(steps) or not steps else Score(steps=known)


# ---- Thinking that is cut off at several budgets, at each of which answers are sampled -------------------------------

THINKING, ANSWER = "thinking", "answer"
"""Tags of the two kinds of rows."""


@rollout(wraps="inner")
def under_budgets(
    problems: list[Problem], run: Run, *, inner: Rollout, longest: PositiveInt | None = None, cuts: PositiveInt = 4,
    answers: PositiveInt = 4, tokens: PositiveInt = 16, temperature: NonNegativeFloat = 1.0, mark: str = "\nAnswer:",
    ask: str = "",
) -> list[Group]:  # fmt: skip
    """For each group of `inner` the thinking of its replies, tagged "thinking", and then for each of them and each budget a group
    of answers, tagged "answer", in which the thinking so far, the mark and what asks for an answer are only read.

    Budgets are longest/cuts, 2 longest/cuts ... longest tokens; None: as many as a reply may have. Thinking ends where the reply
    says `mark` (without blanks around it), or at `longest`.  ask: what is read after the mark, before the answer. Budgets from its
    end on share one group, with `answers` replies for each of them. `Trajectory.steps` of the thinking holds the last position of
    each budget that it reaches.  tokens: of an answer at most.
    """
    longest = longest or run.max_new
    if cuts > longest:
        raise RewardlabError(f"thinking of {longest} tokens has no {cuts} different budgets: raise longest, or lower cuts")
    asked = inner.but_innermost(stop=(mark.strip(),))(problems, replace(run, max_new=longest))
    ends = [longest * k // cuts for k in range(1, cuts + 1)]
    groups: list[Group] = []
    prefixes: list[Trajectory] = []
    for group in asked:
        thinking = [replace(t, tag=THINKING, steps=_last_positions(t, ends)) for t in group]
        places = [len(groups) + 1 + k for k in range(sum(len(t.steps) for t in thinking))]
        groups += [thinking, *([] for _ in places)]
        begun = [(t, at, answers * (cuts - k if k == len(t.steps) - 1 else 1)) for t in thinking for k, at in enumerate(t.steps)]
        for place, (t, at, count) in zip(places, begun, strict=True):
            prefix = _asked(t, at, mark, ask, run)
            groups[place] = [replace(prefix, path=(i,)) for i in range(count)]
            prefixes += groups[place]
    done = iter(run.policy.extend(prefixes, Sampling(tokens, temperature), run.rng("answers")) if prefixes else [])
    return [group if group[0].tag == THINKING else [_marked(next(done), mark, ask) for _ in group] for group in groups]


def _last_positions(t: Trajectory, ends: list[int]) -> tuple[int, ...]:
    """The position of the last decision within each budget, up to the one in which the thinking ends."""
    decided = np.flatnonzero(t.mask)
    if not len(decided):
        return ()
    within = [int(decided[min(end, len(decided)) - 1]) for end in ends]
    return tuple(dict.fromkeys(within))


def _asked(t: Trajectory, at: int, mark: str, ask: str, run: Run) -> Trajectory:
    """The thinking up to a position, the mark, and what asks for an answer, as text that was read."""
    read = t.cut(at + 1, run.policy.decode)
    if missing := ask if read.reply.rstrip().endswith(mark.strip()) else mark + ask:
        # an end token would end the answer before it begins
        kept = len(read) - 1 if t.stop == "end" and at == len(t) - 1 else len(read)
        (written,) = run.policy.write([t.cut(kept, run.policy.decode)], [missing])
        read = written.cut(len(written) - 1, run.policy.decode)
    turns = tuple(Turn(None, turn.ids, text=turn.text, images=turn.images) for turn in read.turns)
    return Trajectory(t.problem, turns, tag=ANSWER)


def _marked(t: Trajectory, mark: str, ask: str) -> Trajectory:
    """The answer with its mark, and what asks for it, in its text, as a verifier expects it."""
    before = mark.lstrip() + ask if ask else mark.strip()
    return replace(t, turns=(*t.turns[:-1], replace(t.turns[-1], text=before + t.turns[-1].text)))


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def anytime_reasoner_brpo(
    base: Recipe | None = None, *, longest: int | None = None, cuts: int = 4, prior: Literal["uniform", "linear"] = "uniform",
    n: int = 8, answers: int = 4, tokens: int = 128, mark: str = "\nAnswer:", ask: str = "",
    baseline: Literal["budget", "group", "none"] = "budget",
) -> Recipe:  # fmt: skip
    """longest: tokens of thinking; None: as many as a reply may have.  cuts, prior: S and p.  n: traces per problem.
    answers: per trace and budget, of so many tokens at most.  mark: ends thinking.  ask: what then asks for an answer, besides the
    mark.  baseline: V; group: V2 alone.
    """
    base = base or grpo(n=n)
    asked = base.required("rollout")
    return base.but(
        rollout=under_budgets(inner=asked, longest=longest, cuts=cuts, answers=answers, tokens=tokens, mark=mark, ask=ask),
        reward=by_its_answers(inner=base.reward or correct()),
        credit=relative_to_budgets(cuts=cuts, prior=prior, baseline=baseline),
        weighting=token_mean(),
    )


fidelity = "core"
left_out = (
    "two updates per batch; that a trace must close its thinking once to be right; and what the authors say of a trace that is cut "
    "off, three dots before its </think>: here the mark alone"
)
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60"},
        {"prompt": "What is $\\frac{1}{2} + \\frac{1}{4}$? Put the answer in \\boxed{}.", "answer": "\\frac{3}{4}"},
    ],
)
check = Check(
    says="advantages of thinking vary less with the trace's own earlier answers in the baseline than with the group's mean alone",
    versus=None, task="cells", measure="variance.budget", direction="lower", margin=0.0011,
    against="variance.group", settings={"longest": 32, "tokens": 16},
    by=advantage_variance(
        rollout=under_budgets(inner=independent(n=8), longest=64), reward=by_its_answers(inner=correct()), tag="thinking",
        credits={kind: relative_to_budgets(baseline=kind) for kind in ("budget", "group", "none")},
    ),
    problems=40, steps=1, fault=Within("variance.none", low=0.01, says="variance without a baseline"), learns=None,
    tried="12 problems each, budget against group: cells .0258 .0267, choices .0756 .0763 (.0388 .0367 with budgets of 6 tokens), "
    "arithmetic .0330 .0303, redundant=0.4 .0134 .0127: there no answer is right before the last step, so that V1 says nothing",
    finding="an advantage varies by .098 without a baseline, by .052 with the mean of the group, and by .049 with the trace's own "
    "earlier answers besides: they help, but little is left for them. Whether a policy learns more is not tested",
)  # fmt: skip
baseline = "grpo"
