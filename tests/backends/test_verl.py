"""Recipes as verl's hooks and files, without verl: what is refused and why, what its estimator computes, what is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from rewardlab import api, registry, reward
from rewardlab.backends import verl
from rewardlab.backends.verl import refusals, rewards
from rewardlab.backends.verl.hooks import advantages
from rewardlab.backends.verl.settings import differences, overrides
from rewardlab.commands import cli
from rewardlab.core import Message, Problem, Recipe, Run, Task, ask, loop
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.value import to_go
from rewardlab.errors import RewardlabError
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.objectives.regularise import kl_to_reference, negative_entropy
from rewardlab.rewards.algebra import normalised
from rewardlab.rewards.length import length_penalty, tokens
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent

plain = Recipe(
    rollout=independent(n=4),
    reward=correct(),
    credit=center() >> scale_by_std() >> to_go(),
    objective=clipped_ratio(),
    name="plain",
)


@reward(over="group")
def unlike_the_others(group, run):
    return [1.0 / [t.reply for t in group].count(t.reply) for t in group]


@reward(steps=True)
def at_every_token(trajectory):
    return [(at, 0.1) for at in np.flatnonzero(trajectory.mask)]


@reward
def surer_each_step(trajectory, run):
    return helped(run)


def helped(run):
    return float(run.progress)


@reward
def none_if_short(trajectory):
    return float(len(trajectory.reply)) if len(trajectory.reply) > 2 else None


@loop
def own_loop(recipe, run, ops):
    pass


# ---- what verl cannot carry ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        (plain.but(loop=own_loop()), "its training loop is its own"),
        (plain.but(objective=None), "its policy does not learn"),
        (plain.but(rollout=independent(n=4, steps="newline")), "marks reasoning steps"),
        (plain.but(rollout=independent(n=4, stop=("\n",))), "stops at texts of its own"),
        (plain.but(reward=None), "recorded replies"),
        (plain.but(reward=unlike_the_others()), "unlike_the_others takes the replies of a step together"),
        (plain.but(reward=normalised(tokens())), "takes the replies of a step together"),
        (plain.but(reward=at_every_token()), "pays single steps"),
        (plain.but(reward=surer_each_step()), r"reads run\.progress"),
        (plain.but(objective=kl_to_reference()), "no term but KL and entropy"),
        (plain.but(objective=clipped_ratio() + -1 * negative_entropy()), "negative factor"),
        (registry.build("gdpo"), "reads 'terms' of the batch"),
        (registry.build("riskpo"), r"reads run\.memory"),
        (registry.build("steer_entropy_change"), "needs old"),
        (registry.build("rover"), "whole vocabulary"),
        (registry.build("rejection_sampling"), "best_right"),
        (registry.build("prime"), r"second model \(prm\)"),
        (registry.build("igpo"), "its rollout is interactive"),
        (registry.build("sft"), "its rollout is recorded"),
    ],
)
def test_what_is_refused_and_why(recipe, why):
    assert re.search(why, verl.cannot_carry(recipe))


@pytest.mark.parametrize("name", ["grpo", "dapo", "rloo", "gspo", "reinforce_plus_plus", "ppo", "opo", "toolrl"])
def test_what_is_carried(name):
    assert verl.cannot_carry(registry.build(name)) == ""


def test_a_filter_that_keeps_other_groups_than_verls_is_refused():
    recipe = registry.build("mentrasuite_mindora")
    assert recipe.rollout.settings["low"] == 0
    assert "solved_between" in verl.cannot_carry(recipe)


def test_rewards_said_to_score_each_reply_alone_do():
    """Together and alone they pay the same; only those without models or tables of their own are tried."""
    task = registry.task("arithmetic", test_size=8)
    run = Run(None, verify=registry.part("reward", task.verifier))
    groups = [
        [
            rewards.trajectory_of(p, reply, np.arange(2), np.arange(1 + len(reply)), True)
            for reply in (f"Answer: {p.answer}", "no", "5")
        ]
        for p in task.test[:3]
    ]
    tried = {"correct": {}, "format_ok": {"pattern": "Answer: .+"}, "calibration_loss": {}, "answers_covered": {}, "set_brier": {}}
    assert tried.keys() <= refusals.ALONE
    for name, settings in tried.items():
        part = registry.part("reward", name, **settings)
        together = [score.total for row in part(groups, run) for score in row]
        alone = [part([[t]], run)[0][0].total for group in groups for t in group]
        assert together == alone, name


# ---- the advantages --------------------------------------------------------------------------------------------------


def test_advantages_by_hand():
    """Rows of two prompts, mixed: a earns 1 and 0, whose mean is 1/2 and std sqrt(1/2); b has one verdict, so no credit."""
    mask = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 0]])
    given = torch.tensor([[0, 1.0, 0], [0, 0, torch.nan], [0, 0, 0], [0, 3.0, 0]])
    found = advantages(plain, given, mask, np.array(["a", "b", "a", "b"]))
    a = 0.5 / (0.5**0.5 + 1e-4)
    assert torch.allclose(found, torch.tensor([[a, a, 0], [0, 0, 0], [-a, 0, 0], [0, 0, 0]]))


def test_a_reply_without_a_verdict_is_no_zero():
    """With a 0 in place of the NaN the mean of the others would be another."""
    mask = torch.ones(3, 1, dtype=torch.long)
    index = np.array(["a"] * 3)
    missing = advantages(plain.but(credit=center()), torch.tensor([[1.0], [0.5], [torch.nan]]), mask, index)
    assert torch.allclose(missing, torch.tensor([[0.25], [-0.25], [0.0]]))
    zero = advantages(plain.but(credit=center()), torch.tensor([[1.0], [0.5], [0.0]]), mask, index)
    assert torch.allclose(zero, torch.tensor([[0.5], [0.0], [-0.5]]))


def test_the_kl_that_verl_subtracts_is_not_subtracted_twice():
    recipe = registry.build("reinforce_plus_plus", {"beta": 0.02})
    given, mask, index = torch.tensor([[-0.1, 1.0], [0.0, 0.5]]), torch.ones(2, 2), np.array(["a", "b"])
    # to_go alone: 0.9 1 0.5 0.5, then whitened
    returns = torch.tensor([[0.9, 1.0], [0.5, 0.5]])
    assert torch.allclose(advantages(recipe, given, mask, index), (returns - returns.mean()) / returns.std(), atol=1e-4)
    said = overrides(recipe, steps=1, max_new=8)["algorithm"]
    assert said["use_kl_in_reward"]
    assert said["kl_ctrl"] == {"type": "fixed", "kl_coef": 0.02}


# ---- one reply -------------------------------------------------------------------------------------------------------


def of_reply(recipe: Recipe, reply: str, verify=None, answer="4") -> dict[str, float]:
    trajectory = rewards.trajectory_of(ask("What?", answer), reply, np.arange(2), np.arange(3), True)
    return rewards.scored(recipe, trajectory, verify)


def test_the_score_of_a_reply():
    verify = registry.part("reward", "final_number")
    assert of_reply(plain.but(reward=correct() + length_penalty(per_token=0.1)), "4", verify) == {
        "score": pytest.approx(0.7),
        "acc": 1.0,
    }
    assert of_reply(plain, "5", verify) == {"score": 0.0, "acc": 0.0}


def test_no_verdict_is_nan_where_verl_can_leave_the_reply_out_and_an_error_where_it_cannot():
    assert np.isnan(of_reply(plain.but(reward=none_if_short()), "4")["score"])
    with pytest.raises(RewardlabError, match=r"no verdict.*none_if_short.*verl's gae cannot leave a reply out.*reply '4'"):
        of_reply(registry.build("ppo").but(reward=none_if_short()), "4")


def test_errors_of_a_reward_name_file_function_and_row(tmp_path):
    from rewardlab.registry.formula import read_reward

    file = tmp_path / "mine.py"
    file.write_text("def f(completion):\n    return 1 / (len(completion) - 1)\n")
    with pytest.raises(RewardlabError, match=r"the reward f of .*mine.py, line 2: ZeroDivisionError.*prompt 'What\?', reply '4'"):
        of_reply(plain.but(reward=read_reward(f"{file}:f")), "4")


def test_problems_survive_verls_table():
    from rewardlab.backends.verl.writing import row_of

    problem = Problem((Message("system", "Be brief."), Message("user", "Which?")), {"a": [1, None]}, {"tools": [{"x": 1.5}]})
    row = row_of(problem, "mine", 3)
    assert row["prompt"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which?"}]
    assert rewards.problem_of(row) == problem
    theirs = {
        "raw_prompt": [{"role": "user", "content": "2 + 2?"}],
        "reward_model": {"ground_truth": "4"},
        "extra_info": {"index": 1},
    }
    found = rewards.problem_of(theirs)
    assert (found.question, found.answer, found.meta) == ("2 + 2?", "4", {"index": 1})


# ---- what is written -------------------------------------------------------------------------------------------------


def test_the_files(tmp_path, capsys):
    out = tmp_path / "out"
    words = ["export-recipe", "dapo", "--task", "arithmetic:test_size=3", "--rows", "5", "--n", "4", "--out", str(out), "--json"]
    assert cli.main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["train"], said["test"], said["verifier"]) == (5, 3, "final_number")
    assert sorted(os.listdir(out)) == ["recipe.json", "rewardlab_recipe.py", "run.sh", "test.parquet", "train.parquet", "verl.yaml"]
    assert len(pq.read_table(out / "train.parquet")) == 5
    saved = json.loads((out / "recipe.json").read_text())
    assert registry.load_recipe(saved["recipe"]).credit == registry.build("dapo").credit
    compile((out / "rewardlab_recipe.py").read_text(), "rewardlab_recipe.py", "exec")
    assert subprocess.run(["sh", "-n", str(out / "run.sh")]).returncode == 0
    config = yaml.safe_load((out / "verl.yaml").read_text())
    assert config["actor_rollout_ref"]["rollout"]["n"] == 4
    assert config["algorithm"]["filter_groups"] == {"enable": True, "metric": "acc"}
    assert cli.main(words) == 2
    assert "not empty" in capsys.readouterr().err


OWN = """
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import reward


