"""Pairs whose two sides hold the prompt: as TRL's `extract_prompt` divides them, and as text of turns."""

import json

import pytest

from rewardlab import registry
from rewardlab.data.whole_pairs import in_turns, parted
from rewardlab.errors import RewardlabError
from rewardlab.scoreboard.own_pairs import benchmark


def said(*turns):
    """S, U or A, and what they say."""
    roles = {"S": "system", "U": "user", "A": "assistant"}
    return [{"role": roles[turn[0]], "content": turn[2:]} for turn in turns]


def row(chosen, rejected):
    return {"chosen": chosen, "rejected": rejected}


def shown(pair):
    return [[f"{role[0].upper()} {text}" for role, text in part] for part in pair[:3]]


MESSAGES = [
    ((("U q", "A a"), ("U q", "A b")), (["U q"], ["A a"], ["A b"])),
    ((("S s", "U q", "A a"), ("S s", "U q", "A b")), (["S s", "U q"], ["A a"], ["A b"])),
    ((("A hi", "U q", "A a"), ("A hi", "U q", "A b")), (["A hi", "U q"], ["A a"], ["A b"])),
    # three turns on one side; the last reply is no prompt, although the other side goes on after it
    ((("U q", "A a", "U r", "A c"), ("U q", "A b")), (["U q"], ["A a", "U r", "A c"], ["A b"])),
    ((("U q", "A a"), ("U q", "A a", "U r", "A c")), (["U q"], ["A a"], ["A a", "U r", "A c"])),
    ((("U q", "A a"), ("U q", "A a")), (["U q"], ["A a"], ["A a"])),
    # the user's messages differ first: the prompt ends before the reply that both share
    ((("U q", "A a", "U r", "A c"), ("U q", "A a", "U s", "A d")), (["U q"], ["A a", "U r", "A c"], ["A a", "U s", "A d"])),
]


@pytest.mark.parametrize(("sides", "parts"), MESSAGES)
def test_the_prompt_is_the_longest_beginning_that_both_share(sides, parts):
    pair = parted(row(*(said(*side) for side in sides)), "line 1")
    assert shown(pair) == list(map(list, parts))


@pytest.mark.parametrize(("sides", "parts"), MESSAGES[:6])
def test_trl_divides_them_alike(sides, parts):
    data_utils = pytest.importorskip("trl.data_utils")
    theirs = data_utils.extract_prompt(row(*(said(*side) for side in sides)))
    assert [theirs[name] for name in ("prompt", "chosen", "rejected")] == [said(*part) for part in parts]


HH = "\n\nHuman: Wo ist Köln?\n\nAssistant: Am Rhein.\n\nHuman: Sicher?\n\nAssistant:"


@pytest.mark.parametrize(
    ("chosen", "rejected", "parts"),
    [
        (HH + " Ja 🙂", HH + " Nein", (["U Wo ist Köln?", "A Am Rhein.", "U Sicher?"], ["A Ja 🙂"], ["A Nein"])),
        (HH + " Ja", HH, (["U Wo ist Köln?", "A Am Rhein.", "U Sicher?"], ["A Ja"], ["A "])),
        # without the empty line before the first turn; the reply holds one itself, and a name with a colon within a line
        (HH[2:] + " a\n\nb", HH[2:] + " Human: c", (["U Wo ist Köln?", "A Am Rhein.", "U Sicher?"], ["A a\n\nb"], ["A Human: c"])),
        # what one says in two turns in a row is one message
        ("Human: q\n\nHuman: r" + 2 * "\n\nAssistant: a", "Human: q\n\nHuman: r\n\nAssistant: c",
         (["U q\n\nr"], ["A a\n\na"], ["A c"])),
        (said("U q", "A a"), "\n\nHuman: q\n\nAssistant: b", (["U q"], ["A a"], ["A b"])),
    ],
)  # fmt: skip
def test_a_text_of_turns_is_divided_at_the_last_turn_of_the_assistant_that_both_share(chosen, rejected, parts):
    assert shown(parted(row(chosen, rejected), "line 1")) == list(map(list, parts))


