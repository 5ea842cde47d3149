"""RLHF: a reward model that is taught on the data's pairs before the first step, or brought along."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import pytest
import torch
from rows import batch_of, outcome
from safetensors.torch import load_file

from rewardlab import registry
from rewardlab.api import resume, train
from rewardlab.backends.trl.refusals import cannot_carry
from rewardlab.core import Learner, Run, Task, ask, loop
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.rlhf import pairs_in
from rewardlab.methods.baselines.sft import other_first
from rewardlab.methods.reward_models.dogerm import lesson_of
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled
from rewardlab.util.outputs import last_values

TAUGHT = {"problems": 2, "n": 2, "pairs": 8, "passes": 15, "rm_lr": 1e-2}


def pair(i: int):
    """The better reply ends with a 7, the worse one with a 3."""
    return ask(f"{i}+{i}=?", str(2 * i), chosen=f"{i}7", rejected=f"{i}3")


TASK = Task("pairs", Shuffled([pair(i) for i in range(10, 18)]), [pair(i) for i in range(20, 30)], "final_number", max_new=4)


def begun(policy, task: Task = TASK, method: str = "rlhf", settings: dict = TAUGHT, **changes) -> Ops:
    """A run at its first step, with the models that the recipe asks for."""
    recipe = registry.build(method, settings | changes)
    run = Run(policy.copy("policy"), steps=3, max_new=4, verify=registry.part("reward", task.verifier))
    run.reference = policy.copy("reference")
    run.models = {learner.name: learner_model(learner, policy) for learner in recipe.also}
    return Ops(recipe, run, task, RunConfig())


def step(ops: Ops) -> dict[str, float]:
    ops.run.metrics = {}
    (ops.recipe.loop or standard_loop)(ops.recipe, ops.run, ops)
    ops.run.step += 1
    return ops.run.metrics


@pytest.fixture(scope="module")
def policy():
    return untrained()


def test_the_model_learns_from_the_pairs_in_the_first_step_and_is_frozen_from_then_on(policy):
    ops = begun(policy)
    first = step(ops)
    # at 1/2 before, since an untaught head says 0 of everything; held-out pairs are of other numbers
    assert first["pair_accuracy"] == 1.0
    taught = {name: p.clone() for name, p in ops.run.models["reward_model"].state().items()}
    policy_then = {name: p.clone() for name, p in ops.run.policy.state().items()}
    second = step(ops)
    assert second["pair_accuracy"] == 1.0
    assert "reward_model/loss" in first
    assert "reward_model/loss" not in second
    assert all(torch.equal(p, taught[name]) for name, p in ops.run.models["reward_model"].state().items())
    assert any(not torch.equal(p, policy_then[name]) for name, p in ops.run.policy.state().items())
    # the problems of the pairs are still there for the policy to train on
    assert ops.position == 2 * TAUGHT["problems"]


def test_the_same_seed_teaches_the_same_model_to_every_method_that_is_built_on_it(policy):
    few = {"problems": 2, "n": 2, "pairs": 8, "passes": 2}
    ops = [begun(policy, method=method, settings=few) for method in ("rlhf", "par", "cgpo_mixture_of_judges")]
    for one in ops:
        step(one)
    states = [one.run.models["reward_model"].state() for one in ops]
    assert all(torch.equal(states[0][name], other[name]) for other in states[1:] for name in states[0])
    assert float(states[0]["value_head"].abs().sum()) > 0


def test_a_model_that_was_trained_before_is_used_as_it_is(policy, tmp_path):
    model = policy.copy("reward_model", value_head=True)
    torch.nn.init.normal_(model.model.value_head, generator=torch.Generator().manual_seed(1))
    model.save(tmp_path / "brought")
    ops = begun(policy, reward_model=str(tmp_path / "brought"))
    # without a loop of its own, TRL can run it too
    assert not cannot_carry(ops.recipe)
    assert "pair_accuracy" not in step(ops)
    assert torch.equal(ops.run.models["reward_model"].state()["value_head"], model.state()["value_head"])
    assert ops.step_data is not None
    groups = ops.step_data.groups
    found = [s.total for row in ops.recipe.reward(groups, ops.run) for s in row]
    rows = [t for group in groups for t in group]
    # what was cut off is scored as if it had ended there
    ended = [policy.write([t], [""])[0] if t.stop == "length" else t for t in rows]
    assert found == pytest.approx(last_values(model, ended), abs=1e-5)


def test_data_without_pairs_is_refused_where_there_is_nothing_else_to_learn_from(policy):
    plain = Task("plain", Shuffled([ask("1+1=?", "2")]), [ask("2+2=?", "4")], "final_number", max_new=4)
    with pytest.raises(RewardlabError, match="--reward-model"):
        step(begun(policy, plain))


def test_any_reward_can_take_the_place_of_a_model():
    recipe = registry.build("rlhf", {"score": registry.part("reward", "number_mentioned")})
    assert str(recipe.reward) == "number_mentioned()"
    assert (recipe.also, recipe.loop) == ((), None)


def test_a_run_that_is_resumed_has_the_model_that_was_taught(tmp_path):
    given = {"eval_problems": 2, "device": "cpu", "settings": {"problems": 2, "n": 2, "pairs": 4}, "checkpoint_every": 1}
    for name, steps in (("whole", 2), ("cut", 1)):
        train("rlhf", "untrained", "notes:test_size=2", steps=steps, out=tmp_path / name, **given)
    resume(tmp_path / "cut", steps=2)
    for file in ("policy", "reward_model"):
        whole, cut = (load_file(tmp_path / run / "checkpoints" / "step-000002" / f"{file}.safetensors") for run in ("whole", "cut"))
        assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_what_the_learner_starts_from_decides_whether_it_is_taught():
    def learner(reward_model: str) -> Learner:
        return registry.build("rlhf", {"reward_model": reward_model}).also[0]

    for start in ("value-head", "value-head:surprise", "embedded:arithmetic:judge"):
        assert learner(start).recipe.objective is not None
    assert learner("runs/mine").recipe.objective is None


def test_a_run_that_trained_a_reward_model_is_such_a_path(tmp_path):
    given = {"eval_problems": 2, "device": "cpu", "checkpoint_every": 0, "settings": {"problems": 2}}
    done = train("bradley_terry", "untrained", "notes:test_size=2", steps=1, out=tmp_path / "rm", **given)
    (learner,) = registry.build("rlhf", {"reward_model": str(tmp_path / "rm")}).also
    loaded = learner_model(learner, done.run.policy)
    kept = load_file(tmp_path / "rm" / "best" / "model.safetensors")
    assert torch.equal(loaded.model.value_head, kept["score.weight"])
    assert loaded.name == "reward_model"
    assert loaded.tokenizer.get_vocab() == done.run.policy.tokenizer.get_vocab()


def test_the_kl_is_in_the_reward_of_a_reply():
    recipe = registry.build("rlhf")
    assert "less_kl_of_reply(beta=0.02) >> leave_one_out()" in str(recipe.credit)
    assert str(recipe.objective) == "policy_gradient()"
    # without it no second model is held for its log-probs
    assert "ref" not in registry.build("rlhf", {"beta": 0.0}).needs


def test_stacked_on_ppo_it_is_instructgpts_with_the_kl_in_each_tokens_reward():
    # log(pi_old / ref) of 1 and 2 at two tokens of a reply that scores 1: rewards -.02 and 1 - .04, which the critic learns to go
    recipe = registry.build("ppo+rlhf", {"ppo.beta": 0.02, "ppo.lam": 1.0})
    batch = batch_of([[("rdd", {"model_score": outcome(1.0)})]], {"ref": [[-9.0, -2.0, -3.0]], "value": [[0.0, 0.0, 0.0]]})
    batch.old = torch.tensor([[0.0, -1.0, -1.0]])
    critic, model = recipe.also
    assert (critic.name, model.name, str(recipe.reward)) == ("critic", "reward_model", "model_score()")
    assert critic.recipe.credit(batch.reward, batch, Run(None))[batch.mask].tolist() == pytest.approx([0.94, 0.96])


class Rows:
    """A source without an end, which keeps what is read of it."""

    def __init__(self):
        self.read: list[int] = []

    def __getitem__(self, i: int):
        self.read.append(i)
        return ask(f"{i}?", "1", chosen="a", rejected="b", solution="c")


class Finite(Rows):
    def __len__(self) -> int:
        return 3


class Taught(Exception):
    """Raised in place of the lesson."""


def lesson(*args, **kwargs):
    raise Taught


LESSONS = {
    "baselines.rlhf": ("rlhf", 2000), "reward_models.reward_robust_rlhf_brme": ("reward_robust_rlhf_brme", 2000),
    "reward_models.ebrm": ("ebrm", 2000), "reward_models.pairwise_rl": ("pairwise_rl", 2000),
    "reward_models.restl": ("restl", 1000), "reward_models.rlsqm": ("rlsqm", 1000),
    "shaping.contrastive_text2sql": ("contrastive_text2sql", 2000), "shaping.dr_irl_grpo_s": ("dr_irl_grpo_s", 2000),
    "shaping.par": ("par", 2000), "shaping.posterior_grpo": ("posterior_grpo", 2000),
    "shaping.cgpo_mixture_of_judges": ("cgpo_mixture_of_judges", 2000), "shaping.hero_hybrid_reward": ("hero_hybrid_reward", 2000),
    "shaping.sotopia_rl": ("sotopia_rl", 2000),
}  # fmt: skip


@pytest.mark.parametrize("module", LESSONS)
def test_a_model_that_is_taught_first_reads_each_row_once_and_of_endless_data_as_many_as_ever(module, monkeypatch):
    name, endless = LESSONS[module]
    for one in (module, "baselines.rlhf"):
        for function in ("teach", "_learn"):
            monkeypatch.setattr(importlib.import_module(f"rewardlab.methods.{one}"), function, lesson, raising=False)
    if name == "restl":
        made = importlib.import_module("rewardlab.methods.reward_models.restl")
        monkeypatch.setattr(made, "_made", lambda problems, aspect: [(1.0, p) for p in problems])
    few = {"tests": 2} if name == "rlsqm" else {"utterances": 2} if name == "sotopia_rl" else {"pairs": 2}
    learner = SimpleNamespace(model=None, recipe=SimpleNamespace(reward=None, objective="a loss"))
    keys = ("reward_model", "reward", "base", "encoder")

    def read(source, settings):
        recipe = registry.build(name, settings)
        ops = SimpleNamespace(task=SimpleNamespace(train=source), position=0, learners=dict.fromkeys(keys, learner), rollout=lesson)
        with pytest.raises(Taught):
            recipe.loop(recipe, Run(None), ops)
        return source.read

    assert read(Finite(), {}) == [0, 1, 2]
    assert read(Finite(), few) == [0, 1]
    assert read(Rows(), {}) == list(range(endless))


@loop
def own(recipe, run, ops):
    ops.steps.append("own")


def called(name: str, memory: dict, **changes) -> list[str]:
    """The steps that are taken by a method on a base with a loop of its own, after its lesson."""
    base = registry.build("rlhf" if "brme" in name else "grpo").but(loop=own())
    run = Run(None, memory=dict(memory))
    ops = SimpleNamespace(steps=[], standard_step=lambda recipe: ops.steps.append("standard"), **changes)
    recipe = registry.method(name)(base)
    recipe.loop(recipe, run, ops)
    return ops.steps


def test_what_is_taught_first_leaves_a_base_its_own_loop(monkeypatch):
    assert called("rlhf", {"rlhf.pair_accuracy": None}) == ["own"]
    assert called("reward_robust_rlhf_brme", {"brme.heads": {}, "brme.pair_accuracy": None}) == ["own"]
    assert called("restl", {"restl.scales": {}, "restl.accuracy": {}}) == ["own"]
    assert called("rlsqm", {"rlsqm.taught": {}}) == ["own"]
    energy = SimpleNamespace(agreed=SimpleNamespace(clear=lambda: None, __iter__=None))
    monkeypatch.setattr(torch, "cat", lambda *_: torch.ones(1))
    model = SimpleNamespace(energy=energy, scorer=SimpleNamespace(parameters=list))
    assert called("ebrm", {"ebrm.taught": True}, learners={"reward": SimpleNamespace(model=model)}) == ["own"]
    goal = importlib.import_module("rewardlab.methods.reward_models.goal_conditioned_rm")
    monkeypatch.setattr(goal, "_states", lambda *_: [torch.ones(1, 2).numpy()])
    monkeypatch.setattr(Run, "model", lambda *_: None)
    data = SimpleNamespace(groups=[[None]])
    assert called("goal_conditioned_rm", {}, step_data=data) == ["own"]
    alone = other_first(model="guide", pairs=1, inner=own())
    ops = SimpleNamespace(steps=[])
    alone(None, Run(None, memory={"taught.guide": True}), ops)
    assert ops.steps == ["own"]


def test_heads_and_rlhf_teach_the_same_model_once(policy):
    ops = begun(policy, method="reward_robust_rlhf_brme", settings={"problems": 2, "n": 2, "pairs": 4, "heads": 2})
    lessons = []
    update, model = ops.update, ops.learners["reward_model"]
    ops.update = lambda batch, learner=None: (lessons.append(learner is model), update(batch, learner))[1]
    metrics = step(ops)
    # four pairs in one update
    assert lessons.count(True) == 1
    assert "pair_accuracy" in metrics


def test_dogerms_parents_read_each_row_of_their_kind_once():
    run, ops = Run(None), SimpleNamespace(task=SimpleNamespace(train=Finite()), position=0)
    assert [p.question for p in lesson_of("1", None, run, ops, elsewhere=True)] == ["0?", "2?"]
    assert [p.question for p in lesson_of("1", 2000, run, ops, elsewhere=False)] == ["1?"]
    with pytest.raises(RewardlabError, match="no training problem"):
        lesson_of("7", None, run, ops, elsewhere=False)


@pytest.mark.parametrize("method", ["ultramedical", "rip", "irepo", "wrpo", "onpo", "rlhf_workflow_online", "xwin_lm"])
def test_methods_that_build_on_it_teach_by_all_pairs_of_the_data(method, policy):
    task = Task("pairs", Shuffled([pair(i) for i in range(10, 99)] * 30), TASK.test, "final_number", max_new=4)
    recipe = registry.build(method)
    (teaching,) = [part for part in recipe.loop.walk() if part.name == "taught_first"]

    ops = SimpleNamespace(task=task, position=0)
    assert len(pairs_in(ops, Run(policy.copy("policy")), teaching.settings["pairs"])) == 89 * 30
