"""Raters that fail: on an item, which then has no verdict, or altogether, so that the others' scoreboard comes out without them."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager

import pytest

from rewardlab.commands.cli import main
from rewardlab.errors import RewardlabError, Unusable
from rewardlab.models.embedded import tokenizer
from rewardlab.scoreboard import run
from rewardlab.scoreboard.asked import asked as asked_of
from rewardlab.scoreboard.asked import benchmark_of
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.kept import resumable
from rewardlab.scoreboard.raters import Rater
from rewardlab.scoreboard.raters.rater import verdicts
from rewardlab.scoreboard.run import scoreboard
from tests.helpers.checkpoints import checkpoint
from tests.helpers.served_model import serving

pytestmark = pytest.mark.usefixtures("own_cache")

MINE = """
def raises(prompt, completion):
    if "3+3" in prompt:
        raise ValueError("no threes")
    return -len(completion)

def nan(prompt, completion):
    return float("nan") if "3+3" in prompt else -len(completion)

def infinite(prompt, completion):
    return float("inf") if "3+3" in prompt else -len(completion)

def together(prompts, completions):
    if any("3+3" in prompt for prompt in prompts):
        raise ValueError("no threes")
    return [-len(completion) for completion in completions]

def worse_reply(prompt, completion):
    if completion == "7, as it is so":
        raise ValueError("no sevens")
    return -len(completion)

def never(prompt, completion):
    return 1 / 0
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """pairs.jsonl and mine.py in the working folder; the shorter reply is the better one."""
    rows = [{"prompt": f"{i}+{i}?", "chosen": f"{2 * i}", "rejected": f"{2 * i + 1}, as it is so"} for i in range(12)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of(*raters, **more):
    return scoreboard(raters, ["pairs"], data="pairs.jsonl", **more)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("raises", "line 4: ValueError: no threes (reply 1)"), ("nan", "returned nan (reply 1"), ("infinite", "returned inf"),
        ("together", "ValueError: no threes (2 rollouts at once: reply 1 to reply 2)"), ("worse_reply", "no sevens (reply 2)"),
    ],
)  # fmt: skip
def test_an_item_on_which_a_function_fails_has_no_verdict_and_the_rest_of_the_board_stands(own, function, says):
    document = of(f"mine.py:{function}", "length")
    entry = document["raters"][f"mine.py:{function}"]["pairs"]
    assert entry["figures"]["overall"]["value"] == pytest.approx(11 / 12)
    assert (entry["failed"], entry["no_verdict"], entry["why"]) == (1, pytest.approx(1 / 12), "")
    assert says in entry["failure"]
    assert entry["failure_where"] == "pairs.jsonl, line 4"
    assert document["raters"]["length"]["pairs"]["failed"] == 0
    assert document["failed"] == []


