r"""Read which options a reply chooses. The reply must commit itself: if it names several options, it has chosen several.

    (B)    B. Paris    **B**    The answer is B because ...    \boxed{\text{B}}    I choose option B    Paris

A statement that is not understood in full is not a choice ("not B", "B is wrong", "B?", "A dog"): it is better to miss an
answer than to reward one that was not given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from rewardlab.text.corrections import corrected
from rewardlab.text.others import OTHER, of_another
from rewardlab.text.replies import Claim, claims, end_of

from .asked import as_asked
from .conclusions import UNSURE, concluded
from .endings import plainly
from .languages import in_english
from .texts import key, stands_in, without

Options = Mapping[str, str]
"""Each option's letter and text; texts are empty if only the letters are known."""

LONGEST = 2_000
"""Longest statement that is read, in characters."""

_WORDS = (
    "so|thus|therefore|hence|clearly|definitely|certainly|probably|(?:most |very )?likely|it is|it's|it must be|must be|should be"
    "|would be|(?:i|we) (?:would )?(?:choose|chose|pick|select|say|go with|went with)|i (?:think|believe)(?: that)?"
    "|i'd (?:choose|pick|say|go with)|my|the|correct|right"
    "|best|true|only|final|answers?|options?|choices?|letters?|is|are|both|either"
)
_FILLING = re.compile(rf"[\s,:]{{0,3}}(?:(?:{_WORDS})\b[\s,:]{{0,3}}){{0,8}}", re.IGNORECASE)
_MARKUP = re.compile(r"[✓✔✅☑]\ufe0f?\s?|\\(?:boxed|text|textbf|mathrm|mathbf|mbox)\s?\{|\\[()\[\]]|[*_`$\"“”{}\[\]<>]")
_ALONE = r"(?<![\w'’])(?-i:([A-Z]))(?![\w'’])"
_FIRST = re.compile(
    rf"\(?{_ALONE}(?!\+\+|#)\s?([).:,;–—]|[/&+](?=\s?\(?[A-Z](?!\w|\+\+|#))|-\s|$"
    r"|\((?=[^()]{2,60}\)\s?(?:$|[\n.,;:!])))?"
)
_BARE = re.compile(r"\(?([A-Za-z])[).:]{0,2}")
_SMALL = re.compile(r"^\([a-z]\)")
_RULED_OUT = re.compile(
    rf"(?:(?:option |choice )?\(?{_ALONE}\)?(?:(?:, and|,| and) \(?{_ALONE}\)?){{0,8}} (?:is|are) (?:all |both )?"
    r"(?:wrong|incorrect|false|out|impossible)[,;.]? (?:and )?){1,8}(?=(?:so|thus|therefore|hence)\b)",
    re.IGNORECASE,
)
_WITHDRAWN = re.compile(
    r"[^.!?\n]{0,80}(?:\?|[.,;:–—-]\s{0,2}(?:(?:but|and|no|wait|hmm|actually)\b[,.!]?\s){0,3}(?:which|that|this|it)(?:'s|\s(?:is|was))\s(?:[a-z]{1,12}\s)?"
    r"(?:wrong|incorrect|false|not (?:right|correct|true))\b)",
    re.IGNORECASE,
)
_ARROW = re.compile(r"-{1,2}>|=>|[⇒⟶➔➜➡]")
_CHANGED = re.compile(
    r"(?:→|\bno\b[.,;:]?|\bi mean\w?\b[,:]?"
    r"|\b(?:change|correct|switch|revise|update)\w{0,4} (?:it |this |that |my (?:answer|choice) )?to)"
    rf"\s{{0,2}}\(?{_ALONE}|^[\s).:]{{0,4}}[^.!?\n]{{0,80}}(?:\(|[-–—:,.!]\s{{0,2}})(?:wrong|incorrect)\)?\s{{0,2}}(?:[.!,]|\n|$)",
    re.IGNORECASE,
)
_OF_IT = (
    r"[\s).:,;(\[–—-]{0,8}(?:but )?(?:(?:this|that|it|which)(?: (?:option|choice|answer|one|statement))?)?"
    r"(?:(?:'s| ?(?:is|was|are|would be|seems))\s+(?:[a-z]{1,12} )?)?"
)
_WRONG = re.compile(
    r"\)?\s(?:if|unless)\b"
    rf"|{_OF_IT}(?:(?:in|not )correct|wrong|(?-i:false)\b|untrue|mistaken|eliminated|excluded|nope\b|ruled out|rejected|crossed out"
    r"|not (?:the )?(?:right|true|correct|best|answer)|out\b|no[,:;]\s|(?-i:fails|contradicts|violates)\b"
    r"|[✗✘❌×]|falsch|falso|faux|fausse|errad[oa]|sbagliat[oa]"
    r"|неверно|неправильно| ?(?:(?:is|was)n['’]t|can(?:not|['’]t) be|could(?: not|n['’]t) be) (?:the )?"
    r"(?:right|true|correct|answer|it\b))",
    re.IGNORECASE,
)
"""How what follows a letter says that it is not the answer. "B) False" and "B) No" may be the option's own text."""
_WRONG_TEXT = re.compile(rf"{_OF_IT}(?:(?:false|no|impossible|invalid|inaccurate)\b|x\s*(?:$|[.\n]))", re.IGNORECASE)
_RULED = re.compile(
    r"\s*(?:and |but )?(?:option |choice )?\(?(?-i:([A-Z]))\)? ?(?::|=|–|—|-) ?"
    r"(yes|no|true|false|right|wrong|correct|incorrect)(?=\W|$)[ \t]*(?:[,.;!]|\n|$)\s*",
    re.IGNORECASE,
)
"""A verdict on one option, as in "A: no, B: yes"."""
_REFUSED = re.compile(r" ?: ?no ?[.!]?\s*$")
_CONCLUDES = re.compile(
    r"(?:(?:so|thus|therefore|hence|overall|in conclusion)\b,? {0,2})?the ((?:[a-z'’-]{1,24} ){1,10}?)"
    r"(?:is|was|would be|must be|should be)(?: (?:therefore|thus|likely|most likely|probably|clearly))?:? {0,3}"
    r"(?=(?-i:(?:\*\*|__)\(?[A-Z](?:[).:*_]|\s)|\([A-Z]\)|[A-Z][).:] ?[^\s.]))",
    re.IGNORECASE,
)
"""The most likely diagnosis is **B. Appendicitis**"""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=(?:The|So|Thus|Therefore|Hence|Overall|In conclusion)\b)")
_SAYS = re.compile(r"\b(?:is|are|was|were)\s?$", re.IGNORECASE)
_RUN = re.compile(r"[A-Z]{2,26}")
_JOINED = re.compile(
    rf"(?:(?:[,;&+(–—]|(?<!(?-i:[a-z]))/)|\b(?:and|or|either|both|also|maybe|perhaps|possibly|plus|even|then)\b)"
    rf"\s?\(?(?:option |choice )?{_ALONE}"
    rf"|[.):]\s?\(?{_ALONE}(?=\s?[.):,;]|\s?$)",
    re.IGNORECASE,
)
_OPEN = re.compile(r"\b(?:or|either)\b", re.IGNORECASE)
_END = re.compile(
    r"\b(?:because|since|as|for|which|rather than|instead of|(?:and|but) not|not|due to|given|while|where|although|but)\b|\n"
    r"|(?<=[^\s(].)[.](?=\s)|[!?]",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:or|also|alternatively|maybe|perhaps|possibly|could|might|may|actually|wait|hmm|no|but|however|correction|instead|change|both|either)\b"
    rf"[^.!?\n]{{0,40}}?{_ALONE}(?!\s[a-z]+\s[a-z])(?![^.!?\n]{{0,40}}(?:not\b|n't|wrong|incorrect|false|impossible|fail|contradict|violate))",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"\b(?:wait|actually|no|hmm|correction|instead|mistake|sorry|however|but|recheck|again|reconsider)\b", re.IGNORECASE
)


