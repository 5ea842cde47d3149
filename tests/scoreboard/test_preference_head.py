"""A linear head on an encoder's vectors: fitted to pairs, it ranks what it never saw; cut replies are counted."""

from __future__ import annotations

import json
from zlib import crc32

import numpy as np
import pytest

from rewardlab.errors import RewardlabError
from rewardlab.scoreboard.items import Item, users
from rewardlab.scoreboard.raters import load_rater
from rewardlab.scoreboard.raters.preference_head import _weights, fit, fitted
from rewardlab.scoreboard.run import scoreboard

DIMENSION = 6


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))


def vectors(texts):
    """A random unit vector for each text."""
    found = np.array([np.random.default_rng(crc32(text.encode())).normal(size=DIMENSION) for text in texts])
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def items(start, count, better):
    """Two replies to each prompt; better: the vectors of a prompt and a reply -> how good it is."""
    made = []
    for k in range(start, start + count):
        replies = (f"reply {k} a", f"reply {k} b")
        prompt, *pair = vectors([f"prompt {k}", *replies])
        made.append(Item(str(k), users(f"prompt {k}"), replies, tuple(float(better(prompt, v)) for v in pair)))
    return made


@pytest.mark.parametrize(
    "better", [lambda prompt, reply: reply[0], lambda prompt, reply: prompt[1] * reply[1]], ids=["by itself", "beside its prompt"]
)
def test_what_a_good_reply_is_is_learnt_and_holds_for_new_prompts(better):
    head = fit(items(0, 400, better), vectors)
    new = items(1000, 200, better)
    right = 0
    for item in new:
        prompt, *replies = vectors([item.question, *item.replies])
        scores = head.rewards(prompt, np.stack(replies))
        right += (scores[0] > scores[1]) == (item.worth[0] > item.worth[1])
    assert right / len(new) > 0.9
    assert abs(head.held_out - right / len(new)) < 0.06


def test_labels_without_a_rule_leave_a_head_at_chance_by_its_own_account():
    rng = np.random.default_rng(0)
    head = fit(items(0, 400, lambda prompt, reply: rng.random()), vectors)
    # 400 pairs at chance: two standard errors are .05
    assert 0.44 < head.held_out < 0.56


def test_the_weights_are_where_the_slope_of_the_penalised_loss_is_zero():
    z = np.random.default_rng(1).normal(size=(50, 4)) + 0.3
    w = _weights(z, 2.0)
    assert 2.0 * w == pytest.approx((z / (1 + np.exp(z @ w))[:, None]).sum(0), abs=1e-8)


def test_a_head_is_fitted_once_and_again_for_other_pairs_or_another_encoder():
    asked = []

    def counted(texts):
        asked.append(len(texts))
        return vectors(texts)

    some = items(0, 20, lambda prompt, reply: reply[0])
    first, again = (fitted(some, counted, "a") for _ in range(2))
    assert (first.weights == again.weights).all()
    assert len(asked) == 1
    fitted(some[:15], counted, "a")
    fitted(some, counted, "b")
    assert len(asked) == 3


@pytest.mark.slow
def test_a_head_on_the_scoreboard_is_fitted_to_a_file_of_pairs(tmp_path):
    good, bad = "the sky is blue and clear", "no"
    rows = [{"prompt": f"Say {k}.", "chosen": f"{good} {k}", "rejected": f"{bad} {k}"} for k in range(20)]
    (pairs := tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:10]))
    (held_out := tmp_path / "held_out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[10:]))
    name = f"ngrams?as=embedder&head={pairs}"
    document = scoreboard([name], ["pairs"], data=held_out)
    entry = document["raters"][name]["pairs"]
    assert entry["figures"]["overall"]["value"] == 1.0
    assert "calibration_error" in entry["biases"]
    (few := tmp_path / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:3]))
    with pytest.raises(RewardlabError, match="5 prompts at least, and the file has 3"):
        load_rater(f"ngrams?as=embedder&head={few}")
    with pytest.raises(RewardlabError, match="there is no file"):
        load_rater(f"ngrams?as=embedder&head={tmp_path / 'none.jsonl'}")
