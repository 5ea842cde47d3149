"""Calibration of stated confidences: Brier score, expected calibration error, AUROC."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.text.confidences import judged_answers, stated_answers, stated_confidence
from rewardlab.util.ranking import auc_of

BINS = 10


def expected_calibration_error(confidence: Sequence[float], right: Sequence[bool]) -> float:
    """The mean over answers of |accuracy - mean confidence| of their bin, of ten equal ones (Guo et al. 2017, arXiv:1706.04599).

    NaN without any answer.
    """
    if not len(confidence):
        return math.nan
    q, c = np.asarray(confidence, float), np.asarray(right, float)
    # rounded: in binary 0.7 * 10 is a little above 7, and other tenths are a little below; 1 belongs to the last bin
    bins = np.minimum(np.floor(np.round(q * BINS, 9)).astype(int), BINS - 1)
    return float(sum(abs(q[bins == b].sum() - c[bins == b].sum()) for b in np.unique(bins)) / len(q))


@measure
def calibration(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """pass@1 of the samples of `rollout`, and the calibration of the confidence that each reply states.

    brier: mean of (q - c)^2.  ece: expected calibration error.  auroc: how often a right reply states more than a wrong one, ties
    half.  confidence: its mean; overconfidence: less the share of these replies that is right.  stated: share of replies that
    state one; the others are left out of all this, and what nothing is left for is not among the numbers. No verdict counts as
    wrong.
    """
    groups, verdicts = _played(problems, run, rollout)
    shares = [float(np.mean(row)) for row in verdicts]
    stated = [stated_confidence(t.reply) for group in groups for t in group]
    known = [(q, ok) for q, ok in zip(stated, [ok for row in verdicts for ok in row], strict=True) if q is not None]
    low, high = mean_interval(shares)
    return {
        "pass@1": float(np.mean(shares)), "ci95_low": low, "ci95_high": high, "n": float(len(shares)),
        **_of_pairs(known), "stated": len(known) / max(1, len(stated)),
    }  # fmt: skip


@measure
def answer_sets(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """Coverage by replies that list several answers with confidences.

    coverage: share of replies with a right answer among those listed.  distinct: different answers per reply; unique: their share
    of all that are listed.  brier, ece, auroc, confidence, overconfidence: as in `calibration`, over the different answers, of
    those with a confidence.  tokens: per reply; answers_per_100: different answers per 100 tokens.  pass@1: of the reply as the
    task's verifier reads it.
    """
    groups, verdicts = _played(problems, run, rollout)
    rows = [t for group in groups for t in group]
    judged = [x or [] for row in judged_answers(groups, run) for x in row]
    covered = [float(any(ok for _, ok in x)) for x in judged]
    listed, different = (sum(map(len, x)) for x in ([stated_answers(t.reply) for t in rows], judged))
    tokens = float(sum(t.mask.sum() for t in rows))
    low, high = mean_interval(covered)
    return {
        "coverage": float(np.mean(covered)), "ci95_low": low, "ci95_high": high, "n": float(len(rows)),
        "distinct": different / len(rows), "unique": different / max(1, listed), "tokens": tokens / len(rows),
        "answers_per_100": 100 * different / max(1.0, tokens), "pass@1": float(np.mean([ok for row in verdicts for ok in row])),
        **_of_pairs([(s.confidence, ok) for x in judged for s, ok in x if s.confidence is not None]),
    }  # fmt: skip


def _played(problems: Sequence[Problem], run: Run, rollout: Rollout) -> tuple[list[Group], list[list[bool]]]:
    if run.verify is None:
        raise RewardlabError("calibration is measured with the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    return groups, [[s.value is not None and s.value >= 1.0 for s in row] for row in run.verify(groups, run)]


def _of_pairs(known: list[tuple[float, bool]]) -> dict[str, float]:
    if not known:
        return {}
    q, c = np.array([q for q, _ in known], float), np.array([ok for _, ok in known], float)
    auroc = auc_of(known)
    return {
        "brier": float(((q - c) ** 2).mean()), "ece": expected_calibration_error([q for q, _ in known], [ok for _, ok in known]),
        **({} if math.isnan(auroc) else {"auroc": auroc}),
        "confidence": float(q.mean()), "overconfidence": float(q.mean() - c.mean()),
    }  # fmt: skip
