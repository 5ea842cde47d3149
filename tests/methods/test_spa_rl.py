"""SPA-RL: an episode's reward divided among its turns by a model that learns from their sum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Outputs, Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.methods.credit.spa_rl import (
    WATCHED,
    check,
    delayed_error,
    executed,
    gold_searches,
    progress_found,
    spa_rl,
    step_progress,
)
from rewardlab.models.embedded import untrained
from rewardlab.objectives.progress import turns_sum_error
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


def episode(*turns: str, problem=None, tokens: int = 2) -> Trajectory:
    """A prompt, and replies and messages in turn, of two tokens each."""
    ids = np.zeros(tokens, np.int64)
    made = [Turn(None if k % 2 else "policy", ids, text=text) for k, text in enumerate(turns)]
    return Trajectory(problem or ask("?"), (Turn(None, ids), *made), "end")


def test_the_loss_by_hand():
    # two turns that end at 2 and 5, one that ends at 1, and no verdict
    rows = [("rddrrd", {"correct": outcome(1.0)}), ("rd", {"correct": outcome(0.0)}), ("rdd", {"correct": outcome(None)})]
    batch = batch_of([rows])
    value = torch.tensor([[9.0, 9, 0.5, 9, 9, 0.2], [9, 0.3, 9, 9, 9, 9], [9, 9, 0.7, 9, 9, 9]])
    loss = turns_sum_error()(Outputs(value=value), batch, Run(policy=None))
    assert loss.tolist() == pytest.approx([0.09, 0.09, 0.0])


def test_the_critic_of_the_outcome_foretells_it_from_the_prompt_and_from_each_turn():
    rows = [("rrddrd", {"correct": outcome(1.0)}), ("rd", {"correct": outcome(0.0)}), ("rd", {"correct": outcome(None)})]
    value = torch.tensor([[9.0, 0.5, 9, 0.75, 9, 1.25], [0.5, 0.25, 9, 9, 9, 9], [0.5, 0.5, 9, 9, 9, 9]])
    loss = delayed_error()(Outputs(value=value), batch_of([rows]), Run(policy=None))
    # (.25 + .0625 + .0625) / 3;  (.25 + .0625) / 2;  no verdict
    assert loss.tolist() == pytest.approx([0.125, 0.15625, 0.0])


def test_what_turns_are_paid():
    rows = [
        ("rddrrd", {"correct": outcome(1.0), "executed": steps({2: 0.0, 5: 1.0}, weight=0.0)}),
        ("rd", {"correct": outcome(None), "executed": steps({1: 1.0}, weight=0.0)}),
        ("rdd", {"correct": outcome(0.0), "executed": steps({2: 1.0}, weight=0.0)}),
    ]
    value = [[9.0, 9, 0.5, 9, 9, 0.25], [9.0, 0.3], [9.0, 9, -0.125]]
    batch = batch_of([rows], {"progress.value": value})
    found = step_progress(alpha=2.0, beta=0.5)(batch.reward, batch, Run(policy=None))
    # the outcome is not paid beside: 2 * .5;  2 * .25 + .5;  no verdict;  2 * -.125 + .5
    assert found[0].tolist() == pytest.approx([0, 0, 1.0, 0, 0, 1.0])
    assert not found[1].any()
    assert found[2].tolist() == pytest.approx([0, 0, 0.25, 0, 0, 0])


def test_the_advantages_of_ppo_on_them():
    row = ("rdrd", {"correct": outcome(1.0), "executed": steps({1: 1.0, 3: 1.0}, weight=0.0)})
    other = ("rd", {"correct": outcome(0.0), "executed": steps({1: 1.0}, weight=0.0)})
    columns = {"progress.value": [[0.0, 0.75, 0, 0.25], [0.0, 0.0]], "value": [[0.5, 0, 0.25, 0], [0.5, 0.0]]}
    batch = batch_of([[row], [other]], columns)
    recipe = spa_rl(registry.build("ppo", {"beta": 0.0, "lam": 1.0}))
    found = recipe.credit(batch.reward, batch, Run(policy=None))
    # paid 1.25 .75 and .5; less V .5 .25 and .5: 1.25 + .75 - .5 = 1.5, .75 - .25 = .5, 0;  whitened over the three
    raw = np.array([1.5, 0.5, 0.0])
    assert found[batch.mask].tolist() == pytest.approx(((raw - raw.mean()) / raw.std(ddof=1)).tolist(), abs=1e-4)


def test_what_could_be_done():
    said = executed()([[episode("Search: a", "A is b.", "Search: c", "Nothing found.", "Answer: b")]])[0][0]
    assert said.steps == ((3, 1.0), (7, 0.0), (11, 1.0))
    assert executed(refused=("A is",))([[episode("x", "A is b.", "y")]])[0][0].steps == ((3, 0.0), (7, 1.0))
    # a tool's error, beside the result of another, is told as such; a document may hold the same words
    tools = episode("x", "a song\n\nerror: KeyError: 'x'", "y", "<information>\nDoc 1: Nothing Compares 2 U\n</information>", "z")
    assert executed()([[tools]])[0][0].steps == ((3, 0.0), (7, 1.0), (11, 1.0))
    # a reply over two updates is one turn
    ids = np.zeros(2, np.int64)
    twice = Trajectory(
        ask("?"), (Turn(None, ids), Turn("policy", ids), Turn("policy", ids), Turn(None, ids, text="Nothing happens.")), "end"
    )
    assert executed()([[twice]])[0][0].steps == ((5, 0.0),)


def test_a_base_without_a_critic_is_refused():
    with pytest.raises(RewardlabError, match=r"grpo and spa_rl cannot be stacked: .* a learner of this name, as ppo has"):
        registry.build("grpo+spa-rl")


def test_gold_searches_are_those_of_the_chain_in_its_order():
    problem = ask("?", "c", searches=["a boss", "b friend"])
    talk = ("Search: a friend", "..", "Search: a boss", "..", "Search: a boss", "..", "Search: b friend", "..", "Answer: c")
    assert [p for _, p in gold_searches()([[episode(*talk, problem=problem)]])[0][0].steps] == [0, 1, 0, 1]
    assert gold_searches()([[episode("Answer: c", problem=problem)]])[0][0].missing
    assert gold_searches()([[episode("Search: a")]])[0][0].missing


@reward(steps=True)
def first_turn(trajectory):
    return [(end, float(k == 0)) for k, end in enumerate(trajectory.ends)]


@reward
def verify(trajectory):
    return Score(float(trajectory.reply == "yes"))


class Values:
    """A model whose value of a position is written down by the number of the row."""

    device = torch.device("cpu")

    def __init__(self, *rows):
        self.rows = rows

    def evaluate(self, batch, wants):
        return Outputs(value=torch.tensor(self.rows)[:, : batch.ids.shape[1]])


def test_the_measure_by_hand():
    @rollout
    def given(problems, run):
        return [[episode("a", "m", "yes", tokens=1)], [episode("a", "m", "no", tokens=1)]]

    # positions: prompt, turn, message, turn
    progress = Values([0.0, 0.9, 0.0, 0.1], [0.0, 0.2, 0.0, 0.3])
    critic = Values([0.5, 0.25, 0.0, 0.75], [0.5, 0.75, 0.0, 0.5])
    run = Run(policy=None, models={"progress": progress, "critic": critic}, verify=verify())
    found = progress_found(rollout=given(), truth=first_turn())([ask("?")], run)
    # first turns .9 .2 against .1 .3: three of four pairs;  rises -.25 .25 against .5 -.25: one pair, and a tie
    assert found["auc.progress"] == 0.75
    assert found["auc.critic"] == 0.375
    assert found["calibration"] == pytest.approx(1.0)
    assert (found["pass@1"], found["n"]) == (0.5, 4.0)


def test_the_model_learns_to_divide_what_its_turns_read():
    task = registry.task("facts:hops=1,test_size=2")
    recipe = spa_rl(ppo(beta=0.0), turns=2, progress_lr=1e-2, watched=True).but(problems=4)
    policy = untrained(hidden=32, layers=1)
    models = {name: policy.copy(name, value_head=True) for name in ("critic", "progress", WATCHED)}
    run = Run(policy, models=models, max_new=3, seed=1, verify=verify())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert np.isfinite(run.metrics["progress/loss"])
    # what progress is compared with learns at the same rate, and of the outcome, of which nothing is paid to the critic
    assert np.isfinite(run.metrics[f"{WATCHED}/loss"])
    assert run.metrics[f"{WATCHED}/lr"] == run.metrics["progress/lr"]
    assert [x.name for x in spa_rl().also] == ["critic", "progress"]
    assert f"critic='{WATCHED}'" in str(check.by)
    assert "progress.value" in recipe.needs
    # the critic learns what the policy is paid
    critic = next(x for x in recipe.also if x.name == "critic")
    assert str(critic.recipe.credit).startswith("step_progress")
