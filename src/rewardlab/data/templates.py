"""One question in two forms, with options or open; and which of them can be verified.

    choice   What is 3*4? A. 7 B. 12            answer: B      verifier: choice
    open     What is 3*4?                       answer: 12     verifier: math

After Akter et al. 2025, arXiv:2504.13941 (Nemotron-CrossThink), which leaves out choices whose answer is none of the options, and
open questions whose answer has more than ten words. Besides, a question that speaks of its options cannot be asked without them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from rewardlab.errors import RewardlabError, unknown

from .drops import Drop
from .tables import Places, Table
from .values import list_of, map_of, text_of, value_of

CHOICE, OPEN, BOTH = FORMS = ("choice", "open", "both")
WORDS = 10
"""Most words of an answer to an open question that is compared by rules."""
_OF_OPTIONS = re.compile(
    r"\b(?:which (?:one )?of (?:the )?(?:following|these|above)|(?:following|above|these) (?:options|statements|choices|answers)"
    r"|(?:all|none|both) of the above|best (?:answer|option)|(?:options?|choices) [A-E]\b|except\b)",
    re.IGNORECASE,
)
_LETTER = re.compile(r"\(?([A-Z])[).:]?")
Row = Mapping[str, Any]


def options_of(value: Any) -> list[str]:
    """The options of a row, in their order: a list of texts, an object of letters and texts, or one of `text` and `label`, a list
    each, as ARC has it. Empty where there are none."""
    value = map_of(value) or value
    if isinstance(value, Mapping) and {"text", "label"} <= value.keys():
        value = value["text"]
    if isinstance(value, Mapping):
        return [str(text).strip() for _, text in sorted(value.items()) if text is not None]
    return [str(text).strip() for text in list_of(value) or ()]


def unlabelled(answer: Any, value: Any) -> Any:
    """The text of the option that the answer is the label of, where the row's options have labels: ARC's may be 1 to 4."""
    options = map_of(value) or {}
    labels, texts = list_of(options.get("label")) or (), list_of(options.get("text")) or ()
    return next((text for label, text in zip(labels, texts, strict=False) if str(label) == text_of(answer).strip()), answer)


def gold_option(answer: Any, options: Sequence[str]) -> int | None:
    """Which option is right: by its index, its text or its letter. None where it is none of them, or more than one of them."""
    if isinstance(answer, int) and not isinstance(answer, bool):
        # as a text, a number may be an option itself
        answer = answer if str(answer) not in options else str(answer)
    if isinstance(answer, int) and not isinstance(answer, bool):
        return answer if 0 <= answer < len(options) else None
    said = text_of(answer).strip()
    alike = [i for i, option in enumerate(options) if option.casefold() == said.casefold()]
    letter = _LETTER.fullmatch(said)
    if not alike and letter and ascii_uppercase.index(letter[1]) < len(options):
        alike = [ascii_uppercase.index(letter[1])]
    return alike[0] if len(alike) == 1 else None


def as_choice(question: str, answer: Any, options: Sequence[str]) -> tuple[str, str] | Drop:
    """The prompt with its options, and the letter of the right one."""
    if not 2 <= len(options) <= len(ascii_uppercase) or len({option.casefold() for option in options}) < len(options):
        return Drop(
            "bad options", f"{len(options)} options, of which no two may be the same, and 2 to {len(ascii_uppercase)} must be"
        )
    at = gold_option(answer, options)
    if at is None:
        return Drop("bad option", f"the answer {text_of(answer)[:60]!r} is not one of the options")
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip(ascii_uppercase, options, strict=False))
    return f"{question}\n{listed}", ascii_uppercase[at]


def as_open(question: str, answer: Any, options: Sequence[str], words: int = WORDS) -> tuple[str, str] | Drop:
    """The question alone, and the right answer in words."""
    if options and (match := _OF_OPTIONS.search(question)):
        return Drop("asks about its options", f"it says {match[0]!r}, which means nothing without them")
    at = gold_option(answer, options) if options else None
    if options and at is None:
        return Drop("bad option", f"the answer {text_of(answer)[:60]!r} is not one of the options")
    text = options[at] if at is not None else text_of(answer).strip()
    if not 1 <= len(text.split()) <= words:
        return Drop("cannot be verified", f"its answer has {len(text.split())} words; rules compare 1 to {words}")
    return question, text


def templated(
    question: str, answer: Any, options: Sequence[str], form: str, words: int = WORDS
) -> list[tuple[str, str, str]] | Drop:
    """(form, prompt, answer) of a question in this form, or in each of both that it can have; or why it has none."""
    found: list[tuple[str, str, str]] = []
    refused: list[Drop] = []
    for name in (CHOICE, OPEN) if form == BOTH else (form,):
        if name == OPEN:
            made = as_open(question, answer, options, words)
        else:
            made = as_choice(question, answer, options) if options else Drop("no options", "there is nothing to choose from")
        if isinstance(made, Drop):
            refused.append(made)
        else:
            found.append((name, *made))
    # of both, what the open form lacks says more of a question without options
    return found or refused[-1]


def template_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, form: str = OPEN, words: int = WORDS,
    prompt_column: str = "prompt", answer_column: str = "answer", options_column: str = "options", verifier: str = "math",
) -> dict[str, Any]:  # fmt: skip
    """Rows of questions in one form or both, with the columns form and verifier (for `named_verifier`); prompt and answer as the
    form has them. Rows that cannot be verified in it are left out.

    form: choice, open, or both, which makes two rows of one that allows it.  words: most words of an open answer.
    options_column: a list, an object by letter, or ARC's of `text` and `label`; rows without it are open.  verifier: of open
    answers.
    """
    if form not in FORMS:
        raise unknown("form", form, FORMS)
    if words < 1:
        raise RewardlabError(f"words is a whole number from 1 up, not {words}")
    places = Places("template", [source], out, dropped)
    table = Table.load(source)
    table.require(prompt_column, answer_column)
    rows, left_out = [], []
    for place, row in zip(table.places, table.rows, strict=True):
        question, options = text_of(value_of(row, prompt_column)).strip(), options_of(row.get(options_column))
        answer = unlabelled(value_of(row, answer_column), row.get(options_column))
        made = templated(question, answer, options, form, words)
        if isinstance(made, Drop):
            left_out.append((place, row, made))
            continue
        for name, prompt, answer in made:
            judge = "choice" if name == CHOICE else verifier
            rest = {k: v for k, v in row.items() if k != options_column or name == CHOICE}
            rows.append({**rest, prompt_column: prompt, answer_column: answer, "form": name, "verifier": judge})
    return places.finish([table], left_out, rows)
