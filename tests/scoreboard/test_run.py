"""The scoreboard as a whole: outputs of others, what is kept, what a kill leaves, intervals, the page, the command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from base64 import b64encode
from hashlib import sha256

import numpy as np
import pytest

from rewardlab.api import train
from rewardlab.commands.cli import main
from rewardlab.errors import RewardlabError
from rewardlab.scoreboard import asked, figures, run
from rewardlab.scoreboard.biases import biases
from rewardlab.scoreboard.card import file_names
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.raters import Rater, load_rater
from rewardlab.scoreboard.run import scoreboard

pytestmark = pytest.mark.usefixtures("own_cache")


def rows(n: int = 8) -> list[dict]:
    """Pairs in the format of JudgeBench; the right reply is the shorter one in three of four."""
    return [
        {
            "pair_id": str(i), "source": "livebench-math", "question": f"What is {i} + {i}?", "response_model": "gpt-4o",
            "response_A": f"{2 * i}", "response_B": f"{2 * i + 1}, since it is so" if i % 4 else "", "label": "A>B",
        }
        for i in range(n)
    ]  # fmt: skip


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return path


def write(path, lines) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"outputs:{path}"


def headline(document, rater):
    return document["raters"][rater]["judgebench"]["figures"]["overall"]["value"]


def test_outputs_of_others_are_scored_like_any_model(tmp_path, data):
    file = tmp_path / "said.jsonl"
    said = [{"id": str(i), "scores": [1, 0], "rater": "good"} for i in range(8)]
    said += [{"id": str(i), "orders": [[0, 1, 1], [1, 0, 1]], "rater": "first"} for i in range(8)]
    document = scoreboard([write(file, said), "length"], ["judgebench"], data=data)
    assert headline(document, "good") == 1.0
    # who always prefers what stands first is right once and wrong once
    assert headline(document, "first") == 0.0
    assert document["raters"]["first"]["judgebench"]["biases"]["first"] == 1.0
    assert headline(document, "length") == 0.25


def test_a_file_about_some_items_is_told_apart_and_not_compared(tmp_path, data):
    said = [{"id": str(i), "scores": [1, 0], "rater": "half"} for i in range(4)]
    document = scoreboard([write(tmp_path / "said.jsonl", said), "length", "words()"], ["judgebench"], data=data)
    assert document["raters"]["half"]["judgebench"]["items"] == 4
    assert {row["better"] for row in document["differences"]} | {row["worse"] for row in document["differences"]} == {
        "length",
        "words()",
    }


def test_a_missing_verdict_is_wrong_and_counted(tmp_path, data):
    said = [{"id": str(i), "scores": [1, None if i < 2 else 0], "why": "refused"} for i in range(8)]
    entry = scoreboard([write(tmp_path / "said.jsonl", said)], ["judgebench"], data=data)["raters"]["said"]["judgebench"]
    assert entry["figures"]["overall"]["value"] == 0.75
    assert entry["no_verdict"] == 0.25
    assert entry["why"] == "refused"


def test_verdicts_that_were_written_are_read_again(tmp_path, data):
    first = scoreboard(["length"], ["judgebench"], data=data, out=tmp_path / "board")
    again = scoreboard([f"outputs:{tmp_path / 'board' / 'verdicts.jsonl'}"], ["judgebench"], data=data)
    assert again["raters"]["length"]["judgebench"]["figures"] == first["raters"]["length"]["judgebench"]["figures"]
    assert (tmp_path / "board" / "cards" / "length.md").read_text().startswith("# length")


def test_raters_of_one_name_in_two_files_are_told_apart(tmp_path, data):
    files = []
    for name, scores in (("a", [1, 0]), ("b", [0, 1])):
        (tmp_path / name).mkdir()
        files.append(write(tmp_path / name / "verdicts.jsonl", [{"id": str(i), "scores": scores} for i in range(8)]))
    document = scoreboard(files, ["judgebench"], data=data, out=tmp_path / "board")
    assert [headline(document, f"{file}#verdicts") for file in files] == [1.0, 0.0]
    assert len(list((tmp_path / "board" / "cards").iterdir())) == 2


def test_two_raters_of_one_name_are_refused_and_one_named_twice_is_asked_once(tmp_path, data):
    said = write(tmp_path / "said.jsonl", [{"id": str(i), "scores": [1, 0], "rater": "length"} for i in range(8)])
    assert set(scoreboard(["length", "length"], ["judgebench"], data=data)["raters"]) == {"length"}
    # a file's rater is called by its file; the other one keeps its name
    assert headline(scoreboard([said, "length"], ["judgebench"], data=data), f"{said}#length") == 1.0
    with pytest.raises(RewardlabError, match="two raters are called length"):
        scoreboard([load_rater("length"), load_rater("length")], ["judgebench"], data=data)


def test_cards_of_like_names_do_not_replace_each_other():
    assert file_names(["runs/rm", "runs-rm", "Runs/RM", "()"]) == {
        "runs/rm": "runs-rm.md", "runs-rm": "runs-rm-2.md", "Runs/RM": "Runs-RM-3.md", "()": "rater.md",
    }  # fmt: skip


COUNTING = """
import os, time
def score(prompt, completion):
    with open({log!r}, "a") as file:
        file.write("x")
    time.sleep({pause})
    return float(len(completion))
