"""The report: right numbers, nothing a model wrote comes alive, and any piece of a run may be missing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardlab.errors import RewardlabError
from rewardlab.report import curves
from rewardlab.report.divergence import apart, divergence, gamed, parting, watched
from rewardlab.report.library import share as share_library
from rewardlab.report.page import write_comparison, write_report
from rewardlab.report.summary import summarise
from rewardlab.runs.record import ROLLOUT
from rewardlab.runs.samples import HEAD, TAIL, samples

HOSTILE = "</script><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">{{plotly}}<!--"
CONFIG = {"method": "grpo", "task": "arithmetic", "model": "embedded", "seed": 7, "steps": 40, "formula": "a >> b"}


class Page(HTMLParser):
    """Tags by name with their attributes, the text of each script, and all text outside of scripts."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.scripts: list[str] = []
        self.words = ""
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag in ("script", "style")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("script", "style")

    def handle_data(self, data: str) -> None:
        if self.inside and self.tags[-1][0] == "script":
            self.scripts[-1] += data
        elif not self.inside:
            self.words += data

    @property
    def data(self) -> dict[str, Any]:
        kinds = [attrs.get("type") for tag, attrs in self.tags if tag == "script"]
        return json.loads(self.scripts[kinds.index("application/json")])

    @property
    def packed(self) -> dict[str, Any]:
        """The rollouts, opened as the page opens them."""
        kinds = [attrs.get("type") for tag, attrs in self.tags if tag == "script"]
        whole = gzip.decompress(base64.b64decode(self.scripts[kinds.index("text/plain")]))
        n = int.from_bytes(whole[:4], "little")
        found, at = json.loads(whole[4 : 4 + n]), 4 + n
        for name, kind, length in found["arrays"]:
            size = np.dtype(kind).itemsize
            planes = np.frombuffer(whole, np.uint8, length * size, at).reshape(size, length)
            found[name] = np.ascontiguousarray(planes.T).view(kind).ravel()
            at += length * size
        return found


def rollout(step: int = 1, group: int = 0, row: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "step": step,
        "group": group,
        "row": row,
        "question": f"What is {group} + 1?",
        "answer": str(group + 1),
        "reply": " 2.",
        "stop": "end",
        "reward": float(row % 2),
        "truth": float(row % 2),
        "terms": '{"correct": 1.0}',
        "why": "",
        "tokens": ["What", "?", " 2", "."],
        "mask": [False, False, True, True],
        "credit": [0.0, 0.0, 0.5 - row % 2, 0.25],
        "logprob": [math.nan, math.nan, -0.1, -2.0],
    } | changes


def record(run: Path, step: int, rows: list[dict[str, Any]]) -> Path:
    path = run / "rollouts" / f"step-{step:06d}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def make_run(run: Path, lines: list[dict[str, Any]] = (), config: dict[str, Any] = CONFIG) -> Path:  # type: ignore[assignment]
    (run / "config.json").write_text(json.dumps(config))
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def evaluation(step: int, share: float) -> dict[str, float]:
    return {"step": step, "eval/pass@1": share, "eval/ci95_low": share - 0.05, "eval/ci95_high": share + 0.05}


def training(step: int, **changes: Any) -> dict[str, Any]:
    seconds = {"seconds/generate": 2.0, "seconds/reward": 0.5, "seconds/train": 1.0, "seconds/step": 4.0}
    return {"step": step, "reward": 0.5, "reward/correct": 0.4, "truth": 0.4, "length": 30.0, **seconds} | changes


def panels(page: Page) -> dict[str, dict[str, Any]]:
    return {panel["title"]: panel for section in page.data["sections"] for panel in section["panels"]}


def report(run: Path) -> Page:
    return Page(write_report(run).read_text("utf-8"))


