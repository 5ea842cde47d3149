"""Compare the answers of many replies with their gold answers: at once where normal forms tell, else by computer algebra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, workers
from rewardlab.verifiers.contract import Verdict, differs, no_verdict, right, wrong

from .compare import Comparison
from .exact import Forms
from .kinds import Answer, packed
from .polynomials import TooHard, allowance
from .reading import Reading

SYMBOLIC = "rewardlab.verifiers.math.symbolic:same"


@dataclass(frozen=True)
class Case:
    """Two parsed answers that still have to be compared."""

    said: Reading
    gold: Reading
    in_percent: bool


Open = tuple[Answer, Answer, bool]
"""What computer algebra is asked: the answers of the reply and of the gold column, and whether the question asks for percent."""


@dataclass
class Judge:
    """Compares the answers of many cases, and sends all that it cannot decide to computer algebra together."""

    strict: bool
    tolerance: float
    seconds: float
    known: dict[Open, tuple[bool | None, str]] = field(default_factory=dict)

    def verdicts(self, cases: Sequence[Case | Verdict]) -> list[Verdict]:
        # answers that many replies share are compared once
        for case in cases:
            if not isinstance(case, Verdict) and (asked := _asked(case)) not in self.known:
                self.known[asked] = self.at_once(*asked), ""
        undecided = [asked for asked, (same, _) in self.known.items() if same is None]
        failure = ""
        try:
            self.compute(undecided)
        except RewardlabError as problem:
            # no worker could be started: our failure, not the replies'
            failure = str(problem)
        return [case if isinstance(case, Verdict) else self.verdict(case, failure) for case in cases]

    def at_once(self, reply: Answer, gold: Answer, in_percent: bool) -> bool | None:
        """Whether two answers are the same, where normal forms tell that soon; else None."""
        try:
            with allowance():
                return Comparison(Forms().equal, self.strict, self.tolerance, in_percent).same(reply, gold)
        except TooHard:
            return None

    def compute(self, undecided: Sequence[Open]) -> None:
        calls = [(packed(reply), packed(gold), self.strict, self.tolerance, in_percent) for reply, gold, in_percent in undecided]
        # one call for all that a verdict takes, so that its limit is that of the verdict
        for asked, result in zip(undecided, workers(SYMBOLIC, seconds=self.seconds).map(calls) if calls else [], strict=True):
            self.known[asked] = (bool(result.value[0]), result.value[1]) if isinstance(result, Done) else (False, result.why)

    def verdict(self, case: Case, failure: str) -> Verdict:
        same, unproven = self.known[_asked(case)]
        if same is None:
            return no_verdict(failure)
        if same:
            return right(case.said.text)
        why = differs(case.said.text, case.gold.text)
        return wrong(f"{why}: {unproven}" if unproven else why, case.said.text)


def _asked(case: Case) -> Open:
    assert case.said.answer is not None
    assert case.gold.answer is not None
    return case.said.answer, case.gold.answer, case.in_percent
