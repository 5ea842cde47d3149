"""Split mathematics, in LaTeX or plain text, into tokens. Takes linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .notation import usual, without_fonts

LONGEST = 2000
"""Longest answer that is read, in characters."""
DIGITS = 1000
"""Longest number that is read, in digits."""


class Unreadable(ValueError):
    """The text is not mathematics that this parser understands; the message says why."""


class Token(NamedTuple):
    """kind: number, name (a symbol), word, command, sign.  apart: whether a space precedes it."""

    kind: str
    text: str
    apart: bool = False


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = words(
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth arcsinh arccosh arctanh ln log lg exp "
    "gcd lcm max min det deg sqrt cbrt abs floor ceil"
)
_MORE_NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "arsinh": "arcsinh", "arcosh": "arccosh", "artanh": "arctanh",
    "tg": "tan", "ctg": "cot", "arctg": "arctan", "cosec": "csc", "infinity": "infty", "inf": "infty", "oo": "infty", "pi": "pi",
    "union": "cup", "intersect": "cap", "ceiling": "ceil",
}  # fmt: skip
GREEK = words(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau phi varphi chi psi "
    "omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell"
)
_PLAIN_GREEK = words("alpha beta gamma delta theta lambda sigma omega phi")
WORDS = words(
    "cm mm km kg mg ml mi ft in yd lb lbs oz hr hrs min mins sec secs mph usd am pm of per is no not yes the rad sq cu day days "
    "hour hours year years inch inches feet foot mile miles unit units dollar dollars cent cents times each more less way ways for "
    "nor any all even odd true false none neither both only but then than was are with egg eggs men boys girls cats dogs cars pens "
    "cows pct"
)
_SAME = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "dbinom": "binom", "tbinom": "binom", "leq": "le", "leqslant": "le",
    "geq": "ge", "geqslant": "ge", "neq": "ne", "varnothing": "emptyset", "lbrace": "{", "rbrace": "}", "lvert": "|",
    "rvert": "|", "vert": "|", "mid": "|", "lbrack": "[", "rbrack": "]", "times": "*", "cdot": "*", "ast": "*", "div": "/",
    "lor": "or", "vee": "or", "land": "and", "wedge": "and", "lt": "<", "gt": ">", "colon": ":", "cdots": "ldots",
    "dots": "ldots", "dotsc": "ldots", "backslash": "setminus", "infin": "infty", "degree": "circ", "minus": "-", "prime": "'",
    "%": "%", "pound": "pounds", "lparen": "(", "rparen": ")", "simeq": "approx", "varepsilon": "epsilon", "vartheta": "theta",
    "varphi": "phi", "nicefrac": "frac", "sfrac": "frac",
}  # fmt: skip
_UNICODE = {
    "−": "-", "–": "-", "—": "-", "×": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "⁄": "/", "∕": "/", "π": "\\pi ",
    "≤": "\\le ", "≥": "\\ge ", "⩽": "\\le ", "⩾": "\\ge ", "≠": "\\ne ", "≈": "\\approx ", "∪": "\\cup ", "∩": "\\cap ",
    "∈": "\\in ", "∅": "\\emptyset ", "±": "\\pm ", "∓": "\\mp ", "√": "\\sqrt ", "°": "^\\circ ", "′": "'", "’": "'",
    "…": "\\ldots ", "∞": "\\infty ",
    "⟨": "\\langle ", "⟩": "\\rangle ", "∖": "\\setminus ", "ℝ": "\\mathbb{R}", "ℤ": "\\mathbb{Z}", "ℕ": "\\mathbb{N}",
    "ℚ": "\\mathbb{Q}", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "，": ",", "；": ";", "：": ":", "（": "(", "）": ")",
    "＝": "=", "½": "\\frac{1}{2}", "⅓": "\\frac{1}{3}", "⅔": "\\frac{2}{3}", "¼": "\\frac{1}{4}", "¾": "\\frac{3}{4}", 
    "⅕": "\\frac{1}{5}", "⅛": "\\frac{1}{8}", "⅖": "\\frac{2}{5}", "⅗": "\\frac{3}{5}", "⅘": "\\frac{4}{5}",
    "⅙": "\\frac{1}{6}", "⅚": "\\frac{5}{6}", "⅜": "\\frac{3}{8}", "⅝": "\\frac{5}{8}", "⅞": "\\frac{7}{8}",
    "∛": "\\sqrt[3] ", "∜": "\\sqrt[4] ", "⌊": "\\lfloor ", "⌋": "\\rfloor ", "⌈": "\\lceil ", "⌉": "\\rceil ",
    "∨": "\\lor ", "∧": "\\land ",
    "µ": "\\mu ", "Ω": "\\Omega ", "℃": "^\\circ C", "℉": "^\\circ F",
    "‰": "\\text{ permille}", "€": "\\text{euros}", "£": "\\text{pounds}",
    **{pair[0]: f"\\{pair[1:]} " for pair in sorted(words(
        "αalpha βbeta γgamma δdelta εepsilon ζzeta ηeta θtheta ιiota κkappa λlambda μmu νnu ξxi ρrho σsigma τtau φphi χchi ψpsi "
        "ωomega ΔDelta ΘTheta ΛLambda ΣSigma ΦPhi ΨPsi ΩOmega ΓGamma"))},
}  # fmt: skip
_TRANSLATE = str.maketrans(_UNICODE)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUNK = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_POWERS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{1,20}")
_INDICES = re.compile("[₀₁₂₃₄₅₆₇₈₉]{1,20}")
_SIZES = re.compile(
    r"(?<!\\)\\(?:(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits|quad|qquad|thinspace|middle|bf|it|sf|tt|large|Large|bfseries|rm(?!\s?\{))(?![A-Za-z])\.?"
    r"|[,;:! ])|~|\\(?:hspace|vspace|label|tag|color)\*?\{[^{}]{0,40}\}"
)
_THOUSANDS = re.compile(r"(?<=[0-9])(?:\\[,;:! ]|~|\s?\{\s?,\s?\}\s?(?:\\!)?|\s?,\s?\\!\s?)(?=[0-9]{3}(?![0-9]))")
# {,} keeps TeX from putting a space after a comma that is no separator of items: where no thousands follow, a decimal comma
_DECIMAL = re.compile(r"(?<=[0-9])\{,\}(?=[0-9])")
_TEXT_SIGN = re.compile(r"\\text\s?\{\s?(,|;|and|or|\\\$)\s?\}")
_TH = "(?:st|nd|rd|th)"
_ORDINAL = re.compile(
    rf"(?<=[0-9])(?:\^?\\(?:text|mathrm|rm)\s?\{{{_TH}\}}|\^\{{\s?\\(?:text|mathrm|rm)\s?\{{{_TH}\}}\s?\}}|\^\{{{_TH}\}}|{_TH}(?![A-Za-z]))"
)
_HALF_OF_DAY = re.compile(r"(?<=[0-9])((?:\\[,;:! ]|\s|~|\\text\s?\{\s?){0,3})([AaPp])(?:\.\s?[Mm]\.?|[Mm])(?![A-Za-z])")
BASES = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "sixteen": 16,
}  # fmt: skip
_IN_BASE = re.compile(
    rf"(?:(?<=[0-9A-Z])|\(([0-9A-Z]{{1,40}})\))\s?_\s?\{{?\s?(?:\\text\s?\{{\s?)?(?:base\s)?([0-9]{{1,2}}|{'|'.join(BASES)})\b\s?\}}{{0,2}}"
)
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?!0)[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:\x00[0-9]{3})+|(?: [0-9]{3}){1,10}(?!\s?/))(?![0-9])"
    r"(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"|(?P<text>\\(?:text(?:bf|it|rm|sf|normal|tt)?|mbox|hbox|mathrm|operatorname|rm)\*?\s?\{(?P<inside>(?:[^{}]|\{[^{}]{0,20}\}){0,200})\})"
    r"|(?P<begin>\\(?:begin|end)\s?\{[a-zA-Z]{1,12}\*?\})|(?P<field>\\math(?:bb|rm|bf)\s?\{?[A-Z]\}?)"
    r"|(?P<command>\\[A-Za-z]+|\\.)|(?P<letters>[A-Za-z]+)|(?P<sign><=|>=|!=|==|\*\*|!!|[^\\])"
)
_SCIENTIFIC = re.compile(r"[eE][-+]?[0-9]{1,3}(?![0-9A-Za-z.])")
_COMPOUND = {"<=": ("command", "le"), ">=": ("command", "ge"), "!=": ("command", "ne"), "==": ("sign", "="), "**": ("sign", "^")}


def clean(text: str) -> str:
    """The text without maths delimiters, spacing commands, sizes and fonts, and with Unicode signs as LaTeX commands."""
    # most texts are ASCII, and skip the translation
    if not text.isascii():
        text = _POWERS.sub(lambda m: f"^{{{m.group().translate(_RAISED)}}}", text)
        text = _INDICES.sub(lambda m: f"_{{{m.group().translate(_SUNK)}}}", text).translate(_TRANSLATE)
    text = _plainly(usual(text))
    if "\\" in text or "{" in text or "~" in text:
        text = (
            text.replace("\\$", "\\text{dollars}").replace("\\(", " ").replace("\\)", " ").replace("\\[", " ").replace("\\]", " ")
        )
        # thousands first, since _SIZES removes "\\," as a space; \\x00 marks the separator until `_digits` drops it
        text = _SIZES.sub(" ", _DECIMAL.sub(".", _THOUSANDS.sub("\x00", text)))
        text = without_fonts(text)
    if "$" in text:
        # a single $ is not a delimiter but a currency sign
        text = text.replace("$", "\\text{dollars}" if text.count("$") == 1 else " ")
    return text.strip(" \t\r\n*`").rstrip(". ;,").strip()


def _plainly(text: str) -> str:
    """The text with ordinals as numbers, hours of the day in one spelling, and bases as indices: 12th, 6:15 p.m., (2516)_eight."""
    if "\\text" in text:
        text = _TEXT_SIGN.sub(r" \1 ", text)
    if "h" in text or "t" in text or "d" in text:
        text = _ORDINAL.sub("", text)
    if "m" in text or "M" in text:
        text = _HALF_OF_DAY.sub(lambda m: f"{m[1]}{m[2].lower()}m", text)
    if "_" in text:
        text = _IN_BASE.sub(lambda m: f"{m[1] or ''}_{{{BASES.get(m[2], m[2])}}}", text)
    return text


def tokens(text: str) -> list[Token]:
    """The tokens of a cleaned text. Raises Unreadable."""
    if len(text) > LONGEST:
        raise Unreadable(f"it has {len(text)} characters")
    return list(_tokens(text, False))


def _tokens(text: str, prose: bool) -> Iterator[Token]:
    """prose: letters are words, not symbols, as in \\text{...}."""
    at, depth, apart = 0, 0, False
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise Unreadable(f"{text[at]!r} is not understood")
        kind, piece, at = match.lastgroup, match.group(), match.end()
        if kind == "space":
            apart = True
            continue
        if kind == "number":
            if depth > 0 and "," in piece:
                # within brackets a comma separates items: (1,234) is a pair, not a number
                piece = piece.partition(",")[0]
                at = match.start() + len(piece)
            power = _SCIENTIFIC.match(text, at)
            piece, at = (piece + power.group(), power.end()) if power else (piece, at)
            yield Token("number", _digits(piece), apart)
        elif match["text"] is not None:
            yield from _prose(match["inside"])
        elif kind == "letters":
            # "3abcd" is a product, while "abcd" alone is a word
            attached = not apart and match.start() > 0 and text[match.start() - 1].isdigit()
            yield from [Token("word", piece, apart)] if prose else _letters(piece, apart, attached)
        else:
            token = _special(kind or "", piece, apart)
            depth += (token.text in "([" or token.text == "\\{") - (token.text in ")]" or token.text == "\\}") if token.text else 0
            yield token
        apart = False


def _digits(digits: str) -> str:
    if len(digits) > DIGITS:
        raise Unreadable(f"a number of {len(digits)} digits")
    return digits.replace(",", "").replace("\x00", "").replace(" ", "")


def _prose(inside: str) -> Iterator[Token]:
    stripped = inside.strip()
    if stripped in ("e", "i"):
        yield Token("name", stripped)
    elif stripped in FUNCTIONS or stripped in _MORE_NAMES:
        yield Token("command", _MORE_NAMES.get(stripped, stripped))
    else:
        for token in _tokens(clean(inside), True):
            yield Token("sign", token.text.lower(), True) if token.text.lower() in ("and", "or") else token._replace(apart=True)


def _letters(run: str, apart: bool, attached: bool) -> Iterator[Token]:
    lower = run.lower()
    if len(run) == 1:
        yield Token("name", run, apart)
    elif lower in ("and", "or"):
        yield Token("sign", lower, apart)
    elif run in FUNCTIONS or run in _MORE_NAMES or lower in ("infinity", "union") or run in _PLAIN_GREEK:
        yield Token("command", _MORE_NAMES.get(lower, lower), apart)
    elif lower in WORDS:
        yield Token("word", run, apart)
    elif run.isupper():
        # AB is a segment and BCA an order, not products of symbols
        yield Token("name", run, apart)
    elif len(run) >= 4 and not attached:
        yield Token("word", run, apart)
    else:
        yield from (Token("name", letter, apart and i == 0) for i, letter in enumerate(run))


def _special(kind: str, piece: str, apart: bool) -> Token:
    if kind == "begin":
        return Token("command", piece.replace("\\", "").replace(" ", "").replace("*", ""), apart)
    if kind == "field":
        return Token("name", "field " + piece.rstrip("}")[-1], apart)
    if kind == "sign":
        if piece in _COMPOUND:
            return Token(*_COMPOUND[piece], apart)
        if not piece.isascii() or not piece.isprintable():
            raise Unreadable(f"{piece!r} is not understood")
        return Token("sign", piece, apart)
    name = piece[1:]
    if name in ("{", "}", "\\"):
        return Token("sign", piece, apart)
    same = _SAME.get(name, name)
    if same in ("{", "}"):
        return Token("sign", "\\" + same, apart)
    if not same.isalpha() or same in ("and", "or"):
        return Token("sign", same, apart)
    if same == "pounds":
        return Token("word", same, apart)
    return Token("name", "\\" + same, apart) if same in GREEK else Token("command", _MORE_NAMES.get(same, same), apart)


def spelling(tokens: list[Token]) -> str:
    """A canonical spelling: the same for texts that differ only in spaces, braces of exponents, and synonymous commands."""
    texts = [token.text for token in tokens]
    # x^{2} and x^2 are spelled alike
    for i in range(len(texts) - 3):
        if texts[i] in ("^", "_", "pmod") and texts[i + 1] == "{" and texts[i + 3] == "}":
            texts[i + 1] = texts[i + 3] = ""
    return " ".join(filter(None, texts))