def test_curves_hold_the_metrics_and_nothing_is_loaded_from_elsewhere(tmp_path):
    steps = [training(s, reward=s / 10, entropy=1.0 / s, **{"pairs/kept": 3.0 * s}) for s in range(1, 6)]
    page = report(make_run(tmp_path, [evaluation(0, 0.4), *steps, evaluation(5, 0.6) | {"eval/accuracy of pairs": 0.9}]))
    found = panels(page)
    assert found["Reward"]["lines"][0]["y"] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert found["Held-out accuracy"]["lines"][0] == {
        "name": "pass@1",
        "x": [0.0, 5.0],
        "y": [0.4, 0.6],
        "exact": True,
        "low": [0.35, 0.55],
        "high": [0.45, 0.65],
    }
    assert found["correct"]["lines"][0]["y"] == [0.4] * 5
    assert found["Held-out accuracy of pairs"]["lines"][0]["y"] == [0.9]
    assert found["pairs/kept"]["lines"][0]["y"][-1] == 15.0
    times = {line["name"]: line["y"][0] for line in found["Time per phase"]["lines"]}
    assert times == {"generate": 2.0, "reward": 0.5, "train": 1.0, "other": 0.5}
    assert not [tag for tag, attrs in page.tags if attrs.get("src") or attrs.get("href")]
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "metrics.jsonl", "report.html"}


def test_headline_takes_the_summary_and_else_the_evaluations(tmp_path):
    make_run(tmp_path, [evaluation(0, 0.4), training(1), evaluation(20, 0.7), evaluation(40, 0.6)])
    assert (summarise(tmp_path)["before"]["value"], summarise(tmp_path)["after"]["value"]) == (0.4, 0.6)
    assert summarise(tmp_path)["best"]["step"] == 20
    assert not summarise(tmp_path)["finished"]
    before, after = {"pass@1": 0.25, "n": 200, "ci95": [0.2, 0.31]}, {"pass@1": 0.5, "n": 200, "ci95": [0.43, 0.57]}
    (tmp_path / "summary.json").write_text(json.dumps({"before": before, "after": after, "problems": ["a <b> fell"]}))
    page = report(tmp_path)
    assert "+25.0" in page.words
    assert "n = 200" in page.words
    assert "a <b> fell" in page.words
    assert "finished" in page.words


def test_the_interval_of_a_difference_is_newcombes():
    def wilson(hits: int, n: int) -> dict[str, Any]:
        p, z = hits / n, 1.959964
        middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return {"value": p, "ci95": [(middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)]}

    # Newcombe 1998, table II, example (a): 56/70 against 48/80.
    assert curves.difference(wilson(48, 80), wilson(56, 70)) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


def test_hostile_text_stays_text_everywhere(tmp_path):
    config = CONFIG | {"method": HOSTILE, "formula": HOSTILE, "model": HOSTILE, "recipe": {HOSTILE: HOSTILE}}
    make_run(tmp_path, [training(1, **{f"reward/{HOSTILE}": 1.0, HOSTILE: math.nan})], config)
    (tmp_path / "summary.json").write_text(json.dumps({"problems": [HOSTILE]}))
    text: dict[str, Any] = dict.fromkeys(("question", "answer", "reply", "stop", "why"), HOSTILE)
    record(tmp_path, 1, [rollout(**text, tokens=[HOSTILE] * 4, terms=json.dumps({HOSTILE: 1.0}))])
    page = report(tmp_path)
    assert [tag for tag, _ in page.tags].count("script") == 4
    assert "img" not in {tag for tag, _ in page.tags}
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    assert page.words.count(HOSTILE) >= 5
    (row,) = page.packed["rollouts"]
    assert [page.packed["vocabulary"][i] for i in page.packed["ids"]] == [HOSTILE] * 4
    assert row["why"] == HOSTILE
    assert row["terms"] == {HOSTILE: 1.0}


def test_the_policy_of_the_page_lets_only_its_own_scripts_run(tmp_path):
    page = report(make_run(tmp_path))
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv"))
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    kinds = [attrs.get("type") for tag, attrs in page.tags if tag == "script"]
    live = [text for text, kind in zip(page.scripts, kinds, strict=True) if kind is None]
    assert allowed == {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in live}
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256" in policy


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [{"step": 0, "eval/pass@1": 0.4}],
        [{"step": 1, "loss": math.nan, "reward": math.inf, "length": None}],
        [training(1, reward=None, truth=None)],
        [training(s, reward=math.nan) for s in range(1, 50)],
    ],
)
def test_missing_pieces_leave_a_page(tmp_path, lines):
    page = report(make_run(tmp_path, lines))
    assert page.packed["rollouts"] == []
    assert all(panel["lines"] for panel in panels(page).values())


def test_only_a_run_is_reported(tmp_path):
    with pytest.raises(RewardlabError, match=r"config\.json"):
        write_report(tmp_path)


