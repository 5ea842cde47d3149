"""Rows in memory: filters, duplicates, pairs, mixtures and orders, each against what can be counted by hand or by brute force."""

import json
import random
from collections import Counter
from itertools import combinations, pairwise

import pytest

from rewardlab import data
from rewardlab.data.drops import first, staying
from rewardlab.data.duplicates import contaminated, duplicates, jaccard, same_answers, shared_ends, without_ends
from rewardlab.data.files import write
from rewardlab.data.filters import Bounds, broken_answers, length_within, within
from rewardlab.data.mixing import Source, amounts, mixture
from rewardlab.data.ordering import bands, easy_first, sample, weights
from rewardlab.data.pairing import pairs
from rewardlab.data.tokens import shingles, words
from rewardlab.errors import RewardlabError

# ---- filters ---------------------------------------------------------------------------------------------------------


def kept(rows, fates) -> list:
    return [row.get("id") for row in staying(rows, fates)]


def test_numbers_lengths_and_answers():
    rows = [
        {"id": 1, "rate": 0.5, "text": "abc", "answer": 0},
        {"id": 2, "rate": "0.1", "text": "", "answer": ""},
        {"id": 3, "rate": 1, "text": "abcdef", "answer": float("nan")},
        {"id": 4, "rate": None, "answer": "x"},
        {"id": 5, "rate": True, "text": [{"role": "user", "content": "abcd"}], "answer": []},
    ]
    rate = within(rows, "rate", Bounds.read("0.1:0.9"))
    assert kept(rows, rate) == [1, 2]
    assert [drop and drop.why for drop in rate] == [
        None,
        None,
        "rate: 1 is above 0.9",
        "rate is not a number: ''",
        "rate: 1 is above 0.9",
    ]
    length = length_within(rows, "text", Bounds.read("3:5"))
    assert kept(rows, length) == [1, 5]
    assert length[3] is not None
    assert length[3].why == "there is no column text"
    # zero is an answer
    assert kept(rows, broken_answers(rows)) == [1, 4]
    assert kept(rows, first(rate, length, broken_answers(rows))) == [1]


def test_a_percentage_is_a_quantile_of_the_numbers():
    rows = [{"id": i, "x": i} for i in range(1, 101)]
    assert kept(rows, within(rows, "x", Bounds.read("25%:"))) == list(range(26, 101))
    assert kept(rows, within(rows, "x", Bounds.read("90:95%"))) == list(range(90, 96))


@pytest.mark.parametrize("text", ["5", ":", "a:b", "0.9:0.1", "-1%:", "150%:", "1:2:3", "nan:1", "1e999:"])
def test_bounds_that_are_none_are_refused(text):
    with pytest.raises(RewardlabError):
        Bounds.read(text)


def test_bounds_may_be_a_pair_of_numbers(tmp_path):
    assert Bounds.read((3, 5)) == Bounds.read("3:5")
    assert (Bounds.read([None, 0.5]), Bounds.read((0.5, None))) == (Bounds.read(":0.5"), Bounds.read("0.5:"))
    for wrong in ((1, 2, 3), (None, None), (5, 3), ("1", 2), (True, 2), (float("nan"), 1), 5, None):
        with pytest.raises(RewardlabError, match=r"a pair of numbers|the least is above the most"):
            Bounds.read(wrong)
    write(tmp_path / "a.jsonl", [{"n": n} for n in range(7)])
    assert data.filter_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", between={"n": (3, 5)})["written"] == 3


# ---- duplicates ------------------------------------------------------------------------------------------------------


def brute_force(texts, t, n) -> list[int | None]:
    """For each text the earlier one that stays and is most alike, by comparing every two."""
    sets, found = [shingles(words(text), n) for text in texts], []
    for i, of in enumerate(sets):
        alike = [(jaccard(of, sets[j]), -j) for j in range(i) if found[j] is None]
        best = max(alike, default=(0.0, 0))
        found.append(-best[1] if best[0] >= t else None)
    return found


