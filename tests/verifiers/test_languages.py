"""Answers in the eleven languages of MGSM: what marks them, how numbers are written, what denies, offers or multiplies them."""

from __future__ import annotations

import gzip
import json
import time
from fractions import Fraction

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import data_file
from rewardlab.text.languages import decimal_comma, in_english
from rewardlab.text.numbers import number, ungrouped
from rewardlab.verifiers.match import final_answer, final_number
from rewardlab.verifiers.math.verifier import math

VERIFIERS = (math(), final_number(), final_answer())

RIGHT = {
    "German": [
        ("Janet verkauft 9 Eier. Die Antwort ist 18.", "18"),
        ("Die Antwort lautet: **5.600**.", "5600"),
        ("Die Antwort ist 5.600 Euro.", "5600"),
        ("Die Antwort ist 3,5.", "3.5"),
        ("Die Antwort ist 5,6 Millionen.", "5600000"),
        ("Antwort: 5 600", "5600"),
        ("Insgesamt verdient sie also 1.234,50 Euro.", "1234.5"),
        ("Sie verdient insgesamt 5.600 Euro.", "5600"),
        ("The answer is 5.600.", "5.6"),
        ("Die Antwort ist 5.600.", "5.6"),
    ],
    "Spanish": [
        ("La respuesta es 5.600.", "5600"),
        ("La respuesta es 18.", "18"),
        ("La respuesta correcta es: $18$.", "18"),
        ("Respuesta: 3,5", "3.5"),
        ("La respuesta es 5 mil.", "5000"),
        ("Gana un total de 1.234.567 dólares.", "1234567"),
    ],
    "French": [
        ("La réponse est 18.", "18"),
        ("La réponse est 5\u202f600.", "5600"),
        ("La réponse est 5\u00a0600 €.", "5600"),
        ("Réponse : 3,5", "3.5"),
        ("Elle gagne 5 600 dollars.", "5600"),
    ],
    "Russian": [
        ("Ответ — 5600.", "5600"),
        ("Ответ: 5 600.", "5600"),
        ("Ответ - 18.", "18"),
        ("Ответ – 18.", "18"),
        ("Ответ: -18", "-18"),
        ("Ответ: 3,5", "3.5"),
        ("Ответ: 5 тысяч.", "5000"),
        ("Она зарабатывает 5600 долларов.", "5600"),
        ("Стоимость – 5600 рублей.", "5600"),
        ("Ответ — −18.", "-18"),
    ],
    "Chinese": [
        ("答案是18。", "18"),
        ("答案是 18。", "18"),
        ("答案：５６００", "5600"),
        ("答案：５，６００", "5600"),
        ("因此，珍妮特每天赚18美元。", "18"),
        ("答案是5万。", "50000"),
        ("答案是18。因为9×2=18。", "18"),
        ("答案是3．5。", "3.5"),
        ("最终答案为：**18**", "18"),
    ],
    "Japanese": [
        ("答えは18です。", "18"),
        ("答え：18ドル", "18"),
        ("答えは１８ドルです。", "18"),
        ("したがって、彼女は毎日18ドルを稼ぎます。", "18"),
        ("正解は5,600です。", "5600"),
    ],
    "Thai": [
        ("คำตอบคือ 18", "18"),
        ("คำตอบคือ ๑๘", "18"),
        ("คำตอบคือ 5,600 บาท", "5600"),
        ("ดังนั้นเธอทำเงินได้ 18 ดอลลาร์ต่อวัน", "18"),
    ],
    "Swahili": [
        ("Jibu ni 18.", "18"),
        ("Jibu: 5,600", "5600"),
        ("Jibu ni elfu 5.", "5000"),
        ("Kwa hivyo anapata $18 kila siku.", "18"),
    ],
    "Bengali": [
        ("উত্তর হল 18।", "18"),
        ("উত্তর হল ১৮।", "18"),
        ("উত্তর: ১,০০,০০০", "100000"),
        ("তিনি প্রতিদিন 18 ডলার উপার্জন করেন।", "18"),
    ],
    "Telugu": [
        ("సమాధానం 18.", "18"),
        ("సమాధానం: ౧౮", "18"),
        ("ఆమె రోజుకు 18 డాలర్లు సంపాదిస్తుంది.", "18"),
        ("సమాధానం 1,00,000.", "100000"),
    ],
    "any language": [
        ("\\boxed{1.234.567}", "1234567"),
        ("Die Antwort ist $\\boxed{5.600}$.", "5600"),
        ("The answer is 5'600.", "5600"),
        ("\\boxed{1,00,000}", "100000"),
        ("The total is 5\u00a0600.", "5600"),
        ("The total is 5\u202f600 dollars.", "5600"),
        ("The total is ５６００.", "5600"),
        ("Answer — 42", "42"),
    ],
}
WRONG = {
    "German": [
        ("Die Antwort ist nicht 18.", "18"),
        ("Die Antwort ist 18 oder 19.", "18"),
        ("Die Antwort ist 5 Millionen.", "5"),
        ("Die Antwort ist 5.6.", "5600"),
        ("Die Antwort ist mindestens 18.", "18"),
        ("She earns a total of 5.600 dollars.", "5600"),
        ("The answer is 5.600.", "5600"),
    ],
    "Spanish": [
        ("La respuesta no es 18.", "18"),
        ("La respuesta es 5 mil.", "5"),
        ("La respuesta es 18 o 19.", "18"),
    ],
    "French": [
        ("La réponse n’est pas 18.", "18"),
        ("La réponse est 18 ou 19.", "18"),
        ("Réponse : 600", "5600"),
    ],
    "Russian": [
        ("Ответ — 5600", "-5600"),
        ("Ответ: -18", "18"),
        ("Ответ: не 18", "18"),
        ("Ответ: 5 тысяч.", "5"),
        ("Ответ: 18 или 19", "18"),
    ],
    "Chinese": [
        ("答案是5万。", "5"),
        ("答案不是18。", "18"),
        ("答案是18或19。", "18"),
        ("答案是19。因为9×2=18。", "18"),
        ("答案是至少18。", "18"),
    ],
    "Japanese": [
        ("答えは18ではない。", "18"),
        ("答えは18か19です。", "18"),
        ("答えは5万です。", "5"),
    ],
    "Thai": [
        ("คำตอบไม่ใช่ 18", "18"),
        ("คำตอบคือ 18 หรือ 19", "18"),
        ("คำตอบคือ 5 ล้าน", "5"),
    ],
    "Swahili": [
        ("Jibu si 18.", "18"),
        ("Jibu sio 18.", "18"),
        ("Jibu ni 18 au 19.", "18"),
        ("Jibu ni elfu 5.", "5"),
    ],
    "Bengali": [
        ("উত্তর 18 নয়।", "18"),
        ("উত্তর হল 18 বা 19।", "18"),
        ("উত্তর হল 5 হাজার।", "5"),
    ],
    "Telugu": [
        ("సమాధానం 18 కాదు.", "18"),
        ("సమాధానం 18 లేదా 19.", "18"),
    ],
    "any language": [
        ("\\boxed{5.600}", "5600"),
        ("The answer is 3, 5", "3.5"),
        ("Answer: -42", "42"),
    ],
}
"""Replies and gold answers: the wrong ones deny the number, offer another one, multiply it, or write another number."""


