"""What a run watches in its rewards: it logs them, and stops where they say that nothing can be learnt."""

from __future__ import annotations

import numpy as np

from rewardlab.core import Group, Run, Scores
from rewardlab.engine.missing import why_missing
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import RunConfig
from rewardlab.text.answers import NO_ANSWER


def watch_rewards(run: Run, settings: RunConfig, groups: list[Group], scores: Scores) -> None:
    """Log rewards. Raises RewardlabError when verdicts are missing, or a reward has never varied."""
    flat = [s for row in scores for s in row]
    missing = [s for s in flat if s.missing]
    run.log("missing", len(missing) / max(1, len(flat)))
    if len(missing) > settings.max_missing * len(flat):
        counted = f"{len(missing)} of {len(flat)} rollouts got no verdict at step {run.step + 1}"
        # where not one has a verdict, continuing would teach nothing
        more = f" (more than {settings.max_missing:.0%}: --max-missing)" if len(missing) < len(flat) else ""
        raise RewardlabError(f"{counted}{more}: {why_missing(groups, scores, run)}")
    if any(s.extracted or NO_ANSWER in s.why for s in flat):
        run.log("no_answer", sum(NO_ANSWER in s.why for s in flat) / len(flat))
    totals = [s.total for s in flat if s.total is not None]
    if totals:
        run.log("reward", float(np.mean(totals)))
    # only where rewards differ does a group teach anything by comparison; one reply alone is not compared
    known = [{s.total for s in row if s.total is not None} for row in scores]
    if any(len(row) > 1 for row in scores):
        run.log("signal", float(np.mean([len(rewards) > 1 for rewards in known])))
    for name in dict.fromkeys(n for s in flat for n in s.terms):
        # a term without a value and without steps gave no verdict: it must not count as 0
        terms = [t for s in flat if (t := s.terms.get(name)) and (t.value is not None or t.steps)]
        values = [t.value if t.value is not None else sum(r for _, r in t.steps) for t in terms]
        if values:
            run.log(f"reward/{name}", float(np.mean(values)))
    _refuse_constant(run, settings, totals)


def _refuse_constant(run: Run, settings: RunConfig, totals: list[float]) -> None:
    # where no rollout had a verdict, and that is allowed, nothing is known of the reward
    if not totals:
        return
    # in memory, so that a resumed run does not count its patience anew
    varied = run.memory.get("engine.varied", False) or len(set(totals)) > 1
    run.memory["engine.varied"] = varied
    if not varied and 0 < settings.patience <= run.step + 1:
        first = run.metrics.get("judge_prefers_first", 0.5)
        order = f"The judge prefers what stands first in {first:.0%} of comparisons. " if abs(first - 0.5) > 0.2 else ""
        raise RewardlabError(
            f"every rollout of the first {run.step + 1} steps earned {totals[0]:g}: there is nothing to learn from. "
            f"{order}Look at the rollouts in the run folder: is the reward broken, or the task too hard or too easy?"
        )
