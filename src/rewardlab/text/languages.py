"""Numbers and answers as languages other than English write them.

    Die Antwort ist 5.600.    Ответ — 5 600.    答案是５６００。    উত্তর হল ৫,৬০০।    Jibu ni 5600.    La respuesta es 3,5.

Marks are those of MGSM's examples (Shi et al. 2022, arXiv:2210.03057) and of how models word them. All patterns are linear.
"""

from __future__ import annotations

import re
from fractions import Fraction

from .numbers import LONGEST, ascii_digits, number, ungrouped

_LATIN = ("antwort", "respuesta", "risposta", "resposta", "antwoord", "jibu", "jawaban", "cevap", "svar")
_OTHERS = (
    "lösung", "réponse", "odpowiedź", "ответ", "答案", "答え", "正解", "解答", "回答", "정답", "답은", "답:", "คำตอบ",
    "উত্তর", "సమాధానం", "उत्तर", "đáp án", "đáp số", "الجواب", "الإجابة",
)  # fmt: skip
_DASH = r"(?:—|[–-]\s)(?=[\s*_$\\(]{0,6}[-−]?[0-9])"
_SIGN = rf"\s?[:=：＝]|\s?{_DASH}"
_NEXT = r"(?=[\s*_$\\(（]{0,6}[-−]?[0-9])"
_MARKS = re.compile(
    r"(?:(?<![^\W_])(?:antwort|lösung|respuesta|réponse|risposta|resposta|odpowiedź|antwoord|svar|cevap|jawaban(?:nya)?|jibu|ответ)"
    r"(?:\s(?:correcta|correcte|corretta|correta|finale?|definitiva|juste|akhir(?:nya)?|la\smwisho|sahihi))?[*_}]{0,3}"
    rf"(?:{_SIGN}|\s(?:ist|lautet|beträgt|est|es(?:\sde)?|è|é|är|is|jest|adalah|ni|равен|будет|это)(?![^\W_]):?)"
    r"|(?:答案|正解|答え|解答|回答)[*_]{0,3}(?:应该?|應該?)?(?:[是为為はが]|等于)?[*_]{0,3}"
    rf"(?:{_SIGN}|[、，,]?{_NEXT}|(?<=[是为為は])(?!什么|什麼|何))"
    rf"|(?:정답|답)[은는이]?(?:{_SIGN}|{_NEXT})|คำตอบ(?:สุดท้าย|ที่ถูกต้อง)?[*_]{{0,3}}\s?(?:คือ|เท่ากับ|เป็น|{_SIGN}|{_NEXT})"
    rf"|উত্তর(?:টি)?[*_]{{0,3}}\s?(?:হলো?|হচ্ছে|হবে|ঃ|{_SIGN}|{_NEXT})|సమాధానం[*_]{{0,3}}\s?(?:{_SIGN}|{_NEXT})|उत्तर[*_]{{0,3}}\s?(?:है|{_SIGN}|{_NEXT})"
    rf"|(?:đáp\s(?:án|số))[*_]{{0,3}}\s?(?:là|{_SIGN})|(?:الجواب|الإجابة)\s?(?:هو|هي|{_SIGN}))",
    re.IGNORECASE,
)
"""What the answer is said with, up to the answer."""
_STEPS = ("ごとの", "దశలవారీగా ", "ধাপে ধাপে ")
"""Before these, what follows is a solution step by step."""
_MEANINGS = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning)
    for pattern, meaning in (
        (r"。|।", ". "),
        (
            r"(?<![^\W_])(?:nicht|kein(?:e[nrs]?)?|n['’]est\spas|pas|não|niet|не)(?=\s)|(?<![^\W_])sio?(?=\s[-$]?[0-9])"
            r"|不是|并非|並非|ไม่ใช่|không phải",
            " not ",
        ),
        (r"\s?(?:ではな|じゃな|でな|নয়|নয়|కాదు|이 아니|가 아니|नहीं)", " is not right "),
        (r"(?<![^\W_])(?:oder|ou|o|или|au|atau|hoặc)(?=\s[-$€]?[0-9])|或者?|または|หรือ|(?<=\s)বা(?=\s)|లేదా|అథవా|또는", " or "),
        (
            r"(?<![^\W_])(?:mindestens|höchstens|mehr\sals|weniger\sals|al\smenos|más\sde|menos\sde|au\smoins|plus\sde|moins\sde"
            r"|не\sменее|не\sболее|больше|меньше|более|менее|angalau|zaidi\sya|chini\sya|pelo\smenos|mais\sde|almeno|più\sdi)(?=\s)"
            r"|至少|最多|超过|超過|不到|少なくとも|อย่างน้อย|มากกว่า|น้อยกว่า|অন্তত|কমপক্ষে|এর বেশি|కనీసం",
            " at least ",
        ),
        (r"(?<=[0-9])\s?(?:以上|以下|未満|以内)", " or more "),
    )
)
_THOUSAND, _MILLION = 10**3, 10**6
_FACTORS = {
    "tausend": _THOUSAND, "mil": _THOUSAND, "mille": _THOUSAND, "тысяч": _THOUSAND, "тыс": _THOUSAND, "พัน": _THOUSAND,
    "হাজার": _THOUSAND, "వేల": _THOUSAND, "million": _MILLION, "millón": _MILLION, "milione": _MILLION, "milhões": _MILLION,
    "миллион": _MILLION, "млн": _MILLION, "ล้าน": _MILLION, "milliard": 10**9, "миллиард": 10**9, "млрд": 10**9, "万": 10**4,
    "萬": 10**4, "만": 10**4, "亿": 10**8, "億": 10**8, "억": 10**8, "千": _THOUSAND, "หมื่น": 10**4, "แสน": 10**5, "লক্ষ": 10**5,
    "লাখ": 10**5, "లక్ష": 10**5, "কোটি": 10**7, "కోట్ల": 10**7,
}  # fmt: skip
_FACTORED = re.compile(
    r"(?<![0-9.,])([0-9]{1,12}(?:[.,][0-9]{1,12})?)\s?(?:(tausend|mil|mille|milliard|million|milione|millón|milhões)(?:en|es|i|s|ones)?(?![^\W_])"
    r"|(тысяч|тыс|миллион|млн|миллиард|млрд)(?:[аиеов]{0,2}|\.)(?![^\W_])|(万|萬|만|亿|億|억|千(?![克米瓦卡])|พัน|หมื่น|แสน|ล้าน|হাজার|লক্ষ|লাখ|কোটি|వేల|లక్ష|కోట్ల))",
    re.IGNORECASE,
)
_NAMED_FIRST = re.compile(r"(?<![^\W_])(elfu|milioni)\s([0-9]{1,6})(?![0-9]|[.,][0-9])", re.IGNORECASE)

