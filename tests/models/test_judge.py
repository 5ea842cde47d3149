"""The judge trunk: a deeper copy of a small policy, what it is taught, and how judges start from it."""

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Learner, Recipe, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.models import embedded, judge
from rewardlab.models.checkpoint import absolute_name
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.models.load import load_policy
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.objectives.ratio import imitate
from rewardlab.util.outputs import last_values

TASK = registry.task("arithmetic", test_size=4)


def rows_of(policy):
    prompts = policy.read([Trajectory(p) for p in TASK.test], [p.prompt for p in TASK.test])
    return policy.write(prompts, [p.meta["solution"] for p in TASK.test])


def test_more_layers_change_nothing_until_they_learn():
    policy = untrained(0, layers=2)
    deeper = judge.deeper(policy, 3)
    assert deeper.model.shape.layers == 5
    rows = rows_of(policy)
    np.testing.assert_allclose(np.concatenate(deeper.score(rows)), np.concatenate(policy.score(rows)), atol=1e-5)
    # layers 2, 3 and 4 look at what 0, 1 and 0 look at
    old, new = policy.model.layers, deeper.model.layers
    for at, source in ((2, 0), (3, 1), (4, 0)):
        assert torch.equal(new[at].qkv, old[source].qkv)
        assert not new[at].down.any()


def test_most_solutions_to_be_judged_are_flawed_and_each_is_always_the_same():
    task = registry.task("arithmetic")
    problems = [judge.Solutions(task)[i] for i in range(200)]
    right = [p.meta["solution"].endswith(f"Answer: {p.answer}") for p in problems]
    assert 0.1 < sum(right) / len(right) < 0.35
    assert judge.Solutions(task)[7].meta["solution"] == problems[7].meta["solution"]


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """The cache holds the judge of a tiny policy, after two steps of training."""
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    untrained(0).save(tmp_path / f"embedded-{embedded.fingerprint()}")
    judge.train(TASK, steps=2).save(tmp_path / f"judge-arithmetic-{judge.fingerprint(TASK)}")


def test_value_models_start_from_it_with_a_head_of_zeros_and_generative_judges_with_its_language(trained):
    policy = load_policy("embedded", "cpu", "float32", task=TASK)
    values = Learner("reward", "embedded:arithmetic:judge", Recipe(objective=label_cross_entropy()))
    model = learner_model(values, policy)
    assert model.name == "reward"
    assert model.model.shape.layers == 1 + judge.MORE_LAYERS
    assert last_values(model, rows_of(policy)) == [0.0] * 4
    talker = learner_model(Learner("verifier", "embedded:arithmetic:judge", Recipe(objective=imitate())), policy)
    assert talker.model.value_head is None
    assert np.isfinite(np.concatenate(talker.score(rows_of(policy)))).all()
    # two steps of training have moved it
    assert not np.allclose(np.concatenate(talker.score(rows_of(policy))), np.concatenate(policy.score(rows_of(policy))))
    assert load_policy("embedded:arithmetic:judge").model.shape == talker.model.shape
    assert load_policy("embedded:arithmetic").model.shape == policy.model.shape


def test_a_model_that_has_a_head_keeps_it(tmp_path):
    policy = untrained(0)
    reward = policy.copy("reward", value_head=True)
    torch.nn.init.normal_(reward.model.value_head, generator=torch.Generator().manual_seed(0))
    reward.save(tmp_path / "reward")
    found = learner_model(Learner("value", str(tmp_path / "reward"), Recipe(objective=label_cross_entropy())), policy)
    assert last_values(found, rows_of(policy)) == last_values(reward, rows_of(policy))


def test_names_of_judges_stay_as_they_are_and_wrong_ones_are_refused():
    assert absolute_name("embedded:arithmetic:judge") == "embedded:arithmetic:judge"
    for name, why in (
        ("embedded:countdown:judge", "no judge trunk for the task countdown"),
        ("flow:flows:judge", "only the embedded policy"),
        ("embedded:nowhere", "unknown task 'nowhere'"),
    ):
        with pytest.raises(RewardlabError, match=why):
            load_policy(name)


def test_the_cache_is_made_anew_where_labels_or_the_policy_below_change(monkeypatch):
    before = judge.fingerprint(TASK)
    assert judge.fingerprint(registry.task("arithmetic", error=0.3)) != before
    monkeypatch.setattr(embedded, "fingerprint", lambda task=None: "other")
    assert judge.fingerprint(TASK) != before
