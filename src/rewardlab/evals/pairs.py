"""Reward-model accuracy on pairs of replies, and the policy's own preference margins on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rewardlab.core import Batch, Problem, Run, Score, Trajectory, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.calibration import expected_calibration_error
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import NonNegativeFloat


def end_values(model, trajectories: Sequence[Trajectory], rows_at_once: int = 64) -> np.ndarray:
    """(n,) the value head's output at the last position of each text, without gradient."""
    values: list[np.ndarray] = []
    with torch.no_grad():
        for i in range(0, len(trajectories), rows_at_once):
            batch = _texts(trajectories[i : i + rows_at_once], model.device)
            table = model.evaluate(batch, ("value",)).value
            values.append(table.gather(1, (batch.length - 1)[:, None]).squeeze(1).cpu().numpy())
    return np.concatenate(values)


def _texts(trajectories: Sequence[Trajectory], device: torch.device) -> Batch:
    """The texts as a batch for a forward pass, right-padded."""
    length = torch.tensor([len(t) for t in trajectories], device=device)
    ids = torch.zeros(len(trajectories), int(length.max()), dtype=torch.long, device=device)
    decided = torch.zeros(ids.shape, dtype=torch.bool, device=device)
    for row, t in enumerate(trajectories):
        ids[row, : len(t)] = torch.from_numpy(t.ids).to(device)
        decided[row, : len(t)] = torch.from_numpy(t.mask).to(device)
    # a value head reads ids and lengths; where decisions begin tells which neighbours share a prompt, which is then read once
    zeros = torch.zeros(ids.shape, device=device)
    return Batch(ids, decided, length, zeros, zeros, zeros.bool(), torch.arange(len(ids), device=device))


@measure
def preference_margins(
    problems: Sequence[Problem], run: Run, *, chosen: str = "chosen", rejected: str = "rejected"
) -> dict[str, float]:
    """Implicit-reward margins on held-out pairs, teacher-forced: nothing is sampled.

    margin: log pi/ref(chosen) - log pi/ref(rejected), in nats, mean over pairs.  preferred: share of pairs in which it is
    positive, ties half.  likelier: the same of log pi(chosen) - log pi(rejected), without the reference; likelier_per_token: of
    their means per token, by which a reply's length does not count.  chosen_logprob, rejected_logprob: log pi of whole replies.
    chosen_per_token: log pi of the chosen, per token.  kl: the mean of log ref/pi of both replies, in nats per reply; an estimate
    of KL(ref || pi) where the reference wrote them.

    Without a reference (SFT, SimPO) margin, preferred and kl are left out.
    """
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [t for side in (chosen, rejected) for t in run.policy.write(prompts, [p.meta[side] for p in problems])]
    tokens = np.array([t.mask.sum() for t in rows]).reshape(2, -1)
    pi = _reply_logprobs(run.policy, rows)  # (2, n)
    per_token = pi / np.maximum(tokens, 1)
    low, high = mean_interval(wins := _wins(pi[0], pi[1]).tolist())
    found = {
        "likelier": float(np.mean(wins)), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "chosen_logprob": float(pi[0].mean()), "rejected_logprob": float(pi[1].mean()),
        "likelier_per_token": float(_wins(*per_token).mean()), "chosen_per_token": float(per_token[0].mean()),
    }  # fmt: skip
    if run.reference is None:
        return found
    ratio = pi - _reply_logprobs(run.reference, rows)
    told = {"margin": float((ratio[0] - ratio[1]).mean()), "preferred": float(_wins(*ratio).mean()), "kl": float(-ratio.mean())}
    return told | found


