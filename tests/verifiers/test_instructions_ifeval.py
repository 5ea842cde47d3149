"""Every instruction of IFEval: a reply made to follow it does, with thinking and without; one made to break it does not."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import data_file
from rewardlab.verifiers.instructions.constraints import CONSTRAINTS
from rewardlab.verifiers.instructions.verifier import instructions

LANGUAGES = {
    "ar": "هذه جملة قصيرة مكتوبة باللغة العربية.",
    "bg": "Това е кратко изречение, написано на български език.",
    "bn": "এটি বাংলায় লেখা একটি ছোট বাক্য।",
    "de": "Dies ist ein kurzer Satz, der auf Deutsch geschrieben ist.",
    "en": "This is a short sentence that is written in English.",
    "fa": "این یک جملهٔ کوتاه است که به زبان فارسی نوشته شده است.",
    "fi": "Tämä on lyhyt lause, joka on kirjoitettu suomeksi.",
    "gu": "આ ગુજરાતીમાં લખાયેલું એક નાનું વાક્ય છે.",
    "hi": "यह हिंदी में लिखा गया एक छोटा वाक्य है और इसमें कुछ शब्द हैं।",
    "it": "Questa è una breve frase scritta in italiano.",
    "kn": "ಇದು ಕನ್ನಡದಲ್ಲಿ ಬರೆದ ಒಂದು ಸಣ್ಣ ವಾಕ್ಯ.",
    "ko": "이것은 한국어로 쓴 짧은 문장입니다.",
    "mr": "हे मराठीत लिहिलेले एक छोटे वाक्य आहे आणि त्यात काही शब्द आहेत.",
    "ne": "यो नेपालीमा लेखिएको एउटा सानो वाक्य हो।",
    "pa": "ਇਹ ਪੰਜਾਬੀ ਵਿੱਚ ਲਿਖਿਆ ਇੱਕ ਛੋਟਾ ਵਾਕ ਹੈ।",
    "pt": "Esta é uma frase curta escrita em português, com algumas palavras.",
    "ru": "Это короткое предложение, написанное на русском языке.",
    "sw": "Hii ni sentensi fupi iliyoandikwa kwa lugha ya Kiswahili.",
    "ta": "இது தமிழில் எழுதப்பட்ட ஒரு சிறிய வாக்கியம்.",
    "te": "ఇది తెలుగులో రాసిన ఒక చిన్న వాక్యం.",
    "th": "นี่คือประโยคสั้น ๆ ที่เขียนเป็นภาษาไทย",
    "ur": "یہ اردو میں لکھا گیا ایک چھوٹا سا جملہ ہے اور اس میں کچھ الفاظ ہیں۔",
    "vi": "Đây là một câu ngắn được viết bằng tiếng Việt.",
}


def counted(unit, joint, relation, bound):
    """A text with enough of a unit, or few enough, and one with too few or too many."""
    enough, too_few = joint.join([unit] * bound), joint.join([unit] * (bound - 1))
    # nothing at all is no reply
    return (enough, too_few) if relation == "at least" else (too_few or "-", enough)


def paragraphs(num_paragraphs, nth_paragraph, first_word):
    texts = ["some text here."] * num_paragraphs
    texts[nth_paragraph - 1] = f'"{first_word.title()}, it goes on.'
    # a paragraph more or less moves the one that is asked for
    return "\n\n".join(texts), "\n\n".join(["more of it.", *texts])


MADE = {
    "keywords:existence": lambda keywords: (f"So {' and '.join(keywords).upper()}.", " and ".join(keywords[1:]) or "none"),
    "keywords:frequency": lambda keyword, frequency, relation: counted(keyword, ", ", relation, frequency),
    "keywords:forbidden_words": lambda forbidden_words: ("Nothing of that.", f"A {forbidden_words[-1].upper()}!"),
    "keywords:letter_frequency": lambda letter, let_frequency, let_relation: counted(letter, " ", let_relation, let_frequency),
    "language:response_language": lambda language: (LANGUAGES[language], LANGUAGES["en" if language != "en" else "de"]),
    "length_constraints:number_sentences": lambda num_sentences, relation: counted("It is so.", " ", relation, num_sentences),
    "length_constraints:number_words": lambda num_words, relation: counted("word", " ", relation, num_words),
    "length_constraints:number_paragraphs": lambda num_paragraphs: (
        "\n\n***\n\n".join(["text"] * num_paragraphs),
        "\n\n***\n\n".join(["text"] * (num_paragraphs + 1)),
    ),
    "length_constraints:nth_paragraph_first_word": paragraphs,
    "detectable_content:number_placeholders": lambda num_placeholders: counted("[name]", " ", "at least", num_placeholders),
    "detectable_content:postscript": lambda postscript_marker: (f"So long.\n\n{postscript_marker} More.", "So long.\n\nMore."),
    "detectable_format:number_bullet_lists": lambda num_bullets: (
        "\n".join(["* one"] * num_bullets),
        "\n".join(["- one"] * (num_bullets + 1)),
    ),
    "detectable_format:constrained_response": lambda: ("My answer is maybe.", "Maybe."),
    "detectable_format:number_highlighted_sections": lambda num_highlights: counted("*one*", "\n", "at least", num_highlights),
    "detectable_format:multiple_sections": lambda section_spliter, num_sections: (
        "\n".join(f"{section_spliter} {i}\ntext" for i in range(num_sections)),
        "\n".join(f"{section_spliter} {i}\ntext" for i in range(num_sections - 1)) or "text",
    ),
    "detectable_format:json_format": lambda: ('```json\n{"a": [1, null]}\n```', '```json\n{"a": [1, None]}\n```'),
    "detectable_format:title": lambda: ("<<A title>>\n\ntext", "<A title>\n\ntext"),
    "combination:two_responses": lambda: ("one\n\n******\n\ntwo", "one\n\n******\n\none"),
    "combination:repeat_prompt": lambda prompt_to_repeat: (f"{prompt_to_repeat}\n\nSo it is.", f"So: {prompt_to_repeat}"),
    "startend:end_checker": lambda end_phrase: (f"So it is. {end_phrase}", f"{end_phrase} So it is."),
    "startend:quotation": lambda: ('"So it is."', 'So "it is."'),
    "change_case:capital_word_frequency": lambda capital_frequency, capital_relation: counted(
        "NO", " but ", capital_relation, capital_frequency
    ),
    "change_case:english_capital": lambda: (LANGUAGES["en"].upper(), LANGUAGES["de"].upper()),
    "change_case:english_lowercase": lambda: (LANGUAGES["en"].lower(), LANGUAGES["en"]),
    "punctuation:no_comma": lambda: ("One; two.", "One, two."),
}


@pytest.fixture(scope="module")
def rows():
    try:
        file = data_file("instructions", "ifeval.jsonl.gz")
    except RewardlabError as problem:
        pytest.skip(str(problem))
    with gzip.open(file) as lines:
        return list(map(json.loads, lines))


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize(
    "around",
    ["{}", "<think>\nHm.\n\nSo, [a] *b* <<c>>.\n</think>\n\n{}", "Hm.\n\nSo.</think>\n\n\n{}\n", "\n\n{}\n\n", "<think></think>{}"],
)
def test_every_instruction_of_the_data_is_followed_and_broken(name, around, rows):
    pytest.importorskip("py3langid", reason="needs the extra 'verify'")
    given = [
        {k: v for k, v in arguments.items() if v is not None}
        for row in rows
        for of, arguments in zip(row["instruction_id_list"], row["kwargs"], strict=True)
        if of == name
    ]
    assert given
    for arguments in given:
        answer = {"instructions": [{"id": name, "kwargs": arguments}]}
        texts = [around.format(text) for text in MADE[name](**arguments)]
        for crlf in (False, True):
            written = [text.replace("\n", "\r\n") if crlf else text for text in texts]
            assert [instructions().check(text, answer).correct for text in written] == [True, False], (arguments, written)


def test_every_row_can_be_judged(rows):
    assert len(rows) == 541
    seen = Counter(name for row in rows for name in row["instruction_id_list"])
    assert seen.keys() == CONSTRAINTS.keys() == MADE.keys()
    assert all(instructions().check("A plain reply.", row).correct is not None for row in rows)
