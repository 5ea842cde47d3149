"""Published forms of judges: what each shows, and what it reads in judgements of its format, in released ones, and in any text."""

import gzip
import json
import re
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.clients.messages import Reply, Token
from rewardlab.core import ask
from rewardlab.errors import RewardlabError
from rewardlab.judges.forms import SHOWN
from rewardlab.judges.marks import Marks
from rewardlab.judges.named import form_of
from rewardlab.judges.published import FORMS
from rewardlab.tasks.sources import data_file

REPLIES = {
    "pairwise": ["four", 'it is "five"\n{prompt}'],
    "scale": ["four"],
    "verdict": ["four"],
    "scores": ["four", "five", "{six}"],
}
A, B = (1.0, 0.0), (0.0, 1.0)
JSON = '{"scores": {"model-1": 2, "model-2": 4, "model-3": 4}, "best-to-worst": ["model-3", "model-2", "model-1"]}'
CASES = [
    ("rm_r1", "<type>Chat</type>\n<eval>[[B]] is not my verdict yet</eval>\n<answer>[[A]]</answer>", A),
    ("rm_r1", "<answer>[[A]]</answer> or rather <answer>[[B]]</answer>", B),
    ("rm_r1", "I prefer [[A]].", None),
    ("rm_r1", "<answer>[[A/B]]</answer>", None),
    ("rrm", r"Both are close, but \boxed{Assistant 2}", B),
    ("rrm", r"So $\boxed{\text{Assistant 1}}$.", A),
    ("rrm", r"\boxed{42}", None),
    ("prometheus_pairwise", "Feedback: both are good. [RESULT] A", A),
    ("prometheus_pairwise", "B is longer. [Result: Response B]", B),
    ("prometheus_pairwise", "[RESULT] Although A is better", None),
    ("rubric_rm", "--- Final Judgment ---\nJustification: A keeps the limit.\nWinner: Response A", A),
    ("rubric_rm", "The winner is clear. **Winner:** Response B", B),
    ("rubric_rm", "Winner: <Response A / Response B>", None),
    ("rm_nlhf", "<think>[[B]]?</think>\n<critics>\nA is right.\n</critics>\n\n<choice>\n[[A]]\n</choice>", A),
    ("rm_nlhf", "<choice>B</choice>", B),
    ("rm_nlhf", "<critics>\nA is right. [[A]]\n</critics>", None),
    ("mt_bench_pairwise", "They are the same: [[C]]", (0.5, 0.5)),
    ("rewardbench", "Verdict: [[A]]", A),
    ("rewardbench", "Verdict: [[C]]", None),
    ("arena_hard", "My verdict: [[A>>B]]", A),
    ("arena_hard", "My verdict: [[B>A]]", B),
    ("arena_hard", "My verdict: [[A=B]]", (0.5, 0.5)),
    ("arena_hard", "First [[A>B]], and now [[B>A]]", None),
    ("arena_hard", "Twice the same, [[A>B]] and [[A>B]]", A),
    ("judgebench_vanilla", "Output (b)", B),
    ("judgebench_vanilla", '"Output (a)".', A),
    ("judgebench_vanilla", "Output (a) has merits that I do not see in the other", None),
    ("llmbar", "Output (b) is shorter than Output (a). Therefore, Output (b) is better.", B),
    ("llmbar", "I like Output (a).", None),
    ("think_rm", "... <answer>A</answer>", A),
    ("think_rm", "... <answer>A", A),
    ("think_rm", "<answer>Assistant A</answer>", None),
    ("think_rm_graded", "<answer>-3</answer>", A),
    ("think_rm_graded", "<answer> 1 </answer>", (1 / 3, 2 / 3)),
    ("think_rm_graded", "<answer>0</answer>", None),
    ("skywork_critic", "[[B]]", B),
    ("compassjudger", "B", B),
    ("compassjudger", " **A**.", A),
    ("compassjudger", "A is what I would say", None),
    ("prometheus", "Feedback: it keeps to the rubric. [RESULT] 4", (0.75,)),
    ("prometheus", "This deserves a score of 3 at first sight. Score: 5/5", (1.0,)),
    ("prometheus", "[RESULT] 7", None),
    ("mt_bench", "Rating: [[10]]", (1.0,)),
    ("rewardbench2_ratings", "Clear and right.\n\n9", (8 / 9,)),
    ("rewardbench2_ratings", "Clear and right. 8 / 10", (7 / 9,)),
    ("rewardbench2_ratings", "It has 3 parts.", None),
    ("master_rm", "YES", (1.0,)),
    ("master_rm", " 'no'.", (0.0,)),
    ("master_rm", "**YES**, for both are 4", (1.0,)),
    ("master_rm", "NONE of it is clear", None),
    ("master_rm", "It is right: YES", None),
    ("deepseek_grm", r"Scores: \boxed{7, 3, 10}", (0.7, 0.3, 1.0)),
    ("deepseek_grm", r"Scores: \boxed{7, 3}", None),
    ("deepseek_grm", r"Scores: \boxed{7, 3, 11}", None),
    ("rewardanything", f"<think>{{'scores': ...}}</think>\n```json\n{JSON}\n```", (0.4 - 0.2 / 15, 0.8 - 0.1 / 15, 0.8)),
    ("rewardanything", '{"scores": {"model-1": 2, "model-2": 4}}', None),
    ("rewardanything", '{"scores": {"model-1": 2, "model-2": 4, "model-3": true}}', None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "said", "values"), CASES)
