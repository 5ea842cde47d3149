"""The verifier of multiple choice."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Mapping
from itertools import takewhile
from string import ascii_uppercase
from typing import Any

from rewardlab.text.replies import data
from rewardlab.verifiers.contract import Pair, Verdict, differs, no_verdict, right, verifier, wrong

from .options import Options, choose, read
from .texts import key

LONGEST = 20_000
"""Characters at the end of a prompt in which options are looked for."""
_IN_LINE = re.compile(r"(?:^|(?<=[\s,;:?]))\(([A-Z])\)\s")
_LABEL = re.compile(r"\s*(?:[(\[（]\s?([A-Za-z])\s?[)\]）][.:]?|([A-Za-z])[).:：．])\s*")


@verifier(over="pairs")
def choice(pairs: list[Pair], *, share: bool = False) -> list[Verdict]:
    """Right if the reply chooses the gold option, by its letter or its text, and no other.

    answer: a letter, an option's text, or {"answer": either, "options": [...]}; the options may also be in
    meta["options"], as a list or by letter, else a text is looked up in the prompt, in lines such as "B. Paris".
    An integer is an option's index, from 0. If the answer is a list, exactly those options must be chosen;
    with `share`, the value is then the Jaccard index of the letters.
    Hedging ("A or B"), listing the options, and a change after the "final answer" are wrong.
    """
    return [_judge(pair, share) for pair in pairs]


def _judge(pair: Pair, share: bool) -> Verdict:
    try:
        gold, options = _gold(pair.answer, pair.meta, pair.prompt)
    except (ValueError, TypeError, AttributeError) as problem:
        return no_verdict(f"the gold answer {str(pair.answer)[:80]!r} is not one of the options: {problem}")
    letters, why = choose(pair.response, options, pair.prompt)
    if not letters:
        return wrong(why)
    value = len({*letters} & {*gold}) / len({*letters} | {*gold}) if share and len(gold) > 1 else None
    if letters == gold or (len(gold) == 1 == len(letters) and options[letters] and key(options[letters]) == key(options[gold])):
        return right(letters, value=value)
    return wrong(differs(letters, gold), letters, value=value)


def _gold(answer: Any, meta: Mapping[str, Any], prompt: str = "") -> tuple[str, Options]:
    """The gold letters, sorted, and the options.

    Those of the prompt are read only where a gold answer is the text of one: letters need none.
    """
    options_data: Any = meta.get("options", meta.get("choices"))
    answer = data(answer)
    if isinstance(answer, Mapping):
        answer, options_data = answer.get("answer"), answer.get("options", options_data)
    options = options_of(options_data)
    golds = answer if isinstance(answer, list | tuple) else [answer]
    if options_data is None and any(isinstance(gold, str) and len(gold.strip(" ().:")) > 1 for gold in golds):
        asked, texts = options_in(prompt), {key(str(gold)) for gold in golds}
        options = asked if any(key(text) in texts for text in asked.values()) else options
    letters = {letter for gold in golds for letter in _letters(gold, options)}
    if not letters:
        raise ValueError("it is empty")
    return "".join(sorted(letters)), options


def options_of(data: Any) -> dict[str, str]:
    """Letter to text; all letters with empty texts if the options are not known.

    data: a list, or letters with texts, or either as JSON text, or a text with a labelled option a line. Texts may begin with their
    own letter, as in "(B) Paris".
    """
    if data is None:
        return dict.fromkeys(ascii_uppercase, "")
    data = _read_options(data) if isinstance(data, str) else data
    if isinstance(data, Mapping) and not {"text", "label"} <= {*data}:
        by_letter = {str(letter).strip(" ().:").upper(): str(text) for letter, text in data.items()}
        return {letter: _LABEL.sub("", text) if _label(text) == letter else text for letter, text in by_letter.items()}
    if not isinstance(data, Mapping | list | tuple):
        raise ValueError(f"the options are {data!r:.60}; write a list of texts")
    texts = [str(text) for text in (data["text"] if isinstance(data, Mapping) else data)]
    if not 2 <= len(texts) <= len(ascii_uppercase):
        raise ValueError(f"there are {len(texts)} options; there must be 2 to {len(ascii_uppercase)}")
    labels = [_label(text) for text in texts]
    if sorted(labels) == list(ascii_uppercase[: len(texts)]):
        return {letter: _LABEL.sub("", text) for letter, text in sorted(zip(labels, texts, strict=True))}
    return dict(zip(ascii_uppercase, texts, strict=False))


def options_in(prompt: str) -> dict[str, str]:
    """The options that end a question, a labelled one a line, or in one line with letters in brackets; none if there are none."""
    lines = [line.strip() for line in prompt[-LONGEST:].splitlines() if line.strip()]
    labels = "".join(_label(line) or " " for line in lines)
    for start in range(len(lines) - 1, -1, -1):
        if labels.startswith("AB", start):
            size = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(labels[start:], ascii_uppercase, strict=False)))
            return {labels[i]: _LABEL.sub("", lines[i], count=1) for i in range(start, start + size)}
    for line in reversed(lines):
        parts = _IN_LINE.split(line)[1:]
        if len(parts) >= 4 and "".join(parts[::2]) == ascii_uppercase[: len(parts) // 2]:
            return dict(zip(parts[::2], (text.strip(" ,;") for text in parts[1::2]), strict=True))
    return {}


def _read_options(text: str) -> Any:
    """Options that are written in one text: as JSON, as Python prints a list, or a line each."""
    if text.lstrip().startswith(("[", "{")):
        for read_as in (json.loads, ast.literal_eval):
            with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                return read_as(text.strip())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(map(_label, lines)):
        return lines
    raise ValueError(f"the options are one text, {text[:60]!r}; write a list of texts")


def _label(text: str) -> str:
    """The letter that an option's text begins with, as in "(B) Paris" and "b. Paris"; "" without one."""
    match = _LABEL.match(text)
    return (match[1] or match[2]).upper() if match else ""


def _letters(gold: Any, options: Options) -> str:
    if isinstance(gold, int) and not isinstance(gold, bool):
        return (
            list(options)[gold]
            if 0 <= gold < len(options) and any(options.values())
            else _refuse("the index is out of range, or there are no options")
        )
    if not isinstance(gold, str) or not gold.strip():
        return _refuse("it is not a text")
    by_text = [letter for letter, text in options.items() if text and key(text) == key(gold)]
    by_letter = gold.strip(" ().:").upper()
    if by_letter in options and by_text and by_letter not in by_text:
        return _refuse("it is the letter of one option and the text of another")
    letters = by_letter if by_letter in options else by_text[0] if by_text else read(gold, options)
    return letters or _refuse("no option matches it")


def _refuse(why: str) -> str:
    raise ValueError(why)