class Choice(NamedTuple):
    """letters: the chosen ones, sorted; empty if there is no clear choice, and then `why` is the reason."""

    letters: str
    why: str = ""


def choose(reply: str, options: Options, question: str = "") -> Choice:
    """The options that a reply chooses. A reply that contradicts itself chooses none.

    question: where it asks for the incorrect option, the one that is said to be incorrect is chosen.
    """
    text = as_asked(plainly(_corrected(in_english(end_of(reply)), options)), question)
    if one_by_one := _one_by_one(text, options):
        return one_by_one
    conclusion = concluded(text, options)
    last = read(conclusion.text, options) if conclusion else ""
    stated = [(claim, read(claim.text, options)) for claim in claims(text) if not of_another(text, claim.start)]
    if not stated:
        return _from_lines(text, options, conclusion if last else None)
    if conclusion and last not in ("", stated[-1][1]):
        stated.append((conclusion, last))
    claim, answer = stated[-1]
    if withdrawn := _WITHDRAWN.match(claim.text):
        after = _from_lines(claim.text[withdrawn.end() :].strip(" .!?"), options)
        return after if after.letters else Choice("", f"withdraws {claim.text[:60]!r}")
    if not answer:
        return Choice("", f"no option is stated in {claim.text[:60]!r}")
    for earlier, other in stated[:-1]:
        # changing one's mind is fine ("wait, ..."), unless the earlier answer was called final
        if other and other != answer and (earlier.final or not _TURN.search(text, earlier.start, claim.start)):
            return Choice("", f"states {_show(other)}, and then {_show(answer)}")
    for line in claim.text.splitlines()[1:]:
        if (other := read(line, options)) not in ("", answer) and _stands_alone(line, options):
            return Choice("", f"states {_show(answer)}, and then {_show(other)}")
    return _unless_hedged(answer, claim.text, options)


