r"""Rewrite notations into the one that the parser reads: \\[6pt] into \\, \pi\mathbf{r} into \pi r, ]1,5[ into (1,5)."""

from __future__ import annotations

import re

# a row may state the space below it: \\[6pt]
_LENGTH = r"-?(?:[0-9]{0,4}\.?[0-9]{1,4}\s?(?:pt|em|ex|mm|cm|in|mu|bp|pc|sp|\\[a-z]{1,20})|\\[a-z]{1,20})"
_ROW_END = re.compile(rf"\\\\\*?\s?\[\s?{_LENGTH}\s?\]|\\\\\*|\\(?:cr|newline|tabularnewline)(?![A-Za-z])")
_SYSTEM = re.compile(r"\\(?:left\s?)?\\\{\s?\\begin\s?\{(array|aligned|matrix)\}(?:(?<=array\})\s?\{[lcr| ]{0,20}\})?")
_SYSTEM_END = re.compile(r"\\end\s?\{(array|aligned|matrix)\}\s?\\right\s?\.")
_CASES = re.compile(r"(?<=\{)[dr]cases\*?\}")
_FONTS = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|mathit|mathcal|vec|hat|mathsf|displaystyle|underline|emph|textcolor\s?\{[^{}]{0,40}\})\s?\{([^{}]{0,100})\}"
)
_MONEY = re.compile(r"\\text(?:bf)?\s?\{\s?(-?\\\$\s?[0-9][0-9.,]{0,40})\s?\}")
_PREFACE = re.compile(r"^[\s$]{0,3}\\text(?:bf)?\s?\{\s?(?:the\s|final\s){0,2}answer(?:\sis)?\s?:?\s?\}:?", re.IGNORECASE)
_SIDES = re.compile(r"(-?[0-9]{1,15})(?:\s|\\text\s?\{|\\[,;:! ]){1,4}to(?:\s|\}|\\[,;:! ]){1,4}(-?[0-9]{1,15})")
_OUTWARD = re.compile(r"(?:^[\s$]{0,3}|(?:=|\\in)\s?)(?:\\left\s?)?\]|\[[\s$.]{0,3}$|\[\s?\\(?:cup|cap)(?![a-z])")
_INTERVAL = re.compile(r"([\[\]])([^\[\](){},;]{1,60}[,;][^\[\](){},;]{1,60})([\[\]])")


def usual(text: str) -> str:
    """The text in the usual notation."""
    if "\\" in text:
        text = _of_commands(text)
    if "to" in text and (sides := _SIDES.fullmatch(text.strip(" $"))):
        return f"{sides[1]}:{sides[2]}"
    if ("]" in text or "[" in text) and _OUTWARD.search(text):
        text = _INTERVAL.sub(lambda m: f"{'[('[m[1] == ']']}{m[2]}{'])'[m[3] == '[']}", text)
    return text


def _of_commands(text: str) -> str:
    if "\\begin" in text:
        if len(_SYSTEM.findall(text)) == len(_SYSTEM_END.findall(text)) == 1:
            text = _SYSTEM_END.sub(r"\\end{cases}", _SYSTEM.sub(r"\\begin{cases}", text))
        text = _CASES.sub("cases}", text)
        # with a space after it, no bracket of the next row looks like the delimiter \[
        text = _ROW_END.sub(r"\\\\ ", text).replace("\\\\", "\\\\ ")
    if "\\text" in text:
        text = _PREFACE.sub(" ", _MONEY.sub(r"\1", text))
    return text


def without_fonts(text: str) -> str:
    r"""The text without \mathbf{...} and the like."""
    return _FONTS.sub(_bare, text)


def _bare(styled: re.Match[str]) -> str:
    content, before = styled[1], styled.string[max(0, styled.start() - 1) : styled.start()]
    if before in ("^", "_"):
        return f"{{{content}}}"
    # bare letters would go on with the command or the letters before them: \pi\mathbf{r}
    return content if content[:1].isdigit() else f" {content}"