def test_broken_and_repeated_lines(tmp_path):
    make_run(tmp_path, [training(1), training(2, reward=9.0), training(3), training(2, reward=0.2), evaluation(2, 0.5)])
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('[1]\n{"step": NaN}\n{"step": 4, "rew')
    rows = curves.read_metrics(tmp_path)
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert (rows[1]["reward"], rows[1]["eval/pass@1"]) == (0.2, 0.5)


def test_numbers_that_are_not_finite_are_named(tmp_path):
    loss = [0.1, math.nan, None, 0.1]
    lines = [training(s, loss=loss[s - 1], truth=None, missing=0.5 if s == 4 else 0) for s in range(1, 5)]
    make_run(tmp_path, lines)
    warnings = summarise(tmp_path)["warnings"]
    assert warnings[0].startswith("loss was not a finite number at steps 2, 3. Try: ")
    assert warnings[1].startswith("12.50% of the rollouts had no verdict (at worst 50.0%, at step 4)")
    assert panels(report(tmp_path))["Loss"]["lines"][0]["y"] == [0.1, None, None, 0.1]


def many_terms(step: int) -> dict[str, Any]:
    """Of two terms one rises while the truth falls; of two pairs the second conflicts more."""
    rising = {"reward/correct": 0.9 - step / 50, "reward/polite": step / 40, "truth": 0.9 - step / 50}
    return training(step, **rising, **{"conflict/correct~polite": 0.4, "conflict/a~b": 0.6, "untrue/polite": 0.7})


def test_the_term_that_rises_while_truth_falls_is_named_and_its_panel_marked(tmp_path):
    run = make_run(tmp_path, [many_terms(step) for step in range(1, 31)])
    (warning,) = (w for w in summarise(run)["warnings"] if "term" in w)
    assert "the reward term polite rises" in warning
    found = panels(report(run))
    assert found["polite"]["spans"] == [[1, 30]]
    assert "spans" not in found["correct"]
    # the pair that conflicts most comes first, and neither is shown among other measures
    assert [line["name"] for line in found["Conflict of terms"]["lines"]] == ["a against b", "correct against polite"]
    assert [line["name"] for line in found["Terms against the truth"]["lines"]] == ["polite"]
    assert not any(title.startswith(("conflict/", "untrue/")) for title in found)


def test_a_term_that_is_subtracted_is_gamed_where_it_falls():
    for sign, found in ((1, []), (-1, ["cost"])):
        rows = [{"step": s, "truth": 0.9 - s / 50, "reward/cost": sign * s / 40, "untrue/-cost": 0.5} for s in range(1, 31)]
        assert list(gamed(rows)) == found
    own = [{"step": s, "truth": 0.9 - s / 50, "reward/-cost": s / 40, "untrue/-cost": 0.5} for s in range(1, 31)]
    assert list(gamed(own)) == ["-cost"]
    # in the numbers of the term's own curve
    (stretch,) = gamed(rows)["cost"]
    assert "the reward term cost, which is subtracted, falls (-0.0" in stretch["text"]
    assert stretch["reward"][0] > stretch["reward"][1]


def test_a_single_term_is_no_warning_of_its_own(tmp_path):
    # it is the reward, and no run compares it with the truth
    lines = [training(step, reward=step / 40, truth=0.9 - step / 50) | {"reward/correct": step / 40} for step in range(1, 31)]
    assert not any("term" in warning for warning in summarise(make_run(tmp_path, lines))["warnings"])
    assert "Conflict of terms" not in panels(report(tmp_path))


def test_a_proxy_that_rises_while_truth_falls_is_marked(tmp_path):
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.02, (2, 100))
    truth = [0.4 + 0.004 * min(s, 60) - 0.008 * max(0, s - 60) for s in range(100)]
    rows = [training(s, reward=0.4 + 0.005 * s + noise[0, s], truth=truth[s] + noise[1, s]) for s in range(100)]
    (found,) = divergence(rows)
    assert 50 <= found["first"] <= 70
    assert found["last"] >= 95
    make_run(tmp_path, rows)
    assert panels(report(tmp_path))["Proxy against truth"]["spans"] == [[found["first"], found["last"]]]
    assert "while the truth falls" in summarise(tmp_path)["warnings"][0]


