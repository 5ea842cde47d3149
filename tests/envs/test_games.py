"""Games in words: TextWorld, BabyAI, and Gymnasium's toy texts, each played by the package that it comes from."""

import copy
import json

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Trajectory, Turn
from rewardlab.envs.actions import LIVE, action_in, named
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from tests.helpers.checkpoints import checkpoint

GAMES = {
    "gym_text:FrozenLake-v1,is_slippery=false": "gymnasium",
    "gym_text:Taxi-v4": "gymnasium",
    "gym_text:Blackjack-v1": "gymnasium",
    "babyai:GoToRedBallGrey": "minigrid",
    "textworld:coin_collector,level=2": "textworld",
}


def say(text):
    return Turn("policy", np.zeros(len(text), np.int64), text=text)


def playing(name):
    pytest.importorskip(GAMES[name])
    task = registry.task(name)
    return task, registry.part("environment", task.environment)


@pytest.fixture(params=GAMES)
def game(request):
    return playing(request.param)


def earned(task, *messages):
    turns = tuple(x for m in messages for x in (say("x"), Turn(None, np.zeros(0, np.int64), text=m.text, reward=m.reward)))
    return registry.verifier(task.verifier)([[Trajectory(task.test[0], turns)]])[0][0].value


def test_an_action_is_read_as_models_write_it():
    assert action_in("I see a wall.\n\nAction: **turn left**") == "turn left"
    assert action_in("<think>go forward?</think><action>\n Turn  Right </action> and so on") == "Turn Right"
    assert action_in("> go north.") == "go north"
    assert action_in("<think>go on") == ""
    assert action_in("  \n") == ""
    assert named("Pick-Up", ("pick up", "drop")) == "pick up"
    assert named("picks up", ("pick up", "drop")) is None


def test_games_are_told_apart_and_held_out_ones_are_never_trained_on(game):
    task, _ = game
    train_keys = {task.train[i].key for i in range(300)}
    assert len(train_keys) == 300
    assert not train_keys & {p.key for p in task.test}
    assert task.train[7] == registry.task(task.source["name"]).train[7]
    with pytest.raises(IndexError):
        task.train[-1]
    sized = registry.task(f"{task.source['name']},size=3")
    assert {sized.train[i].key for i in range(6)} == {sized.train[i].key for i in range(3)}


def test_a_wrong_action_is_answered_and_changes_nothing(game):
    task, env = game
    message, state = env.start(task.test[0], 5)
    again, other = env.start(task.test[0], 6)
    assert (message.text, state) == (again.text, other)
    answer, state = env(state, say("sing a song about it"))
    assert not answer.last
    assert answer.reward == 0.0
    if "textworld" not in task.environment:
        assert "is not an action here" in answer.text
        assert message.text in answer.text


def test_a_state_is_plain_and_goes_on_from_where_it_was_copied(game):
    task, env = game
    _, state = env.start(task.test[0], 0)
    words = {"textworld_game": ("look", "inventory"), "babyai_level": ("turn left", "go forward")}
    first, second = words.get(task.environment, ("down", "right") if "Frozen" in task.name else ("south", "north"))
    if "Blackjack" in task.name:
        first = second = "stick"
    one, state1 = env(state, say(first))
    if one.last:
        LIVE.clear()
        assert env(json.loads(json.dumps(state)), say(first))[0] == one
        return
    branch = copy.deepcopy(state1)
    two, _ = env(state1, say(second))
    LIVE.clear()
    same, _ = env(json.loads(json.dumps(branch)), say(second))
    assert (same.text, same.reward, same.last) == (two.text, two.reward, two.last)


def test_the_lake_is_crossed():
    task, env = playing("gym_text:FrozenLake-v1,is_slippery=false")
    message, state = env.start(task.test[0], 0)
    assert message.text.splitlines() == ["[S]FFF", "FHFH", "FFFH", "HFFG"]
    told = []
    for action in ("down", "<action>Down</action>", "I go on.\nAction: right", "right", "down", "right"):
        message, state = env(state, say(action))
        told.append(message)
    assert [m.last for m in told] == [False] * 5 + [True]
    assert "HFF[G]" in told[-1].text
    assert earned(task, *told) == 1.0
    # a hole ends it without pay
    _, state = env.start(task.test[0], 0)
    one, state = env(state, say("right"))
    two, _ = env(state, say("down"))
    assert two.last
    assert earned(task, one, two) == 0.0


def test_a_taxi_tells_where_everything_is():
    task, env = playing("gym_text:Taxi-v4")
    message, _ = env.start(task.test[0], 0)
    assert "The taxi is in row" in message.text
    assert "the passenger is at" in message.text
    assert "\x1b" not in message.text


def test_what_cannot_be_told_in_words_is_refused():
    pytest.importorskip("gymnasium")
    with pytest.raises(RewardlabError, match="neither numbered nor texts"):
        registry.task("gym_text:Pendulum-v1")
    with pytest.raises(RewardlabError, match="makes no Nowhere-v0"):
        registry.task("gym_text:Nowhere-v0")
    # numbers that are few are shown
    task = registry.task("gym_text:CartPole-v1")
    message, _ = registry.part("environment", "gym_text").start(task.test[0], 0)
    assert message.text.count(".") == 4