_NAMES = (*_LATIN, *_OTHERS)
_DIGIT = re.compile("[0-9]")
_SCRIPTS = re.compile("[\u0370-\u1fff\u3040-\u9fff\uac00-\ud7af]{2}")
_DASHED = re.compile(r"(?<=[^\W\d_]{2})\s[–—]\s(?=[$€£*]{0,3}[0-9])")
_POINTED = re.compile(r"(?<![0-9.,])([0-9]{1,3}\.[0-9]{3})(?![0-9]|[.,][0-9])")
_NUMBERS = re.compile(r"[0-9][0-9.,]{0,40}")
_OPENED = re.compile(r"(?<!\\)[(\[{]")
_COMMA = re.compile(r"(?<![0-9.,])([0-9]{1,15}),([0-9]{1,20})(?![0-9]|[.,][0-9])")
_OWN_WORDS = re.compile(
    r"(?<![^\W_])(?:der|die|das|und|ist|sind|ein|eine|für|mit|beträgt|kostet|verdient|insgesamt|also|antwort|el|la|los|las|es|son|una|por|para"
    r"|respuesta|le|les|est|sont|des|une|pour|réponse|il|lo|gli|è|sono|risposta|het|een|zijn|antwoord|são|é|resposta|toplam|cevap|jest"
    r"|odpowiedź|jawaban|adalah|svar|är)(?![^\W_])|[а-яё]{2,}",
    re.IGNORECASE,
)
_ENGLISH = re.compile(r"\b(?:the|is|are|of|and|so|for|to|in|total|answer|has|costs?|earns?|makes?|dollars)\b", re.IGNORECASE)


def in_english(text: str) -> str:
    """The text with marks of the answer as "answer:", and in lines with digits what denies, compares or multiplies, in English."""
    # most replies are in English and in ASCII, and finding that out takes less time than looking for names
    if text.isascii() and " the " in text:
        return text
    lower = text.lower()
    if text.isascii():
        return _translated(text) if any(name in lower for name in _LATIN) else text
    return _translated(text) if any(name in lower for name in _NAMES) or _SCRIPTS.search(text[-300:]) else _spaced(text)


def _translated(text: str) -> str:
    text = ascii_digits(text)
    text = _MARKS.sub(lambda m: m.group() if text.endswith(_STEPS, 0, m.start()) else " Answer: ", text)
    return "\n".join(_meant(line) if _DIGIT.search(line) else line for line in text.split("\n"))


def _spaced(text: str) -> str:
    """The text without signs for thousands that have one reading, and with a colon for a dash between a word and a number."""
    text = ungrouped(text)
    return _DASHED.sub(": ", text) if "–" in text or "—" in text else text


def _meant(line: str) -> str:
    for words, meaning in _MEANINGS:
        line = words.sub(meaning, line)
    line = re.sub(" {2,}", " ", _spaced(line))
    line = _NAMED_FIRST.sub(lambda m: str(int(m[2]) * (_THOUSAND if m[1].lower() == "elfu" else _MILLION)), line)
    return _FACTORED.sub(_multiplied, line)


def _multiplied(match: re.Match[str]) -> str:
    value = Fraction(match[1].replace(",", ".")) * _FACTORS[(match[2] or match[3] or match[4]).lower()]
    return str(value.numerator) if value.denominator == 1 else match.group()


def by_convention(stated: str, gold: Fraction, *texts: str) -> str:
    """A statement of one number as English writes it, if it is the gold one by a convention of its language; else as it is.

    5.600 is 5600, and 3,500 is 3.5, where the first of the texts that has words is in a language with a decimal comma. 3,5 is 3.5
    everywhere, if the gold number is a fraction: else it may be two numbers.
    """
    if len(stated) > LONGEST or not ("." in stated or "," in stated):
        return stated
    for match in (_POINTED.search(stated), _COMMA.search(stated)):
        # (3,5) is a pair
        if not match or len(_NUMBERS.findall(stated)) > 1 or _OPENED.search(stated, 0, match.start()):
            continue
        pointed = "." in match[1]
        read = match[1].replace(".", "") if pointed else f"{match[1]}.{match[2]}"
        sure = not pointed and gold.denominator > 1 and len(match[2]) != 3
        if number(read) == gold and (sure or decimal_comma(*texts)):
            return f"{stated[: match.start()]}{read}{stated[match.end() :]}"
    return stated


def decimal_comma(*texts: str) -> bool:
    """Whether the first of the texts that has words is in a language that writes 3,5 for three and a half."""
    for text in texts:
        own, english = (len(words.findall(text[-1000:])) for words in (_OWN_WORDS, _ENGLISH))
        if own or english:
            return own > english
    return False