@pytest.mark.parametrize("t", [0.3, 0.5, 0.8, 0.95])
def test_near_duplicates_are_those_of_brute_force(t):
    rng = random.Random(1)
    base = [[rng.choice("abcdefghijklmnop") * 2 for _ in range(rng.randint(1, 25))] for _ in range(40)]
    texts = []
    for _ in range(160):
        text = list(rng.choice(base))
        for _ in range(rng.randint(0, 3)):
            text[rng.randrange(len(text))] = rng.choice("abcdefghijklmnop") * 2
        texts.append(" ".join(text))
    said = [None if drop is None else int(drop.like.split()[1]) - 1 for drop in duplicates(texts, t)]
    want = brute_force(texts, t, 3)
    assert [x is None for x in said] == [x is None for x in want]
    assert 20 < sum(x is not None for x in want) < 160
    sets = [shingles(words(text), 3) for text in texts]
    for i, (a, b) in enumerate(zip(said, want, strict=True)):
        if a is None:
            continue
        # the row that is named stays, and none is more alike, unless an equal text went before for the sake of another
        assert said[a] is None
        assert jaccard(sets[i], sets[a]) >= t
        assert texts[i] in texts[:i] or jaccard(sets[i], sets[a]) == jaccard(sets[i], sets[b])


def test_equal_texts_differ_in_case_spacing_and_punctuation_alone():
    texts = [
        "What is 2 + 3?",
        "what IS  2+3",
        "What is 2 - 3?",
        "What is 23?",
        "What is 2.3?",
        "",
        "",
        "二加三是多少？",
        "二加三是多少",
    ]
    fates = duplicates(texts, 1.0, answers=["5", "6", "", "", "", "", "", "5", "5"])
    assert [drop and drop.like for drop in fates] == [None, "text 1", None, None, None, None, None, None, "text 8"]
    assert fates[1].why == "equals text 1; its answer is another: '6', not '5'"
    assert fates[8].why == "equals text 8"


SYSTEM = "You are a careful assistant: think step by step, write your reasoning into tags, and put the final result behind them."
ASKED = "Solve the following problem step by step, and put the final answer in a box at the end. Problem: {} Remember to box "
ASKED += "your answer, and to write nothing after it at all."


@pytest.mark.parametrize(
    "written",
    [
        lambda text: [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}],
        lambda text: json.dumps([{"from": "System", "value": SYSTEM}, {"from": "human", "value": text}]),
        ASKED.format,
    ],
    ids=["messages", "as text", "an instruction"],
)
def test_what_all_prompts_have_in_common_makes_none_a_duplicate(tmp_path, written):
    asked = [*(f"What is {i} plus {i * i}?" for i in range(1, 16)), "what is 3 plus 9"]
    tested = [f"What is {i} times {i}?" for i in range(1, 8)] + ["What is 5 plus 25?"]
    for name, texts in (("train", asked), ("test", tested)):
        rows = [json.dumps({"prompt": written(text), "answer": "1"}) + "\n" for text in texts]
        (tmp_path / f"{name}.jsonl").write_text("".join(rows))
    told = data.dedupe_file(tmp_path / "train.jsonl", tmp_path / "out.jsonl", against=[tmp_path / "test.jsonl"])
    assert told["dropped"] == {"in the test set": 1, "duplicate": 1}
    dropped = [json.loads(line) for line in (tmp_path / "out.dropped.jsonl").read_text().splitlines()]
    assert [(row["place"], row["why"].rpartition("/")[2]) for row in dropped] == [
        ("line 5", "test.jsonl, line 8"), ("line 16", "equals line 3"),
    ]  # fmt: skip
    # what is not compared is told
    assert ("box your answer" in told.get("not_compared", "")) == (written == ASKED.format)


def test_only_what_many_texts_share_is_an_instruction():
    many = [ASKED.format(f"What is {i}?") for i in range(20)]
    begin, end = shared_ends(many)
    assert (begin, end) == tuple(ASKED.split("{}"))
    assert shared_ends([*many, "other", "another"]) == (begin, end)
    assert shared_ends([*many, *(f"{i} is this, and nothing else" for i in range(5))]) == ("", "")
    assert shared_ends(many[:9]) == shared_ends([f"What is {i}?" for i in range(20)]) == shared_ends([]) == ("", "")
    assert shared_ends([f"The farmer has ten hens and eggs in a box for {i} days" for i in range(20)])[0] == ""
    # equal texts stay equal
    assert len({*without_ends([many[0]] * 12, *shared_ends([many[0]] * 12))} - {""}) == 1


