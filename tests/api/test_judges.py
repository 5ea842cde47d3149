"""Judges of a reward that are named by a checkpoint, and second models that there are not: found before anything is loaded."""

from __future__ import annotations

import json

import pytest

from rewardlab import api, build
from rewardlab.api.judges import with_judges
from rewardlab.audit.loading import parse
from rewardlab.core import Learner, Recipe
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.models.learners import learner_model
from rewardlab.registry.formula import read_reward
from tests.helpers.checkpoints import checkpoint
from tests.helpers.served_model import serving


def grpo(reward):
    return build("grpo", {"n": 2, "problems": 2}).but(reward=read_reward(reward))


@pytest.fixture
def folder(tmp_path):
    checkpoint(tmp_path / "mine", tokenizer(), max_position_embeddings=1024)
    return tmp_path / "mine"


def test_a_judge_that_is_named_by_its_folder_becomes_a_frozen_model_of_the_run(folder):
    twice = f"judge(model='{folder}', kind='verdict') + 0.5 * judge(model='{folder}', kind='pairwise').named('pairs')"
    recipe = with_judges(grpo(twice))
    (learner,) = recipe.also
    assert (learner.name, learner.init, learner.every) == ("judge", str(folder), 0)
    assert str(recipe.reward).count("model='judge'") == 2
    # once more changes nothing
    assert with_judges(recipe) == recipe
    other = with_judges(grpo(f"judge(model='{folder}') + judge(model='untrained', kind='verdict').named('second')"))
    assert [(x.name, x.init) for x in other.also] == [("judge", str(folder)), ("judge2", "untrained")]


@pytest.mark.parametrize("model", ["policy", "reference", "openai:http://127.0.0.1:9/v1#x"])
def test_models_of_the_run_and_served_ones_are_asked_as_they_are(model):
    recipe = grpo(f"judge(model='{model}')")
    assert with_judges(recipe) == recipe


def test_a_judge_or_a_second_model_that_there_is_not_is_refused_by_its_name():
    with pytest.raises(RewardlabError, match=r"the judge 'nosuch' is neither a model of the run .*: unknown model 'nosuch'"):
        with_judges(grpo("judge(model='nosuch')"))
    with pytest.raises(RewardlabError, match="the model 'judge' of writing_zero_brpo: unknown model 'nosuch'"):
        api.plan("writing_zero_brpo", settings={"judge": "nosuch"}, task="arithmetic", model="untrained")


def test_a_policy_is_paid_by_a_local_judge(folder, tmp_path):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"prompt": f"Start with {i}."}) + "\n" for i in range(6)))
    # what compares replies is not measured by itself: no evaluation refuses a judge that writes no mark
    recipe = grpo(f"judge(model='{folder}', kind='pairwise', max_new=4)")
    config = {"steps": 1, "max_new": 4, "eval_every": 0, "device": "cpu", "max_missing": 1.0}
    result = api.train(recipe, "untrained", str(tmp_path / "rows.jsonl"), out=tmp_path / "run", **config)
    (step,) = [row for row in map(json.loads, (result.out / "metrics.jsonl").open()) if row["step"] == 1]
    # equal replies are a tie that nobody is asked about
    assert step["judge_no_verdict"] >= 0.5
    assert json.loads((result.out / "config.json").read_text())["recipe"]["also"][0]["init"] == str(folder)


@pytest.mark.parametrize("init", ["nosuch/model", "energy:nosuch/model", "attributes:helpful=1,short=0.5:nosuch/model"])
def test_a_second_model_that_there_is_not_is_told_before_anything_is_loaded(init):
    recipe = build("grpo").but(also=(Learner("scorer", init, Recipe(), every=0),))
    with pytest.raises(RewardlabError, match=r"the model 'scorer' of grpo: there is no folder nosuch/model"):
        with_judges(recipe)


@pytest.mark.parametrize("init", ["copy:policy", "value-head:words=yes,no", "energy:value-head", "attributes:helpful=1:value-head"])
def test_what_is_made_from_the_policy_is_looked_for_nowhere(init):
    recipe = build("grpo").but(also=(Learner("scorer", init, Recipe(), every=0),))
    assert with_judges(recipe) == recipe


def test_an_audit_has_no_run_and_says_how_its_judge_is_served():
    for kind in ("verdict", "pairwise"):
        with pytest.raises(RewardlabError, match=r"and not 'smollm2'. Serve it \(rewardlab serve-model smollm2\)"):
            parse(f"judge(model='smollm2', kind='{kind}')")


@pytest.mark.parametrize(
    ("method", "setting", "says", "settings"),
    [
        ("writing_zero_brpo", "judge", "[[7, 3]]", {"n": 2, "problems": 2}),
        ("rlac", "validator", "[[yes]]", {"n": 2, "problems": 2, "critiques": 2, "ask": "{prompt} {reply}", "max_critique": 4}),
        ("rlcf_checklists", "judge", "75", {"problems": 2, "samples": 2}),
    ],
)
def test_a_served_judge_of_a_method_is_asked_and_has_no_weights_to_train_or_to_save(method, setting, says, settings, tmp_path):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"prompt": f"Start with {i}."}) + "\n" for i in range(6)))
    config = {"max_new": 4, "eval_problems": 2, "device": "cpu", "patience": 0, "checkpoint_every": 1}
    with serving(lambda body: says) as server:
        recipe = build(method, {**settings, setting: server.name})
        out = api.train(recipe, "untrained", str(tmp_path / "rows.jsonl"), out=tmp_path / "run", steps=1, **config).out
        asked = len(server.asked)
        assert asked > 0
        assert api.resume(out, steps=2).summary["steps"] == 2
        assert len(server.asked) > asked


def test_a_served_model_that_would_learn_is_refused():
    with pytest.raises(RewardlabError, match=r"the learner 'critic' starts from openai:.*, and learns: a served model cannot"):
        learner_model(Learner("critic", "openai:http://127.0.0.1:9/v1#x", Recipe(), every=1), untrained())
