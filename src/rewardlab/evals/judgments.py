"""Three-way judgements against the gold ones: VerifierBench's accuracy and F1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Run, Sampling, Trajectory, Turn, ask, measure
from rewardlab.core.domain import PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward
from rewardlab.text.judgments import JUDGMENTS, read_judgment


def f1_by_class(gold: Sequence[str], said: Sequence[str | None]) -> dict[str, float]:
    """F1 of each judgement: the harmonic mean of precision and recall; 0 for one that is never given where it should be.

    A missing judgement counts as none of them.
    """
    found = {}
    for judgment in JUDGMENTS:
        hits = sum(g == s == judgment for g, s in zip(gold, said, strict=True))
        total = sum(g == judgment for g in gold) + sum(s == judgment for s in said)
        found[judgment] = 2 * hits / total if total else 0.0
    return found


@measure
def judgment_f1(
    problems: Sequence[Problem], run: Run, *, rule: Reward | None = None, max_new: PositiveInt = 32
) -> dict[str, float]:
    """The policy as a verifier, by the likeliest judgement of each case: accuracy; macro_f1, the mean of f1_A, f1_B and f1_C;
    binary_f1, of A where B and C are one; and unread, the share of its texts without a judgement.

    rule: a verifier to compare with, which knows right and wrong alone; its numbers are rule.accuracy and so on. Problems have the
    columns of VerifierBench: question, gold_answer, llm_response, gold_judgment. Liu et al. 2025, arXiv:2508.03686
    """
    lacking = next((p for p in problems if p.meta.get("gold_judgment") not in JUDGMENTS), None)
    if lacking is not None:
        raise RewardlabError(f"the case {lacking.question[:60]!r} has no column gold_judgment with A, B or C")
    gold = [p.meta["gold_judgment"] for p in problems]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    texts = [t.reply for t in run.policy.extend(prompts, Sampling(max_new, temperature=0.0), run.rng("eval"))]
    said = [read_judgment(text) for text in texts]
    low, high = mean_interval([float(g == s) for g, s in zip(gold, said, strict=True)])
    found = {"ci95_low": low, "ci95_high": high, "n": float(len(gold)), "unread": said.count(None) / len(said)}
    found = {**_numbers(gold, said), **found}
    if rule is not None:
        found |= {f"rule.{name}": value for name, value in _numbers(gold, _by_rule(problems, rule, run)).items()}
    return found


def _numbers(gold: Sequence[str], said: Sequence[str | None]) -> dict[str, float]:
    by_class = f1_by_class(gold, said)
    accuracy = float(np.mean([g == s for g, s in zip(gold, said, strict=True)]))
    names = {f"f1_{judgment}": value for judgment, value in by_class.items()}
    return {"macro_f1": float(np.mean([*by_class.values()])), "accuracy": accuracy, "binary_f1": by_class["A"], **names}


def _by_rule(problems: Sequence[Problem], rule: Reward, run: Run) -> list[str | None]:
    ids = np.zeros(1, np.int64)
    replies = [
        Trajectory(ask(p.meta["question"], p.meta["gold_answer"]), (Turn("policy", ids, text=p.meta["llm_response"]),), "end")
        for p in problems
    ]
    scores = rule([[t] for t in replies], run)
    return [None if row[0].value is None else "A" if row[0].value >= 1.0 else "B" for row in scores]
