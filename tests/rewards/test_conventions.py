"""Reward functions in the manner of TRL, verl, OpenRLHF and verifiers: recognised, or said by ?as=."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from rewardlab.audit.loading import load, parse
from rewardlab.audit.target import Row
from rewardlab.commands import cli
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.registry import load_part, names
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.user.conventions import recognised, split
from rewardlab.rewards.user.functions import Call

WRITTEN = """
import torch

def as_trl(prompts, completions, completion_ids, trainer_state, answer, **columns):
    assert trainer_state.global_step == 0 and all(len(ids) for ids in completion_ids) and set(columns) == {"hint"}
    return [None if c == "?" else float(c.endswith(a)) for c, a in zip(completions, answer)]

def as_verl(solution_str, ground_truth, **rest):
    assert set(rest) >= {"data_source", "extra_info"} and rest["extra_info"]["hint"] == "h"
    return None if solution_str == "?" else {"score": float(solution_str.endswith(ground_truth)), "acc": 0.0}

def by_position(q, p, gold):
    replies = [one[len(start):] for one, start in zip(q, p)]
    rewards = [None if r == "?" else float(r.endswith(a)) for r, a in zip(replies, gold)]
    return {"rewards": rewards, "scores": [0, 0], "extra_logs": {}}

def as_openrlhf(queries, prompts, labels):
    return torch.tensor([float(q.endswith(a)) for q, a in zip(queries, labels)])

async def as_verifiers(prompt, completion, answer, state, info):
    said = completion[-1]["content"]
    assert state["prompt"] == prompt and prompt[-1]["role"] == "user" and state["completion"] == completion and info["hint"] == "h"
    return None if said == "?" else float(said.endswith(answer))

def of_a_group(completions, states):
    said = [c[0]["content"] for c in completions]
    return [said.count(x) + len(states) for x in said]

def of_texts(completion: str, answer, state):
    return float(completion.endswith(answer))

def unmarked(completion, answer):
    return float(type(completion).__name__ == "list")

class Rubric:
    pass

def parsed(parser, completion, answer):
    return float(parser.parse_answer(completion) == answer)

async def brief(completion, **rest):
    return 10.0 - len(completion[0]["content"]) + 0 * len(rest["state"])

def logged(completion):
    return 7.0

class Parser:
    def parse_answer(self, completion):
        return completion[-1]["content"][-1:]

rubric = Rubric()
rubric.funcs, rubric.weights, rubric.class_objects = [parsed, brief, logged], [1.0, 0.5, 0], {"parser": Parser()}

def made(weight):
    changed = Rubric()
    changed.funcs, changed.weights = [brief], [weight]
    return changed

def comparing(completions, states):
    return [0.0 for _ in states]

mixed = Rubric()
mixed.funcs, mixed.weights = [parsed, comparing], [1.0, 1.0]

def broken(data_source, solution_str, ground_truth, extra_info=None):
    return 1 / (len(solution_str) - 1)

def with_two(queries, labels):
    return [0.0]