LONG = "a farmer has twelve hens and each of them lays two eggs on every day of the week"


def test_what_is_in_a_test_set():
    tests = [("test, line 1", LONG), ("test, line 2", "What is 7*8?"), ("test, line 3", "Start with 4. Add 5. Multiply by 3.")]
    texts = [
        # 13 words in a row, and 12 of them
        f"Once, {LONG.partition(' of the week')[0]}. How many?",
        "hens and each of them lays two eggs on every day of whatever",
        # a very short text counts as a whole, a short one also within another; signs must agree
        "what is 7 * 8",
        "What is 7*8? And what is 9*9?",
        "What is 7+8?",
        "First: start with 4. Add 5; multiply by 3!",
        # a long sum has few words
        "<<1+2=3>> <<3+4=7>> <<7+5=12>>",
    ]
    fates = contaminated(texts, [*tests, ("test, line 4", "<<1+2=3>> <<3+4=7>> <<7+6=13>> and so on and on and on")])
    assert [drop and drop.like for drop in fates] == ["test, line 1", None, "test, line 2", None, None, "test, line 3", None]
    assert [drop.why.split(":")[0] for drop in fates if drop] == [
        "shares 13 words in a row with test, line 1", "equals test, line 2", "holds all of test, line 3",
    ]  # fmt: skip
    assert contaminated(texts, tests, n=12)[1] is not None


def test_worked_answers_of_a_test_set():
    tests = [("test, line 1", "12 hens lay 12 * 2 = 24 eggs."), ("test, line 2", "18")]
    fates = same_answers(["12 hens lay 12*2 = 24 eggs", "18", "12 hens lay 12 + 2 = 14 eggs"], tests)
    assert [drop and drop.why for drop in fates] == ["its answer is that of test, line 1", None, None]


# ---- pairs -----------------------------------------------------------------------------------------------------------

REPLIES, SCORES = ["bad", "good", "fair", "bad", "none", "best"], [0.0, 0.8, 0.5, 0.0, None, 0.9]


def test_pairs_by_the_gap_of_their_scores():
    (pair,) = pairs(REPLIES, SCORES)
    assert (pair.chosen, pair.rejected, pair.gap) == ("best", "bad", 0.9)
    every = [(p.chosen, p.rejected) for p in pairs(REPLIES, SCORES, "all", gap=0.4)]
    assert every == [("best", "bad"), ("good", "bad"), ("fair", "bad"), ("best", "fair")]
    found = Counter(pairs(REPLIES, SCORES, "best-random", gap=0.3, seed=s)[0].rejected for s in range(50))
    assert found.keys() == {"bad", "fair"}
    assert pairs(REPLIES, SCORES, "best-random", seed=3) == pairs(REPLIES, SCORES, "best-random", seed=3)
    assert pairs(["a", "b"], [1.0, 1.0]) == pairs(["a", "a"], [1.0, 0.0]) == pairs(["a"], [1.0]) == []
    assert len(pairs(list("abcdef"), [1, 2, 3, 4, 5, 6], "all")) == len(list(combinations("abcdef", 2)))
    with pytest.raises(RewardlabError, match="did you mean best-worst"):
        pairs(REPLIES, SCORES, "best-wors")


# ---- mixtures --------------------------------------------------------------------------------------------------------


def test_amounts_follow_weights_up_to_the_cap():
    assert amounts([100, 100], [2, 1]) == [100, 50]
    assert amounts([10, 100, 7], [1, 1, 1], 20) == [7, 7, 6]
    # the small one gives all it has, three times, and the other does not fill in
    assert amounts([10, 1000], [1, 1], 200, repeat=3) == [30, 100]
    assert amounts([10, 0], [1, 1]) == [0, 0]
    for wrong in ([0, 1], [-1, 1]):
        with pytest.raises(RewardlabError, match="a weight above 0"):
            amounts([1, 1], wrong)