WORDS = """
import gymnasium


class Words(gymnasium.Env):
    action_space = gymnasium.spaces.Text(3, charset="abc")
    observation_space = gymnasium.spaces.Text(20, charset="Say word.YesNo")

    def reset(self, *, seed=None, options=None):
        return "Say a word.", {}

    def step(self, action):
        return {"abc": "Yes.", "cab": "No."}[action], float(action == "abc"), action == "abc", False, {}


gymnasium.register("Words-v0", entry_point=Words)
"""


def test_an_environment_of_ones_own_is_registered_by_its_module(tmp_path, monkeypatch):
    """As Gymnasium writes it; a text that its actions are not made of is told to the player, and never reaches it."""
    pytest.importorskip("gymnasium")
    (tmp_path / "own_words_env.py").write_text(WORDS)
    with pytest.raises(RewardlabError, match=r"own_words_env, which is to register .* PYTHONPATH"):
        registry.task("gym_text:own_words_env:Words-v0")
    monkeypatch.syspath_prepend(str(tmp_path))
    task = registry.task("gym_text:own_words_env:Words-v0")
    env = registry.part("environment", task.environment)
    message, state = env.start(task.test[0], 0)
    assert message.text == "Say a word."
    for wrong in ("xyz", "", "abca"):
        message, state = env(state, Turn("policy", None, text=f"Action: {wrong}"))
        assert (message.last, message.reward) == (False, 0.0)
        assert "is not an action here" in message.text
    message, state = env(state, Turn("policy", None, text="Action: abc"))
    assert (message.last, message.reward, message.text) == (True, 1.0, "Yes.\nThis paid 1.")


@pytest.mark.parametrize("level", ["GoToRedBallGrey", "PickupLoc", "OpenDoor"])
def test_an_expert_fulfils_missions_by_the_names_of_actions(level):
    pytest.importorskip("minigrid")
    from rewardlab.envs.babyai import Level, expert, id_of

    for number in (10, 20, 30):
        game, over, paid = Level(id_of(level), number, 64), False, 0.0
        while not over:
            told, pay, over = game.act(expert(game))
            paid += pay
        assert paid == 1.0
        assert told == "You have fulfilled your mission."
    with pytest.raises(RewardlabError, match="did you mean GoToLocal"):
        registry.task("babyai:GoToLokal")


def test_what_is_ahead_and_beside_is_told_in_steps():
    pytest.importorskip("minigrid")
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

    from rewardlab.envs.babyai import _things, _walls

    image = np.ones((7, 7, 3), int)
    image[3, 4] = OBJECT_TO_IDX["door"], COLOR_TO_IDX["red"], STATE_TO_IDX["locked"]
    image[1, 5] = OBJECT_TO_IDX["ball"], COLOR_TO_IDX["grey"], 0
    image[6, 6] = OBJECT_TO_IDX["key"], COLOR_TO_IDX["blue"], 0
    image[2, 6] = OBJECT_TO_IDX["wall"], 0, 0
    # the player looks up from column 3 of the last row
    assert list(_things(image)) == [
        "a locked red door 2 steps forward", "a grey ball 1 step forward and 2 steps left", "a blue key 3 steps right"
    ]  # fmt: skip
    assert list(_walls(image)) == ["a wall 1 step left"]


@pytest.mark.parametrize(("kind", "level"), [("coin_collector", 2), ("treasure_hunter", 2), ("simple", 1)])
def test_a_games_own_solution_earns_all_of_its_score(kind, level):
    pytest.importorskip("textworld")
    from rewardlab.envs.textworld import expert, playing_of

    game = playing_of(kind, level, 10)
    assert "Possible commands: " in game.seen
    assert "$$" not in game.seen
    paid, over = 0.0, False
    while not over:
        told, pay, over = game.act(expert(game))
        paid += pay
    # exactly, since less than 1 is not right
    assert paid == 1.0
    assert ">" not in told


@pytest.mark.parametrize("command", ["go " * 300, "gö nörth", "save", "undo", "QUIT now", "tw-trace-actions"])
def test_what_would_break_the_interpreter_never_reaches_it(command):
    _, env = playing("textworld:coin_collector,level=2")
    task, _ = playing("textworld:coin_collector,level=2")
    _, state = env.start(task.test[0], 0)
    answer, state = env(state, say(command))
    assert answer.text.startswith("A command is a few English words")
    assert not answer.last
    assert "=" in env(state, say("look"))[0].text


@pytest.mark.parametrize(("wrong", "says"), [("cooking", "game of TextWorld"), ("simple,level=9", "level of simple is 1 to 3")])
def test_games_that_are_not_there_are_told(wrong, says):
    pytest.importorskip("textworld")
    with pytest.raises(RewardlabError, match=says):
        registry.task(f"textworld:{wrong}")


def test_grpo_takes_a_step(game, tmp_path):
    task, _ = game
    checkpoint(tmp_path / "model", tokenizer(), "LlamaForCausalLM", max_position_embeddings=4096)
    short = {"steps": 1, "eval_problems": 2, "max_new": 6, "device": "cpu", "patience": 0, "max_missing": 1.0}
    name = f"{task.source['name']},turns=3"
    result = train("grpo", f"hf:{tmp_path / 'model'}", name, settings={"n": 2, "problems": 2}, out=tmp_path / "run", **short)
    assert result.summary["steps"] == 1
    assert f"env={task.environment}()" in json.loads((result.out / "config.json").read_text())["formula"]
