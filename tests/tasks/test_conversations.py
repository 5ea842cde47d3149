"""Roles, turns and replies of conversations, however published data spells them."""

from __future__ import annotations

import json

import pytest

from rewardlab.api.planning import plan
from rewardlab.errors import RewardlabError
from rewardlab.tasks.records import records

ASKED, SAID = "Start with 3. Add 4.", "Answer: 7"
SECOND = {"prompt": "Start with 1. Add 1.", "answer": "2"}


def read(tmp_path, row, *others, name="mine.jsonl", **options):
    """The problem of the first row."""
    path = tmp_path / name
    path.write_text("".join(json.dumps(r) + "\n" for r in (row, *others)))
    task = records(path=str(path), **options)
    return next(p for p in (*task.train.problems, *task.test) if p.place.endswith("line 1"))


def other_like(row):
    return json.loads(json.dumps(row).replace(ASKED, SECOND["prompt"]))


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        *[("Human", "Assistant"), ("USER", "ASSISTANT"), ("user", "model"), ("user", "bot"), ("human", "ai"), ("user", "GPT")],
        *[("Human", "gpt-4"), ("prompter", "assistant"), ("human", "chatgpt"), (" User ", "Claude"), ("human", "GPT4")],
        *[("<|user|>", "<|assistant|>"), ("Human:", "AI:"), ("person", "Chatbot"), ("HUMAN", "GPT-3.5-turbo")],
    ],
)
@pytest.mark.parametrize(
    ("column", "who", "what"),
    [
        ("messages", "role", "content"),
        ("conversations", "from", "value"),
        ("messages", "from", "content"),
        ("prompt", "role", "content"),
    ],
)
def test_the_reply_at_the_end_stands_in_no_prompt(tmp_path, asks, says, column, who, what):
    row = {column: [{who: asks, what: ASKED}, {who: says, what: SAID}], "answer": "7"}
    problem = read(tmp_path, row, other_like(row))
    assert [(m.role, m.text) for m in problem.prompt] == [("user", ASKED)]
    assert (problem.answer, problem.meta["solution"]) == ("7", SAID)


def test_system_and_tool_roles_are_read_too(tmp_path):
    turns = [("Developer", "Be brief."), ("human", "Look it up."), ("gpt", "search()"), ("Observation", "7"), ("user", ASKED)]
    problem = read(tmp_path, {"prompt": [{"from": r, "value": t} for r, t in turns], "answer": "7"}, SECOND)
    assert [m.role for m in problem.prompt] == ["system", "user", "assistant", "tool", "user"]


@pytest.mark.parametrize("content", [None, "", "Let me see."])
@pytest.mark.parametrize("arguments", [{"city": "Köln"}, '{"city": "Köln"}'])
@pytest.mark.parametrize("written", [list, json.dumps])
def test_calls_in_a_prompt_are_read_as_models_write_them(tmp_path, content, arguments, written):
    """Their results answer nothing without them; a reply that calls is still not learnt from."""
    calls = [{"id": "1", "type": "function", "function": {"name": "weather", "arguments": arguments}}]
    said = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": content, "tool_calls": calls}]
    said += [{"role": "tool", "tool_call_id": "1", "content": "12 C"}, {"role": "user", "content": "And tomorrow?"}]
    problem = read(tmp_path, {"prompt": written(said), "answer": "7"}, SECOND)
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Köln"}}\n</tool_call>'
    assert [m.text for m in problem.prompt] == [ASKED, f"{content}\n{call}" if content else call, "12 C", "And tomorrow?"]
    assert [m.role for m in problem.prompt] == ["user", "assistant", "tool", "user"]
    with pytest.raises(RewardlabError, match="line 1: a reply calls a tool"):
        read(tmp_path, {"prompt": said[:2]}, {"prompt": "b", "completion": "c"})


@pytest.mark.parametrize("role", ["oracle", "narrator", "u ser", "", "gptish"])
@pytest.mark.parametrize("column", ["prompt", "messages", "chosen", "completion"])
def test_an_unknown_role_is_named_with_its_line_and_the_roles_there_are(tmp_path, role, column):
    reply = [{"role": role, "content": SAID}]
    said = [{"role": "user", "content": ASKED}]
    row = {column: said + reply} if column in ("prompt", "messages") else {"prompt": ASKED, column: reply}
    first = {column: said} if column == "messages" else {"prompt": "b", column: "a"}
    with pytest.raises(RewardlabError, match=rf"line 2: no role {role!r} .*system.*user \(human.*assistant \(gpt.*tool"):
        read(tmp_path, first, row)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            "message 2, of 'assistant', has a function_call, which is of an older API, and no text: write it as tool_calls",
        ),
        ({"role": "user", "content": None}, "message 2, of 'user', has no text: its content is None"),
        ({"role": "user", "content": [{"type": "video_url"}]}, "message 2, of 'user', has no text: its content is .*video_url"),
        ({"content": "hi"}, "message 2 is .*hi"),
        ("hi", "message 2 is 'hi'"),
        ({"role": 1, "content": "hi"}, "message 2 is .*'role': 1"),
    ],
)
def test_what_is_no_message_is_said_in_words(tmp_path, message, says):
    with pytest.raises(RewardlabError, match=f"line 1: .*{says}"):
        read(tmp_path, {"prompt": [{"role": "user", "content": ASKED}, message], "answer": "7"}, SECOND)


