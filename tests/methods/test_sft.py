"""SFT on replies of the user's own."""

import json
import math

import pytest
import torch

import rewardlab
from rewardlab import registry, resume, train
from rewardlab.core import Run, Trajectory
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.evals.pairs import preference_margins
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import RunConfig
from rewardlab.runs.metrics import read_metrics

SMALL = {
    "model": "untrained",
    "steps": 30,
    "eval_every": 0,
    "eval_problems": 2,
    "checkpoint_every": 0,
    "device": "cpu",
    "max_new": 4,
}
FORMATS = {
    "completion_column": lambda i: {"prompt": f"{i}?", "mine": "yes 7"},
    "prompt-completion": lambda i: {"prompt": f"{i}?", "completion": "yes 7"},
    "messages": lambda i: {"messages": [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": "yes 7"}]},
}


@pytest.mark.parametrize("form", FORMATS)
def test_sft_learns_the_users_own_completions(form, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(FORMATS[form](i)) + "\n" for i in range(8)))
    columns = {"completion_column": "mine"} if form == "completion_column" else {}
    run = rewardlab.train("sft", task=str(path), out=tmp_path / "run", settings={"lr": 1e-2, "problems": 4}, **columns, **SMALL).run
    assert likelihood(run.policy, "yes 7") > likelihood(untrained(), "yes 7") + 5.0
    assert likelihood(run.policy, "no 7") < likelihood(run.policy, "yes 7")


def likelihood(policy, reply: str) -> float:
    """The log-prob of a reply to "3?"."""
    problem = rewardlab.ask("3?")
    row = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), [reply])
    return float(policy.score(row)[0][row[0].mask].sum())


PREFERENCES = ["dpo", "ipo", "kto", "simpo", "step_dpo"]


def begun(name: str, sft_steps: int) -> Ops:
    recipe = registry.build(name, {"sft_steps": sft_steps, "problems": 4, "lr": 1e-3})
    task, policy = registry.task("preferences", test_size=4), untrained(hidden=32, layers=1)
    run = Run(policy, reference=policy.copy("reference") if "ref" in recipe.needs else None, max_new=8)
    return Ops(recipe, run, task, RunConfig(steps=9))


def step(ops: Ops) -> dict[str, float]:
    ops.run.metrics = {}
    (ops.recipe.loop or standard_loop)(ops.recipe, ops.run, ops)
    ops.run.step += 1
    return ops.run.metrics


@pytest.mark.parametrize("name", PREFERENCES)
def test_preferences_start_from_a_policy_that_has_seen_the_chosen_replies(name):
    ops = begun(name, sft_steps=2)
    before = preference_margins()(ops.task.test, ops.run)["chosen_logprob"]
    first = [step(ops), step(ops)]
    # the same two steps by the method sft, on the same replies at the same rate
    alone = begun(name, sft_steps=0)
    for found in first:
        alone.run.metrics = {}
        alone.standard_step(registry.build("sft", {"field": "chosen", "lr": 1e-2}))
        alone.run.step += 1
        assert found["loss"] == alone.run.metrics["loss"]
    imitated = ops.run.policy.state()
    assert all(torch.equal(v, imitated[k]) for k, v in alone.run.policy.state().items())
    assert preference_margins()(ops.task.test, ops.run)["chosen_logprob"] > before + 1
    imitated = {k: v.clone() for k, v in imitated.items()}
    # from then on it is the method: with the policy as its own reference, every margin is 0 at first
    third = step(ops)
    if ops.run.reference is not None:
        assert all(torch.equal(v, imitated[k]) for k, v in ops.run.reference.state().items())
    start = {"dpo": math.log(2), "step_dpo": math.log(2), "ipo": 25.0, "kto": 0.5}
    if name in start:
        assert third["loss"] == pytest.approx(start[name], rel=1e-4)
    assert third["lr"] == pytest.approx(1e-3)
    assert ops.policy.updates == 3


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_run_that_was_stopped_in_either_stage_goes_on_bit_for_bit(stop, tmp_path):
    """By way of the run folder: the renewed reference is saved beside the first checkpoint after it."""
    task, policy = registry.task("preferences", test_size=4), untrained(hidden=32, layers=1)
    recipe = registry.build("dpo", {"sft_steps": 2, "problems": 4, "lr": 1e-3})
    common = {"eval_problems": 4, "checkpoint_every": 1, "max_new": 8, "eval_every": 0, "device": "cpu"}
    train(recipe, policy.copy("policy"), task, steps=4, out=tmp_path / "whole", **common)
    train(recipe, policy.copy("policy"), task, steps=stop, out=tmp_path / "short", **common)
    resume(tmp_path / "short", task, policy.copy("policy"), steps=4)
    weights = [(tmp_path / x / "model" / "model.safetensors").read_bytes() for x in ("whole", "short")]
    assert weights[0] == weights[1]
    whole, again = (read_metrics(tmp_path / x)[1:] for x in ("whole", "short"))
    assert [line["loss"] for line in again] == [line["loss"] for line in whole]
    assert whole[2]["loss"] == pytest.approx(math.log(2), rel=1e-4)  # the first step after SFT, against the new reference
    assert whole[3]["loss"] != pytest.approx(math.log(2), rel=1e-4)
