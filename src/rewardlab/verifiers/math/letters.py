r"""Short runs of letters: Bob and red may be words as well as products of symbols."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .kinds import Answer, Several, Value, Words
from .text import Token
from .units import KNOWN

_BETWEEN = (",", ";", "and", "or")
NO_SOLUTION = frozenset(
    ("no solution", "no solutions", "there is no solution", "there are no solutions", "empty set", "the empty set")
)
"""What is said of an equation whose solutions are the empty set."""
_ARTICLE = re.compile(r"^(?:an?|the)\s(?=[a-z])")
_VOWELS = set("aeiouyAEIOUY")


def as_words(tokens: list[Token]) -> list[Token]:
    """The tokens with letters as words where they are no symbols: a name such as Bob, and red in the list "red, green"."""
    # most answers begin with a digit or a command, and need no more time
    if len(tokens) < 2 or tokens[0].kind not in ("name", "word") or not all(map(_plain, tokens)):
        return tokens
    parts = _parts(tokens)
    parts = [[Token("word", "a", True), *part[_article(part) :]] if _article(part) else part for part in parts]
    listed = [all(token.kind == "word" for token in part) or _name(_run(part)) for part in parts]
    if not any(listed):
        return tokens
    found: list[Token] = []
    ends = [token for token in tokens if token.text in _BETWEEN]
    for part, end in zip(parts, [*ends, None], strict=True):
        run = _run(part)
        found += [Token("word", word, True) for word in run.split()] if run else part
        found += [end] if end else []
    return found


def _plain(token: Token) -> bool:
    return token.kind == "word" or (token.kind == "name" and token.text.isalpha()) or token.text in _BETWEEN


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text in _BETWEEN:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _run(part: Sequence[Token]) -> str:
    """The letters of two or more symbols as they are written, "red dog"; "" where anything else stands among them."""
    if not part or any(token.kind != "name" or not token.text.isalpha() for token in part):
        return ""
    run = "".join(f" {token.text}" if token.apart else token.text for token in part).strip()
    return run if len(run) > 1 else ""


def _article(part: Sequence[Token]) -> int:
    """How many symbols are the article of a noun: those of "an ellipse", while in "a cm" and "a apples" a is a number."""
    letters = next((i for i, token in enumerate(part) if token.kind == "word"), 0)
    written = "".join(token.text for token in part[:letters]).lower()
    noun = part[-1].text.lower() if part else ""
    return letters if written in ("a", "an") and not noun.endswith("s") and noun not in KNOWN and part[-1].kind == "word" else 0


def _name(run: str) -> bool:
    """Whether letters are written as a name is: Bob and Amy Lee, but not Bh or mgh."""
    written = run.split()
    return all(len(word) > 1 and word.istitle() for word in written) and any(
        len(word) == 3 and _VOWELS & set(word) for word in written
    )


def lettered(answer: Answer, tokens: Sequence[Token]) -> Answer:
    """An answer that knows how letters that are all of it, or of an item of its list, are written."""
    if isinstance(answer, Value):
        run = _run(tokens) if tokens[0].kind == "name" else ""
        return answer._replace(letters=run) if run else answer
    if isinstance(answer, Several):
        parts = [part for part in _parts(tokens) if part]
        if len(parts) == len(answer.items):
            items = tuple(
                lettered(item, part) if isinstance(item, Value) else item for item, part in zip(answer.items, parts, strict=True)
            )
            return answer._replace(items=items, run_on=_run_on(tokens))
    return answer


def _run_on(tokens: Sequence[Token]) -> bool:
    """Whether a comma stands between two numbers without a space, as in 5,5."""
    triples = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return any(
        comma.text == "," and not comma.apart and not after.apart and before.kind == after.kind == "number"
        for before, comma, after in triples
    )


def alike(reply: Answer, gold: Answer) -> bool:
    """Whether two answers, one or both in words, are spelled alike."""
    return _spelled(reply) == _spelled(gold) != ""


def of_either(reply: Answer, gold: Answer) -> bool:
    """Whether of two lists of words one says "or" where the other means all of them: Tom or Sam is not Tom and Sam."""
    if not isinstance(reply, Several) or not isinstance(gold, Several) or "or" not in (reply.joined, gold.joined):
        return False
    # two solutions are written with "or" as well as with "and"
    return reply.joined != gold.joined and all(isinstance(item, Words) or _lettered(item) for item in (*reply.items, *gold.items))


def _lettered(item: Answer) -> bool:
    return isinstance(item, Value) and len(item.letters) > 1 and item.letters.istitle()


def _spelled(answer: Answer) -> str:
    if isinstance(answer, Words):
        return _ARTICLE.sub("", answer.text) if answer.text not in NO_SOLUTION else "no solution"
    return answer.letters.lower() if isinstance(answer, Value) else ""


def rearranged(reply: Value, gold: Value) -> bool:
    """Whether both are letters only, in a different order or case, and may be a word: net is not ten, while mgh may be ghm."""
    if not reply.letters or not gold.letters or reply.letters == gold.letters or " " in reply.letters + gold.letters:
        return False
    return len(gold.letters) > 2 and not {*"aeiou"}.isdisjoint(gold.letters.lower())
