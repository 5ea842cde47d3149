"""SPAE: credit each step by the gain in confidence and accuracy of an answer forced after it.

    Phi_k = 1.5 Acc_k Conf_k + 0.5 Acc_k - Conf_k;     Acc: mean probability of the gold answer's tokens after step k
    Conf: mean over probes of exp(-mean entropy)       A_t = whiten[ (r - mean r) f_k + xi g_k ],   t in step k
    f_k = 1 - alpha (1 - exp(-C_k)),   C_k: steps before k with Phi > 0.9
    g_k = exp(d_k) - mean exp(d),      d: Phi_k - Phi_(k-1), set from 0, the least of the batch, to 1, the most

An outcome credits alike the step that finds the answer, the steps that check it again, and the one that overturns it. A rise of the
potential pays the first, its fall charges the last, and f takes from what is written after the answer was there.

Wu et al. 2026, arXiv:2601.03823 (formulas and alpha = xi = 0.5 as detailed notes on the paper quote them). Phi, 5 probes of 10
tokens at temperature 0.6, read as far as the gold answer is long, no rise at the first step and 0.9 are those of the released
example (cii030/SPAE-RL, 1f8c839, inference/probe_mechanism_example.py; no training code was found). Acc and Conf are means over
tokens, as the paper has them; the example divides exp(sum of log-probs) and exp(-sum of entropies) by the number of tokens, reads
the gold tokens' log-probs beside what each probe wrote (here: after the gold tokens before them, so without noise of the probes)
and entropies of the 20 likeliest tokens (here: of all). (inferred): that d and the mean of exp(d) run over the batch's steps; f =
1 and g = 0 where nothing is probed: in the last step, the answer, and from the end of the thinking on, as in the example.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Credit, Group, Recipe, Run, Sampling, Score, Scores, Term, Trajectory, Turn, credit
from rewardlab.credit.group import center, whiten
from rewardlab.credit.terms import credit_of
from rewardlab.credit.tokens import over_steps
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError, unknown
from rewardlab.evals.step_worth import step_agreement
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.forced_answer import begin
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.reference import aggregated, gold_logprobs
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.text.prefixes import CLOSED
from rewardlab.text.reasoned import gold_text, with_gold
from rewardlab.util.outputs import entropies

# ---- How far reasoning has come: after each step an answer is forced, and read for how sure and how right it is ------

TERM = "step_potential"


def potential(right: float, sure: float) -> float:
    """1.5 right sure + 0.5 right - sure, from -1 where it is sure of a wrong answer, over 0 where it has none, to 1."""
    return 1.5 * right * sure + 0.5 * right - sure


@reward(over="groups")
def step_potential(
    groups: list[Group], run: Run, *, of: Literal["potential", "sure", "right"] = "potential", probes: PositiveInt = 5,
    tokens: PositiveInt = 10, temperature: NonNegativeFloat = 0.6, mark: str = "Answer:",
) -> Scores:  # fmt: skip
    """At the end of each step but the last, confidence and accuracy of an answer forced there by `mark`; the policy is not trained
    on it. Of a reply that closes its thinking, at the ends of the steps before the one that does.

    right: the mean probability of the gold answer's tokens.  sure: the mean over `probes` sampled answers of exp(-mean entropy of
    their first tokens), as many as the gold answer has and `tokens` at most: what follows an answer says nothing about it.
    potential: of both (`potential`).  The rollout marks the steps. No verdict for a reply whose problem has no gold answer as text;
    a reply of one step has none to be judged.  Wu et al. 2026, arXiv:2601.03823
    """
    rows = [t for group in groups for t in group]
    if not all(t.steps for t in rows):
        raise RewardlabError('step_potential needs the positions where steps end: set steps="newline" in the rollout')
    places = [(i, at) for i, t in enumerate(rows) if gold_text(t.problem) for at in t.steps[:-1]]
    parts = {(i, at): rows[i].cut(at + 1, run.policy.decode) for i, at in places}
    # after the thinking an answer is forced in another form, and its potential is not to be compared with those before
    starts = [place for place, part in parts.items() if CLOSED not in part.reply]
    begun = [_answering(parts[place], mark) for place in starts]
    # asked within the thinking, as the probes are
    golds = gold_logprobs(run.policy, begun, mark, close=False)
    right = [aggregated(x, "mean") if x is not None and len(x) else None for x in golds]
    lengths = [0 if x is None else min(len(x), tokens) for x in golds]
    sure: list[float | None] = [0.0] * len(begun) if of == "right" else _sure(begun, lengths, run, mark, probes, temperature)
    found: dict[int, list[tuple[int, float]]] = {}
    for (i, at), r, s in zip(starts, right, sure, strict=True):
        if r is not None and s is not None:
            found.setdefault(i, []).append((at, {"potential": potential(r, s), "sure": s, "right": r}[of]))
    scores = iter([_score(t, found.get(i, [])) for i, t in enumerate(rows)])
    return [[next(scores) for _ in group] for group in groups]


def _answering(t: Trajectory, mark: str) -> Trajectory:
    """The beginning of a reply as text that goes on to an answer: without one, its last line would be taken for the answer."""
    text = f"{t.reply.rstrip()}\n{mark} ?"
    return Trajectory(t.problem, (Turn("policy", np.zeros(0, np.int64), text=text),))


def _sure(
    begun: list[Trajectory], lengths: list[int], run: Run, mark: str, probes: int, temperature: float
) -> list[float | None]:  # fmt: skip
    """The mean over probes of exp(-mean entropy of their first tokens), so many for each beginning; None where there are none."""
    if not any(lengths):
        return [None] * len(begun)
    written = begin(run.policy, [t.problem for t in begun], [with_gold(t.reply, "", mark)[1].rstrip(" ") for t in begun])
    sampling = Sampling(max(lengths), temperature)
    # what does not fit the context says nothing, and its step is not judged
    fit = [i for i, t in enumerate(written) if lengths[i] and len(t) + sampling.max_new <= run.policy.context]
    answers = run.policy.extend([written[i] for i in fit for _ in range(probes)], sampling, run.rng("probe")) if fit else []
    spread = zip(np.repeat(fit, probes), entropies(run.policy, answers), strict=True)
    found = [float(np.exp(-h[len(written[i]) :][: lengths[i]].mean())) for i, h in spread]
    means = {i: float(np.mean(found[k * probes : (k + 1) * probes])) for k, i in enumerate(fit)}
    return [means.get(i) for i in range(len(begun))]


def _score(t: Trajectory, steps: list[tuple[int, float]]) -> Score:
    if not gold_text(t.problem):
        return Score(terms={TERM: Term(None, ())}, missing=True, why="the problem has no gold answer that is a text")
    # a reply without a step before its last has a verdict, and nothing to be paid for
    return Score(terms={TERM: Term(None, tuple(steps))})


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@credit
def by_potential(
    a: Tensor, batch: Batch, run: Run, *, chain: Credit, xi: NonNegativeFloat = 0.5, full: float = 0.9, alpha: Share = 0.5
) -> Tensor:
    """The terms but the potential through `chain`, less in the steps after the potential was `full`; and xi times its rises.

    The k-th of the steps after full ones gets 1 - alpha (1 - exp(-k)) of the terms. Rises r, over the steps of all rows with a
    verdict, count as e^x less its mean, x = (r - least) / (most - least); rises that are all alike count nothing.
    """
    if TERM not in batch.terms:
        raise unknown("reward term", TERM, batch.terms)
    others = [e.weight * credit_of(name, chain, batch, run) for name, e in batch.terms.items() if name != TERM]
    outcome = torch.stack(others).sum(0)
    said = batch.terms[TERM]
    rises, before = torch.zeros_like(a), torch.zeros_like(a)
    for i in range(len(batch)):
        ends = said.rewarded[i].nonzero().squeeze(1)
        phi = said.reward[i, ends]
        rises[i, ends[1:]] = phi[1:] - phi[:-1]
        # how many steps before this one had a full potential
        before[i, ends[1:]] = (phi[:-1] > full).to(a.dtype).cumsum(0)
    judged = batch.mask & torch.stack([e.rewarded for n, e in batch.terms.items() if n != TERM]).any(0).any(1, keepdim=True)
    paid = _relative(rises, said.rewarded & judged)
    # the positions after the last step that was judged get 0 of both
    after = over_steps(before, said.rewarded, judged)
    weighed = outcome * (1 - alpha * (1 - torch.exp(-after)))
    return torch.where(judged, weighed + xi * over_steps(paid, said.rewarded, judged), 0.0)


def _relative(x: Tensor, where: Tensor) -> Tensor:
    """e^u less its mean, u: x set from 0, the least, to 1, the most; 0 elsewhere, and where all are alike."""
    chosen = x[where]
    if not chosen.numel() or chosen.max() == chosen.min():
        return torch.zeros_like(x)
    grown = torch.exp((x - chosen.min()) / (chosen.max() - chosen.min()))
    return torch.where(where, grown - grown[where].mean(), 0.0)


def spae(
    base: Recipe | None = None, *, xi: float = 0.5, full: float = 0.9, alpha: float = 0.5, probes: int = 5, mark: str = "Answer:"
) -> Recipe:
    """xi: of the potential's rises.  full, alpha: what an outcome counts less after potentials above `full`, at most.  probes:
    answers per step.  mark: that forces them, within the thinking of replies that think between tags.
    """
    base = base or grpo()
    return base.but(
        rollout=base.required("rollout").but_innermost(steps="newline"),
        # weight 0: the potential is for the credit alone
        reward=(base.reward or correct()) + 0.0 * step_potential(probes=probes, mark=mark),
        credit=by_potential(chain=center() >> to_go(), xi=xi, full=full, alpha=alpha) >> whiten(),
    )


fidelity = "core"
left_out = (
    "steps that are paragraphs of the thinking (here all lines but the last), and the probe's words, **Final Answer** and an open "
    "box (here `mark`); its base, DAPO's clipping, sampling and token mean (`dapo+spae`), and 20 updates of 32 replies a batch"
)
data = Data(
    answer="the gold answer, a text",
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60"},
        {"prompt": "What is $\\frac{1}{2} + \\frac{1}{4}$? Put the answer in \\boxed{}.", "answer": "\\frac{3}{4}"},
    ],
)
check = Check(
    says="the potential of a step goes along with the chance to finish right from there, more than how sure an answer there is",
    versus=None, task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="agreement.potential", direction="higher",
    margin=0.22, against="agreement.sure",
    by=step_agreement(
        truth=monte_carlo_steps(n=16), rollout=independent(n=2, steps="newline"),
        rewards={"potential": step_potential(), "sure": step_potential(of="sure"), "right": step_potential(of="right")},
    ),
    problems=60, steps=1, fault=Within("agreement.sure", high=0.6, says="correlation of confidence and chance"), learns=None,
    # the potential reads the gold answer, confidence does not
    sanity=True,
    tried="12 problems, 98 steps: potential .43, sure -.08, right alone .42",
    finding="the potential goes along with the chance to finish right from a step (correlation .47), how sure a forced answer is "
    "does not (.00). It reads the gold answer; the probability of that alone has .46, so that confidence adds little",
)  # fmt: skip
baseline = "grpo"
