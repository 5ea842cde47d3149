"""Verifiers: rewards that compare a reply with a gold answer.

    @verifier
    def exact_match(response, answer, *, case=True) -> Verdict: ...          one pair at a time
    @verifier(over="pairs")
    def program_passes(pairs, *, seconds=5.0) -> list[Verdict]: ...           all pairs of a step at once

    exact_match()                            a reward, for a recipe
    exact_match().check("yes", "yes")        one verdict
    exact_match().check_all(pairs)           many
    exact_match().trl()                      a reward function for TRL
    exact_match().verl()                     a compute_score for verl

A verdict is True, False, or None. Whatever the reply causes is False, with the reason: hanging must not pay. None is our own
failure alone, such as a gold answer that cannot be read. A verifier never raises, and works from any thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rewardlab.core.part import decorator
from rewardlab.core.score import Score, Scores, Term
from rewardlab.core.trajectory import Group
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.settings.options import VerifierOptions
from rewardlab.text.turns import ended
from rewardlab.util import extras
from rewardlab.util.messages import said
from rewardlab.util.nulls import is_hole

GOLD = ("answer", "solution", "ground_truth", "gold", "label")
"""Columns that may contain the gold answer; the first one present is used."""

REPLY = ("response", "completion", "reply", "text", "solution_str")
"""Names of a reply, in files and among the arguments of a reward."""

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,16}\b")

SHOWN = 80
"""Characters of a text that a reason quotes."""


class Pair(NamedTuple):
    """A reply, the gold answer, the prompt's text, and the problem's other data."""

    response: str
    answer: Any
    prompt: str = ""
    meta: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Verdict:
    """The judgement of a verifier on a reply.

    correct: None where the verifier itself failed.  extracted: what it took for the answer.  why: the reason, in words.
    value: the reward, if it is not 1 for right and 0 for wrong.  parts: further numbers by name, which are logged beside the
    reward (the share of tests passed, seconds taken).  tests: where there are several, which of them were passed, in their order.
    """

    correct: bool | None
    extracted: str = ""
    why: str = ""
    value: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    tests: tuple[bool, ...] = ()

    @property
    def pays(self) -> float | None:
        return None if self.correct is None else float(self.correct) if self.value is None else self.value


def right(extracted: str = "", why: str = "right", **fields: Any) -> Verdict:
    return Verdict(True, extracted, why, **fields)


def wrong(why: str, extracted: str = "", **fields: Any) -> Verdict:
    return Verdict(False, extracted, why, **fields)


def no_verdict(why: str) -> Verdict:
    """The verifier cannot judge, and the reply is not to blame."""
    return Verdict(None, "", why)


def differs(stated: object, gold: object) -> str:
    """The reason of a verdict on an answer that is not the gold one."""
    return f"said {shorten(stated)}, the answer is {shorten(gold)}"


def shorten(text: object) -> str:
    """A text in quotes, cut where it is long."""
    text = str(text)
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")


class Verifier(Reward):
    """A function of pairs, as a reward and in the other forms that engines ask for."""

    option_type = VerifierOptions
    options: Any

    def require(self) -> None:
        """Raise RewardlabError, which names the extra to install, unless all packages that it needs are installed."""
        extras.require("verify", *self.options.modules, what=f"the verifier {self.name}")

    def check(self, response: str, answer: Any, prompt: str = "", **meta: Any) -> Verdict:
        return self.check_all([Pair(response, answer, prompt, meta)])[0]

    def check_all(self, pairs: Sequence[Pair | tuple[str, Any]]) -> list[Verdict]:
        """One verdict for each pair, in their order. Never raises."""
        full_pairs = [_clean(pair if isinstance(pair, Pair) else Pair(*pair)) for pair in pairs]
        return [_without_address(verdict) for verdict in self._all(full_pairs)]

    def _all(self, pairs: list[Pair]) -> list[Verdict]:
        if self.options.over == "pair":
            return [self._one(pair) for pair in pairs]
        try:
            return self._together(pairs) if pairs else []
        except Exception as problem:
            # one reply broke the call for all: judge them one by one, so that only that reply pays for it
            return [self._one(pair) for pair in pairs] if len(pairs) > 1 else [self._blame(pairs[0], problem)]

    def __call__(self, groups: list[Group], run: Any = None) -> Scores:
        pairs = [Pair(t.reply, t.problem.answer, t.problem.question, t.problem.meta) for group in groups for t in group]
        verdicts = iter(self.check_all(pairs))
        return [[self._score(next(verdicts)) for _ in group] for group in groups]

    def trl(self, answer: str | None = None) -> Callable[..., list[float | None]]:
        """f(prompts, completions, **columns) -> rewards, as TRL calls it; other columns go along as the problem's data.

        answer: the column of the gold answers; None: the first one in GOLD. The function raises RewardlabError, which lists the
        columns, where there is none and no reply could be judged.
        """

        def scores(prompts: Any = None, completions: Any = None, **columns: Any) -> list[float | None]:
            count = len(completions)
            rows = per_reply(columns, count)
            gold = gold_column(rows, answer)
            if gold is None:
                check_length(self.name, columns, answer, count)
            if answer is not None and gold is None:
                raise no_gold(self.name, rows, answer)
            golds = rows[gold] if gold else [None] * count
            texts = prompts if prompts is not None else [""] * count
            metas = [{name: column[i] for name, column in rows.items()} for i in range(count)]
            pairs = [Pair(said(c), g, said(p), m) for c, g, p, m in zip(completions, golds, texts, metas, strict=True)]
            paid = [verdict.pays for verdict in self.check_all(pairs)]
            if gold is None and paid and all(reward is None for reward in paid):
                raise no_gold(self.name, rows)
            return paid

        scores.__name__ = self.name
        return scores

    def verl(self) -> Callable[..., dict[str, Any]]:
        """compute_score(data_source, solution_str, ground_truth, extra_info) -> {"score", "acc", "pred", "why"}, as verl calls it.

        verl has no missing verdict: the score is then 0.0 and `acc` None.
        """

        def compute_score(
            data_source: Any, solution_str: str, ground_truth: Any, extra_info: Any = None, **_: Any
        ) -> dict[str, Any]:
            meta = dict(extra_info) if isinstance(extra_info, dict) else {}
            # verl's own preprocessing keeps the question here; whether it asks for percent decides whether 20% is 20
            prompt = meta.pop("prompt", None) or meta.get("question")
            verdict = self.check(solution_str, ground_truth, prompt if isinstance(prompt, str) else "", **meta)
            return {"score": verdict.pays or 0.0, "acc": verdict.correct, "pred": verdict.extracted, "why": verdict.why}

        return compute_score

    def _together(self, pairs: list[Pair]) -> list[Verdict]:
        verdicts = list(self.function(pairs, **self.settings))
        if len(verdicts) != len(pairs):
            raise ValueError(f"{self} gave {len(verdicts)} verdicts for {len(pairs)} replies")
        return verdicts

    def _one(self, pair: Pair) -> Verdict:
        try:
            return self._judged(pair)
        except Exception as problem:
            return self._blame(pair, problem)

    def _judged(self, pair: Pair) -> Verdict:
        if not isinstance(pair.response, str):
            return wrong(f"the reply is not a text but {type(pair.response).__name__}")
        if self.options.over == "pairs":
            return self._together([pair])[0]
        return self.function(pair.response, pair.answer, **self.settings)

    def _blame(self, pair: Pair, problem: Exception) -> Verdict:
        """Decide whose fault an exception is: the reply's, if an empty reply gets a verdict on the same gold answer."""
        error = f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
        try:
            self._judged(pair._replace(response=""))
        except Exception:
            return no_verdict(f"{self.name} failed: {error}")
        return wrong(f"the reply broke {self.name}: {error}")

    def _score(self, verdict: Verdict) -> Score:
        terms = {self.name: Term(verdict.pays)}
        # weight None: logged, and not added to the reward
        terms |= {f"{self.name}.{name}": Term(value, weight=None) for name, value in verdict.parts.items()}
        missing, tests = verdict.pays is None, tuple(verdict.tests)
        return Score(terms=terms, missing=missing, why=verdict.why, extracted=verdict.extracted, tests=tests)


