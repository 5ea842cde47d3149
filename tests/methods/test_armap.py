"""ARMAP: near misses and intents by hand, episodes told in hindsight, and a run that is a reward model and plans."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from reward_runs import taught
from rows import Replies

from rewardlab import registry
from rewardlab.api import answer, evaluate, train
from rewardlab.core import Learner, Message, Recipe, Run, Trajectory, ask, environment
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.methods.reward_models import armap as method
from rewardlab.methods.reward_models.armap import explored, in_hindsight, intents, near_miss
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.models.load import load_policy
from rewardlab.models.reward_model import load_reward_model
from rewardlab.rewards.model import model_score
from rewardlab.runs.metrics import read_metrics
from rewardlab.worlds.errands import shop

EPISODE = ["search hat", "1 hat", "click 1", "S, M", "click M", "Bought."]


def test_a_near_miss_has_one_action_of_the_same_turn_of_another_episode():
    others = [["search bag", "1 bag", "click 2", "S"], ["search hat", "none"]]
    found = {tuple(near_miss(EPISODE, others, random.Random(i))) for i in range(60)}
    assert found == {
        ("search bag", *EPISODE[1:]),
        (*EPISODE[:2], "click 2", *EPISODE[3:]),
        # no other episode has a third action: any other action of theirs
        *((*EPISODE[:4], action, "Bought.") for action in ("search bag", "click 2", "search hat")),
    }


def test_where_all_actions_are_the_same_there_is_no_near_miss():
    assert near_miss(["go", "ok", "go", "ok"], [["go", "no"]], random.Random(0)) is None
    assert near_miss(["go"], [], random.Random(0)) is None


@pytest.fixture(scope="module")
def policy():
    return untrained()


@pytest.fixture(scope="module")
def task():
    return registry.task("errands:size=24,test_size=8")


def begun(policy, **models) -> Run:
    return Run(policy, seed=1, max_new=6, models=models)


def actions(t):
    return [turn.text for turn in t.turns if turn.author]


def test_the_near_miss_of_an_explored_episode_differs_from_one_of_its_actions_on(policy, task):
    run, problems = begun(policy), [task.train[i] for i in range(12)]
    found = explored(problems, run, shop(), 3, 1.0)
    assert len(found) > 6
    first = set()
    for t, miss in found:
        own, other = actions(t), actions(miss)
        at = next(i for i, (a, b) in enumerate(zip(own, other, strict=True)) if a.strip() != b.strip())
        first.add(at)
        assert (len(own), len(other), miss.stop) == (3, 3, "end")
        # the state was that of the same episode: what was handed out before is told in both
        assert all(text.strip() in method.last_said(miss) for text in own[:at])
        assert method.last_said(miss) != method.last_said(t)
    assert len(first) > 1


def test_an_intent_is_the_rows_or_the_writers_or_what_the_environment_says_at_last():
    t = Replies([]).write([Trajectory(ask("Q?"))], ["go"])[0]
    t = replace(t, turns=(replace(t.turns[0], author=None, text="Q?"), *t.turns))
    ended = t.plus(replace(t.turns[0], text="Went home."), "end")
    told = replace(ended, problem=ask("Q?", intent="Go home."))
    run = begun(Replies([]), writer=Replies(["Go somewhere.", " "]))
    assert intents([told, ended], run, "") == ["Go home.", "Went home."]
    assert intents([told, t, ended], run, "writer") == ["Go home.", "Go somewhere.", "Went home."]
    assert intents([t], run, "") == intents([ended], run, "", tells=False) == [""]


def test_what_was_written_of_a_row_is_remembered():
    row = Replies([]).write([Trajectory(ask("Q?"))], ["go"])[0]
    run = begun(Replies([]), writer=Replies(["Go."]))
    assert intents([row], run, "writer", tells=False) == ["Go."]
    run.models["writer"] = Replies(["Stay."])
    assert intents([row], run, "writer", tells=False) == ["Go."]
    # an environment's episodes of one problem differ
    assert intents([row], run, "writer") == ["Stay."]


def test_the_writer_reads_the_whole_episode_and_says_nothing_of_one_that_its_context_does_not_hold():
    asked = []

    class Writer(Replies):
        def read(self, trajectories, messages):
            asked.extend(messages)
            return super().read(trajectories, messages)

    class Short(Writer):
        context = 5

    row = Replies([]).write([Trajectory(ask("Q?"))], ["go"])[0]
    row = replace(
        row, turns=(replace(row.turns[0], author=None, text="Q?"), *row.turns, replace(row.turns[0], author=None, text="ok"))
    )
    intents([row], begun(Replies([]), writer=Writer(["Go."])), "writer")
    assert intents([row], begun(Replies([]), writer=Short([])), "writer") == ["ok"]
    assert "An agent did this:\n\nAction: go\nObservation: ok\n\nWrite the instruction" in asked[0][0].text


def start_open(problem, seed):
    return Message("user", "You see a door."), {"n": 0}


@environment(start=start_open)
def doors(state, turn):
    n = state["n"] + 1
    return Message("user", f"Do: {turn.text!r}" if n == 2 else "Another door.", last=n == 2), {"n": n}


def test_both_episodes_stand_under_what_the_first_one_did_and_after_the_same_opening(policy):
    run = begun(policy)
    groups = in_hindsight(env=doors(), turns=2, writer="")([ask("Anything."), ask("Whatever.")], run)
    assert run.metrics["used"] == len(groups) / 2 > 0
    for t, miss in groups:
        assert [m.text for m in t.problem.prompt] == [method.last_said(t), "You see a door."]
        assert t.problem.prompt == miss.problem.prompt
        assert actions(t) != actions(miss)
        # the prompt is read as it stands, and what was decided stays
        (read,) = policy.read([Trajectory(t.problem)], [t.problem.prompt])
        assert t.ids[: len(read)].tolist() == miss.ids[: len(read)].tolist() == read.ids.tolist()


@environment(start=lambda problem, seed: (None, None))
def same(state, turn):
    return Message("user", "Nothing happened.", last=True), None


def test_a_miss_that_did_the_same_teaches_nothing(policy):
    run = begun(policy)
    ((a, b),) = in_hindsight(env=same(), turns=1, writer="")([ask("Anything."), ask("Whatever.")], run)
    assert a is b
    assert run.metrics["used"] == 0


def test_rows_bring_episodes_and_an_error_says_so(policy):
    rows = [
        ask("?", trajectory=EPISODE, intent="Buy a hat, M.", negative=[*EPISODE[:4], "click S", "Bought."]),
        ask("!", trajectory=["search bag", "1 bag"], intent="Find a bag."),
    ]
    groups = in_hindsight(writer="")(rows, begun(policy))
    assert [[g[0].problem.question, actions(g[0]), actions(g[1])] for g in groups] == [
        ["Buy a hat, M.", EPISODE[::2], ["search hat", "click 1", "click S"]],
        ["Find a bag.", ["search bag"], ["search hat"]],
    ]
    with pytest.raises(RewardlabError, match="--env"):
        in_hindsight()([ask("?")], begun(policy))
    with pytest.raises(RewardlabError, match="plans in an environment"):
        registry.build("armap", {"reward_model": "model:x"})


SMALL = {"max_new": 6, "eval_problems": 4, "device": "cpu", "checkpoint_every": 0}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, task):
    folder = tmp_path_factory.mktemp("armap") / "run"
    settings = {"problems": 6, "reward_lr": 1e-2, "env": shop(), "turns": 3, "writer": "", "n": 2}
    done = train("armap", "untrained", task, steps=8, out=folder, settings=settings, **SMALL)
    return done, folder


@pytest.mark.slow
def test_a_run_measures_its_plans_and_learns_to_tell_episodes_apart(trained):
    done, folder = trained
    assert {"best", "tree", "random", "greedy", "pair_accuracy"} <= done.summary["after"].keys()
    losses = [line["reward/loss"] for line in read_metrics(folder) if "reward/loss" in line]
    assert len(losses) == 8
    assert np.isfinite(losses).all()
    assert evaluate(str(folder), problems=4, device="cpu")["n"] == 4


def test_the_run_scores_whole_episodes_as_in_training(trained, task):
    _, folder = trained
    policy = load_policy("untrained", "cpu", "float32", None, task)
    run = begun(policy)
    # that end in an action: whoever scores an episode reads no answer to the last one
    rows = [
        ask("?", trajectory=EPISODE[:5], intent="Buy a hat, M.", negative=[*EPISODE[:4], "click S"]),
        ask("!", trajectory=["search bag"], intent="Find a bag."),
    ]
    groups = in_hindsight(writer="")(rows, run)
    run.models["reward"] = learner_model(Learner("reward", str(folder), Recipe()), policy)
    own = [end_values(run.models["reward"], group).tolist() for group in groups]
    name = f"model:{folder}"
    # as the policy, where by default it is read in bfloat16
    run.models[name] = load_reward_model(name, "cpu", "float32")
    read = [[s.value for s in row] for row in model_score(model=name)(groups, run)]
    for mine, theirs in zip(own, read, strict=True):
        assert theirs == pytest.approx(mine, abs=1e-4)
    assert len({round(x, 3) for row in own for x in row}) > 1


@pytest.mark.parametrize("plan", ["best", "reflection", "tree"])
def test_it_plans_with_a_trained_model(trained, task, plan):
    settings = {"env": shop(), "turns": 3, "n": 2, "reward_model": f"model:{trained[1]}", "plan": plan}
    recipe = registry.build("armap", settings)
    assert not recipe.learns
    found = answer(recipe, "untrained", task, problems=3, max_new=6, device="cpu")
    assert (found["n"], found["replies"]) == (3, 1 if plan == "reflection" else 2)


def test_it_learns_from_a_users_rows_and_another_model_may_write_the_intents(tmp_path):
    after, scores = taught("armap", tmp_path, ["It boils.", "go to kitchen"], steps=30, reward_lr=1e-2, writer="copy:policy")
    assert after["pair_accuracy"] > 0.5
    assert scores[0] != scores[1]
