"""The report in a browser: what is looked at works, is fast with ten thousand rollouts, and nothing a model wrote runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chromium import MISSING, Chromium

from rewardlab.comparisons.page import page
from rewardlab.report.library import share
from rewardlab.report.page import write_comparison, write_report
from rewardlab.runs.record import ROLLOUT

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING or "never")

HOSTILE = "</script><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
DOWN = "\ue015"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as found:
        yield found


def turn(author: str | None, tokens: int, reward: float | None = None) -> dict[str, Any]:
    return {"author": author, "tokens": tokens, "reward": reward}


def rollout(group: int, row: int, said: list[str], reward: float, **changes: Any) -> dict[str, Any]:
    """A prompt of two tokens and what was said."""
    n = len(said)
    numbers = {"credit": reward - 0.5, "logprob": -0.5, "new_logprob": -0.25, "entropy": 0.7}
    columns = {name: [None, None, *[value] * n] for name, value in numbers.items()}
    return {
        "group": group, "row": row, "question": f"Problem {group}", "answer": "7", "stop": "end", "reward": reward, "truth": reward,
        "terms": json.dumps({"correct": reward, "steps": None}), "weights": '{"correct": 1.0, "steps": 0.5}', "step_rewards": "{}",
        "why": f"said {said[-1]}", "extracted": said[-1].strip(), "path": [], "turns": [turn(None, 2), turn("policy", n)],
        "tokens": ["Ask", "ed", *said], "mask": [False] * 2 + [True] * n, **columns,
    } | changes  # fmt: skip


def make_run(folder: Path, rows: list[dict[str, Any]], step: int = 10, **config: Any) -> Path:
    (folder / "rollouts").mkdir(parents=True)
    settings = {"method": "grpo", "task": "arithmetic", "formula": "reward    correct()"}
    (folder / "config.json").write_text(json.dumps(settings | config))
    numbers = [{"reward": s / 40, "truth": s / 50, "loss": 2.0 ** -(s % 7), "tokens": 100 * s, HOSTILE: s} for s in range(1, 41)]
    lines = [{"step": s, **line} for s, line in enumerate(numbers, 1)]
    evals = {s: {"eval/pass@1": 0.4 + s / 100, "eval/ci95_low": 0.3, "eval/ci95_high": 0.9} for s in (1, 40)}
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line | evals.get(line["step"], {})) + "\n" for line in lines))
    pq.write_table(pa.Table.from_pylist(rows, ROLLOUT), folder / "rollouts" / f"step-{step:06d}.parquet")
    return folder


def texts(browser: Chromium, selector: str) -> list[str]:
    return browser.run("[...document.querySelectorAll(arguments[0])].map((x) => x.textContent)", selector)


def fill(browser: Chromium, name: str, value: str) -> None:
    """As a person does: type into a field, or choose of a list."""
    browser.run(
        "(() => { const x = document.querySelector(`.filters [name=${arguments[0]}]`); x.value = arguments[1];"
        "x.dispatchEvent(new Event(x.tagName === 'SELECT' ? 'change' : 'input')); })()", name, value,
    )  # fmt: skip


def found(browser: Chromium) -> str:
    return texts(browser, ".count")[0]


def test_curves_are_drawn_and_follow_the_tools(browser, tmp_path):
    browser.open(write_report(make_run(tmp_path / "run", [])))
    browser.wait("document.querySelectorAll('.plot .main-svg').length >= 3")
    first = "document.querySelector('.plot')"
    assert browser.run("plots.filter((p) => p.panel.title === 'Loss')[0].panel.lines[0].y.length") == 40
    smooth = browser.run("traces(plots.find((p) => p.panel.title === 'Reward')).length")
    browser.run(
        "(() => { const x = document.querySelector('input[type=range]'); x.value = 0; x.dispatchEvent(new Event('input')); })()"
    )
    assert (smooth, browser.run("traces(plots.find((p) => p.panel.title === 'Reward')).length")) == (2, 1)
    browser.run("document.querySelector('button[data-value=tokens]').click()")
    assert browser.run(f"{first}._fullLayout.xaxis.range[1]") == pytest.approx(4078, abs=1)
    assert texts(browser, ".panel .head .chip") == ["log", "log", "log", "log", "log"]
    panel = "[...document.querySelectorAll('.panel')].find((p) => p.querySelector('h3').textContent === 'Loss')"
    browser.run(f"{panel}.querySelector('.chip').click()")
    assert browser.run("layout(plots.find((p) => p.panel.title === 'Loss')).yaxis.type") == "log"
    browser.run("document.querySelectorAll('.legend .chip')[1].click()")
    assert browser.run("traces(plots.find((p) => p.panel.title === 'Proxy against truth')).length") == 1
    assert browser.complaints() == []


def test_rollouts_are_filtered_sorted_and_chosen_by_keys(browser, tmp_path):
    rows = [
        rollout(g, k, [f" {10 * g + k}"], float(k == 1), stop="length" if k == 2 else "end") for g in range(4) for k in range(3)
    ]
    browser.open(write_report(make_run(tmp_path / "run", rows)), "#rollouts")
    assert found(browser) == "12 rollouts"
    for name, value, expected in (
        ("words", "nowhere", "0 of 12"), ("words", "SAID  31", "1 of 12"), ("verdict", "right", "4 of 12"),
        ("stop", "length", "4 of 12"), ("low", "0.5", "4 of 12"), ("high", "0.5", "8 of 12"), ("step", "10", "12"),
        ("group", "2", "3 of 12"),
    ):  # fmt: skip
        fill(browser, name, value)
        assert found(browser) == f"{expected} rollouts", (name, value)
        browser.run("document.querySelector('.filters .plain').click()")
    fill(browser, "sort", "best")
    assert texts(browser, ".row .total")[:5] == ["1", "1", "1", "1", "0"]
    browser.keys("j" + DOWN, ".list")
    assert texts(browser, ".row.chosen .peek") == ["21"]
    assert texts(browser, ".detail .question") == ["Problem 2"]
    assert "said  21" in texts(browser, "aside")[0]


def test_tokens_say_their_numbers_and_take_the_colour_asked_for(browser, tmp_path):
    rows = [rollout(0, 0, [" so", " 7"], 1.0, step_rewards='{"steps": [[3, -0.25]]}'), rollout(0, 1, [" 8"], 0.0)]
    browser.open(write_report(make_run(tmp_path / "run", rows)), "#rollouts")
    browser.hover(".turn .own")
    tip = browser.run("document.getElementById('tip').textContent")
    for said in ('" so"', "token 2", "credit     0.5", "log-prob   −0.5", "p = 0.607", "new/old    1.28", "entropy    0.7"):
        assert said in tip
    assert texts(browser, ".turn .pay") == ["−0.25"]
    assert "steps−0.25 in 1 steps× 0.5" in texts(browser, ".terms")[0]
    colour = "getComputedStyle(document.querySelector('.turn .own')).backgroundColor"
    blue = browser.run(colour)
    browser.keys("3")
    heat = browser.run(colour)
    browser.keys("j1", ".list")
    assert texts(browser, ".choice.shades [aria-pressed=true]") == ["credit"]
    assert len({blue, heat, browser.run(colour)}) == 3  # credit above zero, entropy, credit below zero


def test_turns_fold_and_say_what_they_were_paid(browser, tmp_path):
    tokens = ["Ask", "ed", " find", " found", " 7"]
    turns = [turn(None, 2), turn("policy", 1), turn(None, 1, 0.5), turn("policy", 1)]
    columns = {name: [None, None, 0.1, None, 0.2] for name in ("credit", "logprob", "new_logprob", "entropy")}
    mask = [False, False, True, False, True]
    rows = [rollout(0, 0, [" 7"], 1.0, tokens=tokens, turns=turns, mask=mask, **columns)]
    browser.open(write_report(make_run(tmp_path / "run", rows)), "#rollouts")
    assert texts(browser, ".turn summary > b:first-child") == ["prompt", "reply 1", "answer", "reply 2"]
    assert texts(browser, ".turn .pay") == ["paid +0.5"]
    opened = "[...document.querySelectorAll('.turn')].map((x) => x.open)"
    assert browser.run(opened) == [False, True, True, True]
    browser.keys("f")
    assert browser.run(opened) == [False] * 4


def test_an_answer_that_nobody_read_is_shown_where_it_pays(browser, tmp_path):
    columns = {name: [None, None, 0.1] for name in ("credit", "logprob", "new_logprob", "entropy")}
    tokens, mask, asked = ["1+", "2=", " 7"], [False, False, True], [turn(None, 2), turn("policy", 1)]
    for last, shown in ((None, ["prompt", "reply"]), (0.5, ["prompt", "reply", "answer"])):
        rows = [rollout(0, 0, [" 7"], 1.0, tokens=tokens, turns=[*asked, turn(None, 0, last)], mask=mask, **columns)]
        browser.open(write_report(make_run(tmp_path / str(last), rows)), "#rollouts")
        assert texts(browser, ".turn summary > b:first-child") == shown


def test_turns_say_what_they_ask_for_and_the_credit_of_their_decisions(browser, tmp_path):
    call = ['<tool_call>{"name": "look', '_up", "arguments": {}}</tool_call>']
    tokens = ["Ask", "ed", *call, " found", "<search>Emma</search>", " nothing", "```python", " 7"]
    turns = [turn(None, 2), turn("policy", 2), turn(None, 1), turn("policy", 1), turn(None, 1), turn("policy", 2)]
    credit = [None, None, 0.1, 0.3, None, -0.5, None, 0.0, 0.0]
    columns = dict.fromkeys(("credit", "logprob", "new_logprob", "entropy"), credit)
    rows = [rollout(0, 0, [" 7"], 1.0, tokens=tokens, turns=turns, mask=[x is not None for x in credit], **columns)]
    browser.open(write_report(make_run(tmp_path / "run", rows)), "#rollouts")
    assert texts(browser, ".turn .ask") == ["look_up", "Emma", "python"]
    # the first reply's (.1 + .3) / 2
    assert texts(browser, ".turn .credit") == ["credit +0.2", "credit −0.5", "credit 0"]


def test_a_search_is_drawn_as_its_tree(browser, tmp_path):
    ways = {(0, 0): [" a", " b", " x"], (0, 1): [" a", " b", " y"], (1,): [" c"]}
    rows = [rollout(0, k, said, float(k == 0), path=list(path)) for k, (path, said) in enumerate(ways.items())]
    browser.open(write_report(make_run(tmp_path / "run", rows)), "#rollouts")
    browser.keys("t")
    assert texts(browser, ".node b") == ["0.333", "0.5", "1", "0", "0"]
    assert texts(browser, ".node span") == ["common prefix", "a b", "x", "y", "c"]
    browser.run("document.querySelectorAll('.node')[1].click()")
    assert texts(browser, ".segment h3") == ["Shared by 2 rollouts: tokens 2 to 4"]
    browser.run("document.querySelectorAll('.node')[3].click()")
    assert texts(browser, ".segment .turn .own") == [" a", " b", " y"]


def test_runs_are_compared_and_their_rollouts_stand_side_by_side(browser, tmp_path):
    runs = [make_run(tmp_path / name, [rollout(0, k, [f" {name}{k}"], float(k)) for k in range(2)], seed=1) for name in "ab"]
    browser.open(write_comparison(runs, tmp_path / "all.html"), "#rollouts")
    browser.keys("g")
    assert len(texts(browser, ".beside .card")) == 4
    assert texts(browser, ".beside .card .own") == [" a0", " a1", " b0", " b1"]
    browser.run("(location.hash = 'overview')")
    browser.wait("document.querySelectorAll('.plot .main-svg').length >= 3")
    assert browser.run("traces(plots[0]).length") == 6  # a line and the two edges of its interval, of each run
    browser.run("document.querySelectorAll('.tools .chip')[0].click()")
    assert browser.run("traces(plots[0]).length") == 3


def test_a_long_reward_stands_beside_its_verdict_and_not_on_it(browser, tmp_path):
    runs = [make_run(tmp_path / name, [rollout(0, 0, [" 7"] * 40, -0.0001274)], step=123456) for name in ("one", "two")]
    browser.open(write_comparison(runs, tmp_path / "both.html"), "#rollouts")
    sizes = browser.run("[...document.querySelectorAll('.row .total')].map((x) => [x.scrollWidth, x.clientWidth])")
    assert len(sizes) == 2
    assert all(text <= box for text, box in sizes), sizes


def test_nothing_a_model_wrote_runs(browser, tmp_path):
    said: dict[str, Any] = dict.fromkeys(("question", "answer", "why", "extracted", "stop"), HOSTILE)
    earned = {"terms": {HOSTILE: 1.0, "other": HOSTILE}, "weights": {HOSTILE: HOSTILE}, "step_rewards": {HOSTILE: [HOSTILE]}}
    terms = {name: json.dumps(value) for name, value in earned.items()}
    rows = [rollout(0, k, [HOSTILE], 1.0, path=[0, k], **said, **terms) for k in range(2)]
    browser.open(write_report(make_run(tmp_path / "run", rows, method=HOSTILE)))
    browser.wait("document.querySelectorAll('.plot .main-svg').length >= 3")
    browser.run("(location.hash = 'rollouts')")
    browser.wait("document.querySelector('.row')")
    for mode in "ogt":
        browser.keys(mode)
        browser.hover(".own")
        assert browser.run("document.querySelectorAll('.detail img').length + (document.title === 'pwned')") == 0
        assert HOSTILE in browser.run("document.body.textContent")
    assert browser.complaints() == []


def large_run(folder: Path) -> Path:
    """20 steps of 500 rollouts, 98 words each."""
    rng = np.random.default_rng(0)
    words = [f" word{i}" for i in range(5000)]
    rows = []
    for i in range(500):
        numbers = {k: [None, None, *rng.normal(size=98).tolist()] for k in ("credit", "logprob", "new_logprob", "entropy")}
        rows.append(rollout(i // 8, i % 8, [words[k] for k in rng.integers(0, 5000, 98)], float(i % 2), **numbers))
    run = make_run(folder, rows, step=0)
    for step in range(1, 20):
        copy(run / "rollouts" / "step-000000.parquet", run / "rollouts" / f"step-{step:06d}.parquet")
    return run


def test_ten_thousand_rollouts_stay_fluid(browser, tmp_path):
    page = write_report(large_run(tmp_path / "run"))
    assert page.stat().st_size < 18e6
    browser.open(page, "#rollouts")
    assert found(browser) == "10,000 rollouts"
    assert len(texts(browser, ".row")) < 40

    def quickest(script: str) -> float:
        """Milliseconds; the least of a few, since other programs want the processor too."""
        return min(
            browser.run(f"(() => {{ const a = performance.now(); {script}; return performance.now() - a; }})()") for _ in range(5)
        )

    assert quickest("filter.low = '0.5'; applyFilter()") < 200
    assert quickest("filter.words = 'word4321'; applyFilter()") < 500
    assert quickest("filter = noFilter(); filter.sort = 'best'; applyFilter()") < 200
    assert quickest("parts.list.scrollTop = 300000; drawList()") < 100


# ---- the library of a comparison, one file for all its pages ----------------------------------------------------------

CHARTS = "document.querySelectorAll('.plot-container').length"


def compared(folder: Path) -> Path:
    """The page of a comparison of two methods on two seeds, one of which has a name that is hostile."""
    curve = {"tokens": [0.0, 9.0], "mean": [0.4, 0.5], "low": [0.3, 0.4], "high": [0.5, 0.6]}
    rows = [
        {
            "method": name, "formula": HOSTILE, "values": [0.4, 0.6], "mean": 0.5, "ci95": [0.4, 0.6], "of": "problems",
            "difference": None, "tokens": 9, "seconds": [1.0], "curve": curve,
            "points": [[[0, 0.4], [9, 0.4]], [[0, 0.4], [9, 0.6]]],
        }
        for name in ("grpo", HOSTILE)
    ]  # fmt: skip
    about = {"task": "t", "model": "m", "seeds": [0, 1], "budget": None, "problems": 9, "measure": "pass@1"}
    (out := folder / "compare.html").write_text(page(about | {"methods": rows}, out, share(folder)))
    return out


def test_pages_draw_from_the_library_of_their_comparison_and_say_in_words_where_it_is_missing(browser, tmp_path):
    (folder := tmp_path / "comparison").mkdir()
    run = make_run(folder / "runs" / "grpo-s0", [rollout(0, 0, ["7"], 1.0)])
    first = compared(folder)
    for path in (first, write_report(run)):
        assert path.stat().st_size < 500_000
        browser.open(path)
        browser.wait(f"{CHARTS} >= 2")
        assert browser.complaints() == []
        assert browser.run("document.title") != "pwned"
        (lone := tmp_path / "lone" / path.name).parent.mkdir(exist_ok=True)
        lone.write_bytes(path.read_bytes())
        browser.open(lone)
        browser.wait("document.body.textContent.includes('This chart needs ')")
        assert "plotly.min.js, a file that lies with the comparison" in browser.run("document.body.textContent")
        # it is not there, and no error beside that
        assert all("plotly.min.js" in text for text in browser.complaints())


def test_each_seed_is_a_point(browser, tmp_path):
    browser.open(compared(tmp_path))
    browser.wait(f"{CHARTS} >= 2")
    # two methods of two seeds, and their means
    assert browser.run("document.querySelectorAll('#seeds .point').length") == 6
