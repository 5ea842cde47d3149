"""The verifier of mathematical answers: numbers, formulas, sets, intervals, tuples, matrices, equations, choices.

The common cases are decided exactly and at once; what needs computer algebra goes to worker processes under a time limit. What
counts as equal is written down in `kit/mathematics/compare.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, workers
from rewardlab.text.answers import after_thinking, boxed, statements
from rewardlab.verifiers.contract import Pair, Verdict, differs, no_verdict, right, verifier, wrong

from . import exact
from .choices import Choice, choice, hedged, in_brackets
from .compare import Comparison
from .kinds import Value, Words
from .reading import Reading, read
from .text import LONGEST
from .trees import Tree

SYMBOLIC = "rewardlab.verifiers.math.symbolic:equal"
ROUNDS = 5
"""Times that expressions are sent away: which ones are needed may depend on those before."""
FIND = ("final", "boxed", "whole")
_PERCENT = re.compile(r"percent|%", re.IGNORECASE)


@verifier(over="pairs")
def math(
    pairs: Sequence[Pair], *, find: str = "final", strict: bool = True, tolerance: float = 0.0, worked_out: bool = False,
    seconds: float = 5.0,
) -> list[Verdict]:  # fmt: skip
    r"""1 where the answer of the reply equals the gold answer, proven exactly.

    find: "final", the last \boxed, else what follows "answer is", else the last formula or number; "boxed", the last \boxed alone;
    "whole", all of the reply. What was only thought, before </think>, is no answer. The gold answer may be plain, $...$, boxed, or
    follow "####".
    strict: see `kit/mathematics/compare.py`.  tolerance: relative, for rational numbers.
    worked_out: where the gold answer is a number, 1023 is an answer and "2^10 - 1" is none.
    seconds: limit for one comparison by computer algebra; what takes longer is wrong.
    """
    if find not in FIND:
        raise RewardlabError(f"find must be one of {', '.join(FIND)}, not {find!r}")
    court = Court(strict, tolerance, seconds)
    return court.verdicts([begin(pair, find, worked_out) for pair in pairs])


@dataclass(frozen=True)
class Case:
    """Two answers that were read and are not the same text."""

    said: Reading
    gold: Reading
    in_percent: bool


@dataclass
class Court:
    """Compares the answers of many cases, and has the expressions that it cannot decide compared together."""

    strict: bool
    tolerance: float
    seconds: float
    known: dict[tuple[Tree, Tree], tuple[bool, str]] = field(default_factory=dict)

    def verdicts(self, cases: Sequence[Case | Verdict]) -> list[Verdict]:
        found: list[Verdict | None] = [case if isinstance(case, Verdict) else None for case in cases]
        for _ in range(ROUNDS):
            asked: dict[tuple[Tree, Tree], None] = {}
            for i, case in enumerate(cases):
                if found[i] is None and isinstance(case, Case):
                    found[i] = self.judge(case, asked)
            if not asked:
                break
            try:
                self.ask(list(asked))
            except RewardlabError as problem:
                return [verdict or no_verdict(str(problem)) for verdict in found]
        return [verdict or wrong("the comparison came to no end") for verdict in found]

    def judge(self, case: Case, asked: dict[tuple[Tree, Tree], None]) -> Verdict | None:
        """A verdict, or None once what it depends on has been added to `asked`."""
        unproven: list[str] = []

        def equal(a: Tree, b: Tree) -> bool | None:
            if (sure := exact.equal(a, b)) is not None:
                return sure
            if (a, b) not in self.known:
                asked[a, b] = None
                return None
            same, why = self.known[a, b]
            if why:
                unproven.append(why)
            return same

        assert case.said.answer is not None
        assert case.gold.answer is not None
        same = Comparison(equal, self.strict, self.tolerance, case.in_percent).same(case.said.answer, case.gold.answer)
        if same is None:
            return None
        if same:
            return right(case.said.text)
        why = differs(case.said.text, case.gold.text)
        return wrong(f"{why}: {unproven[0]}" if unproven else why, case.said.text)

    def ask(self, pairs: list[tuple[Tree, Tree]]) -> None:
        for pair, result in zip(pairs, workers(SYMBOLIC, seconds=self.seconds).map(pairs), strict=True):
            self.known[pair] = (bool(result.value[0]), result.value[1]) if isinstance(result, Done) else (False, result.why)


# ---- reading ---------------------------------------------------------------------------------------------------------


def begin(pair: Pair, find: str, worked_out: bool) -> Case | Verdict:
    """The verdict where reading alone gives one, else the two answers."""
    text = gold_text(pair.answer)
    if not text or len(text) > LONGEST:
        return no_verdict("the gold answer is too long to be read" if text else "there is no gold answer")
    if not isinstance(pair.response, str):
        return wrong(f"the reply is no text but {type(pair.response).__name__}")
    reply = after_thinking(pair.response)
    forms = _forms(reply, find)
    if chosen := choice(text):
        said, forms = _chosen(forms, reply)
        if said or not chosen.rest:
            return _of_choices(said, chosen)
        text = chosen.rest
    return _against(forms, read(text), pair, worked_out)


def _against(forms: Iterable[str], gold: Reading, pair: Pair, worked_out: bool) -> Case | Verdict:
    said = _readable(forms, gold)
    if said is None:
        return wrong("no answer found")
    if said.spelling == gold.spelling and said.spelling:
        return right(said.text)
    if said.answer is None or gold.answer is None:
        why = differs(said.text, gold.text)
        return wrong(f"{why}: {said.why}" if said.why else why, said.text)
    if worked_out and _is_number(gold) and isinstance(said.answer, Value) and not _is_number(said):
        return wrong("the answer is not worked out", said.text)
    return Case(said, gold, bool(_PERCENT.search(pair.prompt)))


def gold_text(answer: Any) -> str:
    """The gold answer, without the solution before it."""
    text = "" if answer is None else str(answer).rpartition("####")[2]
    return (boxed(text) or text).strip()


def _forms(reply: str, find: str) -> Iterable[str]:
    if find == "whole":
        return [reply.strip()] if reply.strip() else []
    if find == "boxed":
        return [found] if (found := boxed(reply)) else []
    return statements(reply)


def _readable(forms: Iterable[str], gold: Reading) -> Reading | None:
    """The first form that is mathematics, or words as the gold answer has them; else the first; None where there is none."""
    first = None
    for form in forms:
        offered = choice(form)
        said = read(offered.rest if offered and offered.rest and not hedged(offered.rest) else form)
        mathematics = said.answer is not None and not isinstance(said.answer, Words)
        if mathematics or said.spelling == gold.spelling or (said.answer is not None and said.answer == gold.answer):
            return said
        first = first or said
    return first


def _is_number(reading: Reading) -> bool:
    return isinstance(reading.answer, Value) and reading.answer.tree[0] == "num"


def _chosen(forms: Iterable[str], reply: str) -> tuple[Choice | None, list[str]]:
    """The choice that a reply states, and the forms of its answer."""
    forms = list(forms)
    found = next((c for form in forms if (c := choice(form))), None)
    if not found and not boxed(reply) and (letter := in_brackets(reply)):
        found = Choice(letter, "")
    return found, forms


def _of_choices(said: Choice | None, gold: Choice) -> Verdict:
    if said is None:
        return wrong("no choice found")
    if hedged(said.rest):
        return wrong("more than one choice is offered", said.letter)
    return right(said.letter) if said.letter == gold.letter else wrong(differs(said.letter, gold.letter), said.letter)