def test_a_judgement_of_the_format_is_read(name, said, values):
    form = FORMS[name]
    read = form.read(said, len(REPLIES[form.kind])).values
    assert read == (None if values is None else pytest.approx(values))


def test_every_form_has_a_case_that_is_read_and_one_form_a_name():
    assert {name for name, _, values in CASES if values} == set(FORMS)
    assert all(name == form.name and form.source.startswith("after ") for name, form in FORMS.items())


def test_the_page_of_rewards_names_every_form_with_its_columns():
    page = (Path(__file__).parents[2] / "docs" / "REWARDS.md").read_text("utf-8")
    lines = page.split("### Published forms")[1].split("\n## ")[0].splitlines()
    for form in FORMS.values():
        row = next((line for line in lines if line.startswith("|") and f"`{form.name}`" in line.split("|")[1]), "")
        assert [x for x in (form.kind, *(f"`{column}`" for column in form.columns)) if x not in row] == [], form.name


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_form_shows_all_that_is_judged_and_asks_for_a_mark_that_it_reads(form):
    replies = REPLIES[form.kind]
    asked = form.asked(ask("What is {reply} of 2 + 2?", "exactly 4"), replies)
    prompt = asked.prompt[-1].text
    shown = [json.dumps(x)[1:-1] if form.quoted else x for x in ("What is {reply} of 2 + 2?", *replies)]
    assert all(text in prompt for text in shown)
    assert [m.role for m in asked.prompt] == (["system", "user"] if form.system else ["user"])
    assert all(f"{{{place}}}" in form.text for place in SHOWN[form.kind])
    if form.marks is not None:
        assert all(form.marks.value(Reply(text))[1] in text and form.read(text).values is not None for text in form.marks.texts)


@pytest.mark.parametrize("form", [f for f in FORMS.values() if f.answer_part], ids=lambda form: form.name)
def test_the_reference_is_left_out_of_a_row_without_one(form):
    heading = form.answer_part.split("\n")[0]
    with_one, without = (form.asked(ask("2 + 2?", answer), REPLIES[form.kind]).prompt[-1].text for answer in ("four!", None))
    assert heading in with_one
    assert "four!" in with_one
    assert heading not in without
    assert "{answer}" not in without


def test_a_column_of_the_row_comes_before_the_default_and_json_stays_json():
    problem = ask('He said "2 + 2?"', None, rubric="[Short?]", principle='be "brief"')
    assert "[Short?]" in FORMS["prometheus"].asked(problem, ["four"]).prompt[-1].text
    said = json.loads(FORMS["rewardanything"].asked(problem, ['"four"', "five\n"]).prompt[-1].text)
    assert said == {
        "principle": 'be "brief"',
        "prompt": 'He said "2 + 2?"',
        "responses": {"model-1": '"four"', "model-2": "five\n"},
    }


def test_the_chances_of_a_mark_are_read_inside_braces_and_tags():
    likely = {"A": -0.2876820724517809, "B</": -1.3862943611198906}
    chances = (Token("<answer>", {}), Token("A", likely), Token("</answer>", {}))
    read = FORMS["think_rm"].read(Reply("<answer>A</answer>", chances=chances))
    assert read.values == pytest.approx((0.75, 0.25))


