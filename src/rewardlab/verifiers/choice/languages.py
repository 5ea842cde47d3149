"""Choices stated in other languages, told in English: labels (答案：C, Antwort: C), full-width punctuation, and short verdicts."""

from __future__ import annotations

import re

_WIDE = str.maketrans(
    {"：": ":", "（": "(", "）": ")", "，": ", ", "、": ", ", "；": "; ", "。": ". ", "．": ". ", "！": "! ", "？": "? ", "＝": "="}
    | {"【": "[", "】": "]", "［": "[", "］": "]", "「": '"', "」": '"', "『": '"', "』": '"', "《": '"', "》": '"', "\u3000": " "}
)
_ASIAN = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_LETTER = r"(?=[ ]{0,3}[*_`$({\[\"“]{0,4}(?:\\boxed\{)?(?-i:[A-Z])(?![A-Za-z]))"
_EUROPEAN = re.compile(
    r"\b(?:(?:richtige|korrekte|bonne|juste|правильный|верный|finale) )?"
    r"(?:antwort|lösung|réponse|respuesta|risposta|resposta|odpowiedź|antwoord|svar|cevap|ответ)"
    r"(?: (?:correcta|correcte|corretta|correta|finale?|definitiva|juste|lautet))?"
    rf"[*_]{{0,3}}(?: ?[:=—–-]| (?:ist|est|es|é|è|är|is))[*_]{{0,3}}{_LETTER}",
    re.IGNORECASE,
)
_SHORT = re.compile(rf"\bans(?:wer)?[*_]{{0,3}} ?(?:[:.=–—]|-{{1,2}})[*_]{{0,3}}{_LETTER}", re.IGNORECASE)
_LABEL = re.compile(
    rf"(?:(?<![不非别勿未])(?:(?:最终|最終|正确|正確|标准)?(?:的)?(?:答案|选项|選項)(?:应该?|應該?)?(?:是|为|為|选|選)?|(?:因此|所以|故|应该?|應)?(?:选择?|選擇?)"
    rf"|(?:正解|答え|解答|回答)(?:は)?|(?:정답|답|答)(?:은|는)?))\]?[*_]{{0,3}}\s?[:=]?[*_]{{0,3}}\s?(?:选项|選項|選択肢)?{_LETTER}"
)
_SAID = (
    (re.compile("(?:是|为|為)?(?:不正确|不正確|不对|不對|错误|錯誤|错|錯|不正解|誤り|間違い)(?:的|答案|选项)?"), " is wrong "),
    (re.compile("(?:不是|并非|並非|不为|不選|不选|排除)"), " not "),
    (re.compile("(?:是|为|為)?(?:正确|正確|对|對|正解)(?:的)?(?:答案|选项|選項)?"), " is correct "),
    (re.compile("(?:选项|選項|選択肢)"), " option "),
    (re.compile("(?:因为|因為|由于|由於|理由)"), " because "),
    (re.compile("(?:因此|所以|故)"), " so "),
)
"""Words of a short verdict beside a letter, in Chinese and Japanese."""
_BESIDE = re.compile(rf"(?<=[{_ASIAN}])(?=[A-Za-z(])|(?<=[A-Za-z)])(?=[{_ASIAN}])")


def in_english(text: str) -> str:
    """The text with labels of answers, punctuation and verdicts as English has them. What is in English stays as it is."""
    text = _EUROPEAN.sub("Answer:", _SHORT.sub("Answer:", text if text.isascii() else text.translate(_WIDE)))
    if not re.search(f"[{_ASIAN}]", text):
        return text
    text = _LABEL.sub(" Answer: ", text)
    for words, meaning in _SAID:
        text = words.sub(meaning, text)
    return _BESIDE.sub(" ", text)
