"""DreamPRM: weights of domains from trusted outcomes, the weighted loss of steps, and the best of n by the log-odds of steps."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Outputs, Problem, Run, Score, Task, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.errors import RewardlabError
from rewardlab.methods.process import dreamprm as method
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.tasks.sources import Shuffled
from tests.helpers.checkpoints import checkpoint

NAMES = ("a", "b", "c")


class Slope:
    """A model of one weight theta: the value at a position is theta times its id."""

    def __init__(self, theta: float = 0.0):
        self.theta = torch.tensor(theta, dtype=torch.float64, requires_grad=True)

    def parameters(self):
        return [self.theta]

    def evaluate(self, batch, wants):
        return Outputs(value=self.theta * batch.ids)


def row(ids: list[int], labels: list[float | None] | None = None, **meta) -> tuple[Trajectory, Score]:
    """A solution whose steps are one token each, after a prompt of one."""
    turns = (Turn(None, np.zeros(1, np.int64)), Turn("policy", np.array(ids, np.int64)))
    t = Trajectory(Problem((), None, meta), turns, "end", steps=tuple(range(1, len(ids) + 1)))
    known = [(at, label) for at, label in zip(t.steps, labels or [], strict=False) if label is not None]
    return t, Score(steps=known) if known else Score(None)


def batch_of(*rows):
    return collate([[t] for t, _ in rows], [[s] for _, s in rows], torch.device("cpu"))


# two steps of a, of which the second is wrong, and one of b; a third step of b has no label
LABELLED = (row([1, 2], [1.0, 0.0], domain="a"), row([3, 5], [1.0, None], domain="b"))
TRUSTED = (row([1, 3], right=True), row([1], right=False))


@pytest.mark.parametrize(("aggregate", "upper"), [("mean", -0.125), ("sum", -0.375)])
@pytest.mark.parametrize("tokens", [1, 1000])
def test_the_derivative_by_each_weight_is_minus_the_product_of_two_gradients(aggregate, upper, tokens):
    # at theta = 0 each sigmoid is 1/2 with slope 1/4, so that an error (1/2 - y)^2 falls with 2 (1/2 - y) x / 4
    # lower, over 3 labelled steps: a (-1/4 + 2/4) / 3 = 1/12;   b (-3/4) / 3 = -1/4;   c is not in the batch
    # upper: A = 2 theta (sum: 4 theta) of the right one, theta of the wrong one: (-1/2 + 1/4) / 2 (sum: (-1 + 1/4) / 2)
    found = method.hypergradient(Slope(), batch_of(*LABELLED), batch_of(*TRUSTED), NAMES, aggregate, tokens)
    assert found.tolist() == pytest.approx([-upper / 12, upper / 4, 0.0])


def test_it_is_the_slope_of_the_trusted_loss_after_one_step():
    labelled, trusted, rate = batch_of(*LABELLED), batch_of(*TRUSTED), 1e-3

    def after(by_weight: list[float]) -> Slope:
        """The model after a step of plain gradient descent on the weighted loss."""
        model = Slope(0.3)
        value = model.evaluate(labelled, ()).value
        lost = (torch.tensor(by_weight).double()[:, None] * method.step_errors(value, labelled)).sum() / 3
        (slope,) = torch.autograd.grad(lost, model.parameters())
        return Slope(float((model.theta - rate * slope).detach()))

    def loss(by_weight: list[float]) -> float:
        return method.outcome_errors(after(by_weight).evaluate(trusted, ()).value, trusted, "mean").mean().item()

    slopes = [(loss([1 + 0.1 * (k == 0), 1 + 0.1 * (k == 1)]) - loss([1.0, 1.0])) / 0.1 for k in range(2)]
    found = method.hypergradient(after([1.0, 1.0]), labelled, trusted, NAMES)
    assert [rate * x for x in found[:2].tolist()] == pytest.approx(slopes, rel=0.01)


def test_one_step_of_adam_lowers_the_weight_of_the_domain_that_raises_the_trusted_loss():
    run = Run(policy=None)
    method.learn_weights(run, ("a", "b"), torch.tensor([1.0, -1.0]), 0.1)
    assert run.memory[method.TABLE] == pytest.approx({"a": -0.1, "b": 0.1})
    # softplus(-.1) = .64440, softplus(.1) = .74440, over their mean .69440
    assert method.weights(method.table_of(run, ("a", "b"))).tolist() == pytest.approx([0.9280, 1.0720], abs=1e-4)
    # weights are relative: what all domains have in common moves none, and the decay of 1e-3 alone is left
    run = Run(policy=None, memory={method.TABLE: {"a": 1.0, "b": 1.0}})
    method.learn_weights(run, ("a", "b"), torch.tensor([1.0, 1.0]), 0.1)
    assert run.memory[method.TABLE] == pytest.approx({"a": 0.9999, "b": 0.9999})
    json.dumps(run.memory[method.TABLE])


def test_the_loss_weighs_each_labelled_step_by_its_domain():
    table = {"a": math.log(math.e - 1), "b": math.log(math.e**3 - 1)}  # softplus: 1 and 3, over their mean 1/2 and 3/2
    run = Run(policy=None, memory={method.TABLE: table})
    (prm,) = registry.build("dreamprm").also
    batch = batch_of(*LABELLED)
    # of a 1/4 at V = 0 in both steps; of b sigmoid(log 3) = 3/4: 1/16, and a step without a label
    out = Outputs(value=torch.tensor([[9.0, 0.0, 0.0], [9.0, math.log(3), 9.0]]))
    weigh(batch, prm.recipe.objective, prm.recipe.weighting)
    (loss,) = losses_of(prm.recipe.objective, out, batch, run).values()
    assert float(loss) == pytest.approx((0.5 * (1 / 4 + 1 / 4) + 1.5 * (1 / 16)) / 3)


def test_a_batch_without_labels_has_a_loss_of_0():
    run, batch = Run(policy=None, memory={method.TABLE: {"a": 0.0, "b": 0.0}}), batch_of(row([1, 2], [None, None], domain="a"))
    (prm,) = registry.build("dreamprm").also
    weigh(batch, prm.recipe.objective, prm.recipe.weighting)
    (loss,) = losses_of(prm.recipe.objective, Outputs(value=torch.zeros(1, 3)), batch, run).values()
    assert float(loss) == 0.0


# ---- the rows --------------------------------------------------------------------------------------------------------


def solution(i: int, domain: str | None = None, right: bool | None = None, labels=(1.0, 0.0), **more) -> Problem:
    steps = [f"{i}+1={i + 1}", f"Answer: {i + 1}"]
    return ask(f"{i}+1=?", str(i + 1), steps=steps, labels=labels and list(labels), domain=domain, right=right, **more)


ROWS = [
    *(solution(i, "ab"[i % 2]) for i in range(8)),
    *(solution(i, right=i % 2 == 0, labels=None, trusted=True) for i in range(8, 12)),
    solution(12, labels=None, trusted=True),
]


def test_trusted_solutions_are_not_learnt_from_and_those_of_unknown_outcome_are_left_out():
    found = method.split(ROWS, 0)
    assert found.names == ("a", "b")
    assert [p.question for p in found.problems] == [p.question for p in ROWS[:8]]
    assert [p.question for p in found.trusted] == [p.question for p in ROWS[8:12]]


@pytest.mark.parametrize("rows", [ROWS[:8], ROWS[8:], [*ROWS[:8:2], *ROWS[8:]], [*ROWS[:8], ROWS[12]]])
def test_one_domain_or_no_trusted_outcome_is_refused(rows):
    with pytest.raises(RewardlabError, match="two domains or more"):
        method.split(rows, 0)


def test_a_solution_without_a_domain_is_refused():
    with pytest.raises(RewardlabError, match="no `domain`"):
        method.split([*ROWS, solution(20)], 0)


# ---- the best of n ---------------------------------------------------------------------------------------------------


class Told:
    """A policy and a model at once: the values at the ends of steps are those of the solution's column `odds`."""

    device = torch.device("cpu")

    def evaluate(self, batch, wants):
        value = torch.zeros(batch.ids.shape)
        for i, (t, _) in enumerate(batch.rows):
            value[i, list(t.steps)] = torch.tensor(t.problem.meta["odds"])
        return Outputs(value=value)


