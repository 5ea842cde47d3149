"""A value head whose trunk also reads how surprised a frozen model was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from rewardlab import registry
from rewardlab.core import Learner, Recipe, Sampling, Trajectory
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.models.load import load_policy
from rewardlab.objectives.labels import label_cross_entropy, language_model
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.layout import Layout, layout
from rewardlab.policies.llama.surprise import MOST
from rewardlab.util.outputs import last_values


@pytest.fixture
def policy():
    return untrained(0)


def rows_of(policy, n=2):
    """n sampled replies to each of three problems, whose prompts are shared."""
    problems = registry.task("arithmetic", test_size=3).test
    prompts = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return policy.extend([t for t in prompts for _ in range(n)], Sampling(9), torch.Generator().manual_seed(1))


def judge_of(policy, seed=2):
    judge = learner_model(Learner("judge", "value-head:surprise", Recipe()), policy)
    torch.nn.init.normal_(judge.model.value_head, generator=torch.Generator().manual_seed(seed))
    return judge


def batch_of(rows):
    return collate([rows], None, torch.device("cpu"))


def test_surprise_is_minus_the_log_prob_clipped_and_halved(policy):
    rows, surprise = rows_of(policy), judge_of(policy).model.surprise
    batch = batch_of(rows)
    wanted = [np.minimum(-x, MOST) / 2 for x in policy.score(rows)]
    for tokens in (Layout(batch.ids, batch.length), layout(batch.ids, batch.length, batch.mask)):
        found = tokens.table(surprise.of(tokens, batch.ids, surprise.reader.cast(torch.float32)))
        for row, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(row[: len(want)], want, atol=1e-5)
            assert not row[len(want) :].any()
    assert max(x.max() for x in wanted) == MOST / 2
    assert min(x[1:].min() for x in wanted) < MOST / 2


def test_what_a_token_adds_is_its_surprise_times_a_learnt_vector(policy):
    rows, judge = rows_of(policy), judge_of(policy)
    plain = policy.copy("plain", value_head=True)
    with torch.no_grad():
        plain.model.value_head.copy_(judge.model.value_head)
        assert last_values(judge, rows) != last_values(plain, rows)
        judge.model.surprise.vector.zero_()
    np.testing.assert_allclose(last_values(judge, rows), last_values(plain, rows), atol=1e-6)


def test_the_vector_learns_and_the_reader_stays_what_the_policy_was(policy):
    rows, judge = rows_of(policy), judge_of(policy)
    before = [x.copy() for x in policy.score(rows)]
    out = judge.evaluate(batch_of(rows), ("value",))
    out.value.square().sum().backward()
    assert judge.model.surprise.vector.grad.abs().min() > 0
    assert all(p.grad is None and not p.requires_grad for p in judge.model.surprise.reader.parameters())
    with torch.no_grad():
        policy.model.embed += 1.0
    reader = learner_model(Learner("again", "copy:policy", Recipe()), policy)
    reader.model = judge.model.surprise.reader
    np.testing.assert_array_equal(np.concatenate(reader.score(rows)), np.concatenate(before))


def test_its_checkpoint_is_read_again_and_by_nobody_who_would_leave_surprise_out(policy, tmp_path):
    rows, judge = rows_of(policy), judge_of(policy)
    judge.save(tmp_path / "judge")
    again = load_policy(str(tmp_path / "judge"), "cpu", "float32")
    assert last_values(again, rows) == last_values(judge, rows)
    for model in (judge, again):
        model.copy("copy").save(tmp_path / model.name)
        assert last_values(load_policy(str(tmp_path / model.name), "cpu", "float32"), rows) == last_values(judge, rows)
    with pytest.raises(ValueError, match="rewardlab_surprise"):
        transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "judge")
    with pytest.raises(RewardlabError, match="the lean policy alone"):
        load_policy(f"hf:{tmp_path / 'judge'}", "cpu", "float32")


def test_a_run_saves_and_resumes_what_it_has_learnt(policy):
    judge, other = judge_of(policy), judge_of(policy, seed=3)
    with torch.no_grad():
        judge.model.surprise.vector += 1.0
    assert not any("reader" in name for name in judge.state())
    other.load_state(judge.state())
    rows = rows_of(policy)
    assert last_values(other, rows) == last_values(judge, rows)


def test_both_models_tokens_are_counted(policy):
    rows, judge = rows_of(policy), judge_of(policy)
    plain = policy.copy("plain", value_head=True)
    counts = []
    for model in (plain, judge):
        before = model.token_count.scored
        model.evaluate(batch_of(rows), ("value",))
        counts.append(model.token_count.scored - before)
    assert counts[1] == 2 * counts[0] == 2 * sum(map(len, rows))


def test_models_that_cannot_read_it_are_refused(policy, tmp_path):
    with pytest.raises(RewardlabError, match="has a value head"):
        judge_of(policy.copy("critic", value_head=True))
    policy.save(tmp_path / "hf")
    other = HFPolicy.load(tmp_path / "hf", "cpu", "float32")
    with pytest.raises(RewardlabError, match="'reward' starts from 'value-head:surprise', which the lean text policy alone"):
        learner_model(Learner("reward", "value-head:surprise", Recipe()), other)


def test_a_head_beside_tied_embeddings_keeps_its_language_and_another_says_that_it_is_gone(policy):
    rows, critic = rows_of(policy), policy.copy("critic", value_head=True)
    batch = batch_of(rows)
    torch.testing.assert_close(critic.evaluate(batch).logprobs, policy.evaluate(batch).logprobs)
    both = (label_cross_entropy() + language_model()).wants
    assert set(both) == {"value", "logprobs"}
    critic.model.shape = type(critic.model.shape)(**{**vars(critic.model.shape), "tied": False})
    with pytest.raises(RewardlabError, match="in place of its vocabulary head"):
        critic.evaluate(batch, both)