def test_noise_and_learning_are_not_marked():
    rng = np.random.default_rng(1)
    for _ in range(20):
        noise = rng.normal(0, 0.05, (2, 150))
        flat = [training(s, reward=0.5 + noise[0, s], truth=0.5 + noise[1, s]) for s in range(150)]
        both = [training(s, reward=s / 150 + noise[0, s], truth=s / 200 + noise[1, s]) for s in range(150)]
        assert divergence(flat) == []
        assert divergence(both) == []


def self_rewarded(turn: int, after: float, seed: int = 0, steps: int = 80, scale: float = 1.0) -> list[dict[str, Any]]:
    """A reward that rises by .006 a step; the truth rises with it until `turn`, and by `after` a step from there on."""
    noise = np.random.default_rng(seed).normal(0, 0.02, (2, steps))
    truth = [0.4 + 0.006 * min(s, turn) + after * max(0, s - turn) for s in range(steps)]
    return [training(s, reward=scale * (0.5 + 0.006 * s + noise[0, s]), truth=truth[s] + noise[1, s]) for s in range(steps)]


def test_where_a_reward_goes_on_to_rise_and_the_truth_does_not_the_step_is_named(tmp_path):
    rows = self_rewarded(turn=30, after=0.0)
    # the truth never falls, so nothing is said of that
    assert divergence(rows) == []
    found = parting(rows)
    assert found is not None
    assert 22 <= found["first"] <= 40
    assert found["last"] == 79
    assert found["text"].startswith(f"Steps {found['first']}–79: the reward rises (")
    assert "while the truth does not (0.5" in found["text"]
    make_run(tmp_path, rows)
    assert panels(report(tmp_path))["Proxy against truth"]["spans"] == [[found["first"], 79]]
    (warning,) = summarise(tmp_path)["warnings"]
    assert warning.startswith(f"{found['text']} The policy may be exploiting the reward. Try: ")
    assert watched(rows) == found["text"]


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_bend_is_found_at_any_scale_of_the_reward_whatever_the_noise(scale):
    found = [parting(self_rewarded(turn=40, after=0.0, seed=seed, scale=scale)) for seed in range(10)]
    assert all(f is not None and 25 <= f["first"] <= 52 for f in found)


def test_what_rises_together_does_not_part():
    for seed in range(20):
        for after in (0.006, 0.004):
            assert apart(self_rewarded(turn=40, after=after, seed=seed)) == []
    noise = np.random.default_rng(0).normal(0, 0.03, (2, 20, 80))
    for own, true in zip(*noise, strict=True):
        flat = [training(s, reward=0.5 + own[s], truth=0.5 + true[s]) for s in range(80)]
        # both have learnt all there is by half of the run
        learnt = [training(s, reward=min(1, s / 40) + own[s], truth=min(0.9, s / 45) + true[s]) for s in range(80)]
        assert apart(flat) == apart(learnt) == []
    assert parting(self_rewarded(turn=0, after=0.0)[:9]) is None
    # a truth of 1 has nowhere to rise
    assert parting([training(s, reward=0.8 + 0.002 * s, truth=1.0) for s in range(80)]) is None
    assert parting([training(s, reward=0.8 + 0.002 * s, truth=0.9) for s in range(80)]) is not None


def test_a_line_says_what_became_of_the_truth():
    # single-step curves of five steps: first and last fifth are a step each
    rows = [training(s, reward=0.1 * s, truth=0.1 * s + 0.2) for s in range(1, 6)]
    assert watched(rows) == "0.3 → 0.7, with a reward of 0.1 → 0.5"
    assert watched([row | {"truth": row["reward"]} for row in rows]) is None
    unknown = [{k: v for k, v in row.items() if k != "truth"} for row in rows]
    assert (watched(unknown) or "").startswith("not known: the task's verifier gave no verdict")
    assert watched(unknown, expected=False) is None
    assert watched([{"step": 1, "loss": 0.1}]) is None


def test_long_curves_are_averaged_not_cut():
    x, y = curves.thin(([float(i) for i in range(6000)], [float(i) for i in range(6000)]), 1000)
    assert (len(x), x[0], y[0], y[-1]) == (1000, 2.5, 2.5, 5996.5)