@pytest.mark.parametrize("column", ["completion", "chosen"])
def test_a_prompt_that_ends_with_a_reply_has_no_other_reply(tmp_path, column):
    row = {"prompt": [{"role": "Human", "content": ASKED}, {"role": "bot", "content": SAID}], column: "8"}
    with pytest.raises(RewardlabError, match=f"line 1: the prompt ends with a reply, and the column '{column}' holds another"):
        read(tmp_path, row, {"prompt": "b", column: "c"})


# ---- pairs -----------------------------------------------------------------------------------------------------------


def turns(*texts, names=("assistant", "user")):
    return [{"role": names[i % 2], "content": text} for i, text in enumerate(texts)]


@pytest.mark.parametrize("side", ["chosen", "rejected"])
@pytest.mark.parametrize("texts", [["Answer: 0", "Answer: 1", "Answer: 2"], ["Answer: 0"], ["a", "b"]])
def test_several_replies_are_not_taken_for_turns(tmp_path, side, texts):
    row = {"prompt": ASKED, "chosen": SAID, "rejected": "Answer: 8"}
    with pytest.raises(RewardlabError, match=rf"line 2: {side} is a list of {len(texts)} texts; .*a row for each pair"):
        read(tmp_path, {**row, "prompt": "b"}, row | {side: texts})


@pytest.mark.parametrize("asks", ["user", "Human"])
@pytest.mark.parametrize("begins", [True, False])
def test_turns_of_a_pair_are_those_after_the_prompt(tmp_path, asks, begins):
    names = (asks, "Assistant")
    chosen = turns(ASKED, "7", "and 1?", "8", names=names) if begins else turns("7", "and 1?", "8", names=names[::-1])
    row = {"prompt": ASKED, "chosen": chosen, "rejected": turns(ASKED, "9", names=names)}
    meta = read(tmp_path, row, other_like(row)).meta
    assert meta == {"chosen": ["7", "and 1?", "8"], "rejected": "9"}


def test_one_message_is_a_conversation_of_one(tmp_path):
    row = {
        "conversations": [{"from": "human", "value": ASKED}],
        "chosen": {"from": "gpt", "value": "7"},
        "rejected": {"from": "gpt", "value": "8"},
    }
    assert read(tmp_path, row, other_like(row)).meta == {"chosen": "7", "rejected": "8"}
    row = {"prompt": {"role": "Human", "content": ASKED}, "completion": {"role": "Bot", "content": "7"}}
    problem = read(tmp_path, row, other_like(row))
    assert ([(m.role, m.text) for m in problem.prompt], problem.meta) == ([("user", ASKED)], {"solution": "7"})


def test_a_pair_may_hold_the_conversation_before_the_question(tmp_path):
    whole = turns("Hello", "Hello!", ASKED, "7", names=("user", "assistant"))
    row = {"prompt": ASKED, "chosen": whole, "rejected": [*whole[:-1], {"role": "assistant", "content": "8"}]}
    assert read(tmp_path, row, other_like(row)).meta == {"chosen": "7", "rejected": "8"}
    pair_alone = {"chosen": row["chosen"], "rejected": row["rejected"]}
    problem = read(tmp_path, pair_alone, other_like(pair_alone))
    assert ([m.text for m in problem.prompt], problem.meta) == (["Hello", "Hello!", ASKED], {"chosen": "7", "rejected": "8"})


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (turns("Other?", "7", names=("user", "assistant")), "chosen is a conversation that does not begin with the row's prompt"),
        (turns(ASKED, names=("user", "assistant")), "chosen ends without a reply"),
        ([7, 8], "chosen is a text or a list of"),
        (turns("7", "and 1?"), None),
    ],
)
def test_pairs_that_do_not_follow_the_prompt_are_refused(tmp_path, chosen, says):
    row = {"prompt": ASKED, "chosen": chosen, "rejected": "8"}
    if says is None:
        # the user's last message is answered by nobody, and nothing is learned from it
        assert read(tmp_path, row, other_like(row)).meta["chosen"] == ["7", "and 1?"]
        return
    with pytest.raises(RewardlabError, match=f"line 1: {says}"):
        read(tmp_path, row, SECOND)


# ---- before anything is trained --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "column", "value"),
    [
        *[("dpo", "chosen", empty) for empty in ("", "  ", None, [], 5, turns(""), {"a": 1})],
        *[("dpo", "rejected", empty) for empty in ("", [])],
        ("kto", "chosen", 5),
        *[("rlhf", "rejected", empty) for empty in ("", 5)],
        ("sft", "completion", "\n"),
        ("sft", "completion", turns("a", "b", "")),
    ],
)
def test_a_row_without_a_reply_to_learn_from_is_named_before_training(tmp_path, method, column, value):
    row = {"completion": "7"} if method == "sft" else {"chosen": "7", "rejected": "8"}
    rows = [{"prompt": f"Start with {i}. Add 1.", **row} for i in range(60)]
    rows[57][column] = value
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    with pytest.raises(RewardlabError, match=r"mine\.jsonl, line 58\b"):
        plan(method, "untrained", str(tmp_path / "mine.jsonl"))


def test_kto_takes_rows_with_one_reply_and_names_those_with_none(tmp_path):
    rows = [{"prompt": f"Start with {i}. Add 1.", "chosen": "7", "rejected": ""} for i in range(9)]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    plan("kto", "untrained", str(path))
    # an empty reply says as little where it ends a conversation
    rows[4] |= {"chosen": "7", "rejected": turns(" ")}
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    plan("kto", "untrained", str(path))
    rows[4]["chosen"] = ""
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    with pytest.raises(RewardlabError, match=r"line 5: there is no reply to learn from: no 'chosen' and no 'rejected'"):
        plan("kto", "untrained", str(path))
