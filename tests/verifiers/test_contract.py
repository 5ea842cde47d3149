"""What every verifier keeps to: gold is right, all else has a reason, nothing raises, threads and batches change nothing."""

from __future__ import annotations

import functools
import json
import threading
from pathlib import Path

import pytest
from served_model import serving, sound_judge
from verifier_cases import CASES, SERVED

from rewardlab import registry
from rewardlab.api.verify import verify_file
from rewardlab.commands.cli import main
from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Workers
from rewardlab.registry import load_part
from rewardlab.verifiers.contract import Pair, Verdict, right, verifier, wrong
from rewardlab.verifiers.pages import browser

HOSTILE = [
    "", " ", "\n" * 1000, "\x00", "\ud800", "(" * 5000, "\\boxed{" * 500, "}" * 500, "9" * 5000, "1e999999999", "\\frac{1}{0}",
    "<think>" * 300, "[" * 3000, "{" * 3000, '{"a":' * 500, "```python\n" * 100, "answer is " * 2000, "-" * 5000, "a, " * 4000,
    "NaN", "None", "null", "Infinity", "🙂" * 500, "\u202e" + "1", "a" * 100_000, "١٢٣", "=" * 3000, "SELECT " * 500,
]  # fmt: skip


def test_every_verifier_has_its_cases():
    assert set(CASES) == set(registry.verifiers())


@pytest.fixture(scope="module")
def judge():
    with serving(sound_judge) as server:
        yield server.name


@pytest.fixture(params=sorted(CASES))
def case(request):
    if request.param == "web_page" and (lacks := browser.missing()):
        pytest.skip(lacks)
    part, golds, wrongs = CASES[request.param]
    if SERVED in part.values():
        part = part | {"model": request.getfixturevalue("judge")}
    return registry.part("reward", request.param, **part), golds, wrongs


def test_gold_is_right_and_what_is_not_gold_is_wrong_with_a_reason(case):
    part, golds, wrongs = case
    for pair, found in zip(golds, part.check_all(golds), strict=True):
        assert found.correct is True, (pair, found)
    for pair, found in zip(wrongs, part.check_all(wrongs), strict=True):
        assert found.correct is False, (pair, found)
        assert found.why, pair
        assert found.pays is not None
        assert found.pays < 1, pair


def test_whatever_the_reply_is_there_is_a_verdict(case):
    part, golds, _ = case
    gold = golds[0][1]
    for reply, found in zip(HOSTILE, part.check_all([(reply, gold) for reply in HOSTILE]), strict=True):
        assert found.correct is False, (reply[:50], found)
        assert found.why
        assert isinstance(found.extracted, str)


def test_a_batch_a_thread_and_another_order_change_nothing(case):
    part, golds, wrongs = case
    pairs = [*golds, *wrongs]
    alone = [part.check(*pair).correct for pair in pairs]
    assert [v.correct for v in part.check_all(pairs)] == alone
    assert [v.correct for v in part.check_all(pairs[::-1])] == alone[::-1]
    found: list[Verdict] = []
    thread = threading.Thread(target=lambda: found.extend(part.check_all(pairs)))
    thread.start()
    thread.join()
    assert [v.correct for v in found] == alone


def test_engines_get_the_same_verdicts(case):
    part, golds, wrongs = case
    pairs = [*golds, *wrongs]
    pays = [v.pays for v in part.check_all(pairs)]
    completions = [[{"role": "assistant", "content": reply}] for reply, _ in pairs]
    assert part.trl()(prompts=[""] * len(pairs), completions=completions, solution=[gold for _, gold in pairs]) == pays
    reply, gold = golds[0]
    assert part.verl()("data", reply, gold, {"split": "test"})["score"] == pays[0]
    assert load_part(part.to_json()) == part


# ---- the decorator ---------------------------------------------------------------------------------------------------


@verifier
def touchy(response: str, answer: str, *, limit: int = 3) -> Verdict:
    if len(response) > limit or answer == "unusable":
        raise ValueError("no")
    return right(response) if response == answer else wrong("another")


@verifier(over="pairs")
def together(pairs: list[Pair]) -> list[Verdict]:
    if any(pair.response == "bomb" for pair in pairs):
        raise RuntimeError("boom")
    return [right() if pair.response == pair.answer else wrong("another") for pair in pairs]


def test_an_exception_is_the_replys_fault_only_if_an_empty_reply_gets_a_verdict():
    assert touchy().check("long reply", "a") == wrong("the reply broke touchy: ValueError: no")
    assert touchy().check("a", "unusable").correct is None
    assert touchy(limit=20).check("long reply", "long reply").correct is True


def test_one_reply_cannot_spoil_the_batch():
    found = together().check_all([("a", "a"), ("bomb", "a"), ("b", "a")])
    assert [v.correct for v in found] == [True, False, False]
    assert "boom" in found[1].why


def test_a_reply_that_is_no_text_is_wrong():
    assert touchy().check(None, "a").correct is False
    assert together().check(["a"], "a").correct is False


