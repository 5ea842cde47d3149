"""The verifier of mathematical answers: numbers, formulas, sets, intervals, tuples, matrices, equations, choices.

Most cases are decided exactly and at once; those that need computer algebra go to worker processes under a time limit. `compare.py`
defines what counts as equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rewardlab.core.domain import NonNegativeFloat, PositiveFloat
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
"""Most rounds of computer algebra: which expressions must be compared may depend on the results of earlier rounds."""
_PERCENT = re.compile(r"percent|%", re.IGNORECASE)


@verifier(over="pairs", modules=("sympy",))
def math(
    pairs: Sequence[Pair], *, find: Literal["final", "boxed", "whole"] = "final", strict: bool = True,
    tolerance: NonNegativeFloat = 0.0, worked_out: bool = False, seconds: PositiveFloat = 5.0,
) -> list[Verdict]:  # fmt: skip
    r"""1 if the answer of the reply is proven to equal the gold answer exactly.

    find: "final", the last \boxed, else what follows "answer is", else the last formula or number; "boxed", only the last \boxed;
    "whole", the whole reply. Thinking before </think> is ignored. The gold answer may be plain, $...$, boxed, or follow "####".
    strict: see `compare.py`.  tolerance: relative, for rational numbers.
    worked_out: if the gold answer is a number, accept 1023 but not "2^10 - 1".
    seconds: time limit for one comparison by computer algebra; an answer that takes longer is wrong.
    """
    judge = Judge(strict, tolerance, seconds)
    return judge.verdicts([begin(pair, find, worked_out) for pair in pairs])


@dataclass(frozen=True)
class Case:
    """Two parsed answers that still have to be compared."""

    said: Reading
    gold: Reading
    in_percent: bool


@dataclass
class Judge:
    """Compares the answers of many cases, and sends all expressions that it cannot decide to computer algebra together."""

    strict: bool
    tolerance: float
    seconds: float
    known: dict[tuple[Tree, Tree], tuple[bool, str]] = field(default_factory=dict)

    def verdicts(self, cases: Sequence[Case | Verdict]) -> list[Verdict]:
        verdicts: list[Verdict | None] = [case if isinstance(case, Verdict) else None for case in cases]
        for _ in range(ROUNDS):
            # a dict as an ordered set: expressions that many replies share are computed once
            open_pairs: dict[tuple[Tree, Tree], None] = {}
            # all open comparisons of the batch go to the workers together
            for i, case in enumerate(cases):
                if verdicts[i] is None and isinstance(case, Case):
                    verdicts[i] = self.judge(case, open_pairs)
            if not open_pairs:
                break
            try:
                self.compute(list(open_pairs))
            except RewardlabError as problem:
                # no worker could be started: our failure, not the replies'
                return [verdict or no_verdict(str(problem)) for verdict in verdicts]
        return [verdict or wrong("the comparison did not finish") for verdict in verdicts]

    def judge(self, case: Case, open_pairs: dict[tuple[Tree, Tree], None]) -> Verdict | None:
        """A verdict; or None, and the pairs of expressions that it depends on are added to `open_pairs`."""
        unproven: list[str] = []

        def equal(a: Tree, b: Tree) -> bool | None:
            if (sure := exact.equal(a, b)) is not None:
                return sure
            if (a, b) not in self.known:
                open_pairs[a, b] = None
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

    def compute(self, pairs: list[tuple[Tree, Tree]]) -> None:
        for pair, result in zip(pairs, workers(SYMBOLIC, seconds=self.seconds).map(pairs), strict=True):
            self.known[pair] = (bool(result.value[0]), result.value[1]) if isinstance(result, Done) else (False, result.why)


# ---- reading ---------------------------------------------------------------------------------------------------------


def begin(pair: Pair, find: str, worked_out: bool) -> Case | Verdict:
    """The verdict, if parsing alone decides; else the two answers to compare."""
    text = gold_text(pair.answer)
    if not text or len(text) > LONGEST:
        return no_verdict("the gold answer is too long to be read" if text else "there is no gold answer")
    if not isinstance(pair.response, str):
        return wrong(f"the reply is not a text but {type(pair.response).__name__}")
    reply = after_thinking(pair.response)
    forms = _forms(reply, find)
    if chosen := choice(text):
        stated, forms = _choice_and_forms(forms, reply)
        if stated or not chosen.rest:
            return _compare_choices(stated, chosen)
        text = chosen.rest
    return _compare_with(forms, read(text), pair, worked_out)


def _compare_with(forms: Iterable[str], gold: Reading, pair: Pair, worked_out: bool) -> Case | Verdict:
    stated = _readable(forms, gold)
    if stated is None:
        return wrong("no answer found")
    # equal text is equal even where the parser understands neither side
    if stated.spelling == gold.spelling and stated.spelling:
        return right(stated.text)
    if stated.answer is None or gold.answer is None:
        why = differs(stated.text, gold.text)
        return wrong(f"{why}: {stated.why}" if stated.why else why, stated.text)
    # the check is on the tree: "2^10 - 1" parses to a sum, not to a number
    if worked_out and _is_number(gold) and isinstance(stated.answer, Value) and not _is_number(stated):
        return wrong("the answer is not worked out", stated.text)
    return Case(stated, gold, bool(_PERCENT.search(pair.prompt)))


def gold_text(answer: Any) -> str:
    """The gold answer, without the solution before it."""
    text = "" if answer is None else str(answer).rpartition("####")[2]
    return (boxed(text) or text).strip()


def _forms(reply: str, find: str) -> Iterable[str]:
    if find == "whole":
        return [reply.strip()] if reply.strip() else []
    if find == "boxed":
        return [content] if (content := boxed(reply)) else []
    return statements(reply)


def _readable(forms: Iterable[str], gold: Reading) -> Reading | None:
    """The first form that parses as mathematics or equals the gold answer; else the first form; None if there are none."""
    first = None
    for form in forms:
        offered = choice(form)
        reading = read(offered.rest if offered and offered.rest and not hedged(offered.rest) else form)
        mathematics = reading.answer is not None and not isinstance(reading.answer, Words)
        if mathematics or reading.spelling == gold.spelling or (reading.answer is not None and reading.answer == gold.answer):
            return reading
        first = first or reading
    return first


def _is_number(reading: Reading) -> bool:
    return isinstance(reading.answer, Value) and reading.answer.tree[0] == "num"


def _choice_and_forms(forms: Iterable[str], reply: str) -> tuple[Choice | None, list[str]]:
    """The choice that a reply states, and the forms of its answer."""
    forms = list(forms)
    stated = next((c for form in forms if (c := choice(form))), None)
    if not stated and not boxed(reply) and (letter := in_brackets(reply)):
        stated = Choice(letter, "")
    return stated, forms


def _compare_choices(stated: Choice | None, gold: Choice) -> Verdict:
    if stated is None:
        return wrong("no choice found")
    if hedged(stated.rest):
        return wrong("more than one choice is offered", stated.letter)
    return right(stated.letter) if stated.letter == gold.letter else wrong(differs(stated.letter, gold.letter), stated.letter)
