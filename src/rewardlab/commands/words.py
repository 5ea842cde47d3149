"""Checks of a command line before the command reads it, and quoting in messages."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

DASHES = "‐‑‒–—―−"
"""What an editor or a web page makes of a hyphen."""
LONGEST_WORD, LONGEST = 300, 600
"""Characters of a message."""


class UsageError(Exception):
    """A command line that cannot be parsed."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The arguments in these words, in which a flag and its value are one word. Raises UsageError."""
        self._check_flags(words)
        self._check_arguments(words)
        args, extra = self.parse_known_args(list(words))
        if extra:
            self.error(self._unexpected(extra))
        return args

    def _check_flags(self, words: Sequence[str]) -> None:
        """Raise UsageError for a flag without a value, a switch with one, and a flag that is given twice."""
        flags = [word for word in words if word[:2] == "--" and word != "--"]
        times = Counter(flag.partition("=")[0] for flag in flags)
        for word in flags:
            flag, equals, value = word.partition("=")
            action = self._option_string_actions[flag]
            if action.nargs == 0:
                if equals:
                    self.error(f"{flag} is a switch and takes no value: write {flag} or leave it out")
            elif not equals and action.nargs != "?":
                self.error(f"{flag} needs a value: {flag} {action.metavar}")
            elif equals and not value.strip():
                self.error(f"{flag} needs a value, and got an empty text (a shell variable that is not set?)")
            elif times[flag] > 1 and not isinstance(action, argparse._AppendAction):
                self.error(f"{flag} is given twice")

    def _check_arguments(self, words: Sequence[str]) -> None:
        """Raise UsageError for an empty argument, a dash that is no hyphen, and a list of numbers written with spaces."""
        names = [action.metavar for action in self._get_positional_actions()]
        arguments = 0
        for before, word in zip(["", *words], words, strict=False):
            if word.startswith("-"):
                continue
            if not word.strip():
                name = names[min(arguments, len(names) - 1)] if names else "an argument"
                self.error(f"{name} is an empty text (a shell variable that is not set?)")
            if word[0] in DASHES:
                self.error(f"{word!r} begins with a dash that is not a hyphen: write --{word.lstrip(DASHES + '-')}")
            flag, equals, value = before.partition("=")
            if equals and word.isdecimal() and "," in str(self._option_string_actions[flag].metavar):
                self.error(f"the values of {flag} are joined by commas: {flag} {value},{word}")
            arguments += 1

    def _unexpected(self, extra: Sequence[str]) -> str:
        """What is said of words that the command has no place for."""
        if extra[0].startswith("-") and extra[0][1:2].isalpha():
            return f"unknown flag {extra[0]!r}; flags have two dashes: -{extra[0]}"
        quoted = " ".join(map(repr, extra))
        names = [str(action.metavar) for action in self._get_positional_actions()]
        if "METHOD" in names:
            return f"unexpected {quoted}; a text with spaces needs quotes, and methods are stacked with a plus (a+b)"
        command = self.prog.rpartition(" ")[2]
        if not names:
            return f"unexpected {quoted}; {command} takes flags only"
        return f"unexpected {quoted}; {command} takes {' '.join(names)} and flags, and a text with spaces needs quotes"


def shortened(text: str) -> str:
    """A message of at most some hundred characters: long words, and then all of it, without their middle."""
    return _without_middle(re.sub(rf"\S{{{LONGEST_WORD},}}", lambda word: _without_middle(word[0], LONGEST_WORD), text), LONGEST)


def _without_middle(text: str, most: int) -> str:
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def printable(text: str) -> str:
    """A text with the bytes of arguments that are not UTF-8 in this locale (lone surrogates) as the characters that they make."""
    escaped = re.sub(r"\\udc([89a-f][0-9a-f])", lambda byte: chr(0xDC00 + int(byte[1], 16)), text)
    return escaped.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