def _corrected(text: str, options: Options) -> str:
    """The text, or the option that it corrects its answer to; what it calls final stays."""
    turned = corrected(text)
    if not turned or turned == text or any(claim.final for claim in claims(text)):
        return text
    said = claims(turned)
    return turned if text.startswith(turned) or (said and read(said[-1].text, options)) else text


def _one_by_one(text: str, options: Options) -> Choice | None:
    """The choice of a reply that is nothing but verdicts on two or more options: B of "A: no, B: yes". None for any other reply."""
    text, at = _MARKUP.sub("", text[:LONGEST]).strip(), 0
    verdicts: dict[str, str] = {}
    while found := _RULED.match(text, at):
        letter, verdict, at = found[1], found[2].lower(), found.end()
        # it may be the option's own text, or said twice
        if letter not in options or key(options[letter]) == verdict or letter in verdicts:
            return None
        verdicts[letter] = verdict
    if len(verdicts) < 2 or at < len(text):
        return None
    chosen = "".join(sorted(letter for letter, verdict in verdicts.items() if verdict in ("yes", "true", "right", "correct")))
    return Choice(chosen, "" if chosen else "rules out all options that it names")


def read(statement: str, options: Options) -> str:
    """The letters that a statement chooses, sorted; "" if it is not understood."""
    statement = statement[:LONGEST].strip()
    if not statement:
        return ""
    if subject := _CONCLUDES.match(statement):
        return "" if OTHER.search(subject[1]) or UNSURE.search(subject[1]) else read(statement[subject.end() :], options)
    text = _MARKUP.sub("", _ARROW.sub(" → ", statement)).strip()
    for line in (statement, text):
        for letter, option in options.items():
            if option and key(option) == key(line.partition("\n")[0]):
                return letter
    if ruled_out := _RULED_OUT.match(text):
        text = text[ruled_out.end() :]
    text = _SMALL.sub(lambda m: m.group().upper(), text[_filling(text) :], count=1)
    if (bare := _BARE.fullmatch(text)) and bare[1].upper() in options:
        return bare[1].upper()
    if _RUN.fullmatch(text) and len({*text}) == len(text) and {*text} <= {*options}:
        return "".join(sorted(text))
    clause = text[: _end(text)]
    if text.rstrip().endswith("?") or (_SAYS.search(clause) and text[len(clause) :].lower().startswith("not")):
        return ""
    first = _FIRST.match(clause)
    return _by_letter(first, clause, text, options) if first and first[1] in options else _by_text(clause, options)


