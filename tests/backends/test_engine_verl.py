"""Recipes in verl's own functions: its advantages, its losses, its configuration, its reward loop. They need verl, not a GPU."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml

pytest.importorskip("verl", reason="needs verl 0.9.1, with tensordict, ray and hydra-core")

from rewardlab import api, registry
from rewardlab.backends import parity, verl
from rewardlab.backends.verl import hooks
from rewardlab.backends.verl.parity import composed
from rewardlab.commands import cli
from rewardlab.core import Recipe
from rewardlab.credit.group import center, leave_one_out, scale_by_std
from rewardlab.credit.value import to_go
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.objectives.ratio import clipped_ratio, policy_gradient
from rewardlab.objectives.regularise import kl_to_reference, negative_entropy
from rewardlab.objectives.weighting import constant_length, row_mean
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def task():
    return registry.task("arithmetic", test_size=4)


@pytest.fixture(scope="module")
def start():
    return untrained(hidden=32, layers=2)


def compared(recipe: Recipe, task, start) -> dict:
    return parity.compare(recipe, task, start, registry.part("reward", task.verifier), "verl")


plain = Recipe(
    rollout=independent(n=4),
    reward=correct(),
    credit=center() >> scale_by_std() >> to_go(),
    objective=clipped_ratio(),
    name="plain",
)
regularised = plain.but(objective=clipped_ratio() + 0.04 * kl_to_reference() + 0.01 * negative_entropy(), weighting=row_mean())
constant = plain.but(credit=leave_one_out() >> to_go(), objective=2 * policy_gradient(), weighting=constant_length())


# ---- the same numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["grpo", "dapo", "gspo", "cispo", "rloo", "reinforce_plus_plus", "ppo"])
def test_methods(method, task, start):
    """ppo's critic is verl's, with its value loss; reinforce_plus_plus has verl subtract the KL from the rewards."""
    assert_equal(compared(registry.build(method), task, start))


@pytest.mark.parametrize("recipe", [regularised, constant], ids=["KL and entropy", "constant length"])
def test_terms_and_weights_of_verls_own(recipe, task, start):
    assert_equal(compared(recipe, task, start))


def assert_equal(found: dict) -> None:
    assert found["verdict"] == "equal", found
    assert found["largest"]["gradient"] > 1e-3
    assert found["largest"]["advantages"] > 0.1


def test_a_difference_is_seen(task, start, monkeypatch):
    """The check can fail: verl's own grpo divides by the standard deviation plus 1e-6, and does not leave replies out."""
    monkeypatch.setattr(hooks, "advantages", lambda recipe, rewards, mask, index, max_new=0: rewards.nan_to_num(0.0) * mask)
    found = compared(plain, task, start)
    assert found["verdict"] == "differs"
    assert found["differences"]["advantages"] > 1e-3


def test_verls_own_estimators_agree_where_they_compute_the_same():
    """Our credits in verl's hook against verl's estimators, on the same tensors: GRPO but for its epsilon, RLOO, Dr. GRPO."""
    from verl.trainer.ppo import core_algos

    rng = torch.Generator().manual_seed(0)
    mask = (torch.arange(7) < torch.randint(1, 8, (12, 1), generator=rng)).long()
    given = torch.zeros(12, 7)
    given[torch.arange(12), mask.sum(1) - 1] = torch.rand(12, generator=rng)
    index = np.array(list("abcabcabcabc"), dtype=object)
    for credit, name, settings in (
        (center() >> scale_by_std(eps=1e-6) >> to_go(), "grpo", {}),
        (center() >> to_go(), "grpo", {"norm_adv_by_std_in_grpo": False}),
        (leave_one_out() >> to_go(), "rloo", {}),
    ):
        theirs, _ = core_algos.get_adv_estimator_fn(name)(
            token_level_rewards=given.clone(), response_mask=mask, index=index, **settings
        )  # fmt: skip
        ours = hooks.advantages(plain.but(credit=credit), given, mask, index)
        assert torch.allclose(ours, theirs, atol=1e-6), name


