"""The task's own verifier, as a reward like any other."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Scores
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward


@reward(over="groups")
def correct(groups: list[Group], run: Run) -> Scores:
    """The score by the task's verifier; its term is called "correct"."""
    if run is None or run.verify is None:
        raise RewardlabError("correct() needs the task's verifier, and this run has none: name a task, or use a reward of your own")
    # verdicts are remembered under the verifier's own name, so that others can share them; only this copy is renamed
    renamed = run.verify.named("correct")
    return [[renamed.combine([score]) for score in row] for row in run.verdicts(groups)]


@reward(over="groups")
def detail(groups: list[Group], run: Run, *, name: str) -> Scores:
    """A number that the task's verifier reports beside its verdict, such as `linking` of `sql` or `recall` of `item_set`.

    No verdict where the verifier has none. Raises RewardlabError where its verdicts have no such number.
    """
    return [[_detail(score, name) for score in row] for row in run.verdicts(groups)]


def _detail(verdict: Score, name: str) -> Score:
    if verdict.missing:
        return Score(None, why=verdict.why)
    numbers = {key.partition(".")[2]: term for key, term in verdict.terms.items() if term.weight is None}
    if name not in numbers:
        known = ", ".join(sorted(numbers)) or "none"
        raise RewardlabError(f"the task's verifier reports no number {name!r} beside its verdict; it reports: {known}")
    return Score(numbers[name].value, why=verdict.why)
