"""The 25 verifiable instructions of IFEval (Zhou et al. 2023, arXiv:2311.07911), with its ids and argument names.

Each function tells whether a text follows its instruction, as google-research/instruction_following_eval does, except that:
keywords are plain text, never regular expressions; `words.sentences` splits sentences and a pattern finds words in
capitals, since NLTK's models must be downloaded; py3langid detects the language, as langdetect is not deterministic;
and a text whose language cannot be detected does not follow. Everything takes linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from rewardlab.errors import RewardlabError
from rewardlab.text.words import sentences

Check = Callable[..., bool]

_WORD = re.compile(r"\w+")
_CAPITALISABLE = re.compile(r"\w+(?:[-'’.&]\w+)*")
_HIGHLIGHT = re.compile(r"\*[^\n*]*\*")
_DOUBLE = re.compile(r"\*\*[^\n*]*\*\*")
_POSTSCRIPT = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")


def existence(text: str, *, keywords: Sequence[str]) -> bool:
    return all(keyword.lower() in text.lower() for keyword in _several(keywords))


def frequency(text: str, *, keyword: str, frequency: int, relation: str) -> bool:
    return _compare(text.lower().count(_filled(keyword).strip().lower()), relation, frequency)


def forbidden_words(text: str, *, forbidden_words: Sequence[str]) -> bool:
    return not any(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in _several(forbidden_words))


def letter_frequency(text: str, *, letter: str, let_frequency: int, let_relation: str) -> bool:
    if len(letter) != 1:
        raise ValueError(f"a letter is one character, not {letter!r}")
    return _compare(text.lower().count(letter.lower()), let_relation, let_frequency)


def response_language(text: str, *, language: str) -> bool:
    return language_of(text) == _filled(language)


def number_sentences(text: str, *, num_sentences: int, relation: str) -> bool:
    return _compare(len(sentences(text)), relation, num_sentences)


def number_words(text: str, *, num_words: int, relation: str) -> bool:
    return _compare(len(_WORD.findall(text)), relation, num_words)


def number_paragraphs(text: str, *, num_paragraphs: int) -> bool:
    """Paragraphs are separated by ***. Only the first and the last may be blank, and then do not count."""
    parts = [part.strip() for part in text.split("***")]
    return all(parts[1:-1]) and sum(map(bool, parts)) == _count(num_paragraphs)


def nth_paragraph_first_word(text: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Paragraphs are separated by empty lines."""
    if not 1 <= _count(nth_paragraph) <= _count(num_paragraphs):
        raise ValueError(f"there is no paragraph {nth_paragraph} among {num_paragraphs}")
    expected, paragraphs = _filled(first_word).lower(), text.split("\n\n")
    filled = sum(bool(part.strip()) for part in paragraphs)
    if filled != num_paragraphs or not paragraphs[nth_paragraph - 1].strip():
        return False
    word = paragraphs[nth_paragraph - 1].split()[0].lstrip("'").lstrip('"')
    return re.split(r"[.,?!'\"]", word, maxsplit=1)[0].lower() == expected


def number_placeholders(text: str, *, num_placeholders: int) -> bool:
    return sum(_brackets(line) for line in text.split("\n")) >= _count(num_placeholders)


def postscript(text: str, *, postscript_marker: str) -> bool:
    pattern = _POSTSCRIPT.get(postscript_marker.strip()) or re.escape(_filled(postscript_marker).strip().lower())
    return re.search(pattern, text.lower()) is not None


def number_bullet_lists(text: str, *, num_bullets: int) -> bool:
    lines = [line.strip() for line in text.split("\n")]
    starred = sum(line[:1] == "*" and line[1:2] not in ("*", "") for line in lines)
    return starred + sum(line[:1] == "-" for line in lines) == _count(num_bullets)


def constrained_response(text: str) -> bool:
    return any(option in text for option in _OPTIONS)