"""


def lines_in(folder):
    return sum(len(file.read_text().splitlines()) for file in folder.glob("*.jsonl"))


def test_nothing_is_scored_twice_and_a_kill_loses_little(tmp_path, data, monkeypatch):
    log, mine = tmp_path / "log", tmp_path / "mine.py"
    many = [{**row, "pair_id": f"{row['pair_id']}.{k}", "question": f"{row['question']} {k}"} for k in range(24) for row in rows()]
    data.write_text("".join(json.dumps(row) + "\n" for row in many))
    mine.write_text(COUNTING.format(log=str(log), pause=0.005))
    command = [sys.executable, "-m", "rewardlab", "scoreboard", f"{mine}:score", "--on", "judgebench", "--data", str(data)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kept = tmp_path / "cache" / "scoreboard"
    deadline = time.monotonic() + 120
    # the file is there before its first lines
    while lines_in(kept) < 4 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (file,) = kept.glob("*.jsonl")
    before = len(file.read_text().splitlines())
    assert 4 <= before < len(many)
    # a line that the kill cut off
    with open(file, "a") as half:
        half.write('{"key": "ab')
    log.write_text("")
    document = scoreboard([f"{mine}:score"], ["judgebench"], data=data)
    assert len(log.read_text()) == 2 * (len(many) - before)
    log.write_text("")
    assert scoreboard([f"{mine}:score"], ["judgebench"], data=data)["raters"].keys() == document["raters"].keys()
    assert log.read_text() == ""


class Counting(Rater):
    """Notes how many items it is asked about at once."""

    def __init__(self, served: bool):
        super().__init__(f"counting, {'served' if served else 'local'}")
        self.sizes: list[int] = []
        self.served = served

    def fingerprint(self):
        return f"{self.name} {id(self)}"

    def judge(self, items, benchmark):
        self.sizes.append(len(items))
        return [Verdict((1.0, 0.0)) for _ in items]

    def cost(self):
        return {"requests": 0.0} if self.served else {}


@pytest.mark.parametrize(
    ("pace", "served", "sizes"),
    [(1e9, False, [4, 8, 16, 32, 64, 64, 4]), (0.0, False, [4, 2, *[1] * 186]), (0.0, True, [4, 64, 64, 60])],
)
def test_a_slow_rater_is_told_and_kept_often_and_a_fast_or_served_one_asked_much_at_once(data, monkeypatch, pace, served, sizes):
    many = [{**row, "pair_id": f"{row['pair_id']}.{k}"} for k in range(24) for row in rows()]
    data.write_text("".join(json.dumps(row) + "\n" for row in many))
    monkeypatch.setattr(run, "PACE", pace)
    scoreboard([rater := Counting(served)], ["judgebench"], data=data)
    assert rater.sizes == sizes


def test_a_limit_takes_the_same_items_for_all_and_another_seed_others(data):
    a, b, c = (scoreboard(["length"], ["judgebench"], data=data, limit=4, seed=s)["raters"] for s in (0, 0, 1))
    assert a["length"]["judgebench"]["items"] == 4
    assert a["length"]["judgebench"]["figures"] == b["length"]["judgebench"]["figures"]
    assert c["length"]["judgebench"]["items"] == 4


@pytest.mark.parametrize(
    ("typed", "items"), [("3", 3), ("3,JudgeBench=5", 5), ("judgebench=2, 3", 2), ("judgebench=6", 6), ("99", 8)]
)
def test_a_benchmark_may_have_a_limit_of_its_own(data, capsys, typed, items):
    assert main(["scoreboard", "length", "--on", "judgebench", "--data", str(data), "--limit", typed, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["raters"]["length"]["judgebench"]["items"] == items


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("0", "--limit must be a whole number above 0, not 0"), ("judgebench=x", "--limit must be a whole number above 0, not 'x'"),
        ("3,4", "--limit 3,4 has two numbers without a name"), ("judgebench=3,judgebench=4", "two numbers for judgebench"),
        ("llmbar=3", "unknown benchmark with a limit 'llmbar'"), ("judgebench=3,", "not ''"),
    ],
)  # fmt: skip
def test_a_limit_that_cannot_be_meant_is_refused(data, capsys, typed, says):
    assert main(["scoreboard", "length", "--on", "judgebench", "--data", str(data), "--limit", typed]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"pair_id": "x"}', "no column 'source'"),
        ("{broken", "line 9"),
        ('{"pair_id": "x", "source": "s", "label": "A"}', "A>B or B>A"),
    ],
)
def test_a_broken_row_is_told_with_its_place(data, line, says):
    data.write_text(data.read_text() + line + "\n")
    with pytest.raises(RewardlabError, match=says) as told:
        scoreboard(["length"], ["judgebench"], data=data)
    assert "line 9" in str(told.value)


def test_raters_are_not_compared_by_another_figure_where_the_headline_cannot_be_told(tmp_path):
    """ProcessBench's F1 is a mean over sets; the two sets here have solutions of one kind alone each."""
    rows = [
        {"id": f"{name}-{i}", "problem": f"P{i}", "steps": ["a", "b"], "label": label, "final_answer_correct": label < 0}
        for name, label in (("gsm8k", -1), ("math", 1)) for i in range(30)
    ]  # fmt: skip
    (data := tmp_path / "process.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = [{"id": row["id"], "steps": [[0.9, 0.9]], "rater": "trusts"} for row in rows]
    said += [{"id": row["id"], "steps": [[0.9, 0.1]], "rater": "doubts"} for row in rows]
    document = scoreboard([write(tmp_path / "said.jsonl", said)], ["processbench"], data=data)
    assert "f1" not in document["raters"]["trusts"]["processbench"]["figures"]
    assert document["raters"]["trusts"]["processbench"]["figures"]["pooled_f1"]["value"] == 0.0
    assert document["differences"] == []


@pytest.mark.parametrize(("chosen", "rejected"), [("Mars.", "Mars."), (["Mars.", "Venus."], ["The Moon.", "Venus."])])
def test_a_pair_of_one_s_own_whose_replies_are_equal_is_told_with_its_place(tmp_path, chosen, rejected):
    good = {"prompt": "Name a planet.", "chosen": "Mars.", "rejected": "The Moon."}
    rows = [good, {**good, "chosen": chosen, "rejected": rejected}]
    (own := tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(RewardlabError, match=r"line 2.*the same reply is chosen and rejected"):
        scoreboard(["length"], ["pairs"], data=own)


def test_different_pairs_of_one_id_are_told_and_equal_rows_count_once(tmp_path):
    row = {"id": "a", "prompt": "2+2?", "chosen": "4", "rejected": "5"}
    write(path := tmp_path / "own.jsonl", [row, row])
    assert scoreboard(["length"], ["pairs"], data=path)["benchmarks"]["pairs"]["items"] == 1
    write(path, [row, row | {"chosen": "four"}])
    with pytest.raises(RewardlabError, match=r"line 2 has the id a of an earlier row"):
        scoreboard(["length"], ["pairs"], data=path)


def test_prompts_that_the_headline_does_not_read_make_no_difference_clear():
    """Of 40 prompts 30 stand in the figure of their subset alone, and of the others two are of the same prompt."""
    subset = np.array(["new"] * 10 + ["old"] * 30, object)
    clusters = [str(max(i, 1)) for i in range(40)]

    def headline(marks):
        return {"new": marks.only("new").mean("right"), "old": marks.only("old").mean("right")}

    raters = [figures.Marks({"right": np.where(np.arange(40) % k == 0, 1.0, 0.0)}, subset) for k in (2, 3)]
    assert figures.prompts_behind(headline, raters, clusters) == 9
    whole = [figures.Marks({"right": np.full(40, 0.5)}, subset)]
    # a rater that says the same of all is told from others by what they say
    assert figures.prompts_behind(headline, whole, clusters) == 0


def test_the_page_runs_its_own_script_alone_and_shows_where_raters_disagree(tmp_path, data):
    said = [{"id": str(i), "scores": [1, 0], "rater": "<b>good</b>"} for i in range(8)]
    scoreboard([write(tmp_path / "said.jsonl", said), "length"], ["judgebench"], data=data, out=tmp_path / "board")
    page = (tmp_path / "board" / "index.html").read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}" in page
    assert "<b>good" not in page
    assert page.count('<details data-text="') == 6


@pytest.mark.slow
def test_the_command_shows_lists_and_refuses(tmp_path, data, capsys, monkeypatch):
    assert main(["scoreboard", "length", "--on", "judge-bench", "--data", str(data)]) == 2
    assert "judgebench" in capsys.readouterr().err
    assert main(["scoreboard", "length", "--on", "judgebench", "--data", str(data)]) == 0
    shown = capsys.readouterr().out
    assert "25.0" in shown
    assert "what the figures mean: rewardlab show judgebench" in shown
    refused = write(tmp_path / "said.jsonl", [{"id": str(i), "scores": [None, 0], "why": "HTTP 400: too long"} for i in range(8)])
    again = ["scoreboard", refused, "length", "--on", "judgebench", "--data", str(data), "--limit", "5", "--against", "published"]
    assert main(again) == 0
    shown = capsys.readouterr().out
    for told in (
        "JudgeBench: 5 of 8 items", "figures of papers are of the whole benchmark", "no verdict of said: HTTP 400: too long",
        "of fewer than 20 prompts no difference is called clear",
    ):  # fmt: skip
        assert told in shown
    assert main(["scoreboard", "--list", "--json"]) == 0
    assert "rm_bench" in json.loads(capsys.readouterr().out)["benchmarks"]
    assert main(["scoreboard", "length", "--on", "judgebench,llmbar", "--data", str(data)]) == 2
    assert "one benchmark" in capsys.readouterr().err
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path / "nothing"))
    assert main(["scoreboard", "length"]) == 2
    assert "REWARDLAB_DATA" in capsys.readouterr().err
    assert os.environ["REWARDLAB_DATA"]


