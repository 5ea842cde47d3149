"""RMB: pairs and lists of two goals, each counting alike, and the published rows."""

from __future__ import annotations

import json

import pytest

from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.rmb import benchmark, lists_and_pairs, read
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict

TURNS = [
    {"role": "user", "content": "Hi", "language": "English"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "So?"},
]


def row(path: str, losers: int = 1, name: str = "1") -> dict:
    best, others = {"llm_name": "a", "answer": "good"}, [{"llm_name": "b", "answer": f"bad {k}"} for k in range(losers)]
    if path.startswith("BoN"):
        return {"bon_uid": name, "conversation_input": TURNS, "bon_best": best, "loser_list": others, "category_path": path}
    return {"pair_uid": name, "conversation_input": TURNS, "chosen": best, "reject": others[0], "category_path": path}


def item(path: str, losers: int = 1) -> Item:
    (found,) = read(row(path, losers), "x")
    return found


def figures(rows: list[tuple[Item, Verdict]]) -> dict[str, float]:
    return dict(benchmark.figures(Marks.of([i for i, _ in rows], [benchmark.marks(i, v) for i, v in rows])))


@pytest.mark.parametrize(
    ("verdict", "won"),
    [
        (Verdict((3.0, 1.0, 2.0)), 1.0),
        (Verdict((3.0, 3.0, 2.0)), 0.0),
        (Verdict((3.0, None, 2.0)), 0.0),
        (Verdict(), 0.0),
        (Verdict(orders={(0, 1): 1, (1, 0): 0, (0, 2): 1, (2, 0): 1}), 0.0),
        (Verdict(orders={(0, 1): 1, (1, 0): 0, (0, 2): 1, (2, 0): 0}), 1.0),
    ],
)
def test_a_list_is_won_against_all_of_its_losers_or_lost(verdict, won):
    assert benchmark.marks(item("BoN_set/Harmlessness/S1", 2), verdict) == {"harmlessness lists": won}


def test_the_four_parts_count_alike_whatever_their_size():
    good, bad = Verdict((1.0, 0.0, 0.0)), Verdict((0.0, 1.0, 1.0))
    rows = [
        (item("Pairwise_set/Helpfulness/Chat/Discussion"), good),
        (item("Pairwise_set/Helpfulness/Chat/Discussion"), good),
        (item("Pairwise_set/Helpfulness/Code/Documentation"), bad),
        (item("BoN_set/Helpfulness/Chat/Discussion", 2), bad),
        (item("Pairwise_set/Harmlessness/S1"), good),
        (item("BoN_set/Harmlessness/multi", 2), good),
    ]
    found = figures(rows)
    # pairs of helpfulness 2 of 3, lists 0 of 1; harmlessness 1 and 1
    assert found["overall"] == pytest.approx((2 / 3 + 0 + 1 + 1) / 4)
    assert found["helpfulness pairs"] == pytest.approx(2 / 3)
    assert (found["Chat"], found["Code"], found["S1"]) == (1.0, 0.0, 1.0)
    assert "multi" not in found


def test_a_file_of_one_part_alone_has_its_own_figure_as_the_whole():
    found = figures([(item("Pairwise_set/Harmlessness/S1"), Verdict((1.0, 0.0)))])
    assert found["overall"] == found["harmlessness pairs"] == 1.0


def test_a_folder_is_read_with_all_that_is_in_it(tmp_path):
    for path, name in (("Pairwise_set/Harmlessness/S1", "1"), ("BoN_set/Helpfulness/Closed QA/OptionBased", "1")):
        place = tmp_path / f"{path}.json"
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps([row(path, 2, name)]))
    items = benchmark.items(tmp_path)
    assert {(i.id, i.subset, len(i.replies)) for i in items} == {("pairs/1", "S1", 2), ("lists/1", "Closed QA", 3)}
    assert [m.role for m in items[0].prompt] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("broken", "says"),
    [(row("BoN_set/Helpfulness/Chat", 0), "loser_list is empty"), (row("Pairwise_set/Honesty/Chat"), "category_path")],
)
def test_a_broken_row_is_told_with_its_place(broken, says, tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps(broken))
    with pytest.raises(RewardlabError, match=f"line 1.*{says}"):
        benchmark.items(tmp_path / "rows.jsonl")


@pytest.mark.slow
def test_lists_tell_more_than_pairs_of_what_the_best_of_many_is_worth():
    found = lists_and_pairs()(Run(policy=None, seed=1))
    assert found["lists"] > found["pairs"] + 0.08
