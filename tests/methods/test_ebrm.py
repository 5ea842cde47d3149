"""EBRM: the contrastive loss by hand, the filter, ascent on an energy, and runs whose refined scores others load."""

from __future__ import annotations

import json
import math

import pytest
import torch
from rows import batch_of
from safetensors.torch import load_file

from rewardlab.api import train
from rewardlab.core import Message, Outputs, Run, Task, ask
from rewardlab.methods.reward_models.ebrm import contrast, ebrm, energy_contrast
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.models.load import load_policy
from rewardlab.models.reward_model import load_reward_model
from rewardlab.policies.energy import FILE, Energy, WithEnergy
from rewardlab.scoreboard.raters.classifier import Classifier
from rewardlab.tasks.sources import Listed
from tests.helpers.checkpoints import checkpoint
from tests.helpers.reward_runs import saved
from tests.helpers.tiers import one_in

PAIRS = [ask(f"What is {i} + 1?", "", chosen=f"It is {i + 1}.", rejected=f"Perhaps {i + 2}, sir.") for i in range(8)]
TASK = Task("pairs", Listed(PAIRS), PAIRS[:4], "final_number")
SHORT = {"eval_problems": 4, "max_new": 6, "device": "cpu"}


class Parabola(Energy):
    """f = -(r - first state)^2."""

    def forward(self, states, scores):
        return -(scores - states[:, 0]).square()


def test_the_loss_by_hand():
    # a score of 1, whose state says 2; s = 2, b = 1/2: noise of 1 gives r0 = 1 + 1/2 * 2 = 2, noises of 0 and -1 give 1 and -1
    noise = torch.tensor([[1.0], [0.0], [-1.0]])
    found = contrast(Parabola(1), torch.tensor([[2.0]]), torch.tensor([1.0]), noise, spread=2.0, share=0.5, reg=0.1)
    f = [0.0, -1.0, -9.0]
    # log densities of N(1, 2^2) at 2, 1 and -1, but for what they share
    log_q = [-0.125, 0.0, -0.5]
    said = [a - b for a, b in zip(f, log_q, strict=True)]
    expected = math.log(sum(map(math.exp, said))) - said[0] + 0.1 * (0 + 1 + 81) / 3
    assert found.tolist() == pytest.approx([expected])


def test_pairs_that_the_model_contradicts_are_left_out():
    scorer = untrained().copy("reward", value_head=True)
    model, batch = WithEnergy(scorer), batch_of([[("rd", {}), ("rd", {})]] * 2)
    hidden = torch.zeros(4, 2, model.energy.first.in_features - 64, requires_grad=True)
    # the second pair's rejected reply scores higher
    out = Outputs(hidden=hidden, value=torch.tensor([[0.0, 2.0], [0.0, 1.0], [0.0, 1.0], [0.0, 2.0]]))
    run = Run(None, models={"reward": model})
    first, second = energy_contrast(negatives=4)(out, batch, run).tolist()
    assert first > 0
    assert second == 0
    assert all(x > 0 for x in energy_contrast(negatives=4, filtered=False)(out, batch, run).tolist())
    # nothing flows back into the reward model
    energy_contrast(negatives=4)(out, batch, run).sum().backward()
    assert hidden.grad is None
    assert model.energy.last.weight.grad is not None


def test_scores_climb_to_where_they_are_plausible():
    energy = Parabola(1)
    energy.shift.fill_(10.0)
    energy.scale.fill_(2.0)
    # in deviations from 10: an own score of 1 climbs to 1.5, one of 40 begins at 2; gradients may be off where it is called
    with torch.inference_mode():
        found = energy.refined(torch.tensor([[1.5], [1.5], [-1.0]]), torch.tensor([12.0, 90.0, 8.0]))
    assert found.tolist() == pytest.approx([13.0, 13.0, 8.0], abs=1e-3)
    assert not found.requires_grad


def test_without_a_step_that_helps_a_score_stays():
    energy = Energy(3)
    states, own = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.linspace(-1, 1, 5)
    refined = energy.refined(states, own)
    energy.eval()
    assert bool((energy(states, refined) >= energy(states, own) - 1e-6).all())
    assert torch.allclose(energy.refined(states, own, steps=0), own)


@pytest.mark.parametrize("kind", one_in(2, ["Llama", "Qwen2"]))
def test_the_head_trains_on_a_reward_model_that_stays(kind, tmp_path):
    words = tokenizer()
    checkpoint(tmp_path / "lm", words, f"{kind}ForCausalLM", seed=1)
    theirs, _ = checkpoint(tmp_path / "rm", words, f"{kind}ForSequenceClassification", seed=2, num_labels=1)
    recipe = ebrm(reward_model=f"hf:{tmp_path / 'rm'}", pairs=4, negatives=8, problems=4)
    result = train(recipe, f"hf:{tmp_path / 'lm'}", TASK, out=tmp_path / "run", steps=3, **SHORT)
    found = load_reward_model(str(result.out), dtype="float32")
    assert found.energy is not None
    for name, w in saved(result.out).items():
        assert torch.allclose(w, theirs.state_dict()[name], atol=1e-6), name
    prompt = [Message("user", "What is 3 + 1?")]
    rows = [(prompt, "It is 4."), (prompt, "Perhaps 5, sir.")]
    refined = found.score(rows)
    found.energy = None
    own = found.score(rows)
    assert refined != own
    # verdicts of other heads on the same model are not taken for this one's
    plain, other = (Classifier(str(result.out), "cpu", "float32") for _ in range(2))
    plain.model.energy = None
    assert plain.fingerprint() != other.fingerprint()
    # the folder is still a reward model's, to train on from
    assert load_policy(str(result.out), "cpu", "float32").has_value_head
    assert all(math.isfinite(x) for x in refined)


@pytest.mark.slow
def test_a_reward_model_is_taught_first_and_resuming_keeps_the_head(tmp_path):
    recipe = ebrm(pairs=8, negatives=8, problems=4, rm_lr=1e-2)
    result = train(recipe, untrained(), TASK, out=tmp_path / "run", steps=4, **SHORT)
    lines = [json.loads(line) for line in (result.out / "metrics.jsonl").read_text().splitlines()]
    assert "base/loss" in lines[1]
    assert "base/loss" not in lines[-1]
    assert {"agrees", "eval/base", "eval/moved"} <= lines[-1].keys()
    assert any((result.out / which / FILE).is_file() for which in ("best", "model"))
    # what it was taught is kept beside the head
    kept = load_file(max((result.out / "checkpoints").glob("*/reward.safetensors")))
    assert len([name for name in kept if not name.startswith("energy.")]) == len(untrained().state()) + 1
    scorer = untrained().copy("reward", value_head=True)
    one, other = WithEnergy(scorer), WithEnergy(scorer.copy("reward"))
    with torch.no_grad():
        one.energy.last.weight.add_(1.0)
        one.energy.shift.fill_(3.0)
    other.load_state(one.state())
    assert torch.equal(other.energy.last.weight, one.energy.last.weight)
    assert float(other.energy.shift) == 3.0