def _by_letter(first: re.Match[str], clause: str, text: str, options: Options) -> str:
    """The first letter and those joined to it by "and" or commas.

    "" if other words follow the letter without punctuation ("A dog"), if the text of another option follows it, or a word that it
    is wrong or was changed.
    """
    letter = first[1]
    after, then = (without(of[first.end(1) :], options[letter]) for of in (clause, text))
    if denied(then, bool(options[letter])):
        return ""
    # "I" is rather the pronoun
    joined = ({letter_found for pair in _JOINED.findall(after) for letter_found in pair} & {*options}) - {letter, "I"}
    if not first[2] and not _is_filling(_JOINED.sub(" ", after)):
        return ""
    quoted = {other for other, text in options.items() if stands_in(text, after) and text != options[letter]}
    return "" if quoted - joined or (joined and _OPEN.search(after)) else "".join(sorted({letter, *joined}))


def denied(then: str, known: bool = False) -> bool:
    """Whether what follows a letter says that it is wrong, or changes it.  known: the option's own text was left out."""
    # "C: no" says no to C, while "C) No" and "C: No" may be the option's own text
    refused = _WRONG_TEXT.match(then) if known else _REFUSED.match(then)
    return bool(refused or _WRONG.match(then) or _CHANGED.search(then[:LONGEST]))


def _by_text(clause: str, options: Options) -> str:
    """The letters of the options whose texts a clause quotes; "" if it says anything else."""
    remaining, named = clause, ""
    # the longest first: "New York" must not be read as the option "York"
    for letter in sorted(options, key=lambda letter: -len(options[letter])):
        if stands_in(options[letter], remaining):
            remaining, named = without(remaining, options[letter]), named + letter
    settled = not _OPEN.search(remaining) and _is_filling(re.sub(r"\band\b", " ", remaining))
    return "".join(sorted(named)) if settled else ""


def _from_lines(text: str, options: Options, conclusion: Claim | None = None) -> Choice:
    """The choice of a reply without "answer is": its conclusion, else that of its last or first line, if no other line differs."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [read(line, options) for line in lines]
    if lines and not named[-1] and len(sentences := _SENTENCE.split(lines[-1][-LONGEST:])) > 1 and _CONCLUDES.match(sentences[-1]):
        named[-1] = read(sentences[-1], options)
    if named and (conclusion or (named[-1] and _is_bare(lines[-1]))):
        # the lines above may discuss the options one by one; only lines that consist of a letter count
        named = [letters if _is_bare(line) else "" for line, letters in zip(lines, named, strict=True)]
        named[-1] = named[-1] or (read(conclusion.text, options) if conclusion else "")
    if not named or not (named[-1] or named[0]):
        return Choice("", "no answer found")
    different = sorted({letters for letters in named if letters})
    if len(different) > 1:
        return Choice("", f"names {_show(''.join(different))} without deciding")
    return _unless_hedged(different[0], text[conclusion.start if conclusion else 0 :], options)


def _unless_hedged(answer: str, statement: str, options: Options) -> Choice:
    """The choice, unless the text after it suggests another option as well."""
    text = _MARKUP.sub("", statement[: 10 * LONGEST])
    for option in options.values():
        text = without(text, option) if len(option) > 1 else text
    for match in _HEDGE.finditer(text, _filling(text) + 1):
        if match[1] in options and match[1] not in answer and match[1] != "I":
            return Choice("", f"says {_show(answer)}, and then {match[1]} as well")
    return Choice(answer)


def _is_bare(line: str) -> bool:
    text = _MARKUP.sub("", line).strip()
    return bool(_BARE.fullmatch(text, _filling(text)))


def _stands_alone(line: str, options: Options) -> bool:
    return _is_bare(line) or key(line) in {key(text) for text in options.values()}


def _is_filling(text: str) -> bool:
    return not text[_filling(text) :].strip(" .,:;()!")


def _filling(text: str) -> int:
    """Length of the introductory words ("so the correct answer is") at the start of a text."""
    match = _FILLING.match(text)
    return match.end() if match else 0


def _end(text: str) -> int:
    """Where a statement ends and reasons or further sentences begin."""
    cut = _END.search(text, _filling(text))
    return cut.start() if cut else len(text)


def _show(letters: str) -> str:
    return " and ".join(letters)