def _all(cases):
    return [pytest.param(reply, gold, id=f"{language}-{i}") for language, of in cases.items() for i, (reply, gold) in enumerate(of)]


@pytest.mark.parametrize(("reply", "gold"), _all(RIGHT))
def test_right_answers(reply, gold):
    assert [verifier.check(reply, gold).correct for verifier in VERIFIERS] == [True] * 3


@pytest.mark.parametrize(("reply", "gold"), _all(WRONG))
def test_wrong_answers(reply, gold):
    assert [verifier.check(reply, gold).correct for verifier in VERIFIERS] == [False] * 3


MGSM = {
    "en": "The answer is {},{}.", "de": "Die Antwort ist {}.{}.", "es": "La respuesta es {}.{}.",
    "fr": "La réponse est {}\u202f{}.",
    "ru": "Ответ — {}\u00a0{}.", "zh": "答案是 {},{}。", "ja": "答えは{},{}です。", "th": "คำตอบคือ {},{}", "sw": "Jibu ni {},{}.",
    "bn": "উত্তর হল {},{}।", "te": "సమాధానం {},{}.",
}  # fmt: skip
"""How MGSM's own examples end, with thousands as the language writes them."""


def _mgsm():
    try:
        path = data_file("mgsm", "mgsm.jsonl.gz")
    except RewardlabError:
        pytest.skip("the shared data is not here")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("language", MGSM)