def measured(problems: list[Problem], monkeypatch, aggregate: str = "mean") -> dict[str, float]:
    def written(rows, run):
        return [[replace(row([1] * len(p.meta["odds"]))[0], problem=p)] for p in rows]

    (recipe, model) = registry.build("dreamprm"), Told()
    part = method.best_by_steps(rollout=recipe.rollout, aggregate=aggregate)
    monkeypatch.setattr(type(recipe.rollout), "__call__", lambda self, rows, run: written(rows, run))
    return part.function(problems, Run(policy=model, models={"prm": model}), rollout=recipe.rollout, aggregate=aggregate)


def held_out(prompt: str, odds: list[float], right: bool | None, labels=None) -> Problem:
    return ask(prompt, odds=odds, right=right, labels=labels)


HELD_OUT = [
    # A of the right one: mean 1, sum 3; of the wrong one: mean 1.5, sum 1.5
    held_out("p", [1.0, 1.0, 1.0], True, [1.0, 1.0, 1.0]), held_out("p", [1.5], False, [0.0]),
    # equals share, a solution of unknown outcome is not chosen
    held_out("q", [0.0], True), held_out("q", [0.0], False), held_out("q", [9.0], None),
    # nothing to choose between
    held_out("r", [5.0], False, [None]),
]  # fmt: skip


