"""The verifier of what a reply says that code prints, or of the line that it puts in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

from .running import LANGUAGES, MASK, Outcome, portable, ran

LONGEST = 20_000
"""Characters of a reply that is read."""


@verifier(over="pairs")
def snippet_run(pairs: Sequence[Pair], *, seconds: float = 5.0) -> list[Verdict]:
    """Whether a reply says what code prints and how it fails; or puts in a line with which it prints and fails so.

    answer = {"language": "list" or "python", "stdout", "stderr"}, and of the line {"masked": code with <MASK>, "input"} besides.
    The reply has <stdout>...</stdout> and <stderr>...</stderr>, or <code>...</code>, the last of each; such code is run, Python in
    the sandbox, and must end in time.  parts: `form`, the share of these that are there; `stdout`, 1 where it is right, but for a
    line break at its ends; `stderr`, the lines in common over all lines of both.
    """
    broken = [_unusable(pair.answer) for pair in pairs]
    said = [None if why else _said(pair) for pair, why in zip(pairs, broken, strict=True)]
    outcomes: dict[int, Outcome | None] = {}
    for language in LANGUAGES:
        asked = [i for i, s in enumerate(said) if isinstance(s, str) and pairs[i].answer["language"] == language]
        cases = [(pairs[i].answer["masked"].replace(MASK, str(said[i])), str(pairs[i].answer.get("input") or "")) for i in asked]
        outcomes |= dict(zip(asked, ran(language, cases, seconds) if cases else [], strict=True))
    verdicts = []
    for i, (pair, why, s) in enumerate(zip(pairs, broken, said, strict=True)):
        if why or (isinstance(s, str) and outcomes[i] is None):
            verdicts.append(no_verdict(why or "the sandbox failed"))
        else:
            verdicts.append(_judged(pair.answer, s if isinstance(s, tuple) else outcomes.get(i)))
    return verdicts


def _unusable(answer: Any) -> str:
    known = isinstance(answer, Mapping) and answer.get("language") in LANGUAGES
    if not known or not all(isinstance(answer.get(name), str) for name in ("stdout", "stderr")):
        return 'the gold answer is not {"language": "list" or "python", "stdout": text, "stderr": text}'
    return "the gold answer's masked code has no <MASK>" if MASK not in str(answer.get("masked", MASK)) else ""


def _said(pair: Pair) -> str | tuple[str | None, str | None] | None:
    """The line of code; or stdout and stderr, each None where it is missing; None without any."""
    reply = pair.response[:LONGEST]
    if "masked" in pair.answer:
        return _last(reply, "code")
    out, err = _last(reply, "stdout"), _last(reply, "stderr")
    return None if out is None and err is None else (out, err)


def _last(reply: str, tag: str) -> str | None:
    _, opened, after = reply.rpartition(f"<{tag}>")
    inside, closed, _ = after.partition(f"</{tag}>")
    return inside if opened and closed else None


def _judged(gold: Mapping[str, str], said: tuple | None) -> Verdict:
    if said is None:
        return wrong("nothing of the form", parts={"form": 0.0, "stdout": 0.0, "stderr": 0.0})
    if isinstance(said, Outcome) and said.late:
        # else a line that prints what is wanted, and then hangs, would be right
        return wrong("the code does not end in time", parts={"form": 1.0, "stdout": 0.0, "stderr": 0.0})
    out, err = said[0], said[1]
    form = 1 - [out, err].count(None) / 2
    printed = float(out is not None and _trimmed(out) == _trimmed(gold["stdout"]))
    # where nothing is said of the error, it is not said that there is none
    failed = 0.0 if err is None else _common(portable(gold["stderr"]), portable(err))
    parts = {"form": form, "stdout": printed, "stderr": failed}
    if printed and failed == 1.0:
        return right(str(out)[:80], parts=parts)
    return wrong(f"output {'right' if printed else 'wrong'}, {failed:.0%} of the error", str(out)[:80], parts=parts)


def _trimmed(text: str) -> str:
    return re.sub(r"\A\n|\n\Z", "", text)


def _common(gold: str, said: str) -> float:
    a, b = (Counter(line.strip() for line in text.splitlines() if line.strip()) for text in (gold, said))
    return (a & b).total() / (a | b).total() if a or b else 1.0
