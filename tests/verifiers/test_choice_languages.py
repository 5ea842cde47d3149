"""Choices that are taken back, in other languages, concluded in a sentence; options with labels; and BIG-Bench Hard's outputs."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import data_file
from rewardlab.verifiers.choice.verifier import choice

CITIES = ["Rome", "Paris", "Oslo", "Bern"]

TAKEN_BACK = [
    "C: wrong",
    "C) incorrect",
    "C. Incorrect. A is right.",
    "C: false",
    "C - incorrect, A",
    "C – wrong",
    "C. wrong!",
    "C) ✗",
    "C ❌",
    "C is not right",
    "C, which is incorrect",
    "C. This is wrong",
    "C: not correct",
    "C) This option is incorrect",
    "C: This is not the correct answer",
    "C is eliminated",
    "C is false",
    "C was ruled out",
    "Answer: C (wrong)",
    "Answer: **C** (incorrect)",
    "C. Oslo (incorrect)",
    "C) Oslo - wrong",
    "C: Oslo, no. A",
    "C, no: A",
    "Answer: C, but that's wrong",
    "Answer: C -> A",
    "C → A",
    "Answer: C => A",
    "C ➜ A",
    "Answer: C --> B",
    "~~C~~ A",
    "C changed to A",
    "C, changed to A",
    "C, corrected to A",
    "C++ is a language",
    "C# is a language",
    "C/C++ are languages",
    "C+ is a grade",
    "The second most likely diagnosis is **C. Oslo**",
    "The least likely diagnosis is **C. Oslo**",
    "The distractor is (C)",
    "The most common mistake is C) Oslo",
    "The most likely diagnosis is C or **B**",
    "The diagnosis is not **C. Oslo**",
    "答案：不是C",
    "C：错误",
    "不选C",
    "C是错误的",
    "C不正确",
    "排除C",
    "Antwort: nicht C",
    "Antwort: C, falsch",
    "Respuesta: C incorrecta",
    "Antwort: A -> C -> B",
    "Answer: C, I mean A",
    "Answer: C... actually A",
    "C, scratch that, A",
    "C is the wrong answer",
    "C would be wrong",
    "C seems wrong",
    "C: this cannot be right",
    "C: it's wrong",
    "C: it isn't correct",
    "C) isn't right",
    "C, but this is incorrect",
    "C) Oslo. Wrong.",
    "Answer: C) Oslo. Incorrect, since it is B.",
    "C - nope",
    "La respuesta no es C",
]
CHOSEN = [
    "Antwort: C",
    "Die richtige Antwort ist C.",
    "Die Antwort lautet: **C**",
    "Réponse : C",
    "La bonne réponse est C.",
    "Respuesta: C",
    "La respuesta correcta es C",
    "Risposta: C",
    "Resposta: C",
    "Ответ: C",
    "Правильный ответ: C",
    "答案：C",
    "答案: **C**",
    "答案是C",
    "答案为C",
    "正确答案是C。",
    "最终答案：C",
    "答案：（C）",
    "【答案】C",
    "答案：$\\boxed{C}$",
    "因此，答案是C。",
    "所以答案是C，因为A和B都不对。",
    "故选：C",
    "所以选C。",
    "选C",
    "选择C",
    "应选C",
    "选项C正确",
    "C是正确的",
    "答え：C",
    "正解はC",
    "정답: C",
    "Answer：C",
    "Answer：（C）",
    "The most likely diagnosis is **C. Oslo**",
    "The most likely diagnosis is **C. Oslo**.",
    "The most likely cause is **C**.",
    "Therefore, the most appropriate next step is (C) Oslo.",
    "So the best next step in management is **C) Oslo**",
    "The most likely diagnosis is therefore **(C) Oslo**",
    "Therefore the correct diagnosis is: **C. Oslo**",
    "The most likely underlying mechanism is C. Oslo",
    "The best first-line treatment is **C. Oslo**",
    "The patient has fever. The most likely diagnosis is **C. Oslo**.",
    "Fever (38.5).\n\nThe most likely diagnosis is **C. Oslo**.",
    "A: wrong\nB: wrong\nC: right",
    "A) incorrect\nB) incorrect\nD) incorrect\nSo C.",
    "A → wrong\nSo the answer is C",
    "A -> B -> wrong. The answer is C",
    "C) Oslo",
    "C — Oslo",
    "Answer: C (not A)",
    "The answer is C and not A",
    "C – because A is wrong",
    "Answer: C. Option A is wrong.",
    "**Answer: C**\n\nA is incorrect because of x.\nB is incorrect because of y.",
    "C ✓",
    "✅ C",
    "Ans: C",
    "Ans. C",
    "Answer - C",
    "答：C",
]


@pytest.mark.parametrize("reply", TAKEN_BACK)
def test_a_choice_that_is_taken_back_is_none(reply):
    for gold in ({"answer": "C", "options": CITIES}, "C"):
        found = choice().check(reply, gold)
        assert found.correct is False
        assert found.why


@pytest.mark.parametrize("reply", CHOSEN)
def test_a_choice_is_read_in_every_language_and_as_a_conclusion(reply):
    for gold in ({"answer": "C", "options": CITIES}, "C"):
        assert choice().check(reply, gold).correct is True, choice().check(reply, gold).why
        other = {**gold, "answer": "B"} if isinstance(gold, dict) else "B"
        assert choice().check(reply, other).correct is False


def test_what_looks_like_taking_back_may_be_an_options_own_text():
    for options in (["True", "False"], ["Yes", "No"], ["Right", "Wrong"]):
        for reply in (f"B) {options[1]}", f"Answer: B. {options[1]}", f"**B: {options[1]}**", options[1]):
            assert choice().check(reply, {"answer": "B", "options": options}).correct is True
    for reply in ("B) No", "B) False", "B) Not enough information", "(B) Not possible to say", "B) invalid"):
        assert choice().check(reply, "B").correct is True


@pytest.mark.parametrize(
    "options",
    [
        ["(A)10 m", "(B)12 m", "(C)14 m"],
        ["A. 10 m", "B. 12 m", "C. 14 m"],
        ["a) 10 m", "b) 12 m", "c) 14 m"],
        ["[A] 10 m", "[B] 12 m"],
        ["A：10 m", "B：12 m"],
        ["(B) 12 m", "(A) 10 m"],
        ["10 m", "12 m"],
        {"A": "(A) 10 m", "B": "(B) 12 m"},
        {"(A)": "10 m", "(B)": "12 m"},
        {"text": ["A) 10 m", "B) 12 m"], "label": ["A", "B"]},
        "A) 10 m\nB) 12 m",
        "['10 m', '12 m']",
    ],
)
@pytest.mark.parametrize("written", [lambda options: options, lambda o: o if isinstance(o, str) else json.dumps(o)])
def test_options_with_labels_or_in_a_text_are_read_as_the_list(options, written):
    for gold in ("B", "12 m", "(B) 12 m"):
        answer = {"answer": gold, "options": written(options)}
        found = [choice().check(reply, answer).correct for reply in ("12 m", "B", "(B) 12 m", "The answer is 12 m.", "10 m", "A")]
        assert found == [True, True, True, True, False, False]
        assert choice().check("12 m", gold, options=written(options)).correct is True


def test_labels_that_are_no_letters_in_order_belong_to_the_text():
    names = ["A. Smith", "J. Jones", "B. Brown"]
    assert choice().check("J. Jones", {"answer": 1, "options": names}).correct is True


@pytest.mark.parametrize("options", ["ten metres or twelve", "[1, 2", ""])
def test_a_text_that_is_no_list_says_so(options):
    found = choice().check("B", {"answer": "B", "options": options})
    assert found.correct is None
    assert "the options are one text" in found.why


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cot", "direct"])
def test_the_outputs_of_big_bench_hard_are_judged_as_published(kind):
    """The answer that the authors read is what follows the last "answer is"."""
    try:
        file = data_file("bbh", f"codex_{kind}.jsonl.gz")
    except RewardlabError as problem:
        pytest.skip(str(problem))
    with gzip.open(file) as lines:
        rows = list(map(json.loads, lines))[1:]
    rows = [row for row in rows if re.fullmatch(r"\([A-Z]\)", row["target"].strip())]
    options = [dict(re.findall(r"^\(([A-Z])\) (.+)$", row["question"], re.MULTILINE)) for row in rows]
    targets = [row["target"].strip() for row in rows]
    golds = [{"answer": t, "options": of} if len(of) > 1 else t for t, of in zip(targets, options, strict=True)]
    found = choice().check_all(list(zip([row["prediction"] for row in rows], golds, strict=True)))
    published = [row["prediction"].split("answer is")[-1].strip().removesuffix(".") for row in rows]
    assert len(rows) == 4071
    assert [verdict.correct for verdict in found] == [said == target for said, target in zip(published, targets, strict=True)]


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ("C: no", ""),
        ("C: no.", ""),
        ("Answer: C: no", ""),
        ("A: no\nB: no\nC: yes", "C"),
        ("A: no, B: no, C: yes", "C"),
        ("C: no, B: yes", "B"),
        ("B: yes. C: no", "B"),
        ("**A:** incorrect\n**C:** correct", "C"),
        ("(A) - false; (C) - true", "C"),
        ("A: no\nC: no", ""),
        ("A: yes, C: yes", "AC"),
        ("A: yes, A: no, C: no", ""),
        ("C: yes", "C"),
        # it may be the option's own text
        ("C) No", "C"),
        ("(C) No", "C"),
        ("C: No", "C"),
    ],
)
def test_verdicts_on_options_without_texts(reply, chosen):
    assert choice().check(reply, "C").extracted == chosen


def test_a_verdict_may_be_the_options_own_text():
    options = ["Yes", "Maybe", "No", "Never"]
    assert choice().check("C: no", {"answer": "C", "options": options}).correct
    assert not choice().check("A: yes, C: no", {"answer": "C", "options": options}).correct
    assert choice().check("A: no, C: yes", {"answer": "C", "options": CITIES}).correct
    assert not choice().check("A: no, C: yes", {"answer": "A", "options": CITIES}).correct