# ---- statistics -----------------------------------------------------------------------------------------------------


def items(n: int, per_prompt: int = 1) -> list[Item]:
    return [Item(str(i), users(f"prompt {i // per_prompt}"), ("a", "b"), (1.0, 0.0)) for i in range(n)]


def mean(marks: Marks) -> dict[str, float]:
    return {"overall": marks.mean("right")}


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say_also_where_a_prompt_has_several_items():
    held = {1: 0, 4: 0}
    rng = np.random.default_rng(0)
    for per_prompt in held:
        own = items(120, per_prompt)
        for trial in range(200):
            # items of one prompt are right or wrong together
            right = np.repeat(rng.random(120 // per_prompt) < 0.6, per_prompt).astype(float)
            marks = Marks({"right": right}, np.array([""] * 120, object))
            sampled = figures.bootstrap(mean, marks, figures.resamples(own, trial, 200))
            low, high = figures.interval(float(right.mean()), sampled["overall"], 120)
            held[per_prompt] += low <= 0.6 <= high
    assert 182 <= held[1] <= 200
    assert 176 <= held[4] <= 200


@pytest.mark.slow
def test_alike_raters_rarely_differ_and_better_ones_are_found():
    own, rng, false, found = items(300), np.random.default_rng(1), 0, 0
    index = figures.resamples(own, 0, 200)
    for _ in range(100):
        heads = {}
        for name, p in (("a", 0.6), ("b", 0.6), ("c", 0.6), ("best", 0.78)):
            marks = Marks({"right": (rng.random(300) < p).astype(float)}, np.array([""] * 300, object))
            heads[name] = (marks.mean("right"), figures.bootstrap(mean, marks, index)["overall"])
        apart = figures.differences(heads, 300)
        figures.holm(apart)
        false += any(row["clear"] for row in apart if "best" not in (row["better"], row["worse"]))
        found += sum(row["clear"] for row in apart if row["better"] == "best")
    assert false <= 8
    assert found >= 270


def test_of_few_prompts_no_difference_is_clear():
    heads = {"a": (4 / 6, np.random.default_rng(0).binomial(6, 4 / 6, 200) / 6), "b": (0.0, np.zeros(200))}
    for prompts, clear in ((6, False), (19, False), (20, True)):
        apart = figures.differences(heads, prompts)
        figures.holm(apart)
        assert [row["clear"] for row in apart] == [clear]


def test_the_items_of_a_list_are_counted_anew_only_where_the_data_has_changed(tmp_path, monkeypatch):
    folder = tmp_path / "data" / "judgebench"
    folder.mkdir(parents=True)
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path / "data"))
    counted, calls = asked._counted, []
    monkeypatch.setattr(asked, "_counted", lambda: calls.append(1) or counted())
    for n, times in ((8, 1), (8, 1), (6, 2)):
        (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(n)))
        # what was written just now may change within a tick of its time stamp, and is not kept
        os.utime(folder / "pairs.jsonl", (1e9, 1e9))
        assert asked.at_hand()["judgebench"]["items"] == n
        assert len(calls) == times


