"""Reward models on the lean decoder give the scores that transformers gives each row by itself."""

import pytest
import torch

from rewardlab.core import Message, Problem, Trajectory
from rewardlab.evals.pairs import end_values
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.models.lean_scorer import common
from rewardlab.models.reward_model import load_reward_model
from rewardlab.util.passes import by_tokens
from tests.helpers.checkpoints import checkpoint

ASKED = (Message("user", "What is 12+30, and why is it so?"),)
ROWS = [
    *((ASKED, reply) for reply in ("42", "42 because 12+30=42", "42 because", "no", "42 because 12+30=42", "")),
    ((Message("user", "1+1=?"),), "2"),
    *(((Message("system", "Be brief."), *ASKED), reply) for reply in ("it is 42", "it is 41 or so, as 2+0=2 and 1+3=4")),
]


@pytest.mark.parametrize("architecture", ["LlamaForSequenceClassification", "Qwen2ForSequenceClassification"])
def test_scores_are_those_of_transformers_whatever_rows_have_in_common(tmp_path, architecture):
    from transformers import AutoModelForSequenceClassification

    checkpoint(tmp_path, tokenizer(), architecture, num_labels=1)
    model, peer = load_reward_model(str(tmp_path), "cpu", "float32"), AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert model.lean
    expected = []
    for prompt, reply in ROWS:
        ids = torch.tensor([model._conversation(prompt, reply)])
        with torch.no_grad():
            expected.append(float(peer.score(peer.base_model(ids).last_hidden_state[0, -1])))
    assert max(expected) - min(expected) > 1e-2
    assert model.score(ROWS) == pytest.approx(expected, abs=1e-5)
    # each by itself shares nothing
    assert [model.score([row])[0] for row in ROWS] == pytest.approx(expected, abs=1e-5)


def test_what_replies_have_in_common_is_computed_once(tmp_path, monkeypatch):
    checkpoint(tmp_path, tokenizer(), "LlamaForSequenceClassification", num_labels=1)
    model, read = load_reward_model(str(tmp_path), "cpu", "float32"), []
    trunk = model.lean.policy.model.trunk
    monkeypatch.setattr(model.lean.policy.model, "trunk", lambda w, ids, *rest: read.append(len(ids)) or trunk(w, ids, *rest))
    in_all = sum(n for _, _, n in model.read(ROWS[:6]))
    assert sum(read) < 0.5 * in_all


def test_two_labels_and_other_families_are_left_to_transformers(tmp_path):
    checkpoint(tmp_path / "two", tokenizer(), "LlamaForSequenceClassification", num_labels=2)
    assert load_reward_model(str(tmp_path / "two"), "cpu", "float32").lean is None
    assert load_reward_model(str(tmp_path / "two"), "cpu", "bfloat16").lean is None


def test_the_common_beginning_leaves_each_row_a_token():
    rows = [[1, 2, 3, 4], [1, 2, 5], [1, 2], [9, 9], [9, 9], [7]]
    assert common(rows, [0, 0, 0, 1, 1, 2]) == [1, 1, 1, 1, 1, 0]


def test_rows_of_a_group_stay_together_where_they_fit():
    lengths, groups = [5, 9, 4, 8, 3, 2, 9], [0, 1, 0, 1, 2, 0, 3]
    parts = by_tokens(lengths, 18, groups)
    assert sorted(i for part in parts for i in part) == list(range(7))
    assert all(len(part) * max(lengths[i] for i in part) <= 18 for part in parts)
    assert [1, 3] in parts
    assert [0, 2, 5] in parts
    # what does not fit is split, and without groups rows are sorted by length
    assert by_tokens([4, 4, 4], 8, [0, 0, 0]) == [[0, 1], [2]]
    assert by_tokens([1, 3, 2], 6) == [[1, 2], [0]]


def test_a_head_that_reads_surprise_scores_as_it_did_in_training(tmp_path, capfd):
    policy = untrained(3)
    judge = policy.copy("judge", value_head=True).read_surprise(policy)
    with torch.no_grad():
        judge.model.value_head.normal_()
    judge.save(tmp_path)
    model = load_reward_model(f"{tmp_path}?layout=ours", "cpu", "bfloat16")
    prompts = judge.read([Trajectory(Problem(p)) for p, _ in ROWS], [p for p, _ in ROWS])
    expected = end_values(judge, judge.write(prompts, [reply for _, reply in ROWS])).tolist()
    assert max(expected) - min(expected) > 1e-2
    assert model.score(ROWS) == pytest.approx(expected, abs=1e-5)
    # transformers would warn of a type that it does not know
    assert "rewardlab_surprise" not in capfd.readouterr().err