"""


def attempt(reply: str, answer: str = "4") -> Trajectory:
    return Trajectory(
        ask("What?", answer, hint="h"),
        (Turn(None, np.arange(2), text="What?"), Turn("policy", np.arange(1 + len(reply)), text=reply)),
    )


GROUPS = [[attempt("it is 4"), attempt("5")], [attempt("?"), attempt("4")]]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(WRITTEN)
    return path


def values(written: str):
    return [[score.value for score in row] for row in read_reward(written)(GROUPS, Run(None))]


@pytest.mark.parametrize(
    "name", ["as_trl", "as_verl", "by_position?as=openrlhf", "as_verifiers", "as_trl?as=trl", "as_verl?as=verl"]
)
def test_each_manner_pays_the_same_and_none_stays_none(name, file):
    assert values(f"{file}:{name}") == [[1.0, 0.0], [None, 1.0]]
    audited = load(parse(f"{file}:{name}"))
    rows = [Row("What?", "4", reply, {"hint": "h"}) for reply in ("it is 4", "5", "?")]
    # the audit adds the gold answer to the columns, under all names that it may have
    if "trl" not in name:
        assert [r.value for r in audited.score(rows)] == [1.0, 0.0, None]


def test_in_a_formula_it_stands_with_its_file(file):
    assert values(f'0.5 * "{file}:by_position?as=openrlhf" + 1')[0] == [1.5, 1.0]
    assert values(f'1 + "{file}:as_verl?as=verl"')[1] == [None, 2.0]


def test_a_tensor_of_openrlhf_and_texts_of_verifiers(file):
    assert values(f"{file}:as_openrlhf") == [[1.0, 0.0], [0.0, 1.0]]
    assert values(f"{file}:of_texts") == [[1.0, 0.0], [0.0, 1.0]]


def test_functions_of_verifiers_in_the_plural_see_a_group_at_a_time(file):
    """Each reply is there once, and the group has 2 states."""
    assert values(f"{file}:of_a_group") == [[3.0, 3.0], [3.0, 3.0]]


def test_what_is_said_decides_what_the_arguments_leave_open(file):
    """The same function gets texts, or with ?as=verifiers messages."""
    assert values(f"{file}:unmarked")[0] == [0.0, 0.0]
    assert values(f"{file}:unmarked?as=verifiers")[0] == [1.0, 1.0]


def test_a_rubric_is_a_sum_with_weights(file):
    """parsed + 0.5 (10 - letters): 1 + 0.5 * 3 and 0 + 0.5 * 9; what has weight 0 is logged alone."""
    reward = read_reward(f"{file}:rubric")
    first = reward(GROUPS, Run(None))[0]
    assert [score.value for score in first] == [2.5, 4.5]
    assert {name: (term.value, term.weight) for name, term in first[0].terms.items()} == {
        "parsed": (1.0, 1.0), "brief": (3.0, 0.5), "logged": (7.0, None),
    }  # fmt: skip
    assert values(f"{file}:made(weight=2)")[0] == [6.0, 18.0]
    with pytest.raises(
        RewardlabError, match=r"mixed has functions that score groups|rubric .*functions that score groups \(comparing\)"
    ):
        read_reward(f"{file}:mixed")


def test_a_saved_reward_keeps_its_convention(file):
    reward = read_reward(f"{file}:by_position?as=openrlhf")
    assert reward.settings["convention"] == "openrlhf"
    assert load_part(json.loads(json.dumps(reward.to_json()))) == reward


def test_errors_name_file_line_and_row(file):
    with pytest.raises(RewardlabError, match=r"reward broken of .*mine.py, line \d+: ZeroDivisionError.*rollout 1 of group 0"):
        values(f"{file}:broken")
    with pytest.raises(RewardlabError, match="OpenRLHF is called with queries, prompts, labels by position; this one takes 2"):
        read_reward(f"{file}:with_two?as=openrlhf")
    with pytest.raises(RewardlabError, match="'vrl'; did you mean verl"):
        read_reward(f"{file}:broken?as=vrl")


def test_names_are_checked_before_torch_is_imported(file, tmp_path):
    names.check_reward(f"{file}:as_verl?as=verl")
    names.check_reward(f"{file}?as=verl")
    with pytest.raises(RewardlabError, match="there is no reward file"):
        names.check_reward(f"{tmp_path}/other.py:f?as=verl")


def test_a_formula_whose_files_are_not_quoted_says_so(file):
    for written in (f"{file}:broken + {file}:as_verl", f"0.5 * {file}:broken", f"{file}:broken - 1"):
        with pytest.raises(RewardlabError, match="in a formula files stand in double quotes"):
            names.check_reward(written)
    names.check_reward(f'0.5 * "{file}:broken"')


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("2*a.py:f", '2*"a.py:f"'),
        ("a.py:f+b.py:g", '"a.py:f"+"b.py:g"'),
        ("correct() - 0.5*b.py", 'correct() - 0.5*"b.py"'),
        ("a.py:f(x=1)>>./c/b.py:g?as=trl", '"a.py:f(x=1)">>"./c/b.py:g?as=trl"'),
        ('"a.py:f" + 2*my-own.py:g', '"a.py:f" + 2*"my-own.py:g"'),
    ],
)
def test_the_formula_is_shown_as_it_is_written_with_quotes(written, right):
    for read in (read_reward, names.check_reward):
        with pytest.raises(RewardlabError, match=f"in a formula files stand in double quotes: '{re.escape(right)}'"):
            read(written)


@pytest.mark.parametrize("written", ["a.py:f(x=(1, 2))", "my-own.py:f", "a.py:f(path='c-b.py', n=-2)", "a b.py"])
def test_a_file_by_itself_stands_in_no_quotes(written):
    with pytest.raises(RewardlabError, match="there is no reward file"):
        read_reward(written)


@pytest.mark.parametrize(
    ("arguments", "convention"),
    [
        ("prompts completions answer", "trl"),
        ("group completions", None),
        ("data_source solution_str ground_truth extra_info", "verl"),
        ("queries prompts labels", "openrlhf"),
        ("prompt completion answer state", "verifiers"),
        ("completions states", "verifiers"),
        ("completion answer", None),
        ("completion states", None),
        ("completion info", None),
        ("text info", None),
    ],
)
def test_what_the_arguments_tell(arguments, convention):
    assert recognised(set(arguments.split())) == convention


def test_columns_named_like_an_argument_of_verifiers_stay_columns(tmp_path):
    """Without a prompt or completion beside it, `states` is a column as ever."""
    call = Call(lambda reply, states: 0.0, tmp_path)
    assert not call.batched
    assert split("a.py:f") == ("a.py:f", None)


def test_verify_judges_by_a_function(file, tmp_path, capsys):
    """Right is what it pays 1 for; no verdict stays none."""
    replies = tmp_path / "replies.jsonl"
    replies.write_text("".join(json.dumps({"response": r, "answer": "4", "hint": "h"}) + "\n" for r in ("it is 4", "5", "?")))
    assert cli.main(["verify", f"{file}:as_verl", "--in", str(replies), "--out", str(tmp_path / "out.jsonl")]) == 0
    judged = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["correct"] for row in judged] == [True, False, None]
    assert judged[0]["why"] == "it pays 1"
    capsys.readouterr()
    assert cli.main(["verify", f"{file}:as_verl", "--in", str(replies), "--out", "-", "--x", "1"]) == 2
    assert "written with it" in capsys.readouterr().err