@measure
def pairs_preferred(
    problems: Sequence[Problem], run: Run, *, beta: NonNegativeFloat | None = None, chosen: str = "chosen",
    rejected: str = "rejected",
) -> dict[str, float]:  # fmt: skip
    """How well the policy tells held-out pairs apart by its implicit reward, teacher-forced: nothing is sampled.

    The implicit reward is log pi/ref of the reply (nats), as DPO's; without a reference the mean log-prob of its tokens, SimPO's.
    pair_likelihood: the mean of log sigmoid(beta times the difference of the two), which leads: log 1/2 where nothing is told
    apart, at most 0, and lower again where what was learnt does not hold of these pairs: DPO's loss with the sign turned.
    preferred: the share of pairs whose chosen reply has more, ties half.  margin: by how much, the mean over pairs.  chosen_gain,
    rejected_gain: log pi/ref of the replies of either side.  beta: None is 0.1, or 2 without a reference. Raises TooLong for a
    pair longer than the context.
    """
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [t for side in (chosen, rejected) for t in run.policy.write(prompts, [p.meta[side] for p in problems])]
    for t in rows:
        run.policy.check_fits(t, 0)
    told, gains = _reply_logprobs(run.policy, rows), {}  # (2, n)
    if run.reference is None:
        told = told / np.maximum([int(t.mask.sum()) for t in rows], 1).reshape(2, -1)
    else:
        told = told - _reply_logprobs(run.reference, rows)
        gains = {"chosen_gain": float(told[0].mean()), "rejected_gain": float(told[1].mean())}
    gap = told[0] - told[1]
    weight = beta if beta is not None else 2.0 if run.reference is None else 0.1
    # log sigmoid(x) that does not overflow
    likely = -np.logaddexp(0.0, -weight * gap)
    low, high = mean_interval(likely.tolist())
    return {
        "pair_likelihood": float(likely.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "preferred": float(_wins(told[0], told[1]).mean()), "margin": float(gap.mean()), **gains,
    }  # fmt: skip


@measure
def decisive_tokens(
    problems: Sequence[Problem], run: Run, *, chosen: str = "chosen", rejected: str = "rejected"
) -> dict[str, float]:
    """The share of the implicit reward log pi/ref on the tokens in which two replies first differ, teacher-forced.

    decisive_share: of the sum over all tokens of both replies of |log pi/ref|, the share on those two; mean over held-out pairs,
    0 where policy and reference agree.  decisive_margin: log pi/ref of the chosen reply's token minus that of the other's, in nats.
    preferred: as in `preference_margins`. What follows the first mistake is its consequence, where there is one right way.
    """
    if run.reference is None:
        raise RewardlabError("decisive_tokens needs a reference policy, and this method has none")
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sides = [run.policy.write(prompts, [p.meta[side] for p in problems]) for side in (chosen, rejected)]
    better, worse = (_token_ratios(run, side) for side in sides)
    first = [_first_difference(a, b) for a, b in zip(*sides, strict=True)]
    ends = [(a[k], b[k]) for a, b, k in zip(better, worse, first, strict=True)]
    total = [float(np.abs(a).sum() + np.abs(b).sum()) for a, b in zip(better, worse, strict=True)]
    shares = [(abs(a) + abs(b)) / t if t else 0.0 for (a, b), t in zip(ends, total, strict=True)]
    low, high = mean_interval(shares)
    wins = _wins(*(np.array([x.sum() for x in side]) for side in (better, worse)))
    return {
        "decisive_share": float(np.mean(shares)), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "decisive_margin": float(np.mean([a - b for a, b in ends])), "preferred": float(wins.mean()),
    }  # fmt: skip


def _reply_logprobs(model: Any, rows: Sequence[Trajectory]) -> np.ndarray:
    """(2, n) log-probs of whole replies, of n chosen ones and then n rejected."""
    scored = zip(rows, model.score(rows), strict=True)
    return np.array([logprobs[t.mask].sum(dtype=np.float64) for t, logprobs in scored]).reshape(2, -1)


def _token_ratios(run: Run, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    """log pi/ref of each decision, row by row."""
    scored = zip(rows, run.policy.score(rows), run.reference.score(rows), strict=True)
    return [(now - ref)[t.mask].astype(np.float64) for t, now, ref in scored]


def _first_difference(a: Trajectory, b: Trajectory) -> int:
    """The first decision in which two replies differ; the end of the shorter one, if it begins the other."""
    ids, others = a.ids[a.mask], b.ids[b.mask]
    both = min(len(ids), len(others))
    differ = ids[:both] != others[:both]
    return int(np.argmax(differ)) if differ.any() else both - 1


def _wins(chosen: np.ndarray, rejected: np.ndarray) -> np.ndarray:
    # a model that gives every text the same value then gets 0.5, as guessing does
    return np.where(chosen == rejected, 0.5, chosen > rejected).astype(float)


def pair_scores(problems: Sequence[Problem], run: Run, model: str) -> np.ndarray:
    """(n, 2) the scores of the chosen and the rejected reply by the run's model of this name."""
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sides = [run.policy.write(prompts, [p.meta[side] for p in problems]) for side in ("chosen", "rejected")]
    return np.stack([end_values(run.models[model], side) for side in sides], 1)


def pair_gaps(problems: Sequence[Problem], run: Run, model: str) -> np.ndarray:
    """(n,) r(chosen) - r(rejected) by the run's model of this name."""
    chosen, rejected = pair_scores(problems, run, model).T
    return (chosen - rejected).astype(float)


def pairs_won(chosen: np.ndarray, rejected: np.ndarray) -> dict[str, float]:
    """The share of pairs in which the chosen reply scores higher, ties half, with its 95% interval. chosen, rejected: (n,)."""
    wins = _wins(chosen, rejected)
    low, high = mean_interval(wins.tolist())
    return {"pair_accuracy": float(wins.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(wins))}


@measure
def pair_accuracy(problems: Sequence[Problem], run: Run, *, model: str = "reward") -> dict[str, float]:
    """Share of held-out pairs in which the chosen reply scores higher; ties count half.

    pair_accuracy.longer, pair_accuracy.shorter: of the pairs whose chosen reply is the longer or the shorter one in tokens; far
    apart, the scores follow length.  ece: of sigmoid(difference of the scores) as the chance that the higher one is chosen.
    brier: of the same as the chance that the chosen one is.
    """
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sides = [run.policy.write(prompts, [p.meta[side] for p in problems]) for side in ("chosen", "rejected")]
    chosen, rejected = (end_values(run.models[model], side) for side in sides)
    return pairs_told(chosen, rejected, np.array([int(a.mask.sum()) - int(b.mask.sum()) for a, b in zip(*sides, strict=True)]))


def pairs_told(chosen: np.ndarray, rejected: np.ndarray, longer: np.ndarray) -> dict[str, float]:
    """The numbers of `pair_accuracy` from the scores of chosen and rejected replies, (n,) each.

    longer (n,): by how many tokens the chosen reply is the longer one.
    """
    wins = _wins(chosen, rejected)
    parts = {name: wins[of] for name, of in (("longer", longer > 0), ("shorter", longer < 0)) if of.any()}
    gap = np.clip(chosen - rejected, -500.0, 500.0).astype(float)
    chance, sure = 1 / (1 + np.exp(-gap)), 1 / (1 + np.exp(-np.abs(gap)))
    return {
        **pairs_won(chosen, rejected),
        **{f"pair_accuracy.{name}": float(won.mean()) for name, won in parts.items()},
        "ece": expected_calibration_error(sure.tolist(), wins.tolist()), "brier": float(np.mean((1 - chance) ** 2)),
    }  # fmt: skip


@measure
def ranked_pairs(problems: Sequence[Problem], run: Run, *, model: str = "reward") -> dict[str, float]:
    """Share of held-out pairs in which the chosen reply scores higher, ties half, by the score that a user of the model gets: with
    an energy head, the refined one.

    decorrelated: the mean of two shares, of the pairs whose chosen reply is the longer one in tokens, and of those whose is the
    shorter one: what is left where length tells nothing. Of pairs of one kind alone it is their share, without any all pairs'.
    """
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sides = [run.policy.write(prompts, [p.meta[side] for p in problems]) for side in ("chosen", "rejected")]
    chosen, rejected = (_used_values(run.models[model], side) for side in sides)
    wins = _wins(chosen, rejected)
    longer = np.array([int(a.mask.sum()) - int(b.mask.sum()) for a, b in zip(*sides, strict=True)])
    parts = [float(wins[of].mean()) for of in (longer > 0, longer < 0) if of.any()]
    return pairs_won(chosen, rejected) | {"decorrelated": float(np.mean(parts or [wins.mean()]))}


def _used_values(model: Any, rows: Sequence[Trajectory], rows_at_once: int = 64) -> np.ndarray:
    """(n,) the scores at the ends of rows, refined where the model has an energy head (`policies/energy.py`)."""
    if getattr(model, "energy", None) is None:
        return end_values(model, rows)
    found = []
    for i in range(0, len(rows), rows_at_once):
        batch = _texts(rows[i : i + rows_at_once], model.device)
        with torch.no_grad():
            out, ends = model.evaluate(batch, ("hidden", "value")), batch.length - 1
        own = out.value.gather(1, ends[:, None]).squeeze(1)
        found.append(model.energy.refined(out.hidden[torch.arange(len(ends)), ends], own).cpu().numpy())
    return np.concatenate(found)


@measure
def pair_agreement(
    problems: Sequence[Problem], run: Run, *, reward: Reward, chosen: str = "chosen", rejected: str = "rejected"
) -> dict[str, float]:
    """Share of held-out pairs in which `reward` pays the chosen reply more than the rejected one; ties count half.

    pair_accuracy: by the whole reward.  pair_accuracy.TERM: by each of its terms alone, in the direction of its weight; terms
    without a weight count too.  A pair without a verdict on both replies is left out. No text is sampled.
    """
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sides = [run.policy.write(prompts, [p.meta[side] for p in problems]) for side in (chosen, rejected)]
    # each pair is a group, so that rewards that compare replies compare these two
    scores = reward([list(pair) for pair in zip(*sides, strict=True)], run)
    wins = _paid_more([[s.total for s in row] for row in scores])
    if not len(wins):
        why = next((s.why for row in scores for s in row if s.total is None and s.why), "")
        raise RewardlabError(f"{reward} gave no verdict on both replies of any of {len(problems)} pairs{why and f': {why}'}")
    low, high = mean_interval(wins.tolist())
    terms = {name: _paid_more([[_term(s, name) for s in row] for row in scores]) for row in scores[:1] for name in row[0].terms}
    by_term = {f"pair_accuracy.{name}": float(won.mean()) for name, won in terms.items() if len(won)}
    return {"pair_accuracy": float(wins.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(wins)), **by_term}


@measure
def reward_gap(
    problems: Sequence[Problem], run: Run, *, reward: Reward, chosen: str = "chosen", rejected: str = "rejected"
) -> dict[str, float]:
    """How much more `reward` pays the chosen replies than the rejected ones, on average over problems.

    gap: the difference of the two means, in standard deviations of the reward over all these replies; 0 where they all earn the
    same.  gap.TERM: of each of its terms alone. Unlike `pair_agreement` it counts how much, so it says which of two policies would
    be reinforced. A pair without a verdict on both replies is left out. No text is sampled.
    """
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sides = [run.policy.write(prompts, [p.meta[side] for p in problems]) for side in (chosen, rejected)]
    scores = reward([list(pair) for pair in zip(*sides, strict=True)], run)
    terms = {name: [[_term(s, name) for s in row] for row in scores] for row in scores[:1] for name in row[0].terms}
    return {"gap": _gap([[s.total for s in row] for row in scores]), **{f"gap.{name}": _gap(x) for name, x in terms.items()}}


def _gap(rows: list[list[float | None]]) -> float:
    known = np.array([row for row in rows if None not in row], float).reshape(-1, 2)
    spread = float(known.std()) if len(known) else 0.0
    return float((known[:, 0] - known[:, 1]).mean()) / spread if spread else 0.0


def _term(score: Score, name: str) -> float | None:
    term = score.terms.get(name)
    if score.missing or term is None or term.value is None:
        return None
    return -term.value if term.weight is not None and term.weight < 0 else term.value


def _paid_more(rows: list[list[float | None]]) -> np.ndarray:
    known = np.array([row for row in rows if None not in row], float).reshape(-1, 2)
    return _wins(known[:, 0], known[:, 1])