def test_samples_span_the_run_in_whole_groups(tmp_path):
    make_run(tmp_path)
    for step in range(10, 101, 10):
        record(tmp_path, step, [rollout(step, g, r) for g in range(5) for r in range(6)])
    record(tmp_path, 110, [rollout()]).write_bytes(b"PAR1 broken off")
    assert len(samples(tmp_path)) == 300
    found = samples(tmp_path, rollouts=64).to_pylist()
    assert [r["step"] for r in found] == [step for step in (10, 40, 70, 100) for _ in range(12)]
    assert [r["group"] for r in found[:12]] == [0] * 6 + [1] * 6
    assert {r["size"] for r in found} == {6}
    assert found[6]["question"] == "What is 1 + 1?"


def test_samples_hold_no_more_tokens_than_asked_for(tmp_path):
    make_run(tmp_path)
    record(tmp_path, 1, [rollout(group=g, row=r) for g in range(10) for r in range(3)])  # four tokens each
    assert len(samples(tmp_path, tokens=60)) == 15
    assert len(samples(tmp_path, tokens=8)) == 2


def test_a_large_group_is_spread_from_best_to_worst(tmp_path):
    make_run(tmp_path)
    rewards = [None, *(float(r) for r in range(199))]
    record(tmp_path, 1, [rollout(row=i, reward=r) for i, r in enumerate(rewards)])
    found = samples(tmp_path, rollouts=64).to_pylist()
    assert (len(found), found[0]["reward"], found[-1]["reward"], found[0]["size"]) == (64, 198.0, None, 200)


def test_numbers_of_tokens_travel_well(tmp_path):
    """To a thousandth of a nat, and credit to one part in 32767 of the rollout's largest; what is missing stays missing."""
    credit = [0.0, 0.0, 123.456, -7.0]
    rows = [
        rollout(row=0, credit=credit, new_logprob=[None, None, -0.35, -1.5], entropy=[None, None, 0.6931, 0.0]),
        rollout(row=1, credit=[0.0] * 4, logprob=[None, None, None, -0.5], tokens=["What", "?", " 2", "!"]),
    ]
    (tmp_path / "rollouts").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, ROLLOUT), tmp_path / "rollouts" / "step-000001.parquet")
    found = report(make_run(tmp_path)).packed
    assert found["credit_of"] == [123.46, 0.0]
    assert found["credit"].tolist() == [-32768, -32768, 32767, round(-7 / 123.456 * 32767), -32768, -32768, 0, 0]
    assert found["logprob"].tolist() == [-32768, -32768, -100, -2000, -32768, -32768, -32768, -500]
    assert found["ratio"].tolist() == [-32768, -32768, -250, 500, -32768, -32768, -32768, -32768]
    assert found["entropy"].tolist() == [-32768, -32768, 693, 0, *[-32768] * 4]
    assert [found["vocabulary"][i] for i in found["ids"]] == ["What", "?", " 2", ".", "What", "?", " 2", "!"]
    assert found["mask"].tolist() == [0, 0, 1, 1] * 2


def test_long_trajectories_keep_head_and_tail(tmp_path):
    make_run(tmp_path)
    n = HEAD + TAIL + 30
    columns = {"mask": [True] * n, "credit": [0.1] * n, "logprob": [-0.001 * (i % 1000) for i in range(n)]}
    record(tmp_path, 1, [rollout(), rollout(row=1, tokens=[str(i) for i in range(n)], **columns), rollout(row=2)])
    found = report(tmp_path).packed
    assert (found["length"], found["gap"]) == ([4, HEAD + TAIL, 4], [0, 30, 0])
    words = [found["vocabulary"][i] for i in found["ids"][4:-4]]
    assert words == [str(i) for i in (*range(HEAD), *range(HEAD + 30, n))]
    assert found["logprob"][4 + HEAD] == -(HEAD + 30)


def test_rollouts_of_an_older_run_open(tmp_path):
    """Without turns, weights, log-probs after the update; with columns that are short, null, or of another type."""
    short = {"tokens": ["a", None], "mask": [True], "logprob": [], "credit": None}
    record(tmp_path, 1, [rollout(why=7), rollout(row=1, why=7, **short)])
    found = report(make_run(tmp_path)).packed
    assert "ratio" not in found
    assert "entropy" not in found
    assert found["length"] == [4, 2]
    assert found["mask"].tolist() == [0, 0, 1, 1, 1, 0]
    assert found["credit"].tolist()[4:] == [-32768, -32768]
    assert all("turns" not in row for row in found["rollouts"])


