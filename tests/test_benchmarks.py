"""The benchmarks run, at a tiny size, and tell what a report needs."""

import importlib
import json
import math
from pathlib import Path

import pytest

from rewardlab.models import embedded
from rewardlab.models.embedded import untrained

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
TINY = {"problems": 2, "rollouts": 2, "max_new": 4, "repeats": 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A checkpoint with random weights."""
    folder = tmp_path_factory.mktemp("model")
    untrained().save(folder)
    return str(folder)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("REWARDLAB_BENCH_THREADS", "1")


def benchmark(name):
    return importlib.import_module(name)


def checked(rows):
    """The rows by name, each with the columns of the report, and a ratio that follows from its numbers."""
    for row in json.loads(json.dumps(rows)):
        assert list(row) == ["name", "ratio", "ours", "peer", "unit", "settings"]
        assert row["ours"] > 0
        better = row["ours"] / row["peer"] if row["unit"].endswith("/s") else row["peer"] / row["ours"]
        assert math.isclose(row["ratio"], better, rel_tol=0.01)
    return {row["name"]: row for row in rows}


def test_generate_draws_equally_many_tokens_on_both_sides_where_the_length_is_fixed(model):
    module = benchmark("generate_embedded")
    rows = checked(module.run(model=model, **TINY, formats=("float32",)))
    assert set(rows) == set(module.CASES)
    best = rows["generate-embedded"]["settings"]["by_format"]["best"]
    assert best["ours"]["tokens"] == best["peer"]["tokens"] == 2 * 2 * 4
    assert len(rows["generate-embedded"]["settings"]["peer_tried"]) == 8


def test_step_trains_as_many_rows_on_both_sides(model):
    pytest.importorskip("trl")
    module = benchmark("step_embedded")
    rows = checked(module.run(model=model, **TINY, formats=("float32",), sizes=(256,), options=module.FIRST))
    settings = rows["step-embedded"]["settings"]
    for side in ("ours", "peer"):
        assert 4 <= settings[side]["reply_tokens"] <= 16
        assert settings[side]["peak_mib"] > 100
    assert 0 < settings["ours"]["share_of_matrix_peak"] < 1


def test_learn_says_what_was_gained_by_each_seed(model):
    tiny = {"seeds": 1, "gain": -1.0, "evaluated": 3, "checked": 3, "every": 1, "most": 2, "problems": 2, "n": 2}
    row = checked(benchmark("learn_arithmetic").run(model=model, **tiny))["learn-arithmetic"]
    (seed,) = row["settings"]["seeds"]
    assert seed["steps"] == 1
    assert seed["problems"] == seed["problems_elsewhere"] == 3


def test_learn_fails_where_nothing_is_gained(model):
    with pytest.raises(SystemExit, match="did not gain"):
        benchmark("learn_arithmetic").run(model=model, seeds=1, gain=1.0, evaluated=3, checked=3, every=1, most=1, problems=2, n=2)


def test_a_failing_side_shows_what_it_said(model, tmp_path):
    with pytest.raises(SystemExit, match="no-such-model"):
        benchmark("learn_arithmetic").run(model=str(tmp_path / "no-such-model"), seeds=1)


def test_judges_are_measured_against_their_bars(model):
    module = benchmark("judges")
    rows = json.loads(json.dumps(module.run(only=("pairs-surprise", "pairs-plain"), model=model, problems=12, steps=1)))
    by_name = {row["name"]: row for row in rows}
    surprise, plain = by_name["pairs-surprise"], by_name["pairs-plain"]
    for row in rows:
        assert list(row) == ["name", "ratio", "ours", "peer", "unit", "settings"]
        assert row["ours"] == row["settings"]["figures"][row["unit"]]
        assert row["settings"]["seconds"] > 0
        assert row["settings"]["steps"] == 1
    assert surprise["ratio"] == pytest.approx(surprise["ours"] / 0.8, rel=1e-3)
    assert "value-head:surprise" in surprise["settings"]["recipe"]
    # without a bar there is nothing to divide by
    assert (plain["ratio"], plain["peer"]) == (None, None)


def test_training_flops_count_matrices_of_real_tokens():
    """By hand: a layer of width 8, 2 heads and 1 key head of size 4, an MLP of 16, a head of 10; a text of 3 tokens, 2 drawn, and
    one of 5, the first of them in common with the other, 4 drawn."""
    from types import SimpleNamespace

    shape = SimpleNamespace(hidden=8, heads=2, kv_heads=1, head_dim=4, mlp=16, vocab=10, layers=1)
    layer = 8 * 16 + 8 * 8 + 3 * 8 * 16
    attention = 3 * 2 * 2 * 2 * 4 * (3 * 3) / 2
    flops = benchmark("step_embedded").training_flops
    assert flops(shape, [3], [0], 2) == 6 * (layer * 3 + 8 * 10 * 2) + attention
    longer = 3 * 2 * 2 * 2 * 4 * (5 * 5 - 1) / 2
    assert flops(shape, [3, 5], [0, 1], 6) == 6 * (layer * 7 + 8 * 10 * 6) + attention + longer


def test_the_embedded_policy_is_found_where_it_is_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    folder = tmp_path / f"embedded-{embedded.fingerprint()}"
    untrained().save(folder)
    assert benchmark("_sides").embedded_model()["folder"] == str(folder)


def test_search_answers_on_both_sides(model):
    rows = checked(benchmark("search").run(model=model, problems=2, width=2, branch=2, max_new=6, repeats=1))
    assert set(rows) == {"search-problems", "search-tokens"}
    settings = rows["search-tokens"]["settings"]
    # at most n rows of 6 tokens, of which the peer may sample as many again at every step
    assert 6 <= settings["ours"][0]["tokens_per_problem"] <= 4 * 6
    assert settings["peer"]["tokens_per_problem"] >= 6


def test_a_scoreboards_scores_are_the_peers(model, tmp_path, monkeypatch):
    folder = tmp_path / "rmbench"
    folder.mkdir()
    row = {"prompt": "1+1=?", "subset": "alpacaeval", "chosen": ["2", "so 2", "it is 2"], "rejected": ["3", "so 3", "it is 3"]}
    (folder / "chat.jsonl").write_text("".join(json.dumps({"id": i, **row, "prompt": f"{i}+1=?"}) + "\n" for i in range(4)))
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path))
    rows = checked(benchmark("scoreboard").run(model=model, prompts=3))
    assert rows["scoreboard"]["settings"]["greatest_difference"] < 1e-4
    assert rows["scoreboard"]["settings"]["replies"] == 18


def test_the_script_for_a_gpu_runs_from_end_to_end_on_a_cpu(monkeypatch):
    """The same path as on a GPU, with a tiny model, in this process: every side that does not need one returns a figure."""
    pytest.importorskip("trl")
    module = benchmark("_gpu")
    monkeypatch.setattr(module, "in_own_process", lambda script, side, settings, limit: module.SIDES[side](**settings))
    monkeypatch.setenv("REWARDLAB_BENCH_DEVICE", "cpu")
    *_, (_, result) = module.run("cpu", True, 500, False)
    sides = result["qwen2-tiny"]
    assert set(sides) == {side for side in module.SIDES if not {"machine", "models"} & {side} and "vllm" not in side} - {
        "sample hf: compiled", "train by transformers, compiled",
    }  # fmt: skip
    assert not [found for found in sides.values() if "error" in found]
    assert all(sides[side]["rate"] > 0 for side in ("sample", "sample hf: static", "sample by transformers", "train"))
    assert all(sides[side]["seconds"] > 0 for side in ("step", "step by TRL"))
    assert "skipped" in result["tests"] or "passed" in result["tests"]


def test_a_side_that_takes_too_long_is_ended():
    with pytest.raises(SystemExit, match="took longer than 0 seconds"):
        benchmark("_sides").in_own_process(benchmark("_sides").__file__, "memory_bandwidth", {"mib": 64}, limit=0.1)
