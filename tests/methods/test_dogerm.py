"""DogeRM: the merge by hand, vocabularies that differ, and folders of transformers merged into a reward model that others load."""

from __future__ import annotations

import copy
import json

import pytest
import torch

from rewardlab.api import train
from rewardlab.api.inputs import begin_run
from rewardlab.core import Message, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.methods.baselines.sft import sft
from rewardlab.methods.reward_models.dogerm import dogerm, merged
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.models.load import load_policy
from rewardlab.models.reward_model import load_reward_model
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed
from tests.helpers.checkpoints import checkpoint
from tests.helpers.reward_runs import saved
from tests.helpers.tiers import one_in

PAIRS = [
    ask(f"{kind}: what is {i} + 1?", "", chosen=f"It is {i + 1}.", rejected=f"It is {i + 2}, sir.")
    for i in range(8) for kind in ("Math", "Talk")
]  # fmt: skip
TASK = Task("pairs", Listed(PAIRS), PAIRS[:8], "final_number")
SHORT = {"eval_problems": 8, "max_new": 6, "device": "cpu"}


def parents():
    """A language model, and a reward model from the same start with other weights."""
    language_model = untrained()
    reward_model = language_model.copy("general", value_head=True)
    with torch.no_grad():
        for i, p in enumerate(reward_model.parameters()):
            p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(i)))
    return reward_model, language_model


def test_the_trunk_is_averaged_and_the_head_is_the_reward_models():
    reward_model, language_model = parents()
    own, other, found = reward_model.state(), language_model.state(), merged(reward_model, language_model, 0.75)
    assert found.keys() == own.keys()
    assert torch.equal(found["value_head"], own["value_head"])
    for name in own.keys() - {"value_head"}:
        assert torch.allclose(found[name], 0.75 * own[name] + 0.25 * other[name], atol=1e-6), name
    assert all(torch.equal(w, own[name]) for name, w in merged(reward_model, language_model, 1.0).items())


def test_embeddings_are_averaged_by_token_and_stay_where_the_language_model_lacks_one():
    reward_model, language_model = parents()
    # the language model knows the same tokens under other ids, and lacks the last one
    words = reward_model.tokenizer.get_vocab()
    last = max(words, key=words.get)
    other = {token: (i + 1) % (len(words) - 1) for token, i in words.items() if token != last}
    language_model.tokenizer = copy.copy(language_model.tokenizer)
    language_model.tokenizer.get_vocab = lambda: other
    own, theirs = reward_model.state()["embed"], language_model.state()["embed"]
    found = merged(reward_model, language_model, 0.5)["embed"]
    for token, i in words.items():
        expected = own[i] if token == last else (own[i] + theirs[other[token]]) / 2
        assert torch.allclose(found[i], expected, atol=1e-6)


def test_models_of_other_starts_are_refused():
    reward_model, language_model = parents()
    language_model.state = lambda: {k: v for k, v in untrained().state().items() if "norm" not in k}
    with pytest.raises(RewardlabError, match="not trained from the same model"):
        merged(reward_model, language_model, 0.5)


@pytest.mark.parametrize("kind", one_in(2, ["Llama", "Qwen2"]))
def test_folders_are_merged_into_a_reward_model_that_others_load(kind, tmp_path):
    words = tokenizer()
    checkpoint(tmp_path / "lm", words, f"{kind}ForCausalLM", seed=1)
    theirs, _ = checkpoint(tmp_path / "rm", words, f"{kind}ForSequenceClassification", seed=2, num_labels=1)
    config = tmp_path / "rm" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"rewardlab": "as ours"}))
    recipe = dogerm(reward_model=f"hf:{tmp_path / 'rm'}", weight=0.25)
    result = train(recipe, f"hf:{tmp_path / 'lm'}", TASK, out=tmp_path / "run", steps=1, **SHORT)
    # the run's best model: never the one of step 0, which is not merged
    found = load_reward_model(str(result.out), dtype="float32")
    a, b = theirs.state_dict(), load_policy(f"hf:{tmp_path / 'lm'}", "cpu", "float32").model.state_dict()
    for name, w in saved(result.out).items():
        expected = a[name] if name == "score.weight" else 0.25 * a[name] + 0.75 * b[name]
        assert torch.allclose(w, expected, atol=1e-5), name
    assert len(found.score([([Message("user", "Is it so?")], "It is.")])) == 1