def test_the_solution_of_the_highest_mean_or_sum_is_chosen(monkeypatch):
    found = measured(HELD_OUT, monkeypatch)
    assert (found["best_of_n"], found["n"], found["pass@1"], found["best"]) == (0.25, 2, 0.5, 1.0)
    assert found["outcome_auc"] == 0.25  # 0 of the first prompt, 1/2 of the second
    assert found["step_auc"] == 0.0  # all three right steps lie below the wrong one
    assert measured(HELD_OUT, monkeypatch, "sum")["best_of_n"] == 0.75


def test_without_outcomes_the_steps_alone_are_measured(monkeypatch):
    found = measured([held_out("p", [2.0, -1.0], None, [1.0, 0.0])], monkeypatch)
    assert found == {"step_auc": 1.0, "solutions": 1.0}
    assert measured(HELD_OUT[2:4], monkeypatch)["step_auc"] == 0.5


# ---- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "moves"), [(0.1, True), (0.0, False)])
def test_a_run_learns_the_weights_after_every_second_update(rate, moves, tmp_path):
    task = Task("solutions", Shuffled(ROWS), [solution(30, right=True), solution(31, right=False)], "final_number")
    recipe = registry.build("dreamprm", {"problems": 4, "every": 2, "meta_lr": rate, "outcomes": 2, "prm_lr": 1e-2})
    done = train(recipe, untrained(), task, steps=2, out=tmp_path / "run", eval_problems=2, device="cpu", patience=0)
    first, second = (json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-2:])
    assert first["weight/a"] == first["weight/b"] == 1.0
    assert (second["weight/a"] != 1.0) is moves
    assert second["weight/a"] + second["weight/b"] == pytest.approx(2.0)
    assert max(map(abs, done.run.memory[method.TABLE].values())) <= rate + 1e-6


def test_rows_of_ones_own_train_any_model(tmp_path):
    """Long solutions in words, of unequal numbers of steps, and a domain whose name is a number."""
    checkpoint(tmp_path / "model", tokenizer(), "Qwen2ForCausalLM", max_position_embeddings=1024)
    words = ["We first add what is bought: 3 + 8 = 11.", "So the total is $\\boxed{11}$.", "**Answer:** 11"]
    rows = [{"prompt": f"Ann has {i} apples. How many?", "steps": words[: 1 + i % 3], "labels": [1, None, 0][: 1 + i % 3],
             "domain": i % 2} for i in range(12)]  # fmt: skip
    rows += [{"prompt": f"Bob has {i} pears. How many?", "steps": words, "right": i % 2 == 0, "trusted": True} for i in range(6)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    done = train(
        "dreamprm", f"hf:{tmp_path / 'model'}", str(tmp_path / "rows.jsonl"), steps=1, out=tmp_path / "run", device="cpu",
        settings={"problems": 6, "every": 1, "meta_lr": 0.1}, eval_problems=4, max_new=6, patience=0, max_missing=1.0,
    )  # fmt: skip
    assert set(done.run.memory[method.TABLE]) == {"0", "1"}
    assert any(done.run.memory[method.TABLE].values())
