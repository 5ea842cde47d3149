"""Environments in a Python file of the user's own."""

import pytest

import rewardlab
from rewardlab import registry
from rewardlab.core import Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import read_environment
from rewardlab.rewards.user.functions import find

MINE = """
from rewardlab.core import Message, environment


def logged(episodes, times):
    return {"played": len(episodes) * times}


@environment(start=lambda problem, seed, times: (None, 0), waits=True, logged=logged)
def mine(state, turn, *, times=2):
    return Message("user", "more", last=state + 1 == times), state + 1


@environment(start=lambda problem, seed: (None, 0))
def plain(state, turn):
    return None, state
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path / "mine.py"


def test_what_an_environment_of_the_users_own_says_of_itself_holds(file):
    env = read_environment(f"{file}:mine(times=3)")
    assert env.waits
    assert env.logged(["an episode", "another"]) == {"played": 6}
    message, state = env(env.start(ask("?"), 0)[1], Turn("policy", None, text="hello"))
    assert (message.text, message.last, state) == ("more", False, 1)
    plain = read_environment(f"{file}:plain")
    assert not plain.waits
    assert plain.logged(["an episode"]) == {}


LATER = """
import asyncio
from rewardlab.core import Message, environment


async def begin(problem, seed, *, greeting):
    await asyncio.sleep(0)
    return Message("user", greeting), 0


@environment(start=begin)
async def later(state, turn, *, greeting="hello"):
    await asyncio.sleep(0)
    if turn.text == "break":
        raise ValueError("broken")
    return Message("user", turn.text.upper()), state + 1
"""


@pytest.mark.parametrize("how", ["named", "made"])
def test_an_asynchronous_environment_is_waited_for(tmp_path, how):
    (tmp_path / "later.py").write_text(LATER)
    if how == "named":
        env = read_environment(f"{tmp_path}/later.py:later(greeting='hi')")
    else:
        env = find(tmp_path / "later.py", "later", "environment")(greeting="hi")
    message, state = env.start(ask("?"), 0)
    assert (message.text, state) == ("hi", 0)
    message, state = env(state, Turn("policy", None, text="yes"))
    assert (message.text, state) == ("YES", 1)
    with pytest.raises(RewardlabError, match=r"later of .*later[.]py, line 15: ValueError: broken \(the place\)"):
        env(state, Turn("policy", None, text="break"), "the place")


def test_of_a_file_the_only_environment_is_taken_and_several_are_listed(tmp_path, file):
    (tmp_path / "later.py").write_text(LATER + "from rewardlab.envs.search import search\n")
    assert read_environment(f"{tmp_path}/later.py").settings["function"] == "later"
    assert read_environment(f"{tmp_path}/later.py(greeting='hi')").start(ask("?"), 0)[0].text == "hi"
    with pytest.raises(
        RewardlabError, match=r"which environment of .*mine.py[?] It has 2; give one of mine.py:mine, mine.py:plain"
    ):
        read_environment(str(file))
    (tmp_path / "none.py").write_text("def step(state, turn):\n    return None, state\n")
    with pytest.raises(RewardlabError, match=r"none.py has no environment in it: decorate a function with @rewardlab"):
        read_environment(f"{tmp_path}/none.py")
    with pytest.raises(RewardlabError, match="there is no environment file"):
        read_environment(f"{tmp_path}/missing.py")


BROKEN = """
from rewardlab.core import environment


@environment(start=lambda problem, seed: (None, 0))
def broken(state, turn):
    return 1 // 0


@environment(start=lambda problem, seed: (None, 0))
def leaves(state, turn):
    raise SystemExit(4)


@environment(start=lambda problem, seed: (None, 0))
def untold(state, turn):
    return "hello"


@environment(start=lambda problem, seed: exit(5))
def never(state, turn):
    return None, state