def test_a_reward_model_that_scores_elsewhere_is_refused(tmp_path):
    words = tokenizer()
    checkpoint(tmp_path / "lm", words, seed=1)
    checkpoint(tmp_path / "rm", words, "LlamaForSequenceClassification", seed=2, num_labels=1)
    with pytest.raises(RewardlabError, match="scores at the end of the reply's turn"):
        train(dogerm(reward_model=str(tmp_path / "rm")), str(tmp_path / "lm"), TASK, out=tmp_path / "run", steps=1, **SHORT)


def test_parents_are_trained_apart_and_the_best_weight_is_taken(tmp_path):
    # a rate high enough that a few updates move the scores
    recipe = dogerm(domain="^Math", pairs=8, grid=4, problems=4, reward_lr=1e-2, sft_lr=1e-2)
    result = train(recipe, untrained(), TASK, out=tmp_path / "run", steps=2, **SHORT)
    last = json.loads((result.out / "metrics.jsonl").read_text().splitlines()[-1])
    by_weight = {float(k.removeprefix("at/")): x for k, x in last.items() if k.startswith("at/")}
    assert sorted(by_weight) == [0, 0.25, 0.5, 0.75, 1]
    best = max(by_weight.values())
    assert last["weight"] == max(w for w, x in by_weight.items() if x == best)
    assert {"eval/general", "eval/grafted", "eval/rival", "eval/elsewhere"} <= last.keys()
    assert last["eval/rival"] == max(last["eval/general"], last["eval/grafted"])


def test_without_parents_it_says_what_is_missing(tmp_path):
    with pytest.raises(RewardlabError, match="--reward-model PATH"):
        train(dogerm(), untrained(), TASK, out=tmp_path / "run", steps=1, **SHORT)


def test_each_parent_learns_from_its_own_questions():
    recipe = dogerm(domain="^Math", pairs=4, problems=4)
    config = RunConfig(max_new=6, steps=1, eval_problems=2).settled()
    run = begin_run(recipe, untrained().copy("policy"), TASK, config)
    ops, asked = Ops(recipe, run, TASK, config), []
    rollout = ops.rollout

    def noted(problems, learner):
        asked.append((learner.name, {p.question.split(":")[0] for p in problems}))
        return rollout(problems, learner)

    ops.rollout = noted
    start = {name: w.clone() for name, w in run.policy.state().items()}
    recipe.loop(ops.recipe, run, ops)
    assert asked == [("general", {"Talk"}), ("expert", {"Math"})]
    assert float(run.models["general"].state()["value_head"].abs().max()) > 0
    assert not torch.equal(run.models["expert"].state()["embed"], start["embed"])
    # the policy is the start of both
    assert all(torch.equal(w, start[name]) for name, w in run.policy.state().items())


@pytest.mark.slow
def test_runs_are_merged_into_a_run(tmp_path):
    start = untrained()
    general = train(bradley_terry(problems=4, reward_lr=1e-2), start.copy("policy"), TASK, out=tmp_path / "rm", steps=2, **SHORT)
    expert = train(
        sft(field="chosen", problems=4, lr=1e-2).but(measure=None),
        start.copy("policy"),
        TASK,
        out=tmp_path / "lm",
        steps=2,
        **SHORT,
    )
    recipe = dogerm(reward_model=str(general.out), problems=4, grid=2)
    result = train(recipe, str(expert.out), TASK, out=tmp_path / "run", steps=2, **SHORT)
    last = json.loads((result.out / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["weight"] in (0.0, 0.5, 1.0)
    assert "eval/grafted" in last
    assert len(load_reward_model(str(result.out)).score([([Message("user", "Is it so?")], "It is.")])) == 1