# ---- rewardlab verify ------------------------------------------------------------------------------------------------


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_file_is_judged_in_order_and_broken_lines_are_named(tmp_path, monkeypatch):
    # beyond this, other processes take over
    monkeypatch.setattr("rewardlab.api.verify.ALONE", 0.0)
    rows = [json.dumps({"response": f"the answer is {i % 7}", "answer": "3", "id": i}) for i in range(100)]
    rows[10:10] = ["{broken", '{"response": "3"}', "[1]", ""]
    out = tmp_path / "out.jsonl"
    said = verify_file("final_number", write(tmp_path / "in.jsonl", *rows), out)
    lines = out.read_text().splitlines()
    # every line of the input has its line in the output, the broken ones and the blank one too
    assert [json.loads(line)["correct"] for line in lines[10:13]] == [None] * 3
    assert lines[13] == ""
    judged = [json.loads(line) for line in lines[:10] + lines[14:]]
    assert [row["id"] for row in judged] == list(range(100))
    assert [row["correct"] for row in judged] == [i % 7 == 3 for i in range(100)]
    assert judged[0] == {
        "response": "the answer is 0", "answer": "3", "id": 0, "correct": False, "extracted": "0",
        "why": "said '0', the answer is '3'",
    }  # fmt: skip
    assert [line.split(":")[0] for line in said["broken_lines"]] == ["line 11", "line 12", "line 13"]
    assert (said["rows"], said["right"], said["wrong"], said["no_verdict"], said["broken"]) == (103, 14, 86, 0, 3)


def test_rows_are_judged_here_where_no_other_process_starts_in_time(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("rewardlab.api.verify.ALONE", 0.0)
    monkeypatch.setattr("rewardlab.api.verify.Workers", functools.partial(Workers, patience=0.0))
    rows = [json.dumps({"response": f"the answer is {i % 7}", "answer": "3"}) for i in range(100)]
    said = verify_file("final_number", write(tmp_path / "in.jsonl", *rows), tmp_path / "out.jsonl")
    assert (said["rows"], said["right"]) == (100, 14)
    assert "did not start within 0 s; rows are judged in one process" in capsys.readouterr().err


def test_replies_without_an_answer_are_counted_among_the_wrong_ones(tmp_path):
    rows = [json.dumps({"response": reply, "answer": "3"}) for reply in ("It is 3.", "It is 4.", "Who knows?", "")]
    said = verify_file("math", write(tmp_path / "in.jsonl", *rows), tmp_path / "out.jsonl")
    assert (said["right"], said["wrong"], said["no_answer"], said["no_verdict"]) == (1, 3, 2, 0)


def test_an_unusable_gold_answer_is_null(tmp_path):
    out = tmp_path / "out.jsonl"
    verify_file("final_number", write(tmp_path / "in.jsonl", '{"response": "3", "answer": "three"}'), out)
    assert json.loads(out.read_text())["correct"] is None


def test_what_cannot_be_judged_is_refused_in_a_line(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", '{"response": "3", "answer": "3"}')
    with pytest.raises(RewardlabError, match="final_number"):
        verify_file("final_numbr", source, tmp_path / "out.jsonl")
    with pytest.raises(RewardlabError, match="there is no file"):
        verify_file("final_number", tmp_path / "no.jsonl", tmp_path / "out.jsonl")
    assert main(["verify", "exact_match", "--in", str(source), "--out", str(tmp_path / "o.jsonl"), "--normalisd", "true"]) == 2
    assert "normalised" in capsys.readouterr().err
    assert not (tmp_path / "o.jsonl").exists()


def test_columns_of_trl_reach_the_verifier():
    part = registry.part("reward", "choice")
    paid = part.trl()(completions=["Rome", "Oslo"], answer=["B", "B"], options=[["Paris", "Rome", "Oslo"]] * 2)
    assert paid == [1.0, 0.0]


def test_trl_is_told_that_no_column_holds_the_answers(case):
    part, golds, _ = case
    replies, answers = [reply for reply, _ in golds[:2]], [gold for _, gold in golds[:2]]
    paid = part.trl()(completions=replies, answer=answers)
    assert part.trl(answer="result")(completions=replies, result=answers, hint=["a"] * len(replies)) == paid
    with pytest.raises(RewardlabError, match=r"no column 'reslt'; .*: hint, result\. Name .*answer=NAME"):
        part.trl(answer="reslt")(completions=replies, hint=["a"] * len(replies), result=answers)


def test_trl_hears_of_it_where_nothing_can_be_judged():
    for name in ("math", "final_answer", "choice", "exact_match"):
        reward = registry.part("reward", name).trl()
        with pytest.raises(RewardlabError, match=f"{name} got no gold answers.*answer, solution, .* prompts: result"):
            reward(prompts=["", ""], completions=["It is 5.", "6"], result=["5", "5"], log_metric=print)
        # an answer that one row lacks is no verdict for that row alone, and no completion is no error
        assert reward(completions=["It is 5.", "6"], answer=[None, "7"])[0] is None
        assert reward(completions=[]) == []
    # instructions may be checked without any answer of the data
    assert registry.part("reward", "tags").trl()(completions=["<think>a</think><answer>b</answer>", "c"]) == [1.0, 0.0]


@pytest.mark.parametrize("name", ["math", "final_answer", "final_number", "two_way_match"])
def test_an_answer_that_a_table_lacks_is_no_answer(name):
    nan = float("nan")
    part = registry.part("reward", name)
    assert part.trl()(prompts=["a", "b"], completions=["5", "5"], answer=[nan, "5"]) == [None, 1.0]
    assert part.check("5", nan).correct is None
    assert part.verl()("", "5", nan)["acc"] is None


def test_trl_is_told_of_a_column_of_answers_of_another_length():
    with pytest.raises(RewardlabError, match="the column 'answer' has 1 answer for 2 completions"):
        registry.part("reward", "math").trl()(prompts=["a", "b"], completions=["5", "6"], answer=["5"])