"""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("broken", r"broken of .*broken[.]py, line 7: ZeroDivisionError: .*\(problem 'Who[?]', turn 3\)"),
        ("leaves", r"leaves of .*broken[.]py, line 12: SystemExit: 4 \(problem 'Who[?]', turn 3\)"),
        ("untold", r"untold must return a message.* it returned 'hello' \(problem 'Who[?]', turn 3\)"),
        ("never", r"never of .*broken[.]py, line 20: SystemExit: 5 \(problem 'Who[?]', its start\)"),
    ],
)
def test_an_error_in_a_users_file_names_the_line_and_where_the_episode_was(tmp_path, name, says):
    (tmp_path / "broken.py").write_text(BROKEN)
    env = read_environment(f"{tmp_path / 'broken.py'}:{name}")
    with pytest.raises(RewardlabError, match=says):
        env(env.start(ask("Who?"), 0)[1], Turn("policy", None, text="hello"), "problem 'Who?', turn 3")


@pytest.mark.parametrize(
    ("step", "start", "says"),
    [
        ("state", "problem, seed", r"game of .* is called with two arguments: write def game\(state, turn\)"),
        ("state, turn, run", "problem, seed", r"write def game\(state, turn\)"),
        ("state, turn", "problem", r"begin of .*write def begin\(problem, seed\)"),
    ],
)
def test_an_environment_that_is_called_otherwise_is_refused_when_it_is_read(tmp_path, step, start, says):
    (file := tmp_path / "own.py").write_text(OWN.format(step=step, start=start, begins="None, {}"))
    with pytest.raises(RewardlabError, match=says):
        read_environment(f"{file}:game")


OWN = """
from rewardlab import Message, environment
def begin({start}): return {begins}
@environment(start=begin)
def game({step}): return None, state
"""


@pytest.mark.parametrize("step", ["state, turn", "*both", "state, turn, place=0"])
def test_an_environment_may_take_its_two_arguments_in_any_way(tmp_path, step):
    (file := tmp_path / "own.py").write_text(OWN.format(step=step, start="problem, seed", begins="None, {}"))
    assert read_environment(f"{file}:game").name == "from_file"


def test_an_environment_that_cannot_begin_is_refused_before_a_model_is_looked_for(tmp_path):
    (file := tmp_path / "own.py").write_text(
        OWN.format(step="state, turn", start="problem, seed", begins="problem.meta['map'], {}")
    )
    rows = [{"prompt": f"Go {i}", "answer": "x"} for i in range(4)]
    with pytest.raises(RewardlabError, match=r"begin.*KeyError: 'map'|KeyError.*map"):
        rewardlab.train("grpo", "no/such-model", rows, settings={"env": f"{file}:game"}, out=tmp_path / "run")


@pytest.mark.parametrize(("start", "refused"), [("problem, seed", True), ("problem, seed, *, upto", False), ("*at, **rest", False)])
def test_the_start_of_an_environment_takes_its_settings(tmp_path, start, refused):
    (file := tmp_path / "own.py").write_text(OWN.format(step="state, turn, *, upto=2", start=start, begins="None, {}"))
    if not refused:
        assert read_environment(f"{file}:game(upto=3)").start(ask("?"), 0) == (None, {})
        return
    with pytest.raises(
        RewardlabError, match=r"begin of .*own.py begins .* of game .* no upto: write def begin\(problem, seed, \*, upto"
    ):
        read_environment(f"{file}:game")


@pytest.mark.parametrize("which", ["reward=1.0", "last=True"])
def test_an_episode_does_not_begin_with_a_reward_or_its_end(tmp_path, which):
    """No policy has decided anything yet: such a reward would be paid to nobody."""
    begins = f"Message('user', 'Go.', {which}), {{}}"
    (file := tmp_path / "own.py").write_text(OWN.format(step="state, turn", start="problem, seed", begins=begins))
    with pytest.raises(RewardlabError, match=rf"game of .* begins an episode with a message that has (the reward 1.0|{which})"):
        read_environment(f"{file}:game").start(ask("?"), 0)


def test_an_environment_is_named_by_a_path_too_and_nothing_else_is_taken_for_one(tmp_path):
    (file := tmp_path / "own.py").write_text(OWN.format(step="state, turn", start="problem, seed", begins="None, {}"))
    assert registry.build("grpo", {"env": file}) == registry.build("grpo", {"env": f"{file}:game"})
    with pytest.raises(RewardlabError, match=r"the environment game was not called: write game\(...\)"):
        registry.build("grpo", {"env": find(file, "game", "environment")})
    for method in ("grpo", "igpo"):
        with pytest.raises(RewardlabError, match=r"env must be an environment .* or name one \(FILE.py:NAME\), not <class 'dict'>"):
            registry.build(method, {"env": dict})
