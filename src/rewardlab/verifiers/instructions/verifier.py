"""The verifier of instructions that a program can check (IFEval)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.text.answers import after_thinking
from rewardlab.text.replies import data, listed
from rewardlab.verifiers.contract import Verdict, no_verdict, shorten, verifier, wrong

from .constraints import CONSTRAINTS

Test = Callable[[str], bool]

PLAIN = "A plain sentence, to test whether an instruction can be checked at all."


@verifier(modules=("py3langid",))
def instructions(response: str, answer: Any, *, loose: bool = False, share: bool = False) -> Verdict:
    """Right if the reply follows all instructions of the gold answer; with `share`, the value is the share that it follows.

    answer: {"instructions": [{"id": "length_constraints:number_words", "num_words": 50, "relation": "at least"}, ...]}, or a
    row of IFEval, {"instruction_id_list": [...], "kwargs": [...]}, as data or as JSON text. Ids and arguments are IFEval's
    (see `constraints.py`).  loose: IFEval's loose accuracy: it is enough if the reply follows without its first or last line, or
    without asterisks. Thinking before </think> is ignored.
    """
    try:
        tests = _tests(_read(answer))
    except (RewardlabError, ValueError, TypeError, KeyError, AttributeError) as problem:
        return no_verdict(f"the instructions cannot be checked: {problem}")
    # what separates thinking from the reply is no paragraph or line of it
    text = after_thinking(response).replace("\r\n", "\n").strip("\n")
    if not text.strip():
        return wrong("the reply is empty", value=0.0 if share else None)
    forms = [form for form in (_forms(text) if loose else [text]) if form.strip()]
    broken = [name for name, test in tests if not any(test(form) for form in forms)]
    followed = 1 - len(broken) / len(tests)
    why = f"does not follow {listed(broken)}" if broken else f"follows all {len(tests)}"
    return Verdict(not broken, text.strip()[:80], why, followed if share else None, {"followed": followed})


def _read(answer: Any) -> Mapping[str, Any]:
    """The gold answer as an object whose instructions are objects. Raises ValueError, in words."""
    answer = data(answer)
    if isinstance(answer, list):
        answer = {"instructions": answer}
    if not isinstance(answer, Mapping):
        raise ValueError(f"{shorten(answer)} is no object with `instructions`, nor a row of IFEval")
    for name in ("instructions", "instruction_id_list", "kwargs"):
        if name in answer and not isinstance(answer[name], list | tuple):
            raise ValueError(f"`{name}` is no list but {shorten(answer[name])}")
    for name, kind, is_one in (("instructions", "object with an `id`", Mapping), ("kwargs", "object of arguments", Mapping | None)):
        for i, of in enumerate(answer.get(name) or ()):
            if not isinstance(of, is_one) or (name == "instructions" and "id" not in of):
                raise ValueError(f"`{name}[{i}]` is no {kind} but {shorten(of)}")
    if not answer.keys() & {"instructions", "instruction_id_list"}:
        raise ValueError(f"there are no `instructions` in {shorten(dict(answer))}")
    return answer


def _tests(answer: Mapping[str, Any]) -> list[tuple[str, Test]]:
    """The id and test of each instruction. Raises an error if one is unknown or has invalid arguments."""
    if "instruction_id_list" in answer:
        rows = [
            {"id": name, **(of or {})} for name, of in zip(answer["instruction_id_list"], answer.get("kwargs", ()), strict=True)
        ]
    else:
        rows = [{**row, **(row.get("kwargs") or {})} for row in answer["instructions"]]
    if not rows:
        raise ValueError("there are no instructions")
    return [_test(row) for row in rows]


def _test(row: Mapping[str, Any]) -> tuple[str, Test]:
    if row["id"] not in CONSTRAINTS:
        raise ValueError(f"{row['id']!r} is not a known instruction")
    check = CONSTRAINTS[row["id"]]
    # IFEval's tables have None for arguments that an instruction does not take
    arguments = {key: value for key, value in row.items() if key not in ("id", "kwargs") and value is not None}
    inspect.signature(check).bind(PLAIN, **arguments)
    # invalid values raise here, where they are our failure, and not on the first reply
    check(PLAIN, **arguments)
    return row["id"], lambda text: check(text, **arguments)


def _forms(text: str) -> list[str]:
    """The eight variants of a reply that IFEval's loose accuracy accepts."""
    lines = text.split("\n")
    cut = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cut, *(form.replace("*", "") for form in cut)]