def test_verls_correction_of_the_sampler_weighs_tokens():
    from verl.trainer.ppo import core_algos

    hooks.register(plain)
    old, new = torch.full((2, 3), -1.0), torch.full((2, 3), -0.9)
    advantage, mask = torch.tensor([[1.0] * 3, [-2.0] * 3]), torch.ones(2, 3, dtype=torch.bool)
    weights = torch.tensor([[0.5] * 3, [2.0] * 3])
    config = composed(plain).actor_rollout_ref.actor
    config = SimpleNamespace(global_batch_info={}, clip_ratio=0.2, clip_ratio_low=0.2, clip_ratio_high=0.2, get=config.get)
    arguments = {
        "old_log_prob": old, "log_prob": new, "advantages": advantage, "response_mask": mask, "config": config,
        "rollout_is_weights": weights,
    }  # fmt: skip
    ours, _ = core_algos.get_policy_loss_fn("rewardlab")(**arguments)
    theirs, _ = core_algos.get_policy_loss_fn("vanilla")(**arguments)
    assert torch.allclose(ours, theirs)


# ---- configuration and reward loop -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grpo", "dapo", "phi_4_reasoning"])
def test_verl_accepts_the_configuration(name, capfd):
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    config = composed(registry.build(name))
    validate_config(config, False, False)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    assert actor.policy_loss.loss_mode == config.algorithm.adv_estimator == "rewardlab"


def test_an_export_is_validated_by_verl_under_the_arguments_of_its_script(tmp_path, task):
    untrained(hidden=32, layers=2).save(tmp_path / "model")
    on_64 = ["trainer.n_gpus_per_node=8", "trainer.nnodes=8", f"actor_rollout_ref.model.path={tmp_path / 'model'}"]
    # ppo subtracts the KL to a reference from its rewards
    for method, both in (("grpo", False), ("ppo", True)):
        written = api.export_recipe(registry.build(method), tmp_path / method, task=task, rows=4, check=on_64)
        assert written["accepted"] == {"gpus": 64, "reference": both, "critic": both}
    with pytest.raises(RewardlabError, match=r"verl refuses .*Could not override 'trainer.n_gpu'"):
        api.export_recipe(registry.build("grpo"), tmp_path / "unknown", task=task, rows=4, check=["trainer.n_gpu=8"])
    fixed = ["actor_rollout_ref.actor.use_dynamic_bsz=false"]
    with pytest.raises(RewardlabError, match=r"Please set at least one of 'actor\.ppo_micro_batch_size'"):
        api.export_recipe(registry.build("grpo"), tmp_path / "fixed", task=task, rows=4, check=fixed)


def test_the_critic_of_ppo_is_in_the_configuration():
    from verl.trainer.ppo.utils import need_critic

    config = composed(registry.build("ppo", {"value_lr": 3e-5}))
    assert need_critic(config)
    assert config.critic.optim.lr == 3e-5


WITHIN = """
import json, sys
import verl
from hydra import compose, initialize_config_dir
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.reward import resolve_reward_manager_cls
with initialize_config_dir(sys.argv[1], version_base=None):
    config = compose("verl")
manager = resolve_reward_manager_cls(config)
known = "rewardlab" in core_algos.ADV_ESTIMATOR_REGISTRY and "rewardlab" in core_algos.POLICY_LOSS_REGISTRY
print(json.dumps({"known": known, "manager": manager.__name__, "env": dict(config.ray_kwargs.ray_init.runtime_env.env_vars)}))
"""


