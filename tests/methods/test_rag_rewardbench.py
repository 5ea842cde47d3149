"""RAG-RewardBench: pairs count alike, where a row's part stands, the question after the documents, and the paper's table."""

from __future__ import annotations

import pytest

from rewardlab.core import Run
from rewardlab.methods.benchmarks.rag_rewardbench import benchmark, figures, marks, means_of_the_table, read
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict


def row(prompt: str = "documents", **other):
    return {"prompt": prompt, "question": "why?", "chosen": "a", "reject": "b", "subset": "hotpotqa", **other}


def test_pairs_count_alike_in_the_means():
    files = ["helpful", "reason", "reason", "citation", "harmless"]
    own = [item for k, file in enumerate(files) for item in read(row(f"documents {k}"), file)]
    scores = [(1.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.0, 1.0), (1.0, 1.0)]
    told = figures(Marks.of(own, [marks(i, Verdict(s)) for i, s in zip(own, scores, strict=True)]))
    assert told["all helpful"] == pytest.approx(2 / 4)
    assert told["overall"] == pytest.approx(2 / 5)
    # a tie is lost
    assert told["all harmless"] == told["harmless"] == 0.0


def test_the_part_is_the_files_or_the_subsets_and_no_other_is_taken():
    assert next(read(row(), "conflict")).subset == "conflict"
    assert next(read(row(subset="Abstain-1"), "train-00000")).subset == "abstain"
    with pytest.raises(ValueError, match="hotpotqa"):
        list(read(row(), "train-00000"))


def test_the_question_follows_the_documents_where_they_lack_it():
    assert next(read(row(), "reason")).question == "documents\n\nwhy?"
    assert next(read(row("documents, why?"), "reason")).question == "documents, why?"


def test_rows_without_an_id_are_told_apart_by_what_they_say():
    one, other, same = (next(read(row(chosen=x), "reason")) for x in ("a", "c", "a"))
    assert one.id == same.id != other.id
    assert len({item.id for row in benchmark.example for item in read(row, "rows")}) == 2


def test_the_means_of_the_papers_table_come_out():
    told = means_of_the_table()(Run(None))
    assert told["met"] == pytest.approx(40 / 42)
    assert told["control"] < 0.1