def _clean(pair: Pair) -> Pair:
    """The pair, its reply without the tokens that end a turn, which engines that decode them leave in, and without the NaN that
    data frames write for an answer that they do not have."""
    if is_hole(pair.answer):
        pair = pair._replace(answer=None)
    if not isinstance(pair.response, str) or "<" not in pair.response:
        return pair
    return pair._replace(response=ended(pair.response))


def _without_address(verdict: Verdict) -> Verdict:
    """The verdict without where an object lies in memory, which tells nobody anything and differs from run to run."""
    return replace(verdict, why=ADDRESS.sub("", verdict.why)) if " at 0x" in verdict.why else verdict


def per_reply(columns: Mapping[str, Any], count: int) -> dict[str, Sequence[Any]]:
    """Of what TRL passes the columns, which have an entry for each of `count` completions; settings and loggers are none."""
    return {name: column for name, column in columns.items() if isinstance(column, list | tuple) and len(column) == count}


def gold_column(columns: Mapping[str, Any], name: str | None = None) -> str | None:
    """The column of the gold answers: `name`, or, where it is None, the first one in GOLD; None if there is none."""
    return next((column for column in ([name] if name is not None else GOLD) if column in columns), None)


def check_length(who: str, columns: Mapping[str, Any], answer: str | None, count: int) -> None:
    """Raise RewardlabError for a column of gold answers that is there, and does not have one for each completion."""
    if (name := gold_column(columns, answer)) is not None and isinstance(columns[name], list | tuple):
        given = len(columns[name])
        raise RewardlabError(
            f"{who}: the column {name!r} has {given} answer{'s' * (given != 1)} for {count} completions; it must have one for each"
        )


def no_gold(who: str, columns: Mapping[str, Any], name: str | None = None) -> RewardlabError:
    """The error where a trainer passed no gold answers, and no reply could be judged without them."""
    lacks = f"no column {name!r}" if name is not None else f"none of the columns {', '.join(GOLD)}"
    return RewardlabError(
        f"{who} got no gold answers: the data has {lacks}; what it has beside the prompts: {', '.join(columns) or 'nothing'}. "
        "Name the column of the answers: answer=NAME, as in .trl(answer='result')"
    )


verifier = decorator(
    Verifier,
    about="""Make a verifier of a function.

over="pair" (default): f(response, answer, *, ...) -> Verdict;  over="pairs": f(pairs, *, ...) -> a verdict for each
""",
)
