"""What a reward model, or a policy, comes to on benchmarks of rewards while it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardlab.core import Measure, Problem, Run, Trajectory, measure
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt


@measure(wraps="inner")
def on_benchmarks(
    problems: Sequence[Problem], run: Run, *, inner: Measure | None = None, names: tuple[str, ...] = (), items: PositiveInt = 100,
    model: str = "reward",
) -> dict[str, float]:  # fmt: skip
    """The numbers of `inner`, which decide, and NAME.overall: the headline figure of each benchmark, on some of its items.

    Rated are replies by the value head of the run's second model `model`, or of the policy; where neither has one, by the policy's
    log-ratio to the reference, or, without a reference, by its mean log-prob.  items: of each benchmark, always the same ones.
    """
    from rewardlab.scoreboard.asked import asked
    from rewardlab.scoreboard.document import figures_of
    from rewardlab.scoreboard.raters.rater import rated

    found = dict(inner(problems, run)) if inner is not None else {}
    rater = _OfRun(run, model)
    for name in names:
        one = asked(name, limit=items).with_texts()
        headline, value = next(iter(figures_of(one, rated(rater, one.items, one.benchmark)).items()))
        found[f"{name.replace('-', '_')}.{headline}"] = value
    return found


class _OfRun:
    """The model of a run as a rater."""

    def __init__(self, run: Run, name: str):
        self.policy: Any = run.models.get(name, run.policy)
        if reads := getattr(self.policy, "reads", ""):
            raise RewardlabError(
                f"a benchmark shows prompt and reply alone, and the model {name!r} of this run reads {reads}: leave out the "
                "benchmarks"
            )
        self.reference: Any = run.reference if not self.policy.has_value_head else None

    def judge(self, items: Sequence[Any], benchmark: Any) -> list[Any]:
        from rewardlab.scoreboard.items import flat
        from rewardlab.scoreboard.raters.passes import end_values, logprobs_of
        from rewardlab.scoreboard.raters.rater import verdicts

        replies = [item.replies[k] for item, k in flat(items)]
        prompts = [item.prompt for item, _ in flat(items)]
        rows = self.policy.write(self.policy.read([Trajectory(Problem(p)) for p in prompts], prompts), replies)
        fits = [i for i, t in enumerate(rows) if len(t) <= self.policy.context]
        kept = [rows[i] for i in fits]
        if self.policy.has_value_head:
            scores = end_values(self.policy, kept)
        elif self.reference is not None:
            both = zip(logprobs_of(self.policy, kept), logprobs_of(self.reference, kept), strict=True)
            scores = [float((ours - theirs).sum()) for ours, theirs in both]
        else:
            scores = [float(x.mean()) for x in logprobs_of(self.policy, kept)]
        found = dict(zip(fits, scores, strict=True))
        return verdicts(items, [found.get(i) for i in range(len(rows))])