def test_a_share_of_all_or_none_has_an_interval_with_a_width():
    assert figures.interval(1.0, np.ones(100), 20) == pytest.approx((0.8389, 1.0), abs=1e-3)
    assert figures.interval(0.0, np.zeros(100), 20) == pytest.approx((0.0, 0.1611), abs=1e-3)


def test_biases_by_hand():
    own = [
        Item("a", users("?"), ("long reply", "no"), (1.0, 0.0)), Item("b", users("?"), ("ok", "**a lot** of words"), (1.0, 0.0)),
        Item("c", users("?"), ("yes", "nay"), (1.0, 0.0)),
    ]  # fmt: skip
    found = biases(own, [Verdict(tuple(float(len(r)) for r in item.replies)) for item in own], scale=True)
    assert found["right_where_longer"] == 1.0
    assert found["right_where_shorter"] == 0.0
    assert found["right_where_plain"] == 0.0
    assert found["ties"] == pytest.approx(1 / 3)
    # gaps of 8, -16 and 0: squared errors of nearly 0, nearly 1, and a quarter
    assert found["brier"] == pytest.approx((0.0 + 1.0 + 0.25) / 3, abs=1e-3)


def test_a_training_run_is_watched_by_benchmarks(tmp_path, monkeypatch):
    folder = tmp_path / "data" / "judgebench"
    folder.mkdir(parents=True)
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path / "data"))
    pairs = tmp_path / "mine.jsonl"
    pairs.write_text(
        "".join(json.dumps({"prompt": f"{i}+1=?", "chosen": str(i + 1), "rejected": f"{i + 2}"}) + "\n" for i in range(40))
    )
    short = {"steps": 1, "eval_every": 1, "eval_problems": 4, "problems": 4, "device": "cpu", "model": "untrained"}
    result = train("bradley_terry", task=str(pairs), out=tmp_path / "run", settings={"problems": 4}, eval_on=["judgebench"],
                   **{k: v for k, v in short.items() if k != "problems"})  # fmt: skip
    for side in ("before", "after"):
        found = result.summary[side]
        assert next(iter(found)) == "pair_accuracy"
        assert 0.0 <= found["judgebench.overall"] <= 1.0
    with pytest.raises(RewardlabError, match="unknown benchmark"):
        train("bradley_terry", task=str(pairs), out=tmp_path / "other", eval_on=["judgebenhc"], steps=1, model="untrained")
    assert not (tmp_path / "other").exists()
