"""The best of n: its estimate against all choices, counted one by one, and the command that measures it."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewardlab
from rewardlab import RewardlabError
from rewardlab.commands import cli
from rewardlab.evals.best_of import best_at, kl_of_best
from rewardlab.models.embedded import untrained

REPLIES = st.lists(st.tuples(st.sampled_from([None, 0.0, 0.5, 2.0]), st.floats(0, 1)), min_size=1, max_size=7)


def counted(k, paid, worth):
    """The same over all choices of k, one by one; of replies that are paid alike each is taken with equal chances."""
    order = [-1.0 if x is None else x for x in paid]
    found = []
    for some in itertools.combinations(range(len(paid)), k):
        best = [worth[i] for i in some if order[i] == max(order[j] for j in some)]
        found.append(sum(best) / len(best))
    return sum(found) / len(found)


@given(REPLIES, st.data())
def test_it_is_the_mean_over_all_choices(replies, data):
    paid, worth = zip(*replies, strict=True)
    k = data.draw(st.integers(1, len(replies)))
    assert best_at(k, paid, worth) == pytest.approx(counted(k, paid, worth), abs=1e-9)


def test_by_hand():
    # of three pairs, two hold the reply that is paid 3
    assert best_at(2, [1, 2, 3], [0.0, 0.6, 0.3]) == pytest.approx((2 * 0.3 + 0.6) / 3)
    assert best_at(3, [1, 2, 3], [0.0, 0.6, 0.3]) == pytest.approx(0.3)
    assert best_at(256, list(range(300)), [1.0] * 300) == pytest.approx(1.0)
    assert kl_of_best(1) == 0.0
    assert kl_of_best(4) == pytest.approx(1.3862943611 - 0.75)
    with pytest.raises(ValueError, match="best of 4 replies is not found among 3"):
        best_at(4, [1, 2, 3], [0, 0, 0])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": f"Start with {i}. Add 2.", "answer": str(i + 2)} for i in range(6)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.py").write_text(
        "def even(completion):\n    return 1.0 if len(completion) % 2 == 0 else 0.0\n\n"
        "def odd(completion):\n    return 1.0 - even(completion)\n\n"
        "def down(completion):\n    return None\n"
    )
    return tmp_path


def test_a_reward_that_knows_the_truth_gets_pass_at_k_and_its_opposite_the_worst(folder):
    about = {"task": "rows.jsonl", "test": "rows.jsonl", "k": (1, 2, 8), "judge": "mine.py:even", "max_new": 6, "device": "cpu"}
    best, worst = (rewardlab.evaluate(untrained(), best_of=f"mine.py:{name}", **about) for name in ("even", "odd"))
    assert 0.1 < best["pass@1"]["value"] < 0.9
    for row, low in zip(best["best"], worst["best"], strict=True):
        assert row["value"] == pytest.approx(best[f"pass@{row['k']}"]["value"])
        # what is paid is here what it is worth
        assert row["paid"] == pytest.approx(row["value"])
        assert low["paid"] == pytest.approx(1 - low["value"])
    assert worst["best"][0]["value"] == pytest.approx(best["pass@1"]["value"])
    assert worst["best"][2]["value"] < worst["best"][1]["value"] < worst["best"][0]["value"]
    with pytest.raises(RewardlabError, match="scored no reply, so that none is the best"):
        rewardlab.evaluate(untrained(), best_of="mine.py:down", **about)


def test_the_command_shows_a_row_for_each_k(folder, capsys):
    untrained().save("small")
    flags = ["--task", "rows.jsonl", "--test", "rows.jsonl", "--k", "1,4", "--judge", "mine.py:even", "--max-new", "6"]
    assert cli.main(["eval", "small", *flags, "--best-of", "-1 * length_penalty()", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["k"] for row in document["best"]] == [1, 4]
    assert document["best_of"] == "-1 * length_penalty()"
    assert cli.main(["eval", "small", *flags, "--best-of", "mine.py:odd"]) == 0
    shown = capsys.readouterr().out
    assert "best of" in shown
    assert "KL" in shown


def test_a_model_that_writes_no_replies_is_refused(folder):
    policy = untrained(3)
    policy.copy("judge", value_head=True).save("scorer")
    (folder / "pairs.jsonl").write_text(json.dumps({"prompt": "1+1?", "chosen": "2", "rejected": "3"}) + "\n")
    with pytest.raises(RewardlabError, match="this model writes none"):
        rewardlab.evaluate("scorer", "pairs.jsonl", test="pairs.jsonl", best_of="mine.py:even", device="cpu")
