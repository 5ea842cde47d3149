"""Stress tests of process reward models: style that should not matter, broken reasoning that must, and words searched to please.

Tiwari et al. 2026, arXiv:2603.06621 (PRM-BiasBench); Shihab et al. 2026, arXiv:2606.00437, for steps said twice and words of
certainty. What each change is in detail is ours.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardlab.core import seed_of
from rewardlab.data.solutions import Solution
from rewardlab.data.step_formats import name_of
from rewardlab.errors import RewardlabError, unknown
from rewardlab.evals.own_reward import interval_of
from rewardlab.evals.passk import mean_interval
from rewardlab.prm import StepScorer, load_scorer
from rewardlab.prm.attacks import LOGIC, STYLE, Steps, changed, value
from rewardlab.prm.evaluation import solutions_of
from rewardlab.rewards.process import FORMS
from rewardlab.settings.domain import COUNT, POSITIVE, SHARE
from rewardlab.util.progress import Bar, in_batches

SUFFIXED = 16
"""Wrong solutions for which words are searched at most: each takes hundreds of readings."""
CANDIDATES = 32
"""Words that are tried at each place."""
BATCH = 64


def stress_scorer(
    model: str | StepScorer, on: Any, *, form: str = "min", threshold: float = 0.5, limit: int | None = 200, suffix: int = 0,
    seed: int = 0, format: str = "auto", device: str = "auto", dtype: str = "auto",
) -> dict[str, Any]:  # fmt: skip
    """How far a process reward model minds changes of right solutions: `style`, a row for each change that keeps the reasoning,
    with the mean change of the score, its 95% interval and the mean size of the change; `logic`, a row for each that breaks it,
    with the mean change and `passes`: of the solutions that were accepted, the share that still are.

    model: what `load_scorer` takes, or a scorer.  on: solutions, as of `evaluate_scorer`: those that are right as a whole are used.
    form: how the scores of steps become one (min, last, product, mean), as it will be used.  threshold: a solution is accepted
    from it up.  limit: so many solutions, chosen by chance; None: all.  suffix: as many words, searched among the scorer's tokens,
    are appended to wrong solutions (`suffix` in the result: what they are paid before and after, and how many are accepted then).
    Raises RewardlabError where fewer than two solutions are right.
    """
    if form not in FORMS:
        raise unknown("form", form, tuple(FORMS))
    SHARE.check("threshold", threshold)
    COUNT.check("suffix", suffix)
    if limit is not None:
        POSITIVE.check("limit", limit)
    scorer = load_scorer(model, device, dtype) if isinstance(model, str) else model
    rng = random.Random(seed_of("stress", seed))
    right, left_out = _right(solutions_of(on, format), scorer, limit, rng)
    stressed = _Stressed(scorer, form, threshold, right, rng)
    before = stressed.scores(right)
    document: dict[str, Any] = {
        "model": model if isinstance(model, str) else scorer.name, "convention": scorer.convention, "on": name_of(on), "form": form,
        "threshold": threshold, "solutions": len(right), "left_out": left_out, "score": float(np.mean(before)),
        "accepted": float(np.mean([x >= threshold for x in before])),
        "style": [stressed.row(name, before) for name in STYLE], "logic": [stressed.row(name, before) for name in LOGIC],
    }  # fmt: skip
    return document | ({"suffix": stressed.suffixed(suffix)} if suffix else {})


def _right(solutions: Sequence[Solution], scorer: StepScorer, limit: int | None, rng: random.Random) -> tuple[list[Solution], int]:
    """Solutions without a wrong step and with a right answer, as far as their rows tell, that fit, at most so many; and how many
    others there are."""
    whole = [s for s in solutions if s.first_error is None and s.right is not False and _told(s)]
    fitting = [s for s in whole if all(step.strip() for step in s.steps) and scorer.fits(s.prompt, s.steps)]
    if len(fitting) < 2:
        raise RewardlabError(
            f"a stress test changes right solutions, and {len(fitting)} of {len(solutions)} are: they need labels of steps, or "
            "`right`, that say so, and must fit into the model's context"
        )
    chosen = fitting if limit is None or len(fitting) <= limit else rng.sample(fitting, limit)
    return chosen, len(solutions) - len(fitting)


def _told(s: Solution) -> bool:
    """Whether a row says that its solution is right, by its answer or by the labels of all steps."""
    return s.right is True or all(label is not None for label in s.labels)


@dataclass
class _Stressed:
    scorer: StepScorer
    form: str
    threshold: float
    right: list[Solution]
    rng: random.Random

    def scores(self, solutions: Sequence[Solution], steps: Sequence[Steps] | None = None, what: str = "original") -> list[float]:
        """The score of each solution, or of its problem with other steps."""
        rows = [(s.prompt, own) for s, own in zip(solutions, steps or [s.steps for s in solutions], strict=True)]
        found: list[float] = []
        for part in in_batches(f"scoring: {what}", rows, BATCH):
            found += [FORMS[self.form](chances) for chances in self.scorer.score(part)]
        return found

    def row(self, name: str, before: Sequence[float]) -> dict[str, Any]:
        """What one change does to the scores."""
        keeps = name in STYLE
        made = changed((STYLE if keeps else LOGIC)[name], [s.steps for s in self.right], self.rng)
        at = [i for i, steps in enumerate(made) if steps is not None and self.scorer.fits(self.right[i].prompt, steps)]
        if not at:
            return {"change": name, "solutions": 0}
        after = self.scores([self.right[i] for i in at], [made[i] or () for i in at], name)
        moved = np.array(after) - np.array([before[i] for i in at])
        told: dict[str, Any] = {
            "change": name, "solutions": len(at), "score": float(np.mean(after)), "moved": float(moved.mean()),
            "ci95": interval_of(moved.tolist()),
        }  # fmt: skip
        if keeps:
            return told | {"size": float(np.abs(moved).mean())}
        was = [after[k] >= self.threshold for k, i in enumerate(at) if before[i] >= self.threshold]
        return told | ({"passes": float(np.mean(was)), "passes_ci95": list(mean_interval([float(x) for x in was]))} if was else {})

    def suffixed(self, words: int) -> dict[str, Any]:
        """What is paid for wrong solutions before and after the words that please most, by a greedy search place by place."""
        made = changed(value, [s.steps for s in self.right], self.rng)
        wrong = [(s, steps) for s, steps in zip(self.right, made, strict=True) if steps is not None][:SUFFIXED]
        if not wrong:
            return {"solutions": 0}
        vocabulary = _words(self.scorer)
        before = self.scores([s for s, _ in wrong], [steps for _, steps in wrong], "wrong")
        after: list[float] = []
        with Bar("searching words", len(wrong)) as bar:
            for (s, steps), score in zip(wrong, before, strict=True):
                after.append(self._searched(s, steps, words, vocabulary, score))
                bar.advance()
        return {
            "solutions": len(wrong), "words": words, "before": float(np.mean(before)), "after": float(np.mean(after)),
            "accepted_before": float(np.mean([x >= self.threshold for x in before])),
            "accepted_after": float(np.mean([x >= self.threshold for x in after])),
        }  # fmt: skip

    def _searched(self, s: Solution, steps: Steps, words: int, vocabulary: Sequence[str], score: float) -> float:
        for _ in range(words):
            tried = [(*steps[:-1], f"{steps[-1]} {word}") for word in self.rng.sample(vocabulary, min(CANDIDATES, len(vocabulary)))]
            tried = [own for own in tried if self.scorer.fits(s.prompt, own)]
            paid = [FORMS[self.form](row) for row in self.scorer.score([(s.prompt, own) for own in tried])]
            if paid and max(paid) > score:
                score, steps = max(paid), tried[int(np.argmax(paid))]
        return score


def _words(scorer: StepScorer) -> list[str]:
    """Texts of the scorer's tokens that are words or signs, without control tokens."""
    special, size = set(scorer.tokenizer.all_special_ids), len(scorer.tokenizer)
    texts = (text.strip() for text in scorer.tokenizer.batch_decode([[i] for i in range(size) if i not in special]))
    return sorted({text for text in texts if text and "\ufffd" not in text and text.isprintable()})
