"""PRLCoder: a model of lines learns from mutants that were run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from rows import batch_of, outcome, row_of

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.prlcoder import mutants, plus_lines, prlcoder
from rewardlab.models.embedded import untrained
from rewardlab.rewards.mutated import line_labels
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.recorded import recorded
from rewardlab.rollouts.separated import separated
from rewardlab.runs.config import RunConfig

PROBLEM = ask("?", {"io": [["[1, 2]", "3"], ["[5, 0]", "5"]]}, solution="take 2; sum")


def of_problem(problem):
    return [[replace(row_of("rd"), problem=problem)]]


def test_mutants_of_the_reference_programs():
    run = Run(policy=None, seed=3)
    made = mutants(separator=";", each=20)(of_problem(PROBLEM), [], run)
    assert {(p.meta["mutant"], p.meta["line"]) for p in made} == {
        ("drop 2; sum", 0), ("take 1; sum", 0), ("take 3; sum", 0), ("take 2; len", 1)
    }  # fmt: skip
    assert all(p.answer == PROBLEM.answer for p in made)
    # the same in every call of a step, others in the next one; two rows of a problem make no more
    assert made == mutants(separator=";", each=20)([of_problem(PROBLEM)[0] * 2], [], run)
    assert made != mutants(separator=";", each=20)(of_problem(PROBLEM), [], replace(run, step=1))
    with pytest.raises(RewardlabError, match="'program'"):
        mutants(column="program")(of_problem(PROBLEM), [], run)


def test_labels_of_lines_are_what_running_them_shows():
    policy = untrained(0, hidden=32, layers=1)
    run = Run(policy, verify=registry.part("reward", "list_program"))
    programs = [("take 3; sum", 0), ("drop 2; sum", 0), ("take 2; len", 1), ("take 2; sum", 5)]
    problems = [replace(PROBLEM, meta={"mutant": text, "line": line}) for text, line in programs]
    groups = separated(inner=recorded(fields=("mutant",)), at=";")(problems, run)
    found = [row[0] for row in line_labels()(groups, run)]
    ends = [row[0].steps for row in groups]
    # three of two numbers are two: the line was written otherwise, and is right. What comes after the line is not judged
    assert found[0].steps == ((ends[0][0], 1.0),)
    assert found[1].steps == ((ends[1][0], 0.0),)
    assert found[2].steps == ((ends[2][0], 1.0), (ends[2][1], 0.0))
    assert found[3].missing


def test_the_advantages_by_hand():
    rows = [("rddd", {"correct": outcome(1.0)}), ("rdd", {"correct": outcome(0.0)}), ("rd", {"correct": outcome(None)})]
    log3 = float(np.log(3))
    columns = {"prm.value": [[9.0, 9, log3, 0.0], [9.0, 9, -log3], [9.0, 9.0]], "value": [[0.5, 0.5, 0.5, 9.0], [0.5, 0.5], [0.0]]}
    batch = batch_of([[row] for row in rows], columns)
    steps = [(2, 3), (2,), (1,)]
    batch.rows = [(replace(t, steps=s), score) for (t, score), s in zip(batch.rows, steps, strict=True)]
    run = Run(policy=None)
    # sigma of log 3 is 3/4: 1/2 at the first line of the right one, 0 at its last; -1/2 at the line of the wrong one
    paid = plus_lines(weight=0.5)(batch.reward, batch, run)
    assert paid.flatten().tolist() == pytest.approx([0, 0, 0.25, 1.0, 0, 0, -0.25, 0, 0, 0, 0, 0])
    assert run.metrics["prm_fit"] == pytest.approx(1.0)
    recipe = prlcoder(registry.build("ppo", {"beta": 0.0, "lam": 1.0}), weight=0.5)
    found = recipe.credit(batch.reward, batch, run)
    raw = np.array([1.25, 1.25, 1.0, -0.25, -0.25]) - 0.5
    wanted = (raw - raw.mean()) / raw.std(ddof=1)
    assert found[batch.mask & batch.rewarded.any(1, keepdim=True)].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)


def test_only_lines_of_the_code_block_are_paid():
    policy, problem = untrained(0, hidden=32, layers=1), ask("?", {"tests": "assert a"})
    recipe = prlcoder(registry.build("ppo", {"beta": 0.0}), weight=1.0)
    texts = ("Well.\n```python\na=1\n```\nThat is it.",)
    rollout = separated(**{**recipe.rollout.settings, "inner": written(texts=texts)})
    ((t,),) = rollout([problem], Run(policy))
    batch = collate([[t]], [[Score(1.0)]], torch.device("cpu"))
    # the line model finds every line right
    batch.columns["prm.value"] = torch.full((1, batch.width), 9.0)
    paid = plus_lines(weight=1.0)(torch.zeros_like(batch.reward), batch, Run(None))[0]
    (at,) = paid.nonzero().flatten().tolist()
    assert t.cut(at + 1, policy.decode).reply == "Well.\n```python\na=1\n"
    assert paid[at].item() == pytest.approx(1.0, abs=1e-3)


@rollout
def written(problems, run, *, texts: tuple[str, ...] = ()):
    (prompt,) = run.policy.read([Trajectory(problems[0])], [problems[0].prompt])
    return [run.policy.write([prompt] * len(texts), list(texts))]


@reward
def even(trajectory):
    return float(len(trajectory.reply) % 2)


def test_the_model_learns_beside_policy_and_critic():
    task, policy = registry.task("codes", test_size=2), untrained(hidden=32, layers=1)
    recipe = prlcoder(separator=";").but(problems=4)
    models = {name: policy.copy(name, value_head=True) for name in ("critic", "prm")}
    before = {k: v.clone() for k, v in models["prm"].state().items()}
    run = Run(policy, reference=policy.copy("reference"), models=models, max_new=4, seed=1, verify=even())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert np.isfinite(run.metrics["prm/loss"])
    assert any(not torch.equal(v, before[k]) for k, v in models["prm"].state().items())
    critic = next(x for x in recipe.also if x.name == "critic")
    assert str(critic.recipe.credit).startswith("plus_lines")


def test_a_base_without_a_critic_is_refused():
    with pytest.raises(RewardlabError, match=r"give it a base with a learner of this name, as ppo has"):
        registry.build("grpo+prlcoder")