def test_weights_are_finite_and_above_zero(tmp_path):
    write(tmp_path / "a.jsonl", [{"n": 1}])
    source = str(tmp_path / "a.jsonl")
    for wrong in (0, -1, float("nan"), float("inf"), "much", True):
        with pytest.raises(RewardlabError, match=f"the weight of {source} is .*each with a weight above 0"):
            data.mix_files({source: wrong}, tmp_path / "b.jsonl")
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(RewardlabError, match="each with a weight above 0"):
            amounts([4, 4], [1, wrong])
        with pytest.raises(RewardlabError, match="repeat, how often a file may be gone through"):
            amounts([4], [1], repeat=wrong)
    # as large or as small as a number may be
    assert amounts([4, 4], [1e308, 1e308]) == [4, 4]
    assert amounts([4, 4], [1e308, 1e-320]) == [4, 0]


def test_a_mixture_repeats_no_row_before_all_others_came_and_aligns_columns():
    sources = [Source("a", [{"id": i} for i in range(10)], 3), Source("b", [{"id": i, "more": 1} for i in range(100, 150)])]
    mixed = mixture(sources, 40, repeat=4, seed=1)
    counts = Counter(row["id"] for row in mixed if row["source"] == "a")
    assert counts == dict.fromkeys(range(10), 3)
    assert len({row["id"] for row in mixed if row["source"] == "b"}) == 10
    assert {tuple(row) for row in mixed} == {("id", "source", "more")} or {tuple(row) for row in mixed} == {
        ("id", "more", "source")
    }
    assert mixed == mixture(sources, 40, repeat=4, seed=1) != mixture(sources, 40, repeat=4, seed=2)
    # shuffled: the sources take turns
    assert 8 < sum(x["source"] != y["source"] for x, y in pairwise(mixed)) < 32


# ---- orders ----------------------------------------------------------------------------------------------------------


def test_easy_ones_first_and_equals_in_random_order():
    difficulty = [0.5] * 20 + [0.1, 0.9]
    order = easy_first(difficulty, seed=1)
    assert (order[0], order[-1]) == (20, 21)
    assert sorted(order[1:-1]) == list(range(20)) != order[1:-1]
    assert order == easy_first(difficulty, seed=1) != easy_first(difficulty, seed=2)


def test_stages_by_number_and_by_cuts():
    assert bands([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 3) == [1, 1, 2, 2, 3, 3]
    # equals are not divided, and no stage is empty
    assert bands([0, 0, 0, 0, 0, 1], 3) == [1, 1, 1, 1, 1, 2]
    assert bands([0.0, 0.25, 0.5, 0.9], cuts=[0.25, 0.5]) == [1, 2, 3, 3]
    for wrong in ({}, {"count": 2, "cuts": [1]}, {"cuts": [2, 1]}, {"count": 0}):
        with pytest.raises(RewardlabError, match="stages need"):
            bands([1, 2], **wrong)


def test_a_target_that_no_row_is_near_is_refused(tmp_path):
    write(tmp_path / "a.jsonl", [{"pass_rate": x} for x in (0.25, 0.75)])
    told = "no row is near the target 50: pass_rate lies between 0.25 and 0.75"
    with pytest.raises(RewardlabError, match=told):
        data.curriculum_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", order="target", target=50)
    assert data.curriculum_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", order="target")["written"] == 2
    # neither a power of a small width nor one of a large distance stops it
    assert weights([0.5, 0.75, 1e200], 0.5, 1e-200) == [1, 0, 0]


def test_rows_are_drawn_by_weight():
    heavy = weights([0.0, 0.5, 0.7, 1.0], target=0.5, width=0.2)
    assert heavy == pytest.approx([0.04394, 1.0, 0.60653, 0.04394], abs=1e-5)
    first_sampled = Counter(sample([3.0, 1.0, 0.0], seed=s)[0] for s in range(2000))
    assert first_sampled[0] / 2000 == pytest.approx(0.75, abs=0.04)
    assert not first_sampled[2]
    assert sample([1.0] * 9, 4, seed=1) == sample([1.0] * 9, seed=1)[:4]
    assert sorted(sample([1.0] * 9, seed=1)) == list(range(9))