def test_an_export_is_found_by_verl_as_its_script_starts_it(tmp_path):
    """In a process with the environment that run.sh sets: importing verl registers the recipe, the config names its manager."""
    out = tmp_path / "out"
    api.export_recipe(registry.build("grpo"), out, task=registry.task("arithmetic", test_size=2), rows=2)
    src = str(Path(verl.__file__).parents[3])
    env = {**os.environ, "PYTHONPATH": f"{out}:{src}", "VERL_USE_EXTERNAL_MODULES": "rewardlab_recipe"}
    said = subprocess.run([sys.executable, "-c", WITHIN, str(out)], env=env, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr[-2000:]
    found = json.loads(said.stdout.splitlines()[-1])
    assert found["known"]
    assert found["manager"] == "RecipeRewards"
    assert found["env"] == {"VERL_USE_EXTERNAL_MODULES": "rewardlab_recipe"}


def test_the_script_hands_verl_its_data_and_its_workers_their_path(tmp_path):
    """run.sh itself, up to the configuration that verl's command composes."""
    out = tmp_path / "out with space"
    api.export_recipe(registry.build("grpo"), out, task=registry.task("arithmetic", test_size=2), rows=2)
    env = {**os.environ, "PYTHONPATH": str(Path(verl.__file__).parents[3]), "PYTHON": sys.executable}
    words = ["sh", str(out / "run.sh"), "trainer.total_training_steps=7", "--cfg", "job"]
    said = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr[-2000:]
    config = yaml.safe_load(said.stdout)
    assert config["data"]["train_files"] == str(out / "train.parquet")
    assert config["trainer"]["total_training_steps"] == 7
    workers = config["ray_kwargs"]["ray_init"]["runtime_env"]["env_vars"]
    assert workers == {"VERL_USE_EXTERNAL_MODULES": "rewardlab_recipe", "PYTHONPATH": f"{out}:{env['PYTHONPATH']}"}


class Letters:
    """A tokenizer of letters, with 0 as the token that ends a reply."""

    eos_token_id = 0

    def get_vocab(self):
        return {}

    def decode(self, ids, skip_special_tokens=True):
        return "".join(chr(i) for i in ids if i)


def of_one(reply: str, answer: str, ended: bool = True):
    from tensordict import TensorDict
    from verl import DataProto

    prompt, ids = torch.tensor([[0, 0, ord("Q")]]), torch.tensor([[*map(ord, reply), *[0] * ended, 0, 0]])
    real = torch.tensor([[0, 0, 1, *[1] * (len(reply) + ended), 0, 0]])
    batch = TensorDict({"prompts": prompt, "responses": ids, "attention_mask": real}, 1)
    row = {"data_source": "x", "reward_model": {"style": "rule", "ground_truth": answer}, "extra_info": {"index": 0}}
    return DataProto(batch=batch, non_tensor_batch={k: np.array([v], dtype=object) for k, v in row.items()})


def test_the_reward_manager_scores_what_verl_sampled():
    """Tokens are verl's own: the end token counts, padding does not."""
    recipe = plain.but(reward=correct() + length_penalty(per_token=0.1))
    verify = registry.part("reward", "final_number")
    made = verl.install(recipe, verify, max_new=8)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        manager = made(SimpleNamespace(), Letters(), None, reward_router_address=None, reward_model_tokenizer=None)
        right = loop.run_until_complete(manager.run_single(of_one("a 42", "42")))
        wrong = loop.run_until_complete(manager.run_single(of_one("41", "42")))
    finally:
        loop.close()
        asyncio.set_event_loop(None)
    assert right["reward_score"] == pytest.approx(1 - 0.5)
    assert wrong["reward_score"] == pytest.approx(0 - 0.3)
    assert right["reward_extra_info"] == {"score": right["reward_score"], "acc": 1.0}
    assert manager.assemble_rm_scores(of_one("a 42", "42"), [0.5])[0].tolist() == [0, 0, 0, 0, 0.5, 0, 0]


# ---- the command -----------------------------------------------------------------------------------------------------


def test_exit_codes(capsys):
    assert cli.main(["parity", "bradley_terry", "--engine", "verl", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["verdict"] == "cannot carry"
    assert cli.main(["parity", "grpo", "--engine", "verl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == "verl"


def test_rewards_of_steps_have_no_place(task, start):
    run = parity.models(parity.small(plain), task, start, registry.part("reward", task.verifier))
    with pytest.raises(RewardlabError, match="pays single steps"):
        parity.through_verl(parity.small(plain), task, run)