def test_a_file_holds_the_prompt_and_the_form_all_else(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("Be fair.\n=== user ===\n{prompt}|{first}|{second}\n")
    form = form_of(f"rm_r1:{path}")
    said = form.asked(ask("2 + 2?", "4"), ["four", "five"]).prompt
    assert [m.text for m in said] == ["Be fair.", "2 + 2?|four|five\n"]
    assert form.read("<answer>[[B]]</answer>").values == B
    path.write_text("{prompt}|{first}|{second}")
    assert form_of(f"rm_r1:{path}").system == ""
    path.write_text("{prompt}|{first}")
    with pytest.raises(RewardlabError, match=r"no \{second\}"):
        form_of(f"rm_r1:{path}")


PIECES = st.sampled_from(
    ["Winner", "<choice>", "[[", "]]", "A", "B", ">", "=",
     "<answer>", "</answer>", r"\boxed{", "}", "{", "Assistant", " ", "\n", "[RESULT]", "Score:",
     "1", "10", ",", ".", "/", '"scores"', ":", "Output (", "a", ") is better", "</think>", "[" * 50,
     "{" * 50, "\x00", "é", "٣", "-", "Response"]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join), st.integers(1, 4))
def test_any_text_is_read_or_says_why_not(text, shown):
    for form in FORMS.values():
        values, said = form.read(text, shown if form.kind == "scores" else 1)
        assert all(0 <= x <= 1 for x in values) if values else said


@pytest.mark.parametrize(
    "piece",
    ["[[", "<answer>", "<answer> ", r"\boxed{", r"\boxed{1,", " ", "9", "[RESULT] ", "Score: (", "Winner: Response A/", "<choice>[",
     '{"scores": ', "{", "A>", "Output (a) "],
)  # fmt: skip
def test_no_text_is_slow_to_read(piece):
    start = time.perf_counter()
    for form in FORMS.values():
        form.read(piece * (200_000 // len(piece)), 2)
    assert time.perf_counter() - start < 5


# ---- released judgements ---------------------------------------------------------------------------------------------


@cache
def released(name: str) -> list[dict]:
    try:
        path = data_file(name)
    except RewardlabError as missing:
        pytest.skip(str(missing))
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_the_rationales_of_llmbar_are_read_as_published():
    rows = released("llmbar/rationales.jsonl.gz")
    read = [FORMS["llmbar"].read(row["completion"], 2).values for row in rows]
    # the published winner is told of the outputs as they stand in the data, whichever came first in the prompt
    first = ["2" if row["order"] == "swap = True" else "1" for row in rows]
    mine = [None if v is None else one if v == A else {"1": "2", "2": "1"}[one] for v, one in zip(read, first, strict=True)]
    assert len(rows) == 2514
    assert sum(v is not None for v in read) == sum(row["winner"] is not None for row in rows) == 2505
    assert mine == [row["winner"] for row in rows]


@pytest.mark.parametrize("part", ["mt_bench", "vicuna"])
def test_feedback_of_prometheus_is_read_where_its_score_was_cut_off_and_put_back(part):
    rows = released(f"instructions/{part}_gpt4_scores.jsonl.gz")
    form = FORMS["prometheus"]
    said = [(said, score) for row in rows for said, score in zip(row["gpt4_feedback"], row["gpt4_score"], strict=True)]
    read = [form.read(f"{feedback} [RESULT] {score}").values for feedback, score in said]
    assert len(said) == 960
    assert read == [((score - 1) / 4,) for _, score in said]


def test_the_released_decisions_of_judgebench_are_those_that_the_form_gives_to_their_labels():
    rows = [row for row in released("judgebench/judgments.jsonl.gz") if row["judge_name"] == "arena_hard"]
    known = {judged["decision"] for row in rows for judged in row["judgments"]} - {None}
    read = {label: FORMS["arena_hard"].read(f"My verdict: [[{label}]]").values for label in known}
    assert read == {label: {"A>B": A, "B>A": B, "A=B": (0.5, 0.5)}[label] for label in known}
    assert {"A>B", "B>A"} <= known


def test_marks_that_must_agree_say_which_differ():
    marks = Marks({"A": 1.0, "B": 0.0}, agreed=True)
    assert marks.value(Reply("[[A]] then [[B]]")) == (None, "the judgement has several marks that differ: A, B")
    assert re.fullmatch("[AB]", marks.value(Reply("[[A]] then [[A]]"))[1])