def test_all_of_mgsm(language):
    rows = [row for row in _mgsm() if row["language"] == language]
    assert len(rows) == 250
    wrong = 0
    for row in rows:
        gold = number(row["answer"])
        for said, right in ((gold, True), (gold + 1, False)):
            reply = _written(language, said)
            assert math().check(reply, row["answer"], prompt=row["question"]).correct is right, (reply, row)
            assert [verifier.check(reply, row["answer"]).correct for verifier in VERIFIERS[1:]] == [right] * 2, (reply, row)
            wrong += not right
    assert wrong == 250


def _written(language: str, value: Fraction) -> str:
    comma, sign = language in ("de", "es", "fr", "ru"), MGSM[language].partition("}")[2][0]
    whole, part = divmod(abs(value), 1)
    digits = f"{int(whole):,}".replace(",", sign if sign != "{" else "")
    digits += f"{',' if comma else '.'}{str(float(part))[2:]}" if part else ""
    return MGSM[language].replace("{}" + sign + "{}", f"{'-' if value < 0 else ''}{digits}")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("1.234.567", "1234567"),
        ("1.234,5", "1234.5"),
        ("1,00,000", "100000"),
        ("5'600 and 5’600", "5600 and 5600"),
        ("1.234", "1.234"),
        ("1,234,567", "1,234,567"),
        ("192.168.1.1", "192.168.1.1"),
        ("1,23,45", "1,23,45"),
    ],
)
def test_separators_that_have_one_reading(text, plain):
    assert ungrouped(text) == plain


def test_the_language_decides_what_a_comma_is():
    assert decimal_comma("Die Summe ist 5.600.")
    assert decimal_comma("Она зарабатывает 5.600")
    assert not decimal_comma("The total is 5.600.")
    # a reply without words is in the language of its question
    asked = "Wie viel verdient sie insgesamt?"
    assert decimal_comma("5.600", asked)
    assert not decimal_comma("5.600", "How much does she earn in total?")
    assert math().check(r"\boxed{5.600}", "5600", prompt=asked).correct
    assert not math().check(r"\boxed{5.600}", "5600").correct


@pytest.mark.parametrize("text", ["The answer is 5.", "So she has no answer.", "He said: la vie est belle.", "It costs 5–6 euros."])
def test_english_stays_as_it_is(text):
    assert in_english(text) == text


def test_a_solution_step_by_step_is_no_answer():
    reply = "ধাপে ধাপে উত্তর: তার 5টি বল ছিল। 5 + 6 = 11। উত্তর হল 11।"
    assert [verifier.check(reply, "11").correct for verifier in VERIFIERS] == [True] * 3
    assert [verifier.check(reply, "5").correct for verifier in VERIFIERS] == [False] * 3


@pytest.mark.slow
def test_long_replies_are_read_in_linear_time():
    start = time.process_time()
    for part in ("Antwort: ", "答案是", "5.600", "1,00,", "not 5 万", "Ответ — ", "Jibu ni elfu "):
        for verifier in VERIFIERS:
            assert not verifier.check(part * 20_000, "7").correct
    assert time.process_time() - start < 20
