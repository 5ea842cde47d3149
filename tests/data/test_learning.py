"""LIM: how well the rewards of each problem followed the average of a run."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardlab import data
from rewardlab.data.learning import filled, lim_scores
from rewardlab.errors import RewardlabError


def test_scores_by_hand():
    # averages over the four: (.25 + 1 + 0 + .75) / 4 = .5, then (.75 + 1 + 0 + .25) / 4 = .5
    curves = [[0.25, 0.75], [1.0, 1.0], [0.0, 0.0], [0.75, 0.25]]
    # room: .25 + .25 = .5;  distances: .125, .5, .5, .125
    assert lim_scores(curves) == pytest.approx([0.75, 0.0, 0.0, 0.75])
    # where the average rises to .8, one that follows scores high, one that is unlearnt lowest
    rising = [[0.2, 0.8], [0.0, 1.0], [0.4, 1.0], [1.0, 0.4], [0.4, 0.8]]
    # averages .4 and .8, room .36 + .04 = .4;  distances .04, .2, .04, .52, 0
    assert lim_scores(rising) == pytest.approx([0.9, 0.5, 0.9, -0.3, 1.0])


def test_a_missing_epoch_takes_the_value_of_the_next_and_other_gaps_have_no_score():
    assert filled([None, 0.5, None]) == [0.5, 0.5, None]
    assert filled([None, None, 1.0]) == [None, 1.0, 1.0]
    # the second is filled to .5, .5; the third is in no average
    assert lim_scores([[0.5, 0.5], [None, 0.5], [0.0, None]]) == [1.0, 1.0, None]
    assert lim_scores([[None], [None]]) == [None, None]
    with pytest.raises(RewardlabError, match="nothing tells one from another"):
        lim_scores([[1.0], [1.0]])


def recorded(folder, steps: dict[int, dict[str, list[float | None]]]):
    """A run folder with these verdicts by step and question."""
    (folder / "rollouts").mkdir(parents=True)
    for step, groups in steps.items():
        rows = [{"step": step, "question": q, "truth": v, "reward": 9.0} for q, row in groups.items() for v in row]
        pq.write_table(pa.Table.from_pylist(rows), folder / "rollouts" / f"step-{step:06d}.parquet")
    return folder


def test_rows_get_the_score_of_the_run_that_was_trained_on_them(tmp_path):
    rows = [{"prompt": q} for q in ("easy", "learnt", "hard", "late")] + [{"prompt": [{"role": "user", "content": "chat"}]}]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    # two steps are an epoch of five rows, the fifth step is of an epoch that was not finished
    run = recorded(
        tmp_path / "run",
        {
            1: {"easy": [1, 1], "learnt": [0, 1], "hard": [0, 0]}, 2: {"chat": [0, 1]},
            3: {"easy": [1, 1], "learnt": [1, None, 1], "hard": [0, 0]}, 4: {"chat": [1, 1], "late": [1, 1]},
            5: {"easy": [0, 0], "learnt": [0, 0], "hard": [1, 1]},
        },
    )  # fmt: skip
    told = data.learning_file(tmp_path / "train.jsonl", tmp_path / "scored.jsonl", run, steps_per_epoch=2)
    assert (told["rows"], told["written"], told["epochs"], told["dropped"]) == (5, 5, 2, {})
    found = {str(row["prompt"])[:6]: row for row in map(json.loads, (tmp_path / "scored.jsonl").read_text().splitlines())}
    assert [row["curve"] for row in found.values()] == [[1.0, 1.0], [0.5, 1.0], [0.0, 0.0], [1.0, 1.0], [0.5, 1.0]]
    # averages .6 and .8, room .16 + .04 = .2;  distances .2, .05, 1, .2, .05
    assert [row["lim"] for row in found.values()] == pytest.approx([0.0, 0.75, -4.0, 0.0, 0.75])
    kept = data.filter_file(tmp_path / "scored.jsonl", tmp_path / "kept.jsonl", between={"lim": "0.6:"})
    assert kept["dropped"] == {"lim": 3}


def test_an_epoch_is_as_long_as_the_rows_that_the_run_was_trained_on(tmp_path):
    rows = [*"abc", "held out", "d", "d"]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps({"prompt": q}) + "\n" for q in rows))
    # five of six rows are trained on, two at a time: the first epoch ends within the third step, the second with the fifth
    steps = ["ab", "cd", "da", "db", "cd", "ab"]
    verdicts = {"a": iter([0, 1, 1]), "b": iter([0, 0, 1]), "c": iter([1, 1]), "d": iter([0, 1, 0, 0])}
    run = recorded(tmp_path / "run", {i: {q: [next(verdicts[q])] for q in of} for i, of in enumerate(steps, 1)})
    told = data.learning_file(tmp_path / "train.jsonl", tmp_path / "scored.jsonl", run)
    assert (told["epochs"], told["dropped"]) == (2, {"not seen": 1})
    found = {row["prompt"]: row["curve"] for row in map(json.loads, (tmp_path / "scored.jsonl").read_text().splitlines())}
    assert found == {"a": [0, 1], "b": [0, 0], "c": [1, 1], "d": [0.5, 0]}


def test_a_run_of_less_than_an_epoch_or_of_other_rows_is_refused(tmp_path):
    (tmp_path / "train.jsonl").write_text("".join(json.dumps({"prompt": q}) + "\n" for q in "abcdefgh"))
    short, other = recorded(tmp_path / "short", {1: {"a": [1], "b": [0]}}), recorded(tmp_path / "other", {1: {"x": [1], "y": [0]}})
    for run, why in ((short, "has seen 2 of 8 rows, less than one epoch"), (other, "no reply to any of these rows")):
        with pytest.raises(RewardlabError, match=why):
            data.learning_file(tmp_path / "train.jsonl", tmp_path / "scored.jsonl", run)


def test_rows_that_the_run_did_not_see_are_left_out_with_the_reason(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"prompt": "a"}\n{"prompt": "new"}\n{"prompt": "b"}\n')
    run = recorded(tmp_path / "run", {1: {"a": [1, 0], "b": [0, 0]}, 2: {"a": [1, 1], "b": [0, 0]}})
    told = data.learning_file(tmp_path / "train.jsonl", tmp_path / "scored.jsonl", run, steps_per_epoch=1)
    assert told["dropped"] == {"not seen": 1}
    assert json.loads((tmp_path / "scored.dropped.jsonl").read_text())["row"] == {"prompt": "new"}


def test_a_run_that_did_not_record_every_step_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"prompt": "a"}\n')
    run = recorded(tmp_path / "run", {1: {"a": [1]}, 4: {"a": [1]}})
    with pytest.raises(RewardlabError, match="did not record step 2, and 1 others; train with --record-every 1"):
        data.learning_file(tmp_path / "train.jsonl", tmp_path / "scored.jsonl", run)
    with pytest.raises(RewardlabError, match="no rollouts"):
        data.learning_file(tmp_path / "train.jsonl", tmp_path / "scored.jsonl", tmp_path)
    assert not (tmp_path / "scored.jsonl").exists()


def test_a_file_without_rows_gives_one(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    run = recorded(tmp_path / "run", {1: {"q": [1]}})
    told = data.learning_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", run)
    assert (told["rows"], told["written"], (tmp_path / "b.jsonl").read_text()) == (0, 0, "")
