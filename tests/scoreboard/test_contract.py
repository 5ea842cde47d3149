"""The contract of every benchmark of rewards, on the example rows in its published format."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.scoreboard.asked import benchmark_of, benchmarks
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict

NAMES = benchmarks()
OTHERS = sorted({row["name"] for row in registry.rows() if row["kind"] == "benchmark"} - set(NAMES))
"""Benchmarks of environments, searches and studies: rewards are not asked there."""


@pytest.fixture(params=NAMES)
def benchmark(request) -> Benchmark:
    return benchmark_of(request.param)


@pytest.mark.parametrize("name", OTHERS)
def test_a_benchmark_of_other_things_than_rewards_is_a_study_and_on_no_scoreboard(name):
    assert registry.build(name).study is not None
    with pytest.raises(RewardlabError, match=f"rewardlab study {name}"):
        benchmark_of(name.replace("_", "-"))


def items_of(benchmark: Benchmark) -> list[Item]:
    return [item for row in benchmark.example for item in benchmark.read(row, "example")]


def perfect(item: Item, sign: float = 1.0) -> Verdict:
    """What a rater that knows the labels says, or with sign -1 the opposite."""
    steps = tuple(tuple(0.5 + sign * ((0.5 if x is None else x) - 0.5) for x in row) for row in item.labels)
    # in numbers whose softmax leaves no doubt
    return Verdict(tuple(sign * 50 * w for w in item.worth), steps=steps)


def figures(benchmark: Benchmark, verdicts: list[Verdict]) -> dict[str, float]:
    items = items_of(benchmark)
    return dict(benchmark.figures(Marks.of(items, [benchmark.marks(i, v) for i, v in zip(items, verdicts, strict=True)])))


def test_the_example_rows_are_read(benchmark):
    items = items_of(benchmark)
    assert len({item.id for item in items}) == len(items) >= 2
    for item in items:
        assert item.prompt
        assert len(item.replies) == len(item.worth)
        assert all(item.worth[i] > item.worth[j] for i, j in item.pairs)
        if benchmark.asks == "replies":
            assert item.pairs
        else:
            assert len(item.steps) == len(item.labels) == len(item.replies)
            assert all(len(s) == len(x) for s, x in zip(item.steps, item.labels, strict=True))


def test_who_knows_the_labels_is_best_and_who_says_the_opposite_is_worst(benchmark):
    items = items_of(benchmark)
    best, worst = (figures(benchmark, [perfect(item, sign) for item in items])[benchmark.headline] for sign in (1.0, -1.0))
    assert best == pytest.approx(1.0)
    assert worst < best
    if not any(x is None for item in items for row in item.labels for x in row):
        assert worst <= 0.0 + 1e-9


def test_figures_do_not_depend_on_the_scale_of_scores_nor_on_the_order_of_items(benchmark):
    if benchmark.asks != "replies":
        pytest.skip("chances of steps have a scale")
    items = items_of(benchmark)
    verdicts = [Verdict(tuple(float(len(reply)) for reply in item.replies)) for item in items]
    scaled = [Verdict(tuple(3.0 * x - 7.0 for x in v.scores if x is not None)) for v in verdicts]
    assert figures(benchmark, verdicts) == pytest.approx(figures(benchmark, scaled), nan_ok=True)


def test_a_rater_that_gives_no_verdict_is_not_better_for_it(benchmark):
    items = items_of(benchmark)
    silent = figures(benchmark, [Verdict() for _ in items])[benchmark.headline]
    assert math.isnan(silent) or silent <= 0.5


def test_comparisons_in_both_orders_come_to_what_scores_come_to(benchmark):
    if benchmark.asks != "replies":
        pytest.skip("it asks about steps")
    items = items_of(benchmark)
    compared = [Verdict(orders={p: x for i, j in item.pairs for p, x in (((i, j), 1.0), ((j, i), 0.0))}) for item in items]
    assert figures(benchmark, compared)[benchmark.headline] == pytest.approx(1.0)


@pytest.mark.parametrize("form", ["rows.jsonl", "rows.json", "rows.jsonl.gz"])
def test_a_file_is_read_in_each_form_in_which_it_is_published(benchmark, form, tmp_path):
    path = tmp_path / form
    rows = [json.dumps(row) for row in benchmark.example]
    text = f"[{','.join(rows)}]" if form.endswith(".json") else "\n".join(rows)
    path.write_bytes(gzip.compress(text.encode()) if form.endswith(".gz") else text.encode())
    assert len(benchmark.items(path)) == len(benchmark.items(tmp_path)) == len(items_of(benchmark))


def test_a_row_that_lacks_a_column_is_named_with_its_place(benchmark, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(benchmark.example[0]) + '\n{"nothing": 1}\n')
    with pytest.raises(RewardlabError, match="line 2"):
        benchmark.items(path)


def test_data_that_is_not_at_hand_is_told_with_what_to_do(benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path))
    with pytest.raises(RewardlabError, match="--data"):
        benchmark.items()


def test_an_item_that_stands_twice_counts_once(benchmark, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (*benchmark.example, *benchmark.example)))
    assert len(benchmark.items(path)) == len(items_of(benchmark))


def test_what_a_rater_reads_is_what_its_verdicts_are_kept_under(benchmark):
    items = items_of(benchmark)
    keys = [item.key(benchmark.asks) for item in items]
    assert len(set(keys)) == len(keys)
    changed = replace(items[0], replies=(items[0].replies[0] + " ", *items[0].replies[1:]))
    assert changed.key(benchmark.asks) != keys[0]
    assert replace(items[0], worth=tuple(-w for w in items[0].worth), compared=items[0].pairs).key(benchmark.asks) == keys[0]