@reward
def digits(trajectory):
    return float(sum(c.isdigit() for c in trajectory.reply))


def countless(base=None):
    return grpo().but(reward=digits())
"""


LOADS = "from rewardlab import registry\nprint(registry.load_recipe(saved['recipe']).reward)"


def test_a_method_of_the_users_is_found_wherever_verl_starts(tmp_path, monkeypatch, capsys):
    (tmp_path / "own" / "shaping").mkdir(parents=True)
    (tmp_path / "own" / "shaping" / "countless.py").write_text(OWN)
    monkeypatch.setenv("REWARDLAB_METHODS", str(tmp_path / "own"))
    out = tmp_path / "out"
    assert cli.main(["export-recipe", "countless", "--task", "arithmetic:test_size=3", "--rows", "5", "--out", str(out)]) == 0
    assert str(tmp_path / "own" / "shaping" / "countless.py") in capsys.readouterr().out
    # of the module that verl imports all but the last lines, which need verl
    begins = (out / "rewardlab_recipe.py").read_text().partition("from rewardlab import registry")[0]
    script = f"__file__ = {str(out / 'rewardlab_recipe.py')!r}\n{begins}\n{LOADS}"
    elsewhere = {k: v for k, v in os.environ.items() if k != "REWARDLAB_METHODS"}
    done = subprocess.run([sys.executable, "-c", script], env=elsewhere, capture_output=True, text=True)
    assert done.stdout == "digits()\n", done.stderr
    assert yaml.safe_load((out / "verl.yaml").read_text())["trainer"]["total_training_steps"] == 100


def test_minibatches_that_do_not_divide_a_step_are_refused():
    why = refusals.cannot_carry(plain.but(problems=10, minibatches=4))
    assert "its 10 prompts a step are no multiple of its 4 minibatches" in why


def test_a_method_that_is_not_carried_writes_nothing(tmp_path, capsys):
    assert cli.main(["export-recipe", "prime", "--out", str(tmp_path / "out")]) == 3
    assert "second model (prm)" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_a_verifier_needs_a_task_and_images_no_export(tmp_path):
    with pytest.raises(RewardlabError, match="name the task"):
        api.export_recipe(plain, tmp_path / "out")
    images = [Problem((Message("user", "What?", images=(np.zeros(3),)),), "4")]
    with pytest.raises(RewardlabError, match="hold images"):
        api.export_recipe(plain, tmp_path / "out", task=Task("seen", images, images, "exact_match"))
    assert not list(tmp_path.iterdir())


def test_settings_and_differences():
    recipe = plain.but(
        rollout=independent(n=4, temperature=0.6, top_k=20),
        objective=clipped_ratio() + 0.04 * kl_to_reference() + 0.01 * negative_entropy(),
        problems=32, minibatches=4, epochs=2, lr=1e-6, lr_end=0.1, clip_norm=0.5, warmup=7,
    )  # fmt: skip
    said = overrides(recipe, steps=9, max_new=77)
    actor = said["actor_rollout_ref"]["actor"]
    assert (actor["kl_loss_coef"], actor["kl_loss_type"], actor["entropy_coeff"]) == (0.04, "low_var_kl", 0.01)
    assert (actor["ppo_mini_batch_size"], actor["ppo_epochs"], actor["loss_agg_mode"]) == (8, 2, "token-mean")
    assert actor["optim"] == {"lr": 1e-6, "weight_decay": 0.0, "betas": [0.9, 0.99], "clip_grad": 0.5, "lr_warmup_steps": 7}
    assert said["actor_rollout_ref"]["rollout"] == {"name": "vllm", "n": 4, "temperature": 0.6, "top_p": 1.0, "top_k": 20}
    assert (said["data"]["max_response_length"], said["trainer"]["total_training_steps"]) == (77, 9)
    # a constant length that the recipe leaves open is that of the longest reply
    scales = [
        overrides(registry.build("dr_grpo", s), steps=9, max_new=77)["actor_rollout_ref"]["actor"] for s in ({}, {"length": 5})
    ]
    assert [(a["loss_agg_mode"], a["loss_scale_factor"]) for a in scales] == [("seq-mean-token-sum-norm", x) for x in (77, 5)]
    assert [d.split()[0] for d in differences(recipe)] == ["the", "verl"]
    # imitation reads the raw policy, whatever its replies were sampled at
    assert "temperature" in differences(recipe.but(credit=None))[0]
