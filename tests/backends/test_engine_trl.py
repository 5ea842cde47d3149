"""Recipes through TRL: the embedded engine's advantages, losses and gradients, and a run folder like any other.

The embedded engine's own numbers are compared with those of TRL's losses, and with numbers worked out by hand, elsewhere
(test_trl.py, test_objectives.py); here the same recipe runs on a model of transformers, in TRL's training loop, cut into
micro-batches of two rows.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp

from rewardlab import registry
from rewardlab.commands import cli
from rewardlab.core import Learner, Message, Recipe, Sampling, Update, ask, environment, loop, objective, rollout
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.value import to_go
from rewardlab.engine.loss import weigh
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.objectives.ratio import clipped_ratio, imitate
from rewardlab.objectives.regularise import kl_to_reference, negative_entropy
from rewardlab.objectives.weighting import constant_length, token_mean
from rewardlab.rewards.environment import paid
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.interactive import interactive
from rewardlab.runs.config import RunConfig

pytest.importorskip("trl", reason="the TRL engine needs pip install 'rewardlab[trl]'")
pytest.importorskip("datasets")

from rewardlab.backends import parity, trl

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def task():
    return registry.task("arithmetic", test_size=20)


@pytest.fixture(scope="module")
def start():
    return untrained(hidden=32, layers=2)


def compared(recipe: Recipe, task, start) -> dict:
    return parity.compare(recipe, task, start, registry.part("reward", task.verifier))


def assert_equal(found: dict) -> None:
    assert found["verdict"] == "equal", found
    assert max(found["differences"].values()) < parity.CLOSE
    assert found["largest"]["gradient"] > 1e-3


# ---- the same numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["grpo", "rloo", "ppo", "sft", "dpo", "gdpo", "pure_min_form", "prime"])
def test_methods(method, task, start):
    """ppo trains a critic beside the policy, prime a process reward model; dpo's pairs are split over micro-batches; sft's replies
    are recorded; gdpo has a credit for each reward, pure_min_form for each step."""
    task = registry.task("preferences") if method == "dpo" else task
    found = compared(registry.build(method), task, start)
    assert_equal(found)
    assert found["largest"]["advantages"] > 0.5 or method in ("sft", "dpo")


@environment(start=lambda problem, seed: (Message("user", f"No hurry, {seed % 9}."), 0))
def impatient(state, turn):
    """Two answers, each paid for; the second ends it."""
    return Message("user", "Are you sure?", reward=len(turn.text) / 50, last=state == 1), state + 1


def margin(logits, ids):
    return {"margin": logits.gather(1, ids[:, None]).squeeze(1) - logits.amax(-1)}


@objective(unit="token", per_token=margin)
def far_from_the_best(out, batch, run):
    return out.extra["margin"].square()


@objective(unit="batch", wants=("logprobs", "hidden"))
def spread(out, batch, run):
    """A loss that no row has alone, of log-probs and hidden states together."""
    return torch.where(batch.mask, out.logprobs, 0.0).sum(1).var() / (1 + out.hidden[batch.mask].square().mean())


grouped = center() >> scale_by_std() >> to_go()
several_turns = Recipe(
    rollout=interactive(env=impatient(), n=4, turns=2), reward=correct() + paid(), credit=grouped, objective=clipped_ratio()
)
whole_vocabulary = Recipe(
    rollout=independent(n=4), reward=correct(), credit=grouped, objective=clipped_ratio() + 0.1 * far_from_the_best(),
    weighting=constant_length(),
)  # fmt: skip
whole_batch = whole_vocabulary.but(objective=clipped_ratio() + 0.04 * kl_to_reference() + 0.01 * negative_entropy() + spread())
second_model = whole_vocabulary.but(
    objective=clipped_ratio(), weighting=token_mean(),
    also=(Learner("prm", "copy:policy", Recipe(credit=to_go(), objective=imitate(), update=Update(lr=1e-3))),),
)  # fmt: skip


@pytest.mark.parametrize(
    "recipe", [several_turns, whole_vocabulary, whole_batch, second_model],
    ids=["several turns", "whole vocabulary", "whole batch", "second model"],
)  # fmt: skip
def test_what_trl_has_no_loss_for(recipe, task, start):
    assert_equal(compared(recipe, task, start))


def test_a_difference_is_seen(task, start, monkeypatch):
    """The check can fail: weights that TRL's side computes for each micro-batch alone give another gradient."""
    from rewardlab.backends.trl import training

    class EachAlone(training._Mini):
        def prepare(self, policy, recipe, run, micro_tokens):
            super().prepare(policy, recipe, run, micro_tokens)
            weigh(self.batch, recipe.objective, constant_length(length=7))

    monkeypatch.setattr(training, "_Mini", EachAlone)
    found = compared(registry.build("grpo"), task, start)
    assert found["verdict"] == "differs"
    assert found["differences"]["gradient"] > 1e-3
    assert "differ by" in found["why"]


