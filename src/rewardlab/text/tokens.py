"""Texts of small formal languages, cut into tokens and read from left to right."""

from __future__ import annotations

import re
from collections.abc import Collection


class TokenReader:
    """A text as tokens, and the place that has been read to. Subclasses read a language by recursive descent.

    token: matches the next token, spaces before it included; its first group is the token.  words: those that are no names.
    longest: characters. `//` begins a comment that ends with its line. Raises ValueError, with the reason, for what cannot be read.
    """

    def __init__(self, text: str, token: re.Pattern[str], words: Collection[str], longest: int):
        if len(text) > longest:
            raise ValueError(f"longer than {longest} characters")
        self.tokens: list[str] = []
        text, at = re.sub(r"//[^\n]*", "", text).rstrip(), 0
        while at < len(text):
            found = token.match(text, at)
            if found is None:
                raise ValueError(f"cannot read {text[at : at + 20].strip()!r}")
            self.tokens.append(found[1])
            at = found.end()
        self.words, self.at = words, 0

    @property
    def next(self) -> str:
        """The token that comes next; "" at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token, which must be one of these, if any are given."""
        token = self.next
        if wanted and token not in wanted:
            raise ValueError(f"{wanted[0]!r} is missing before {token or 'the end'!r}")
        self.at += 1
        return token

    def skip(self, token: str) -> bool:
        """Whether this token comes next; it is then read."""
        found = self.next == token
        self.at += found
        return found

    def name(self) -> str:
        if not self.next.isidentifier() or self.next in self.words:
            raise ValueError(f"a name is missing before {self.next or 'the end'!r}")
        return self.take()

    def end(self, of: str = "the text") -> None:
        if self.next:
            raise ValueError(f"{self.next!r} follows where {of} should end")
