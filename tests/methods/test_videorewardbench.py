"""VideoRewardBench: dimensions, pairs that count alike, frames of videos, the published table, and what one frame does not show."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.data.pictures import png
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.videorewardbench import (
    COUNTS,
    FRAMES,
    benchmark,
    figures,
    frames_tell,
    marks,
    read,
)
from rewardlab.scoreboard.drawn import counted, draw, holds, moved
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict


def row(dimension="knowledge", frames=2, **other):
    video = np.arange(frames, dtype=np.uint8)[:, None, None, None] * np.ones((1, 4, 4, 3), np.uint8)
    return {"video": video, "question": "?", "chosen": "a", "rejected": "b", "dimension": dimension, **other}


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("Perception (long-form)", "long-form perception"), ("short_perception", "short-form perception"), ("Safety", "safety"),
        ("Reasoning", "reasoning"),
    ],
)  # fmt: skip
def test_dimensions_are_known_in_every_spelling(told, name):
    assert next(read(row(told), "")).subset == name
    with pytest.raises(ValueError, match="none of the dimensions"):
        next(read(row("perception"), ""))


def test_pairs_count_alike_overall():
    rows = [row("safety", question=str(k)) for k in range(3)] + [row("knowledge"), row("reasoning")]
    items = [item for r in rows for item in read(r, "")]
    scores = [(1.0, 0.0)] * 3 + [(0.0, 1.0), (1.0, 1.0)]
    told = figures(Marks.of(items, [marks(i, Verdict(s)) for i, s in zip(items, scores, strict=True)]))
    assert told["overall"] == pytest.approx(3 / 5)
    assert told["macro"] == pytest.approx(1 / 3)
    assert set(COUNTS) < set(told)


def test_at_most_so_many_frames_are_shown_the_first_and_the_last_among_them():
    (item,) = read(row(frames=200), "")
    assert len(item.pictures) == FRAMES
    assert [int(np.asarray(item.pictures[k])[0, 0, 0]) for k in (0, -1)] == [0, 199]


def test_frames_stand_in_a_folder_called_as_the_video(tmp_path):
    (tmp_path / "videos" / "a").mkdir(parents=True)
    for k in range(3):
        (tmp_path / "videos" / "a" / f"{k:03}.png").write_bytes(png(np.full((4, 4, 3), k, np.uint8)))
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row(video="videos/a.mp4")))
    (item,) = benchmark.items(path)
    assert [int(np.asarray(p)[0, 0, 0]) for p in item.pictures] == [0, 1, 2]
    path.write_text(json.dumps(row(video="videos/a.mp4")) + "\n" + json.dumps(row(video="videos/b.mp4")))
    with pytest.raises(RewardlabError, match=r"line 2.*save its frames"):
        benchmark.items(path)


def test_questions_about_one_video_are_resampled_together():
    first, second, other = (next(read(r, "")) for r in (row(), row(question="and?"), row(frames=3)))
    assert first.cluster == second.cluster != other.cluster


def test_drawn_claims_hold_or_not_and_no_frame_alone_shows_a_motion():
    rng = np.random.default_rng(0)
    for _ in range(50):
        pair = counted(rng)
        assert holds(pair.frames, pair.better) is True
        assert holds(pair.frames, pair.worse) is False
        pair = moved(rng)
        assert holds(pair.frames, pair.better) is True
        assert holds(pair.frames, pair.worse) is False
        assert holds(pair.frames[:1], pair.better) is None
    assert holds((draw(np.full((4, 4), -1)),), "A nice picture.") is None


@pytest.mark.slow
def test_the_check_finds_who_looks_at_one_frame_and_the_published_table_comes_out():
    told = frames_tell()(Run(None))
    assert told["published"] == 1.0
    assert told["as a mean"] < 0.2
    assert told["one frame"] == pytest.approx(0.5, abs=0.07)
    assert told["blind"] == pytest.approx(0.5, abs=0.07)
    assert told["all frames"] == pytest.approx(0.8, abs=0.06)
    assert told["met"] > 0.8
    assert told["control"] < 0.2