def of_two(rank: int, port: int, out: str) -> None:
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    torch.set_num_threads(1)
    torch.save(by_trl(Path(out) / str(rank)), f"{out}/{rank}.pt")


def by_trl(folder: Path) -> parity.Computed:
    start, task = untrained(hidden=32, layers=2), registry.task("arithmetic", test_size=20)
    recipe = parity.small(registry.build("ppo", {"n": 4}))
    run = parity.models(recipe, task, start, registry.part("reward", task.verifier))
    return parity.through_trl(recipe, task, run, start, folder)


def test_two_processes_give_the_gradient_of_one(task, start, tmp_path):
    """Groups are split over the processes; the embedded engine does it in one, here, and never meets TRL."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(of_two, (port, str(tmp_path)), nprocs=2)
    recipe = parity.small(registry.build("ppo", {"n": 4}))
    ours = parity.by_embedded(recipe, task, parity.models(recipe, task, start, registry.part("reward", task.verifier)))
    for rank in (0, 1):
        theirs = torch.load(tmp_path / f"{rank}.pt", weights_only=False)
        assert max(parity.difference(ours, theirs).values()) < parity.CLOSE


# ---- what cannot be, and what is said then ---------------------------------------------------------------------------


@loop
def own_loop(recipe, run, ops):
    pass


@pytest.mark.parametrize(
    ("recipe", "why"),
    [(registry.build("bradley_terry"), "does not learn"), (second_model.but(loop=own_loop()), "own_loop")],
    ids=["no objective", "a loop of its own"],
)
def test_what_trl_cannot_carry_is_refused_with_the_reason(recipe, why, task, start, tmp_path):
    found = compared(recipe, task, start)
    assert found["verdict"] == "cannot carry"
    assert why in found["why"]
    with pytest.raises(RewardlabError, match=why):
        trl.trainer(recipe, str(tmp_path), task)


def test_exit_codes(capsys):
    assert cli.main(["parity", "bradley_terry", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["verdict"] == "cannot carry"
    assert cli.main(["parity", "grpo", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said.keys() >= {"method", "engine", "verdict", "why", "differences"}
    assert said["differences"].keys() == {"advantages", "loss", "gradient"}


@pytest.fixture(scope="module")
def checkpoint(start, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("checkpoint")
    start.save(folder)
    return str(folder)


def made(recipe, checkpoint, task, tmp_path, **fields):
    common = {"output_dir": str(tmp_path), "use_cpu": True, "disable_tqdm": True, "gradient_checkpointing": False}
    return trl.trainer(recipe, checkpoint, task, **common | fields)


def test_settings_that_the_recipe_decides_are_refused(checkpoint, task, tmp_path):
    with pytest.raises(RewardlabError, match="recipe decides beta, loss_type"):
        made(registry.build("grpo"), checkpoint, task, tmp_path, beta=0.1, loss_type="dapo")


def test_trl_says_that_a_batch_is_not_filled_up(checkpoint, task, tmp_path, capsys):
    filled = registry.build("dapo", {"n": 2, "problems": 4, "minibatches": 1})
    assert not made(filled, checkpoint, task, tmp_path).ops.refills
    assert "solved_between does not sample further ones" in " ".join(capsys.readouterr().err.split())
    made(filled.but(rollout=filled.rollout.but(attempts=1)), checkpoint, task, tmp_path)
    assert "further" not in capsys.readouterr().err


def test_rows_that_cannot_be_dealt_evenly_are_refused(checkpoint, task, tmp_path):
    with pytest.raises(RewardlabError, match="15 rows a step cannot be divided evenly"):
        made(registry.build("grpo", {"n": 5, "problems": 3}), checkpoint, task, tmp_path, per_device_train_batch_size=4)


# ---- training --------------------------------------------------------------------------------------------------------


def test_trl_is_set_up_as_the_recipe_says(checkpoint, task, tmp_path):
    """8 rows in 2 minibatches of micro-batches of 2, for 2 epochs: 4 optimiser steps a step of ours."""
    recipe = registry.build("ppo", {"n": 2, "problems": 4, "minibatches": 2, "epochs": 2, "temperature": 0.7, "lr": 2e-3})
    config = made(recipe, checkpoint, task, tmp_path, steps=3, max_new=9, per_device_train_batch_size=2).config
    assert (config.max_steps, config.num_iterations, config.steps_per_generation) == (12, 2, 4)
    assert (config.gradient_accumulation_steps, config.num_generations) == (2, 2)
    assert (config.learning_rate, config.max_completion_length) == (2e-3, 9)
    # the policy divides the logits of its loss itself
    assert config.temperature == 1.0
    assert config.generation_kwargs == {"temperature": 0.7}


def test_replies_come_from_trl_only_where_it_has_these_settings(checkpoint, task, tmp_path):
    trainer = made(registry.build("grpo", {"temperature": 0.7}), checkpoint, task, tmp_path, max_new=9)
    assert trainer.can_sample(Sampling(9, 0.7))
    assert not any(trainer.can_sample(s) for s in (Sampling(9, 0.0), Sampling(8, 0.7), Sampling(9), Sampling(9, 0.7, stop=("\n",))))


def test_what_a_checkpoint_says_of_generation_changes_no_sample_and_is_kept(checkpoint, task, tmp_path):
    """TRL leaves these open, and transformers would fill them in."""
    shutil.copytree(checkpoint, folder := tmp_path / "model")
    said = {"min_p": 0.9, "no_repeat_ngram_size": 1, "eos_token_id": [2, 5]}
    (folder / "generation_config.json").write_text(json.dumps(said))
    trainer = made(registry.build("grpo"), str(folder), task, tmp_path)
    own = trainer.policy.model.generation_config
    assert (own.min_p, own.no_repeat_ngram_size) == (None, None)
    assert {2, 5} <= {*own.eos_token_id} == trainer.policy.ends
    trainer.policy.save(tmp_path / "saved")
    kept = json.loads((tmp_path / "saved" / "generation_config.json").read_text())
    assert {name: kept[name] for name in ("min_p", "no_repeat_ngram_size")} == {"min_p": 0.9, "no_repeat_ngram_size": 1}


@rollout(wraps="inner")
def two_at_last(problems, run, *, inner):
    """All groups in the first step, two of them in the second, as a filter might leave them."""
    groups = inner(problems, run)
    return groups[:2] if run.step else groups


@pytest.mark.parametrize("minibatches", [2, 4])
def test_several_optimiser_steps_move_as_the_embedded_engines(minibatches, checkpoint, task, start, tmp_path):
    """Epochs, minibatches, Adam, weight decay, clipping, warm-up: after two steps on the same replies, the same weights. Of 4
    minibatches the second step has rows for two alone."""
    settings = {"n": 4, "problems": 4, "minibatches": minibatches, "epochs": 2, "warmup": 2, "lr": 1e-3, "clip_norm": 0.05}
    settings |= {"weight_decay": 0.1}
    recipe, verify = registry.build("grpo", settings), registry.part("reward", task.verifier)
    recipe = recipe.but(rollout=two_at_last(inner=recipe.rollout)) if minibatches == 4 else recipe
    ours = parity.models(recipe, task, start, verify)
    ours.steps = 2
    ops = Ops(recipe, ours, task, RunConfig())
    while not ours.over:
        standard_loop(recipe, ours, ops)
        ours.step += 1
    begun = parity.models(recipe, task, start, verify)
    begun.policy.save(tmp_path / "begun")
    trainer = made(recipe, str(tmp_path / "begun"), task, tmp_path, verify=verify, steps=2, seed=1, max_new=task.max_new)
    parity.replaying(trainer.ops.run, task, start)
    trainer.train()
    ours.policy.save(tmp_path / "ours")
    trained = load_policy(str(tmp_path / "ours"), "cpu", "float32").state()
    trainer.policy.save(tmp_path / "theirs")
    for name, weight in load_policy(str(tmp_path / "theirs"), "cpu", "float32").state().items():
        assert torch.allclose(weight, trained[name], atol=2e-5), name
    assert trainer.ops.run.step == 2


@pytest.mark.parametrize("temperature", [0.6, 1.5])
def test_the_loss_is_of_the_distribution_that_was_sampled_from(checkpoint, task, tmp_path, temperature):
    recipe = registry.build("grpo", {"n": 4, "problems": 2, "temperature": temperature}).but(reward=length_penalty())
    trainer = made(recipe, checkpoint, task, tmp_path, steps=1, max_new=6)
    seen, evaluate = [], trainer.policy.evaluate
    trainer.policy.evaluate = lambda *given: (seen.append(trainer.policy.temperature), evaluate(*given))[1]
    trainer.train()
    assert set(seen) == {temperature}
    # what was sampled, and what the one update computes of it, are of one distribution: ratios are 1
    assert trainer.ops.run.metrics["drift"] == pytest.approx(0, abs=1e-6)
    assert trainer.policy.temperature == 1.0


def test_a_run_folder_like_any_other(checkpoint, tmp_path, capsys):
    out = tmp_path / "run"
    words = ["grpo", "--task", "arithmetic:test_size=8", "--model", checkpoint, "--engine", "trl", "--out", str(out)]
    words += ["--steps", "2", "--problems", "2", "--n", "2", "--max-new", "5", "--reward", "length_penalty", "--eval-every", "1"]
    words += ["--lora-rank", "2"]
    assert cli.main(["train", *words, "--json", "--device", "cpu", "--trl", "gradient_checkpointing=false"]) == 0
    said = json.loads(capsys.readouterr().out)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [0, 1, 2]
    assert lines[2].keys() >= {"reward", "reward/length_penalty", "loss", "grad_norm", "lr", "eval/pass@1", "length", "tokens"}
    assert lines[2]["length"] <= 5
    assert said["steps"] == 2
    assert (out / "report.html").exists()
    assert json.loads((out / "config.json").read_text())["engine"] == "trl"
    # adapters alone, on the checkpoint that the command named
    for which in ("best", "model"):
        assert json.loads((out / which / "adapter_config.json").read_text())["base_model_name_or_path"] == str(Path(checkpoint))
    assert type(load_policy(str(out), lora_rank=2)).__name__ == "LlamaPolicy"
    assert cli.main(["train", "--resume", str(out)]) == 2
    assert "cannot be resumed" in capsys.readouterr().err


def test_problems_may_be_a_plain_list(checkpoint, start, tmp_path):
    recipe = registry.build("grpo", {"n": 2, "problems": 2}).but(reward=length_penalty())
    trainer = made(recipe, checkpoint, [ask("1+1=?"), ask("2+2=?"), ask("3+3=?")], tmp_path, steps=2, max_new=4)
    trainer.train()
    assert trainer.state.log_history[0].keys() >= {"reward", "reward/length_penalty", "loss", "grad_norm"}