def test_runs_laid_over_one_another(tmp_path):
    shares = {("a", 0): 0.5, ("a", 1): 0.6, ("b", 0): 0.7, ("b", 1): 0.9}
    runs = []
    for (arm, seed), share in shares.items():
        folder = tmp_path / f"{arm}{seed}"
        folder.mkdir()
        config = CONFIG | {"seed": seed, "formula": f"reward    correct()\nupdate    Update(lr={arm})", "settings": {"seed": seed}}
        runs.append(make_run(folder, [evaluation(0, 0.4), training(1), evaluation(40, share)], config))
        truths = [share if g % 2 else 0.0 for g in range(8)]
        record(folder, 40, [rollout(40, g, r, truth=truths[g]) for g in range(8) for r in range(2)])
    page = Page(write_comparison(runs, tmp_path / "all.html").read_text("utf-8"))
    lines = panels(page)["Held-out accuracy"]["lines"]
    assert [(line["run"], line["y"][-1]) for line in lines] == list(enumerate(shares.values()))
    assert "Time per phase" not in panels(page)
    assert [r["name"] for r in page.data["runs"]] == ["a0", "a1", "b0", "b1"]
    assert {g["run"] for g in page.packed["groups"]} == {0, 1, 2, 3}
    told = "".join(page.words.split())
    assert "Update(lr=b)" in told
    # over seeds: differences 0.2 and 0.3, t(1) = 12.7062; over problems: 0.2 at every second of eight, t(7) = 2.3646
    assert "b0minusa0seeds2+25.0[−38.5,+88.5]" in told
    assert "b0minusa0problemsofstep408+10.0[+1.1,+18.9]" in told


def test_runs_are_told_apart_by_their_folders(tmp_path):
    for name in ("x/run", "y/run"):
        (tmp_path / name).mkdir(parents=True)
        make_run(tmp_path / name)
    write_comparison([tmp_path / "x/run", tmp_path / "y/run"], tmp_path / "all.html")
    page = Page((tmp_path / "all.html").read_text("utf-8"))
    assert [r["name"] for r in page.data["runs"]] == ["x/run", "y/run"]
    assert "these runs were set alike" in page.words


def test_a_failed_write_leaves_the_old_report(tmp_path, monkeypatch):
    write_report(make_run(tmp_path))
    old = (tmp_path / "report.html").read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == old
    assert not list(tmp_path.glob(".report-*"))


def test_a_constant_is_drawn_at_its_value_and_ticks_have_enough_digits(tmp_path):
    """Plotly's own range for a constant is from 1 below it to 1 above, where 3e-4 looks like 0."""
    steps = [training(s, lr=3e-4, kl=2e-12 * s, grad_norm=0.0, reward=7.0, truth=0.5) for s in range(1, 21)]
    evals = [evaluation(0, 0.412), evaluation(20, 0.418)]
    exact = [{k: v for k, v in line.items() if "ci95" not in k} for line in evals]
    found = panels(report(make_run(tmp_path, [exact[0], *steps, exact[1]])))
    assert found["Learning rate"]["range"] == pytest.approx([1.5e-4, 4.5e-4])
    assert found["Gradient norm"]["range"] == [-1.0, 1.0]
    assert "range" not in found["KL to the reference"]
    assert found["Proxy against truth"]["range"] == [3.5, 10.5]
    assert found["Proxy against truth"]["right_range"] == [0.25, 0.75]
    # 41.2% and 41.8% differ in their first decimal
    assert found["Held-out accuracy"]["ticks"] == ".1%"
    flat = [{"step": s, "eval/pass@1": 1.0} for s in (0, 5)]
    assert panels(report(make_run(tmp_path, flat)))["Held-out accuracy"]["range"] == [0.5, 1.05]


def test_what_is_constant_in_each_run_is_framed_by_what_all_show(tmp_path):
    for name, rate in (("a", 1e-4), ("b", 3e-4)):
        (tmp_path / name).mkdir()
        make_run(tmp_path / name, [training(s, lr=rate, loss=0.25) for s in range(1, 4)])
    found = panels(Page(write_comparison([tmp_path / "a", tmp_path / "b"], tmp_path / "all.html").read_text("utf-8")))
    assert "range" not in found["Learning rate"]
    assert found["Loss"]["range"] == [0.125, 0.375]


