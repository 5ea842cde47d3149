"""How a judge is asked about replies, and how what it writes is read: our own prompts, published ones by name, or the user's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from rewardlab.clients.messages import Failure, Reply
from rewardlab.core import Message, Problem
from rewardlab.errors import RewardlabError
from rewardlab.judges.marks import FAILED, PREFERENCES, VERDICTS, Marks
from rewardlab.text.answers import after_thinking
from rewardlab.text.filled import filled

Kind = Literal["scale", "verdict", "pairwise", "scores"]
"""What is judged: one reply on a scale or as right or wrong, two replies, or any number of them with a score for each."""
SHOWN: Mapping[str, tuple[str, ...]] = {
    "scale": ("reply",), "verdict": ("reply",), "pairwise": ("first", "second"), "scores": ("replies",),
}  # fmt: skip
"""The places for replies in the prompt of each kind."""
GIVEN = ("prompt", "answer", "reply", "first", "second", "replies", "low", "high")
"""Places that are filled from the problem and its replies; any other place names a column of the row."""
_PLACE = re.compile(r"(?<![\\\w{])\{([a-z][a-z_]{1,30})\}(?!\})")


class Reading(NamedTuple):
    """values: of each reply that was shown, in general from 0 to 1, the higher the better; None where no mark can be read.
    said: the mark, or why there is none."""

    values: tuple[float, ...] | None
    said: str


Listed = Callable[[str, int], tuple[float, ...] | None]
"""From what a judge wrote, and how many replies it was shown, to a score for each; None where it cannot be read."""


@dataclass(frozen=True)
class Form:
    """How a judge is asked, and how its judgement is read.

    text: the prompt, with the places of its kind (`SHOWN`), {prompt}, {answer}, and places that are columns of the row, such as
    {rubric}.  marks: what it may write; or listed: a reader of a score for each reply, of which top is the highest.  system: the
    system message.  answer_part: the part of the text that is left out where a row has no gold answer.  each: how a reply stands
    among several, with {letter}, {number} and {text}; between: what stands between two.  at_once: whether the mark alone is asked
    for, without any words before it.  defaults: of columns that a row may lack.  quoted: whether the text is JSON, in which all
    that is filled in stands as a string.  source: of a published form.
    """

    name: str
    kind: Kind
    text: str
    marks: Marks | None = None
    listed: Listed | None = None
    top: float = 10.0
    system: str = ""
    answer_part: str = ""
    at_once: bool = False
    each: str = "[Reply {letter}]\n{text}"
    between: str = "\n\n"
    defaults: Mapping[str, str] = field(default_factory=dict)
    quoted: bool = False
    source: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the row that the prompt shows."""
        return tuple(dict.fromkeys(name for name in _PLACE.findall(self.text + self.system) if name not in GIVEN))

    def prompt(self, question: str, answer: object, replies: Sequence[str], row: Mapping[str, Any] | None = None) -> str:
        """What the judge reads.  row: its columns, of which the form may show some; RewardlabError for one that is missing."""
        text = self.text if answer is not None else self.text.replace(self.answer_part, "")
        return self._filled(text, question, answer, replies, row or {})

    def asked(self, problem: Problem, replies: Sequence[str]) -> Problem:
        """The problem of judging these replies to a problem."""
        question = conversation(problem)
        user = Message("user", self.prompt(question, problem.answer, replies, problem.meta), images=shown_in(problem))
        system = self._filled(self.system, question, problem.answer, replies, problem.meta)
        return replace(problem, prompt=(*((Message("system", system),) if system else ()), user))

    def read(self, reply: Reply | Failure | str, shown: int = 1) -> Reading:
        """The values of the replies that were shown, in their order."""
        said = Reply(reply) if isinstance(reply, str) else reply
        if self.marks is not None:
            value, mark = self.marks.value(said)
            pair = self.kind == "pairwise"
            return Reading(None if value is None else (value, 1.0 - value) if pair else (value,), mark)
        if isinstance(said, Failure):
            return Reading(None, f"{FAILED}{said.why}")
        assert self.listed is not None
        found = self.listed(after_thinking(said.text), shown)
        values = None if found is None else tuple(x / self.top for x in found)
        return Reading(values, "" if found else f"no scores of {shown} replies in the judgement {said.text[-200:]!r}")

    def _filled(self, text: str, question: str, answer: object, replies: Sequence[str], row: Mapping[str, Any]) -> str:
        own = {name: row[name] if row.get(name) is not None else self.defaults.get(name) for name in self.columns}
        if missing := [name for name, value in own.items() if value is None and f"{{{name}}}" in text]:
            raise RewardlabError(
                f"the judge's form {self.name} shows the column {missing[0]!r}, and the row of {question[:60]!r} has none "
                f"(it has {', '.join(row) or 'no further columns'})"
            )
        known = {name: _told(value) for name, value in own.items() if value is not None}
        known |= {"prompt": question, "answer": "" if answer is None else str(answer)}
        known |= {"reply": replies[0], "first": replies[0], "second": replies[-1]} if replies else {}
        if self.quoted:
            known = {name: _quoted(value) for name, value in known.items()}
        return filled(text, **known, replies=self._listed(replies) if "{replies}" in text else "")

    def _listed(self, replies: Sequence[str]) -> str:
        shown = [_quoted(reply) if self.quoted else reply for reply in replies]
        each = [filled(self.each, letter=chr(ord("A") + i), number=str(i + 1), text=said) for i, said in enumerate(shown)]
        return self.between.join(each).strip()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def conversation(problem: Problem) -> str:
    """What was said before the reply: the question alone, or all turns of a longer conversation, each after who says it."""
    said = [m for m in problem.prompt if m.role != "system"]
    return problem.question if len(said) < 2 else "\n\n".join(f"{m.role.capitalize()}: {m.text}" for m in said)


