"""Resa: a source's directions stand inside the target while it learns to speak as before, and are taken out again."""

from __future__ import annotations

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.imitation import resa_sae_tuning as autoencoder
from rewardlab.methods.imitation.resa_sae_tuning import SAE, _layer_of, with_answers
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(4)]
SMALL = {"latents": 512, "k": 4, "sae_steps": 30, "sae_lr": 1e-2, "tune_lr": 1e-3, "reply": "Answer: {answer}", "layer": 1}


@reward
def ends_odd(trajectory):
    """A verdict that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1] % 2)


def begun(steps: int = 4, **settings) -> Ops:
    recipe = registry.build("grpo+resa_sae_tuning", {"n": 4, "problems": 2, "lr": 1e-2} | SMALL | settings)
    recipe = recipe.but(reward=ends_odd().named("correct"))
    run = Run(untrained(layers=4).copy("policy"), steps=steps, max_new=3, verify=ends_odd())
    run.models = {learner.name: learner_model(learner, run.policy) for learner in recipe.also}
    return Ops(recipe, run, Task("four", Shuffled(PROBLEMS), PROBLEMS[:1], "final_number", max_new=3), RunConfig())


def step(ops: Ops, times: int = 1) -> None:
    for _ in range(times):
        ops.run.metrics = {}
        ops.recipe.loop(ops.recipe, ops.run, ops)
        ops.run.step += 1


def changed(ops: Ops) -> dict[str, bool]:
    """By weight, whether it is another than the target began with."""
    start = ops.run.model("teacher").state()
    return {name: not torch.equal(w, start[name]) for name, w in ops.run.policy.state().items()}


def test_the_source_is_trained_first_and_the_target_begins_anew_above_the_layer():
    ops = begun()
    step(ops, 2)
    assert changed(ops)["layers.0.down"]
    assert SAE not in ops.run.memory
    step(ops)
    kept = ops.run.memory[SAE]
    assert 0 < kept["unexplained"] < 0.9
    assert kept["unexplained"] == ops.run.metrics["unexplained"]
    # nothing is sampled or rewarded any more
    assert "reward" not in ops.run.metrics
    moved = changed(ops)
    # the autoencoder rebuilds without gradient: layers 0 and 1 learn nothing (nor does weight decay touch what has no gradient)
    assert not any(moved[name] for name in moved if name.startswith(("layers.0.", "layers.1.")))
    assert all(moved[f"layers.{i}.down"] for i in range(2, ops.run.policy.depth))
    # embeddings, which are tied to the head, and the last norm stay too
    assert [name for name in moved if moved[name] and not name.startswith(("layers.2.", "layers.3."))] == []
    assert all(p.requires_grad for p in ops.run.policy.model.parameters())
    weights = {name: w.clone() for name, w in kept["weights"].items()}
    step(ops)
    # frozen
    assert all(torch.equal(w, ops.run.memory[SAE]["weights"][name]) for name, w in weights.items())
    assert ops.run.policy._inserted is None


def test_the_loss_is_what_the_autoencoder_takes_away(monkeypatch):
    lossless = begun(first=0.0)
    monkeypatch.setattr(autoencoder, "reconstructed", lambda x, weights, k: x)
    lossless.run.memory[SAE] = {"weights": {}, "unexplained": 0.0}
    step(lossless)
    assert lossless.run.metrics["loss"] == pytest.approx(0.0, abs=1e-5)
    monkeypatch.setattr(autoencoder, "reconstructed", lambda x, weights, k: torch.zeros_like(x))
    lossy = begun(first=0.0)
    lossy.run.memory[SAE] = {"weights": {}, "unexplained": 1.0}
    step(lossy)
    assert lossy.run.metrics["loss"] > 0.01


def test_a_source_that_is_given_is_not_trained(tmp_path):
    source = untrained(layers=4).copy("source")
    with torch.no_grad():
        source.model.layers[0].down.mul_(3.0)
    source.save(tmp_path)
    ops = begun(source=str(tmp_path))
    heard = []
    plain = ops.run.model("source").activations
    ops.run.model("source").activations = lambda batch, layer: heard.append(layer) or plain(batch, layer)
    step(ops)
    assert heard == [1] * SMALL["sae_steps"]
    assert ops.run.memory[SAE]["unexplained"] < 0.9


def test_questions_are_read_with_their_answers_in_the_form_of_a_reasoner():
    run = Run(untrained())
    ((row,),) = with_answers()([PROBLEMS[2]], run)
    assert row.replies[-1].endswith("<think> 4 </think>\n<answer> Answer: 4</answer>")
    # the question's tokens count too
    assert row.mask.all()
    with pytest.raises(RewardlabError, match="has no answer, and Resa learns from questions with answers"):
        with_answers()([ask("why?")], run)


def test_the_layer_is_three_sevenths_of_the_way_up():
    ops = begun(layer=-1, first=0.0)
    seen = []
    ops.run.policy.inserted, plain = lambda layer, change: seen.append(layer) or plain(layer, change), ops.run.policy.inserted
    step(ops)
    # of 4 layers: 12 / 7 = 1.7, the one that is counted as 2
    assert set(seen) == {2}


def test_the_published_size_is_the_default_and_random_directions_are_a_rival():
    assert registry.build("resa_sae_tuning").loop.settings["latents"] == 65_536
    rival = registry.module_of("resa_sae_tuning").claim.versus_settings
    assert rival["random"] is True
    ops = begun(first=0.0, random=True)
    step(ops)
    kept, plain = ops.run.memory[SAE], begun(first=0.0)
    step(plain)
    width = kept["weights"]["encoder"].shape[1]
    fresh = autoencoder.untrained(width, SMALL["latents"], torch.Generator().manual_seed(0), torch.device("cpu"))
    assert torch.allclose(kept["weights"]["encoder"], fresh["encoder"])
    assert not torch.allclose(plain.run.memory[SAE]["weights"]["encoder"], fresh["encoder"])
    assert kept["unexplained"] > plain.run.memory[SAE]["unexplained"]


@pytest.mark.parametrize(
    ("name", "layer"), [("layers.3.down", 3), ("model.layers.12.mlp.up_proj.weight", 12), ("transformer.h.2.attn.c_attn.bias", 2),
        ("embed", -1), ("model.norm.weight", -1), ("lm_head.weight", -1),
        ("base_model.model.model.layers.4.self_attn.q_proj.lora_A.default.weight", 4)],
)  # fmt: skip
def test_which_layer_a_weight_is_of(name, layer):
    assert _layer_of(name) == layer
