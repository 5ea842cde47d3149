"""Med-RewardBench: six dimensions a case, what is undecided, organs, and the two files of an organ."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.data.files import write
from rewardlab.data.pictures import png
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.med_rewardbench import DIMENSIONS, benchmark, figures, hidden_faults_found, marks, read
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict

PICTURE = np.zeros((4, 4, 3), np.uint8)


def case(name="1", winners="AAAAAA", **other):
    told = {"question_id": name, "question": "?", "image": PICTURE, "answer1_text": "yes", "answer2_text": "no"}
    return told | {"human_answer": dict(zip(DIMENSIONS, winners, strict=True))} | other


def test_each_dimension_is_asked_by_itself_and_counts_alike():
    items = [item for name, winners in (("1", "AABAAB"), ("2", "BBBBBB")) for item in read(case(name, winners), "eye")]
    items += list(read(case("3", "AAAAAA"), "lung"))
    assert len({item.id for item in items}) == 18
    assert len({item.key("replies") for item in items[:6]}) == 6
    assert "Criterion: creativity" in items[3].question
    told = figures(Marks.of(items, [marks(i, Verdict((1.0, 0.0))) for i in items]))
    # always the first answer: of three cases two are right in accuracy, one in comprehensiveness
    assert told["accuracy"] == pytest.approx(2 / 3)
    assert told["comprehensiveness"] == told["overall"] == pytest.approx(1 / 3)
    assert told["all dimensions"] == pytest.approx((4 * 2 / 3 + 2 * 1 / 3) / 6)
    assert (told["eye"], told["lung"]) == (pytest.approx(4 / 12), 1.0)


def test_what_is_undecided_is_wrong_in_either_order():
    item, *_ = read(case(winners="BBBBBB"), "eye")
    assert marks(item, Verdict((1.0, 1.0)))["right"] == 0.0
    assert marks(item, Verdict())["right"] == 0.0
    assert marks(item, Verdict(orders={(0, 1): 0.0, (1, 0): 0.5}))["right"] == 0.5
    assert marks(item, Verdict(orders={(0, 1): None, (1, 0): 1.0}))["right"] == 0.5
    assert marks(item, Verdict(orders={(0, 1): 0.0, (1, 0): 1.0}))["right"] == 1.0


def test_the_dimensions_of_a_case_are_resampled_together():
    items = list(read(case(), "eye"))
    assert len({item.cluster for item in items}) == 1
    assert items[0].cluster != next(read(case(image=PICTURE + 1), "eye")).cluster


def test_the_two_files_of_an_organ_complete_each_other(tmp_path):
    (tmp_path / "parquet").mkdir()
    whole = case(image={"bytes": png(PICTURE), "path": None})
    write(tmp_path / "parquet" / "eye.parquet", [{k: v for k, v in whole.items() if k != "human_answer"}])
    (tmp_path / "eye.jsonl").write_text(json.dumps({k: whole[k] for k in ("question_id", "human_answer")}))
    for source in (tmp_path, tmp_path / "eye.jsonl", tmp_path / "parquet" / "eye.parquet"):
        items = benchmark.items(source)
        assert [item.subset for item in items] == [f"{name}/eye" for name in DIMENSIONS]
        assert np.array_equal(np.asarray(items[0].pictures[0]), PICTURE)
    (tmp_path / "parquet" / "eye.parquet").unlink()
    with pytest.raises(RewardlabError, match=r"line 1: no column 'answer1_text'|line 1: no column 'image'"):
        benchmark.items(tmp_path)


def test_a_winner_is_the_first_or_the_second():
    with pytest.raises(ValueError, match="winner in relevance"):
        list(read(case(winners="ACAAAA"), "eye"))
    with pytest.raises(KeyError, match="creativity"):
        list(read(case(human_answer={"accuracy": "A", "relevance": "B", "comprehensiveness": "A"}), "eye"))


@pytest.mark.slow
def test_the_check_finds_who_never_looks_and_who_gives_one_verdict():
    told = hidden_faults_found()(Run(None))
    assert told["blind"] == pytest.approx(0.5, abs=0.08)
    assert told["met"] > 0.8
    assert told["control"] < 0.3
    assert told["one verdict"] > 0.8
    assert told["by overall"] == 0.0
