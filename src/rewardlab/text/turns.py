"""A reply's own turn: without special tokens, invented turns of others, and closing courtesies.

A model that does not stop goes on: it writes the token that ends its turn, then the next question, and answers that too. What is
said after its own turn is no part of the reply. Nothing here raises, and every pattern runs in linear time.
"""

from __future__ import annotations

import re

_START = re.compile(
    r"\s{0,9}(?:(?:<s>|<bos>|<\|begin_of_text\|>|<\|startoftext\|>)\s?)?"
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<\|start\|>|<start_of_turn>)?(?:assistant|model)?\s?(?:<\|end_header_id\|>)?"
)
_ENDING = r"im_end|eot_id|eom_id|endoftext|end_of_text|end|return|end_of_turn|eos|end▁of▁sentence"
_ENDS = re.compile(rf"<[|｜](?:{_ENDING})[|｜]>|<end_of_turn>|<eos>")
_TOKEN = re.compile(
    rf"<[|｜](?:{_ENDING}|im_(?:start|sep)|(?:start|end)_header_id|begin_of_text|startoftext|start|call|message|channel|constrain"
    r"|[Uu]ser|[Aa]ssistant|system|observation|tool|bos|pad|begin▁of▁sentence)[|｜]>"
    r"|</?s>|<eos>|<(?:start|end)_of_turn>|\[/?INST\]"
)
_FINAL = "<|channel|>final<|message|>"
_NEXT = re.compile(
    r"\n[\s#*_>-]{0,8}(?:(?:human|user|(?:next\s)?(?:question|q|problem|exercise|instruction|example|task))(?:\s[0-9]{1,4})?[*_]{0,3}\s?[:：]"
    r"|(?:next\s)?(?:question|problem|exercise|example|task)\s[0-9]{1,4}[*_]{0,3}\s?(?:[.)]|$)|(?:human|user)[*_]{0,3}\s{0,3}$)",
    re.IGNORECASE | re.MULTILINE,
)
_STATED = re.compile(
    r"\\boxed\s?\{|answer[*_]{0,3}\s{0,3}(?:is\b|:|=)(?:[^\n]{0,40}[0-9$\\]|[\s*(]{0,5}[A-J]\b)|####\s?[-$]{0,2}[0-9]",
    re.IGNORECASE,
)
_ASKING = ("human", "user", "question", "q:", "problem", "exercise", "instruction", "example", "task", "q：")
_COURTESY = re.compile(
    r"(?:i hope|hope (?:this|that|it)|(?:please )?let me know|(?:please )?feel free|is there anything|"
    r"if you (?:have|need|would|want|'d)|would you like|do you (?:want|have|need)|thank|happy to|good luck)\b",
    re.IGNORECASE,
)
_RETRACTING = ("wait", "scratch that", "correction:", "mistake", "error", "wrong", "incorrect", "not right", "not correct")
_RETRACTED = re.compile(
    r"\bno,? wait\b|\bwait,? (?:no|that|this|it|i)\b|\bscratch that\b|\bcorrection:|(?<!if )(?<!unless )"
    r"\bi (?:made an? |was )(?:mistake|error|wrong)"
    r"|(?<!if )\b(?:that|this|it|which)(?:'s|\sis|\swas)\s(?:wrong|incorrect|not (?:right|correct)|a mistake|an error)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:if\s(?:you|one|someone|somebody)|some|many|others|people|students?|someone|anyone|a\scommon)\b[^0-9]{0,60}[0-9]",
    re.IGNORECASE,
)


def ended(text: str) -> str:
    """The text up to the token that ends its turn, as Qwen, Llama, Gemma, DeepSeek, Phi, gpt-oss and others write it.

    Channels are left as they are: there the token ends one of them.
    """
    if "<" not in text or "<|channel|>" in text:
        return text
    if end := _ENDS.search(text):
        return text[: end.start()]
    # </s> strikes text out in HTML, so it ends a reply only where nothing follows it
    last = stop = len(text.rstrip())
    while text.endswith("</s>", 0, stop):
        stop -= 4
        while stop and text[stop - 1].isspace():
            stop -= 1
    return text[:stop] if stop < last else text


def own_turn(text: str) -> str:
    """The text up to the token that ends its turn, or up to a question that it asks itself after it has stated an answer."""
    # most replies have none of the signs, and finding that out takes less time than the patterns
    special = "<" in text
    # a model that thinks in a channel of its own answers in another
    if special and _FINAL in text:
        text = text.partition(_FINAL)[2]
    # a whole conversation decoded without its special tokens: the reply is its last part
    if text.startswith(("system\n", "user\n")):
        text = text.partition("\nassistant\n")[2] or text
    # a header of the chat template is where a turn starts; without a special token in it, it is a word like others
    if special and "<" in text[:40] and (header := _START.match(text)) and "<" in header.group():
        text = text[header.end() :]
    if (special or "INST]" in text) and (end := _TOKEN.search(text)):
        text = text[: end.start()]
    # what it invents comes after an answer
    if not ("oxed" in text or "nswer" in text or "NSWER" in text or "####" in text):
        return text
    if has(text, _ASKING) and _NEXT.search(text) and (stated := _STATED.search(text)):
        asked = _NEXT.search(text, stated.end())
        return text[: asked.start()] if asked else text
    return text


def without_courtesies(text: str) -> str:
    """The text without last lines such as "I hope this helps!" and "Let me know if ...", which may hold numbers of no meaning."""
    kept = text.rstrip()
    while (start := kept.rfind("\n") + 1) and _COURTESY.match(kept[start:].lstrip(" *_")) and not _STATED.search(kept, start):
        kept = kept[:start].rstrip()
    return kept


def retracted(text: str) -> bool:
    """Whether a text that follows an answer takes it back, as in "No wait, that is wrong"."""
    if len(text) < 4 or not has(text, _RETRACTING):
        return False
    return any(not of_others(text, match.start()) for match in _RETRACTED.finditer(text))


def of_others(text: str, at: int) -> bool:
    """Whether the sentence up to a place is about another value that somebody may have: "If you got 6, that is wrong." """
    at_most = text[max(0, at - 120) : at]
    sentence = at_most[max(at_most.rfind(end) for end in (". ", "! ", "? ", "\n")) + 1 :]
    return bool(_OTHERS.search(sentence))


def has(text: str, signs: tuple[str, ...]) -> bool:
    """Whether a text has one of the signs, which are in lower case, in any case."""
    lower = text.lower()
    # a loop takes half the time of any(...), and every reply is looked at
    for sign in signs:  # noqa: SIM110
        if sign in lower:
            return True
    return False