def arm(folder: Path, name: str, seed: int, after: float, **config: Any) -> Path:
    (folder / f"{name}-s{seed}").mkdir()
    settings = CONFIG | {"method": name, "seed": seed, "formula": f"credit    {name}()"} | config
    return make_run(folder / f"{name}-s{seed}", [evaluation(0, 0.4), training(1), evaluation(40, after)], settings)


def pairs_told(runs: list[Path]) -> str:
    text = Page(write_comparison(runs, runs[0].parent / "all.html").read_text("utf-8")).words
    return "".join(text.split())


def test_two_runs_on_one_seed_are_paired_and_have_no_interval(tmp_path):
    told = pairs_told([arm(tmp_path, "grpo", 0, 0.5), arm(tmp_path, "rloo", 0, 0.6)])
    assert "rloo-s0minusgrpo-s0seeds1+10.0" in told
    assert "shareseed0alone:anintervalneedstwoseedsormore" in told


def test_runs_that_cannot_be_paired_are_told_why(tmp_path):
    told = pairs_told([arm(tmp_path, "grpo", 0, 0.5), arm(tmp_path, "rloo", 0, 0.6, task="countdown")])
    assert "theyweremeasuredbypass@1oncountdownandbypass@1onarithmetic" in told
    told = pairs_told([arm(tmp_path, "ppo", 1, 0.5), arm(tmp_path, "dapo", 2, 0.6)])
    assert "dapo-s2andppo-s1sharenoseed" in told


@pytest.mark.parametrize(("seeds", "coloured"), [(4, False), (5, True)])
def test_seeds_that_begin_elsewhere_and_have_other_budgets_repeat_one_arm(tmp_path, seeds, coloured):
    """As `compare` sets its runs up: each seed begins elsewhere in the data, with the tokens of the first method on that seed."""
    first = [arm(tmp_path, "grpo", s, 0.5, start=s * 10_000) for s in range(seeds)]
    second = [arm(tmp_path, "rloo", s, 0.6 + s / 100, start=s * 10_000, budget=1000 + s) for s in range(seeds)]
    page = write_comparison([*first, *second], tmp_path / "all.html").read_text("utf-8")
    assert re.search(rf"rloo-s0 minus grpo-s0</th><td>seeds</td><td>{seeds}</td><td><b class=\"(up)?\">\+1", page)
    assert ('<b class="up">+1' in page.split("Paired differences")[1]) == coloured


def test_runs_on_one_seed_with_two_budgets_are_two_arms(tmp_path):
    runs = [arm(tmp_path, "grpo", 0, 0.5, budget=1000)]
    (tmp_path / "more").mkdir()
    runs.append(arm(tmp_path / "more", "grpo", 0, 0.7, budget=9000))
    assert "minus" in pairs_told(runs)


# ---- one copy of the library for the pages of a comparison ------------------------------------------------------------


def test_pages_within_a_comparison_load_its_library_and_others_hold_it(tmp_path):
    (folder := tmp_path / "runs" / "grpo-s0").mkdir(parents=True)
    run = make_run(folder)
    alone = write_report(run).read_text()
    share_library(tmp_path)
    policy, element = within(text := write_report(run).read_text())
    nonce = re.fullmatch(r'<script nonce="([^"]+)" src="../../plotly.min.js">', element)
    assert nonce
    assert f"'nonce-{nonce[1]}'" in policy
    assert len(text) < len(alone) / 20
    # the nonce is of what the page says, so that nothing which is said can know it
    (run / "config.json").write_text(json.dumps(CONFIG | {"method": "other"}))
    assert nonce[1] not in write_report(run).read_text()
    assert within(write_report(run, tmp_path / "page.html").read_text())[1].endswith(' src="plotly.min.js">')
    whole = write_report(run, self_contained=True).read_text()
    assert "src=" not in within(whole)[1]
    assert "nonce" not in within(whole)[0]
    # a library of another version is no library, and is replaced
    (tmp_path / "plotly.min.js").write_text("other")
    assert len(write_report(run).read_text()) > 1_000_000
    assert share_library(tmp_path).stat().st_size > 1_000_000


def within(text: str) -> tuple[str, str]:
    """The content security policy of a page, and its first script that runs."""
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    return policy[1], next(tag for tag in re.findall(r"<script[^>]*>", text) if "type=" not in tag)
