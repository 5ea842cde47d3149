"""Instructions as in IFEval: each is followed by one text and broken by another, and what cannot be checked gives no verdict."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewardlab.verifiers.instructions import constraints
from rewardlab.verifiers.instructions.constraints import CONSTRAINTS
from rewardlab.verifiers.instructions.verifier import instructions

ENGLISH = "the quick brown fox jumps over the lazy dog and runs back into the woods"

CASES = [
    ("keywords:existence", {"keywords": ["fox", "Dog"]}, "A dog met a FOX.", "A dog met a cat."),
    ("keywords:existence", {"keywords": ["c++", "(x)"]}, "C++ has (x).", "c has x."),
    ("keywords:frequency", {"keyword": "fox", "frequency": 2, "relation": "at least"}, "Fox and fox.", "One fox."),
    ("keywords:frequency", {"keyword": "fox", "frequency": 2, "relation": "less than"}, "One fox.", "Fox and fox."),
    ("keywords:forbidden_words", {"forbidden_words": ["fox", "cat"]}, "Foxes and a dog.", "A dog. A Fox!"),
    ("keywords:letter_frequency", {"letter": "E", "let_frequency": 2, "let_relation": "at least"}, "Even here", "Odd then"),
    ("keywords:letter_frequency", {"letter": "!", "let_frequency": 2, "let_relation": "less than"}, "No!", "No!!"),
    ("language:response_language", {"language": "de"}, "Das ist ein kurzer Satz über das Wetter von heute.", ENGLISH),
    ("language:response_language", {"language": "en"}, ENGLISH, "Voici une phrase courte sur le temps qu'il fait."),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": "at least"}, "One. Two! Three?", "Dr. No. Two."),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "less than"}, "Only one", "One. Two."),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, "one two three", "one two"),
    ("length_constraints:number_words", {"num_words": 3, "relation": "less than"}, "one two", "one-two three"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\ntwo\n***", "one\n***\n***\ntwo"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 1}, "one", "one *** two"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"},
        'First this.\n\n"then, that.',
        "First this.\n\nthence that.",
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "first"},
        "First.\n\nthat.",
        "First.\n\nthat.\n\nmore",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] of [place]", "[name] of [place"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP. S. more", "Bye. PS more"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye.\np.p.s more", "Bye.\nP.S. more"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* one\n  - two\n**three**", "* one\n- two\n* three"),
    ("detectable_format:constrained_response", {}, "My answer is maybe.", "My answer is perhaps."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*one* and **two**", "*one* and ** ** and *"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1\nSection2",
        "Section one",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', "{'a': 1}"),
    ("detectable_format:title", {}, "It is <<the title>> here", "It is << >> and <<not\nthis>>"),
    ("combination:two_responses", {}, "one\n******\ntwo", "one\n******\none"),
    ("combination:two_responses", {}, "******one******two", "one******two******three"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it."}, " say it. It.", "I say it. It."),
    ("startend:end_checker", {"end_phrase": "The end."}, 'So. the end."', "The end. No."),
    ("startend:quotation", {}, ' "quoted" ', '"quoted'),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}, "NO, I go", "NO, one goes"),
    ("change_case:capital_word_frequency", {"capital_frequency": 1, "capital_relation": "less than"}, "no", "WELL-KNOWN"),
    ("change_case:english_capital", {}, ENGLISH.upper(), ENGLISH),
    ("change_case:english_lowercase", {}, ENGLISH, "voici une phrase courte sur le temps qu'il fait aujourd'hui"),
    ("punctuation:no_comma", {}, "none; here", "one, here"),
]


def asked(*rows: tuple[str, dict]) -> dict:
    return {"instructions": [{"id": name, **given} for name, given in rows]}


@pytest.mark.parametrize(("name", "given", "follows", "breaks"), CASES)
def test_an_instruction_is_followed_and_broken(name, given, follows, breaks):
    assert instructions().check(follows, asked((name, given))).correct is True
    found = instructions().check(breaks, asked((name, given)))
    assert found.correct is False
    assert name in found.why


def test_all_instructions_of_ifeval_are_there_and_tested():
    assert len(CONSTRAINTS) == 25
    assert {name for name, *_ in CASES} == set(CONSTRAINTS)


def test_all_must_be_followed_or_each_pays_its_share():
    rows = asked(("punctuation:no_comma", {}), ("length_constraints:number_words", {"num_words": 2, "relation": "at least"}))
    for reply, share in (("two words", 1.0), ("word", 0.5), ("one,", 0.0), ("", 0.0), ("<think>two words", 0.0)):
        assert instructions().check(reply, rows).pays == float(share == 1)
        assert instructions(share=True).check(reply, rows).pays == share
    assert instructions().check("word", rows).parts == {"followed": 0.5}


def test_a_loose_verdict_forgives_a_first_and_a_last_line_and_asterisks():
    rows = asked(("startend:quotation", {}))
    for reply in ('Sure:\n"text"', '"text"\nBye', 'Sure:\n"text"\nBye', '**"text"**'):
        assert instructions().check(reply, rows).correct is False
        assert instructions(loose=True).check(reply, rows).correct is True
    assert instructions(loose=True).check('Sure:\nHere:\n"text"', rows).correct is False


def test_rows_of_ifeval_may_be_given_as_they_are():
    row = {
        "prompt": "...",
        "instruction_id_list": ["punctuation:no_comma", "detectable_format:number_bullet_lists"],
        "kwargs": [{}, {"num_bullets": 1, "num_words": None}],
    }
    for answer in (row, json.dumps(row)):
        assert instructions().check("* one", answer).correct is True
        assert instructions().check("* one, two", answer).correct is False
    nested = {"instructions": [{"id": "detectable_format:number_bullet_lists", "kwargs": {"num_bullets": 1}}]}
    assert instructions().check("* one", nested).correct is True


@pytest.mark.parametrize(
    "answer",
    [
        None, "", "no JSON", {}, {"instructions": []}, {"instructions": [{}]}, asked(("keywords:unknown", {})),
        asked(("keywords:existence", {})), asked(("keywords:existence", {"keywords": "fox"})),
        asked(("keywords:existence", {"keywords": [""]})), asked(("punctuation:no_comma", {"extra": 1})),
        asked(("keywords:frequency", {"keyword": "a", "frequency": 1, "relation": "around"})),
        asked(("length_constraints:number_words", {"num_words": "ten", "relation": "at least"})),
        asked(("length_constraints:number_words", {"num_words": -1, "relation": "at least"})),
        asked(("keywords:letter_frequency", {"letter": "ab", "let_frequency": 1, "let_relation": "at least"})),
        asked(("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 1, "nth_paragraph": 2, "first_word": "a"})),
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": []},
    ],
)  # fmt: skip
def test_what_cannot_be_checked_gives_no_verdict_whatever_the_reply(answer):
    for reply in ("", "fox", "a, b"):
        found = instructions().check(reply, answer)
        assert found.correct is None
        assert found.why


def test_without_the_package_languages_get_no_verdict(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "py3langid", None)
    found = instructions().check(ENGLISH, asked(("change_case:english_lowercase", {})))
    assert found.correct is None
    assert "rewardlab[verify]" in found.why


def test_a_language_that_cannot_be_told_is_not_the_one_asked_for():
    for text in ("", "1234", "!?"):
        assert constraints.language_of(text) == ""
    assert instructions().check("123", asked(("language:response_language", {"language": "en"}))).correct is False


@settings(max_examples=40)
@given(st.text() | st.text(alphabet='ab [](){}<>*-\n"#.P,S1'))
def test_no_reply_raises_or_goes_without_a_verdict(reply):
    for name, settings_of, *_ in CASES:
        assert instructions(loose=True).check(reply, asked((name, settings_of))).correct in (True, False)


def test_hostile_text_is_checked_in_linear_time():
    start = time.perf_counter()
    for piece in (
        "[",
        "<<",
        "*",
        "**",
        "* \n",
        "-",
        "\n",
        " ",
        "p.",
        "Section ",
        '{"a":',
        "[1,",
        "***",
        ". ",
        "A-",
        "J. ",
        '."',
        "\n\n",
    ):
        for name, settings_of, *_ in CASES:
            if "english" not in name and "language" not in name:
                instructions().check(piece * (50_000 // len(piece)), asked((name, settings_of)))
    assert time.perf_counter() - start < 15