def test_other_texts_are_none_of_turns():
    assert in_turns("A letter.\n\nHuman: q\n\nAssistant: a") is in_turns("Human: q") is in_turns("") is None
    assert parted({"chosen": "a", "rejected": "b"}, "") is parted({"prompt": "q"}, "") is None


@pytest.mark.parametrize("prompt", ["q", "\n\nHuman: q\n\nAssistant:", said("U q")])
def test_a_text_of_turns_beside_a_prompt_is_a_conversation_where_it_begins_with_it(prompt):
    sides = row("\n\nHuman: q\n\nAssistant: a", "\n\nHuman: q\n\nAssistant: b")
    assert shown(parted({"prompt": prompt, **sides}, "")) == [["U q"], ["A a"], ["A b"]]
    assert parted({"prompt": "Write a dialogue.", **sides}, "") is None


@pytest.mark.parametrize(
    ("chosen", "rejected", "says"),
    [
        (said("U q", "A a"), said("U r", "A a"), "no prompt in common: one begins with user: 'q', the other with user: 'r'. Give"),
        ("Human: q\n\nAssistant: a", "Human: r\n\nAssistant: a", "no prompt in common"),
        (said("A a"), said("A b"), "no prompt in common"),
        (said("S s", "A a"), said("S s", "A b"), "no prompt in common"),
        (said("U q", "A a"), "b", "chosen is a whole conversation, and rejected is 'b'"),
        (said("U q", "A a"), None, "chosen is a whole conversation, and rejected is None"),
        (said("U q", "A a", "U r"), said("U q", "A b"), "chosen ends with a message of user, and not with a reply"),
        ([{"content": "q"}, *said("A a")], said("U q", "A b"), "chosen is a list of .*message 1 is"),
        ([{"role": "wizard", "content": "q"}, *said("A a")], said("U q", "A b"), "no role 'wizard'"),
    ],
)  # fmt: skip
def test_what_shares_no_prompt_is_refused_with_its_place(chosen, rejected, says, tmp_path):
    (file := tmp_path / "pairs.jsonl").write_text(json.dumps(row(chosen, rejected)))
    for read in (lambda: registry.task(str(file)), lambda: benchmark.items(file)):
        with pytest.raises(RewardlabError, match=f"line 1.*{says}"):
            read()


def test_texts_that_hold_no_prompt_are_told_how_they_could(tmp_path):
    (file := tmp_path / "pairs.jsonl").write_text(json.dumps(row("a", "b")))
    for read in (lambda: registry.task(str(file)), lambda: benchmark.items(file)):
        with pytest.raises(RewardlabError, match=r"line 1.*no column 'prompt'.*chosen and rejected may hold it: .*Human:"):
            read()


def test_training_and_scoreboard_read_the_same_and_say_so_in_one_line(tmp_path, capsys):
    rows = [row(f"\n\nHuman: {i}?\n\nAssistant: a", f"\n\nHuman: {i}?\n\nAssistant: b") for i in range(3)]
    rows.append(row(said("U 3?", "A a", "U r", "A c"), said("U 3?", "A b")))
    (file := tmp_path / "pairs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    task = registry.task(str(file))
    problems = {p.question: p.meta for p in (*task.train.problems, *task.test)}
    assert problems["0?"] == {"chosen": "a", "rejected": "b"}
    assert problems["3?"] == {"chosen": ["a", "r", "c"], "rejected": "b"}
    assert (
        'the prompt of 3 rows (text of "Human:" and "Assistant:" turns) and 1 row (lists of messages); 1' in capsys.readouterr().err
    )
    items = benchmark.items(file)
    assert [(item.question, item.replies) for item in items] == [(f"{i}?", ("a", "b")) for i in range(3)]
    assert "1 of them differ in more than the last reply, and are left out" in capsys.readouterr().err