def number_highlighted_sections(text: str, *, num_highlights: int) -> bool:
    single = sum(bool(match.strip("*").strip()) for match in _HIGHLIGHT.findall(text))
    double = sum(bool(match[2:-2].strip()) for match in _DOUBLE.findall(text))
    return single + double >= _count(num_highlights)


def multiple_sections(text: str, *, section_spliter: str, num_sections: int) -> bool:
    return len(re.findall(rf"{re.escape(_filled(section_spliter).strip())}\s?\d", text)) >= _count(num_sections)


def json_format(text: str) -> bool:
    text = text.strip()
    for fence in _FENCES:
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def title(text: str) -> bool:
    """<<a title>>, on one line."""
    for line in text.split("\n"):
        begin, end = line.find("<<"), line.rfind(">>")
        if 0 <= begin < end and line[begin:end].strip("<> \t"):
            return True
    return False


def two_responses(text: str) -> bool:
    """Two different responses, separated by ******."""
    parts = [part.strip() for part in text.split("******")]
    responses = [part for part in parts if part]
    return all(parts[1:-1]) and len(responses) == 2 and responses[0] != responses[1]


def repeat_prompt(text: str, *, prompt_to_repeat: str) -> bool:
    return text.strip().lower().startswith(_filled(prompt_to_repeat).strip().lower())


def end_checker(text: str, *, end_phrase: str) -> bool:
    return text.strip().strip('"').lower().endswith(_filled(end_phrase).strip().lower())


def quotation(text: str) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def capital_word_frequency(text: str, *, capital_frequency: int, capital_relation: str) -> bool:
    return _compare(sum(word.isupper() for word in _CAPITALISABLE.findall(text)), capital_relation, capital_frequency)


def english_capital(text: str) -> bool:
    return language_of(text) == "en" and text.isupper()


def english_lowercase(text: str) -> bool:
    return language_of(text) == "en" and text.islower()


def no_comma(text: str) -> bool:
    return "," not in text


def language_of(text: str) -> str:
    """ISO 639-1 code of the most likely language of a text; "" if it cannot be detected. Needs py3langid."""
    try:
        import py3langid
    except ImportError as e:
        raise RewardlabError("detecting languages needs the package py3langid: pip install 'rewardlab[verify]'") from e
    code, score = py3langid.classify(text.lower())
    # py3langid gives its lowest float where no language has any evidence
    return str(code) if score > -1e38 and any(char.isalpha() for char in text) else ""


_GROUPS: dict[str, tuple[Check, ...]] = {
    "keywords": (existence, frequency, forbidden_words, letter_frequency),
    "language": (response_language,),
    "length_constraints": (number_sentences, number_paragraphs, number_words, nth_paragraph_first_word),
    "detectable_content": (number_placeholders, postscript),
    "detectable_format": (
        number_bullet_lists, constrained_response, number_highlighted_sections, multiple_sections, json_format, title,
    ),
    "combination": (two_responses, repeat_prompt),
    "startend": (end_checker, quotation),
    "change_case": (capital_word_frequency, english_capital, english_lowercase),
    "punctuation": (no_comma,),
}  # fmt: skip
CONSTRAINTS: dict[str, Check] = {f"{group}:{check.__name__}": check for group, checks in _GROUPS.items() for check in checks}


def _compare(count: int, relation: str, bound: int) -> bool:
    if relation not in ("at least", "less than"):
        raise ValueError(f"a relation is 'at least' or 'less than', not {relation!r}")
    return (count >= _count(bound)) == (relation == "at least")


def _count(value: int) -> int:
    if int(value) != value or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def _filled(text: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{text!r} is not a text to look for")
    return text


def _several(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str) or not texts:
        raise ValueError(f"{texts!r} is not a list of words")
    return [_filled(text) for text in texts]


def _brackets(line: str) -> int:
    """The number of [placeholders] in a line."""
    count = at = 0
    while (begin := line.find("[", at)) >= 0 and (end := line.find("]", begin)) >= 0:
        count, at = count + 1, end + 1
    return count