def test_what_failed_is_told_and_asked_again_next_time_and_nothing_else_is(own, capsys):
    command = ["scoreboard", "mine.py:raises", "--on", "pairs", "--data", "pairs.jsonl", "--out", "board"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "mine.py:raises failed on 1 item, first on pairs.jsonl, line 4: the reward raises of" in shown
    assert "no threes" in (own / "board" / "index.html").read_text()
    assert "no threes" in (own / "board" / "cards" / "mine.py-raises.md").read_text()
    assert len([line for file in (own / "cache" / "scoreboard").iterdir() for line in file.read_text().splitlines()]) == 11
    # verdicts that were written say that they failed, too
    again = of("outputs:board/verdicts.jsonl")["raters"]["mine.py:raises"]["pairs"]
    assert (again["failed"], again["failure_where"]) == (1, "pairs.jsonl, line 4")


def test_a_rater_that_fails_always_or_cannot_be_loaded_is_left_out_and_the_exit_code_says_so(own, capsys):
    lost = ["mine.py:never", "nowhere.py:score", "runs/nothing"]
    command = ["scoreboard", *lost, "length", "--on", "pairs", "--data", "pairs.jsonl"]
    assert main(command) == 1
    shown, told = capsys.readouterr()
    for text in (
        "mine.py:never on pairs: it failed on all 12 items; first, on pairs.jsonl, line 1: the reward never of",
        "nowhere.py:score: there is no reward file nowhere.py", "runs/nothing: there is no folder runs/nothing",
    ):  # fmt: skip
        assert text in shown
        # at once, too: others may take hours
        assert text in told
    assert "length" in shown
    assert main([*command, "--json"]) == 1
    assert [row["rater"] for row in json.loads(capsys.readouterr().out)["failed"]] == lost


def test_where_every_rater_fails_the_error_names_each(own):
    with pytest.raises(RewardlabError, match=r"(?s)no rater could be asked:.*mine\.py:never on pairs: .*nowhere\.py"):
        of("mine.py:never", "nowhere.py:score")
    with pytest.raises(
        RewardlabError, match=r"^mine\.py:never on pairs: it failed on all 12 items; first, on pairs\.jsonl, line 1"
    ):
        of("mine.py:never")
    with pytest.raises(RewardlabError, match=r"^there is no reward file nowhere\.py$"):
        of("nowhere.py:score")


class Fails(Rater):
    """Raises on some items, whichever it is asked about at once.  error: what it raises."""

    def __init__(self, error: Exception, on: str = "3+3?"):
        super().__init__("fails")
        self.error, self.on = error, on
        self.asked: list[str] = []

    def fingerprint(self):
        return f"fails {id(self)}"

    def judge(self, items, benchmark):
        self.asked += [item.question for item in items]
        if any(item.question == self.on for item in items):
            raise self.error
        return [Verdict((1.0, 0.0)) for _ in items]


def test_items_that_were_asked_together_with_one_that_fails_keep_their_verdicts(own):
    entry = of(Fails(KeyError("roles")))["raters"]["fails"]["pairs"]
    assert entry["figures"]["overall"]["value"] == pytest.approx(11 / 12)
    assert (entry["failure"], entry["failure_where"]) == ("KeyError: 'roles'", "pairs.jsonl, line 4")


def test_a_rater_that_cannot_be_used_any_more_is_not_asked_on_and_what_it_said_is_kept(own):
    rater = Fails(Unusable("the budget is used up"), on="9+9?")
    document = of(rater, "length")
    (row,) = document["failed"]
    assert row["why"].startswith("the budget is used up; ")
    assert row["why"].endswith("of 12 items are scored and kept: the same command resumes there")
    before = len(rater.asked)
    rater.on = "none"
    assert of(rater)["raters"]["fails"]["pairs"]["figures"]["overall"]["value"] == 1.0
    assert len(rater.asked) < before + 12


def test_ctrl_c_says_what_is_kept():
    with pytest.raises(KeyboardInterrupt) as stop, resumable([Verdict(), None, Verdict(failed=True)]):
        raise KeyboardInterrupt
    assert stop.value.__notes__ == ["1 of 3 items are scored and kept: the same command resumes there"]


def test_a_score_that_is_not_finite_is_a_failure_and_says_so(own):
    one = Item("a", users("?"), ("x", "y"), (1.0, 0.0))
    (verdict,) = verdicts([one], [1.0, float("nan")])
    assert (verdict.scores, verdict.failed, verdict.why) == ((1.0, None), True, "the score of reply 2 is nan")
    # a reward that gives no verdict did not fail
    (verdict,) = verdicts([one], [1.0, None], ["", "no answer in it"])
    assert (verdict.failed, verdict.why) == (False, "no answer in it")


@contextmanager
def silent():
    """The port of a server that takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


def test_a_judge_that_never_answers_is_left_after_its_first_items(own):
    with silent() as port:
        judge = f"judge:openai:http://127.0.0.1:{port}/v1#x,timeout=0.1,retries=0?by=text"
        (row,) = of(judge, "length")["failed"]
    assert "has answered none of 8 requests: no answer within 0.1 s; is it up?" in row["why"]


def test_a_judge_s_item_that_got_no_answer_is_asked_again_next_time(own):
    with serving(lambda body: "[[A]]") as server:
        name = f"judge:{server.name},retries=0?by=text"
        server.troubles = ["400"]
        entry = of(name)["raters"][name]["pairs"]
        assert entry["failed"] == 1
        assert "HTTP 400" in entry["failure"]
        asked = len(server.asked)
        assert of(name)["raters"][name]["pairs"]["failed"] == 0
        # both orders of that item
        assert len(server.asked) == asked + 2


@pytest.mark.parametrize(("name", "unread"), [("rewardbench", 0.5), ("rewardbench-2", 0.25)])
def test_a_judge_that_rates_each_reply_and_cannot_be_read_is_no_reward_model(tmp_path, name, unread):
    rows = [row for row in benchmark_of(name).example if "ties" not in row["subset"].lower()]
    (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving(lambda body: "I would rather not say.") as server:
        judge = f"judge:{server.name}?by=text&kind=scale"
        for _ in range(2):
            # kept the second time
            entry = scoreboard([judge], [name], data=path)["raters"][judge][name.replace("-", "_")]
            assert (entry["figures"]["overall"]["value"], entry["failed"]) == (unread, 0)


def test_equal_rows_are_counted(own, capsys):
    (own / "pairs.jsonl").write_text((own / "pairs.jsonl").read_text() * 2)
    assert main(["scoreboard", "length", "--on", "pairs", "--data", "pairs.jsonl", "--out", "board"]) == 0
    assert "12 of 24 rows are equal to an earlier one, with which they count once" in capsys.readouterr().out
    assert "12 more rows are equal to one of these." in (own / "board" / "index.html").read_text()


def test_rows_of_a_published_benchmark_that_are_left_out_are_told(tmp_path, capsys):
    """Six rows of four ids: one stands twice, and one has another question under its id."""
    rows = list(benchmark_of("rewardbench").example)[:4]
    for _ in range(2):
        rows.append({**rows[0], "prompt": rows[0]["prompt"] if len(rows) == 4 else "Another question?"})
    (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    board = ["--data", str(path), "--out", str(tmp_path / "board")]
    assert main(["scoreboard", "length", "--on", "rewardbench", *board]) == 0
    said = capsys.readouterr().out
    assert "1 of 6 rows are equal to an earlier one" in said
    assert "1 of 6 rows have the id of an earlier row, which is another one, and are left out (first rows.jsonl, line 6)" in said
    page = (tmp_path / "board" / "index.html").read_text()
    assert "1 more rows have the id of an earlier one, ask something else and are left out (first rows.jsonl, line 6)." in page


def test_steps_with_other_labels_are_other_rows(tmp_path):
    row = benchmark_of("prmbench").example[0]
    rows = [row, row, {**row, "error_steps": [1] if list(row["error_steps"]) != [1] else [2]}]
    (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked_rows = asked_of("prmbench", path)
    assert (len(asked_rows.items), asked_rows.equal, asked_rows.other, asked_rows.where) == (1, 1, 1, "rows.jsonl, line 3")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["length", "--data", "pairs.jsonl"], "say which benchmark pairs.jsonl holds: --on pairs"),
        (["--on", "pairs", "--data", "pairs.jsonl"], "name a rater: a checkpoint"),
        (["length", "--on", "pairs", "--data", "empty"], "no file in the folder empty is called .jsonl"),
        (["./no/model?label=x", "--on", "pairs", "--data", "pairs.jsonl"], "there is no folder ./no/model: a rater is"),
    ],
)
def test_what_cannot_be_asked_is_told_with_what_to_do(own, capsys, words, says):
    (own / "empty").mkdir()
    assert main(["scoreboard", *words]) == 2
    assert says in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_scored(own, capsys):
    rater = Fails(KeyError("roles"))
    with pytest.raises(OSError, match="pairs"):
        of(rater, out="pairs.jsonl")
    assert rater.asked == []


def test_one_rater_and_one_benchmark_need_no_list_and_what_is_no_rater_is_refused(own):
    assert scoreboard("length", "pairs", data="pairs.jsonl")["raters"]["length"]["pairs"]["items"] == 12
    with pytest.raises(RewardlabError, match=r"a rater is a name, or a Rater, and not .*FILE\.py:FUNCTION"):
        of(len)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"prompt": }', "not JSON: Expecting value at column 12"), ('{"prompt": "cut off', "string starting at column 12"),
        ("{'prompt': 1}", "in double quotes at column 2"),
    ],
)  # fmt: skip
def test_a_broken_line_is_told_by_one_number_of_a_line(own, line, says):
    with open(own / "pairs.jsonl", "a") as file:
        file.write(line + "\n")
    with pytest.raises(RewardlabError, match=r"^pairs\.jsonl, line 13: not JSON: [^:]*$") as told:
        of("length")
    assert str(told.value).endswith(says)


def test_how_many_differences_are_not_printed_is_said(own, capsys):
    said = [{"rater": f"r{k}", "id": "a", "scores": [k % 2, 0]} for k in range(10)]
    (own / "one.jsonl").write_text(json.dumps({"id": "a", "prompt": "2+2?", "chosen": "4", "rejected": "5"}) + "\n")
    (own / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    assert main(["scoreboard", "outputs:said.jsonl", "--on", "pairs", "--data", "one.jsonl"]) == 0
    assert "40 of 45 differences, of which 0 are clear; all of them: --json, or --out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"question": "q", "good": "a", "bad": "b"}, "no column 'chosen'.* has question, good, bad. A pair has the columns prompt"),
        ({"question": "q", "chosen": "a", "rejected": "b"}, "no column 'prompt' among question, chosen, rejected"),
        ({"prompt": "q", "chosen": "a", "rejected": None}, "rejected is a reply, .* and not null"),
        ({"prompt": "q", "chosen": 7, "rejected": "b"}, "chosen is a reply, .* and not 7"),
    ],
)
def test_a_pair_with_other_columns_says_which_it_has_and_needs(own, row, says):
    (own / "pairs.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(RewardlabError, match=rf"pairs\.jsonl, line 1.*{says}"):
        of("length")


def test_a_name_of_the_hub_without_its_prefix_is_told_how_it_is_written(own):
    with pytest.raises(
        RewardlabError, match="there is no file or folder nobody/pairs; a dataset of the hub is written hf:nobody/pairs"
    ):
        scoreboard("length", "pairs", data="nobody/pairs")


def test_an_empty_reply_is_told_and_has_no_score_where_there_is_nothing_to_score(own, capsys):
    checkpoint(own / "model", tokenizer())
    rows = [{"prompt": "1+1?", "chosen": "2", "rejected": "3"}, {"prompt": "2+2?", "chosen": "4", "rejected": " "}]
    (own / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = of("length", "model?as=likelihood", "model?as=embedder", device="cpu")["raters"]
    assert "1 row has an empty reply (first pairs.jsonl, line 2)" in capsys.readouterr().err
    entries = [found[rater]["pairs"] for rater in found]
    assert [entry["no_verdict"] for entry in entries[:2]] == [0.0, 0.5]
    assert entries[1]["why"] == "the reply is empty, and has no step"
    assert [entry["failed"] for entry in entries] == [0, 0, 0]


def test_over_a_cluster_the_items_that_end_processes_are_found_one_by_one(own, monkeypatch):
    """Processes die over those calls that hold an item of `deadly`."""
    calls, deadly = [], set()

    def spread(what, workers, function, about, asked, sizes, device, hidden, crashed):
        for _, items in asked:
            calls.append(len(items))
            yield (
                crashed("3 processes died over it")
                if deadly & {x.id for x in items}
                else ([Verdict((1.0, 0.0)) for _ in items], {})
            )

    monkeypatch.setattr(run, "spread", spread)
    one = asked_of("pairs", own / "pairs.jsonl")
    names, places = [item.id for item in one.items], range(len(one.items))
    over = run.Over("ray:2", "long", "cpu", "auto")
    for of, times, failed in (({names[3]}, [12, *[1] * 12], 1), (set(names), [12, *[1] * run.DEATHS], 12)):
        calls.clear()
        deadly |= of
        found = {place: said[0][k] for part, said in run._over_cluster(over, one, places) for k, place in enumerate(part)}
        assert calls == times
        assert sorted(found) == list(places)
        assert sum(verdict.failed for verdict in found.values()) == failed