def shown_in(problem: Problem) -> tuple[Any, ...]:
    """The pictures of a problem, which whoever judges a reply to it is to see."""
    return tuple(image for m in problem.prompt if m.role != "system" for image in m.images)


def asking(problem: Problem, text: str, **places: str) -> Problem:
    """A question about a problem, to a model that judges or writes what is judged by; in the text {prompt} is the conversation.

    The problem's system message was for whoever replied, and is not the judge's.
    """
    said = filled(text, **{"prompt": conversation(problem), **places})
    return replace(problem, prompt=(Message("user", said, images=shown_in(problem)),))


def _told(value: Any) -> str:
    """A column as text; a list as one item a line."""
    return "\n".join(f"- {x}" for x in value) if isinstance(value, list | tuple) else str(value)


# ---- our own ---------------------------------------------------------------------------------------------------------

TWO_REPLIES = "[Question]\n{prompt}\n\n[Reply A]\n{first}\n\n[Reply B]\n{second}\n\n[End of the replies]"
"""How a question and two replies to it stand at the end of a prompt."""
_QUESTION = "[Question]\n{prompt}\n\n[Right answer]\n{answer}\n\n"
_ANSWER = "[Right answer]\n{answer}\n\n"
_ONE = _QUESTION + "[Reply]\n{reply}\n\n[End of the reply]\n"
TEMPLATES: Mapping[str, str] = {
    "scale": "Judge the reply to a question.\n\n" + _ONE
    + "How good is the reply, from {low} (worst) to {high} (best)? Say only its score, in the form [[score]].",
    "verdict": "Judge the reply to a question.\n\n" + _ONE + "Is the reply right? Say only [[yes]] or [[no]].",
    "pairwise": "Compare two replies to a question.\n\n" + _QUESTION
    + "[Reply A]\n{first}\n\n[Reply B]\n{second}\n\n[End of the replies]\n"
    "Which reply is better? The order in which they stand says nothing. Say only [[A]], [[B]], or [[C]] if neither is.",
    "scores": "Judge the replies to a question.\n\n" + _QUESTION + "{replies}\n\n[End of the replies]\n"
    "How good is each reply, from 1 (worst) to 10 (best)? Say only their scores, in their order, in the form [[7, 3]].",
}  # fmt: skip
_LIST = re.compile(r"\[\[((?:\s{0,3}\d{1,3}(?:\.\d{1,3})?\s{0,3},?){1,64})\]\]")


def listed_scores(text: str, shown: int) -> tuple[float, ...] | None:
    """The last [[7, 3]] of a judgement; None where it has not as many numbers as there are replies."""
    found = _LIST.findall(text)
    numbers = [float(x) for x in re.findall(r"\d+(?:\.\d+)?", found[-1])] if found else []
    return tuple(numbers) if len(numbers) == shown else None


def own_form(kind: Kind, text: str = "", name: str = "", low: int = 1, high: int = 5) -> Form:
    """Our own form of this kind, or one with another text and the same marks."""
    marks = Marks(PREFERENCES) if kind == "pairwise" else Marks(VERDICTS) if kind == "verdict" else Marks(low=low, high=high)
    whole = (text or TEMPLATES[kind]).replace("{low}", str(low)).replace("{high}", str(high))
    read: dict[str, Any] = {"listed": listed_scores} if kind == "scores" else {"marks": marks}
    return Form(name or kind, kind, whole, answer_part=_ANSWER, at_once=not text and kind != "scores", **read)
