"""Environments of the package verifiers, written here as packages of others would be, and loaded by the real package."""

import json
import math
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import numpy as np
import pytest

pytest.importorskip("verifiers", reason="the package verifiers is not installed: pip install 'rewardlab[verifiers]'")

from rewardlab import registry
from rewardlab.api import evaluate, plan, train
from rewardlab.core import Trajectory, Turn, ask
from rewardlab.envs.verifiers.episodes import LIVE
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from tests.helpers.checkpoints import checkpoint

NEW = tuple(map(int, metadata.version("verifiers").split(".")[:2])) >= (0, 4)
CLASSIC = {
    "vf_sums": """
import verifiers as vf
from datasets import Dataset


def right(parser, completion, answer):
    return float(parser.parse_answer(completion) == answer)


async def short(completion):
    return 1.0 / len(completion[-1]["content"])


def load_environment(rows=20):
    parser = vf.XMLParser(["answer"])
    data = [{"question": f"What is {i} + 3?", "answer": str(i + 3)} for i in range(rows)]
    held = [{"question": f"What is {i} + 5?", "answer": str(i + 5)} for i in range(4)]
    rubric = vf.Rubric(funcs=[right, short], weights=[1.0, 0.5], parser=parser)
    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(data), eval_dataset=Dataset.from_list(held), system_prompt="Add.", parser=parser, rubric=rubric
    )
""",
    "vf_guess": """
import random

import verifiers as vf
from datasets import Dataset


class Guess(vf.MultiTurnEnv):
    async def setup_state(self, state):
        state["secret"] = random.randint(0, 9)
        return state

    @vf.stop
    async def found(self, state):
        return state.get("found", False)

    async def env_response(self, messages, state, **kwargs):
        said = "".join(c for c in messages[-1].content or "" if c.isdigit())
        if said and int(said) == state["secret"]:
            state["found"] = True
            state["final_env_response"] = [vf.UserMessage(content="Found.")]
            return []
        told = "Say a number." if not said else "Higher." if int(said) < state["secret"] else "Lower."
        return [vf.UserMessage(content=told)]


def found(state):
    return float(state.get("found", False))


def fastest(states):
    turns = [len(state["trajectory"]) for state in states]
    return [float(n == min(turns)) for n in turns]


def load_environment(max_turns=8, groups=False):
    data = Dataset.from_list([{"question": f"Game {i}: guess a number, 0 to 9.", "answer": "7"} for i in range(30)])
    funcs, weights = ([found, fastest], [1.0, 0.25]) if groups else ([found], [1.0])
    return Guess(dataset=data, rubric=vf.Rubric(funcs=funcs, weights=weights), max_turns=max_turns)
""",
    "vf_tools": '''
import verifiers as vf
from datasets import Dataset


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Logged(vf.StatefulToolEnv):
    async def setup_state(self, state, **kwargs):
        state["log"] = []
        return state

    def update_tool_args(self, tool_name, tool_args, messages, state, **kwargs):
        return {**tool_args, "log": state["log"]}


def note(text: str, log: list) -> str:
    """Write a note."""
    log.append(text)
    return f"{len(log)} notes"


def right(completion, answer):
    return float(answer in (completion[-1]["content"] or ""))


def noted(state):
    return float(len(state.get("log", [])))


def load_environment(stateful=False):
    data = Dataset.from_list([{"question": f"What is {i} + 40?", "answer": str(i + 40)} for i in range(20)])
    if not stateful:
        return vf.ToolEnv(dataset=data, tools=[add], max_turns=4, rubric=vf.Rubric(funcs=[right]))
    env = Logged(dataset=data, tools=[], max_turns=4, rubric=vf.Rubric(funcs=[noted]))
    env.add_tool(note, args_to_skip=["log"])
    return env
''',
    "vf_broken": """
import verifiers as vf
from datasets import Dataset


def judged(completion):
    raise ConnectionError("the judge is down")


def load_environment(key=None):
    if key is None:
        raise ValueError("give key=NAME, the variable with the judge's key")
    data = Dataset.from_list([{"question": f"{i}?", "answer": ""} for i in range(20)])
    return vf.SingleTurnEnv(dataset=data, rubric=vf.Rubric(funcs=[judged]))
""",
}
TASKSETS = {
    "vf_sums": """
import verifiers.v1 as vf


class Data(vf.TaskData):
    answer: str


class Sum(vf.Task[Data, vf.State, vf.TaskConfig]):
    @vf.reward
    async def right(self, trace) -> float:
        return float(f"<answer>{self.data.answer}</answer>" in trace.branches[-1].messages[-1].content)

    @vf.reward(weight=0.5)
    async def short(self, trace) -> float:
        return 1.0 / len(trace.branches[-1].messages[-1].content)


class Config(vf.TasksetConfig):
    rows: int = 20


class Sums(vf.Taskset[Sum, Config]):
    def load(self):
        for i in range(self.config.rows):
            data = Data(prompt=f"What is {i} + 3?", system_prompt="Add.", answer=str(i + 3))
            yield Sum(data, self.config.task)


__all__ = ["Sums"]
""",
    "vf_guess": """
import random

import verifiers.v1 as vf


class Data(vf.TaskData):
    answer: str


class Game(vf.Task[Data, vf.State, vf.TaskConfig]):
    pass


class Games(vf.Taskset[Game, vf.TasksetConfig]):
    def load(self):
        for i in range(30):
            yield Game(Data(prompt=f"Game {i}: guess a number, 0 to 9.", answer="7"), self.config.task)


class GuessConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(max_turns=8)


class Guess(vf.Env[GuessConfig]):
    async def run(self, task, agents):
        secret, found = random.randint(0, 9), False
        async with agents.player.interaction(task) as talk:
            turn = await talk.turn()
            while not turn.terminated:
                said = "".join(c for c in turn.last_reply if c.isdigit())
                if said and int(said) == secret:
                    found = True
                    break
                turn = await talk.turn("Say a number." if not said else "Higher." if int(said) < secret else "Lower.")
        talk.trace.record_reward("found", float(found), 1.0)


__all__ = ["Games", "Guess"]
""",
    "vf_tools": '''
import verifiers.v1 as vf


class Data(vf.TaskData):
    answer: str


class Tools(vf.Toolset[vf.ToolsetConfig]):
    @vf.tool
    async def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        return a + b


class Settings(vf.TaskConfig):
    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class Sum(vf.Task[Data, vf.State, Settings]):
    @vf.reward
    async def right(self, trace) -> float:
        return float(self.data.answer in (trace.branches[-1].messages[-1].content or ""))

    @classmethod
    def toolsets(cls, config):
        return [Tools(config.tools)]


class Config(vf.TasksetConfig):
    task: Settings = Settings()


class Sums(vf.Taskset[Sum, Config]):
    def load(self):
        for i in range(20):
            yield Sum(Data(prompt=f"What is {i} + 40?", answer=str(i + 40)), self.config.task)


__all__ = ["Sums"]

if __name__ == "__main__":
    Tools.run()
''',
    "vf_broken": """
import verifiers.v1 as vf


class Asked(vf.Task[vf.TaskData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def judged(self, trace) -> float:
        raise ConnectionError("the judge is down")


class Config(vf.TasksetConfig):
    key: str


class Questions(vf.Taskset[Asked, Config]):
    def load(self):
        for i in range(20):
            yield Asked(vf.TaskData(prompt=f"{i}?"), self.config.task)


__all__ = ["Questions"]
""",
}
only_classic = pytest.mark.skipif(NEW, reason="an environment of the interface of verifiers < 0.4")


@pytest.fixture(scope="module", autouse=True)
def environments(tmp_path_factory):
    folder = tmp_path_factory.mktemp("environments")
    for name, text in (TASKSETS if NEW else CLASSIC).items():
        (folder / f"{name}.py").write_text(text)
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(folder))
    # tool servers of tasksets are processes of their own
    patch.setenv("PYTHONPATH", str(folder), prepend=":")
    yield
    patch.undo()
    for name in CLASSIC:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    checkpoint(folder, tokenizer(), "LlamaForCausalLM", max_position_embeddings=2048)
    return f"hf:{folder}"


SHORT = {"steps": 1, "eval_problems": 2, "max_new": 6, "device": "cpu", "patience": 0, "max_missing": 1.0}
SETTINGS = {"n": 2, "problems": 2}


def say(text):
    return Turn("policy", np.zeros(len(text), np.int64), text=text)


def played(task, problem, *replies):
    """The messages that answer these replies, and the trajectory."""
    env = registry.part("environment", task.environment)
    message, state = env.start(problem, 0)
    turns, messages = [Turn(None, np.zeros(1, np.int64))], [message]
    for reply in replies:
        message, state = env(state, say(reply))
        turns += [say(reply), Turn(None, np.zeros(1, np.int64))]
        messages.append(message)
    return messages, Trajectory(problem, tuple(turns))


def judged(task, *trajectories):
    return registry.verifier(task.verifier)([list(trajectories)])[0]


def secret_of(task, problem):
    """The number that this problem's game hides, by asking."""
    for number in range(10):
        messages, _ = played(task, problem, str(number))
        if messages[1] is None or messages[1].last:
            return number
    raise AssertionError("no number is right")


def test_rows_become_problems_and_the_rubric_is_the_reward():
    task = registry.task("verifiers:vf_sums,rows=12")
    problem = task.train[0]
    assert [(m.role, m.text) for m in problem.prompt] == [("system", "Add."), ("user", problem.question)]
    assert json.loads(problem.meta["options"]) == {"rows": 12}
    right = f"<answer>{problem.answer}</answer>"
    _, one = played(task, problem, right)
    _, other = played(task, problem, "who knows")
    well, badly = judged(task, one, other)
    assert well.value == pytest.approx(1 + 0.5 / len(right))
    assert badly.value == pytest.approx(0.5 / len("who knows"))
    assert {name: t.value for name, t in well.terms.items() if t.weight is None}.items() >= {
        "verifiers_reward.right": 1.0, "verifiers_reward.short": 1 / len(right)
    }.items()  # fmt: skip
    # the eval dataset, and without one the rows that are held out
    questions = {p.key for p in task.test}
    assert not questions & {task.train[i].key for i in range(12)}
    assert len(task.test) == (4 if not NEW else 12 - len(task.train))


def test_an_episode_is_answered_and_can_be_resumed_from_any_point():
    task = registry.task("verifiers:vf_guess")
    env, problem = registry.part("environment", task.environment), task.train[0]
    secret = secret_of(task, problem)
    wrong = (secret + 1) % 10
    before = random.getstate()
    _, state = env.start(problem, 1)
    first, one = env(state, say(str(wrong)))
    assert first.text == ("Lower." if wrong > secret else "Higher.")
    second, two = env(one, say("hm"))
    assert second.text == "Say a number."
    # from a copy, as a run that is resumed has it: no program is live any more
    LIVE.clear()
    last, _ = env(json.loads(json.dumps(one)), say(str(secret)))
    assert last is None or (last.last and last.text == "Found.")
    again, _ = env(json.loads(json.dumps(two)), say(str(wrong)))
    assert again.text == first.text
    assert random.getstate() == before


def test_episodes_beside_one_another_go_as_each_goes_alone():
    task = registry.task("verifiers:vf_guess")
    env = registry.part("environment", task.environment)
    assert env.waits

    def played(i):
        _, state = env.start(task.train[i], 0)
        told = []
        for text in ("3", "hm", "6"):
            message, state = env(state, say(text))
            told.append(message.text if message else None)
            if message is None or message.last:
                break
        return told

    alone = [played(i) for i in range(6)]
    before = random.getstate()
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(played, range(6))) == alone
    assert random.getstate() == before


def test_an_episode_that_is_cut_is_judged_as_it_stands():
    task = registry.task("verifiers:vf_guess")
    problem = task.train[0]
    secret = secret_of(task, problem)
    _, found = played(task, problem, "no", str(secret))
    _, cut = played(task, problem, "no")
    assert [s.value for s in judged(task, found, cut)] == [1.0, 0.0]
    # judged again, where no program is live
    assert [s.value for s in judged(task, found, cut)] == [1.0, 0.0]


@only_classic
def test_functions_that_compare_a_group_see_all_of_it():
    task = registry.task("verifiers:vf_guess,groups=true")
    problem = task.train[0]
    secret = secret_of(task, problem)
    _, fast = played(task, problem, str(secret))
    _, slow = played(task, problem, "no", str(secret))
    assert [s.value for s in judged(task, fast, slow)] == [1.25, 1.0]


def test_tools_are_made_known_called_and_answered():
    task = registry.task("verifiers:vf_tools")
    problem = task.train[0]
    a = int(problem.answer) - 40
    tool = "tools_add" if NEW else "add"
    call = f'<tool_call>{{"name": "{tool}", "arguments": {{"a": {a}, "b": 40}}}}</tool_call>'
    messages, whole = played(task, problem, f"I add them. {call}", f"It is {problem.answer}.")
    told = "\n".join([*(m.text for m in problem.prompt), *(m.text for m in messages[:1] if m)])
    assert "Add two numbers." in told
    assert f'"{tool}"' in told
    assert (messages[1].role, messages[1].results) == ("tool", (str(problem.answer),))
    assert messages[2] is None
    _, without = played(task, problem, "It is 3.")
    assert [s.value for s in judged(task, whole, without)] == [1.0, 0.0]


@only_classic
def test_tools_with_a_state_keep_it_over_the_episode():
    task = registry.task("verifiers:vf_tools,stateful=true")
    call = '<tool_call>{"name": "note", "arguments": {"text": "x"}}</tool_call>'
    messages, episode = played(task, task.train[0], call, call, "done")
    assert "2 notes" in messages[2].text
    assert '"log"' not in task.train[0].prompt[0].text
    assert judged(task, episode)[0].value == 2.0


def test_what_is_missing_is_told_and_what_fails_has_no_verdict():
    with pytest.raises(RewardlabError, match="no environment 'vf_nowhere'" if not NEW else "vf_nowhere"):
        registry.task("verifiers:vf_nowhere")
    with pytest.raises(RewardlabError, match="key"):
        registry.task("verifiers:vf_broken")
    task = registry.task("verifiers:vf_broken,key=K")
    _, episode = played(task, task.train[0], "yes")
    (score,) = judged(task, episode)
    assert score.value is None
    assert "the judge is down" in score.why
    with pytest.raises(RewardlabError, match="--task verifiers:NAME"):
        registry.part("environment", "verifiers_episode").start(ask("?"), 0)


@pytest.mark.parametrize("name", ["vf_sums", "vf_guess", "vf_tools"])
def test_grpo_takes_a_step(name, model, tmp_path):
    if NEW and name == "vf_tools":
        pytest.skip("each tool server is a process that takes seconds: they are tried above")
    result = train("grpo", model, f"verifiers:{name}", settings=SETTINGS, out=tmp_path / "run", **SHORT)
    steps = [json.loads(line) for line in (result.out / "metrics.jsonl").read_text().splitlines()]
    assert steps[-1]["step"] == 1
    assert all(math.isfinite(x) for key, x in steps[-1].items() if "loss" in key or "reward" in key)
    assert any("verifiers_reward" in key or "correct." in key for step in steps for key in step), steps[-1]
    assert result.summary["steps"] == 1


@pytest.mark.parametrize("method", ["igpo", "otc_po"])
def test_a_method_of_turns_plays_the_task_in_place_of_its_own_environment(method, model, tmp_path):
    settings = {"n": 2, "turns": 3, "problems": 2}
    result = train(method, model, "verifiers:vf_guess", settings=settings, out=tmp_path / "run", **SHORT)
    formula = json.loads((result.out / "config.json").read_text())["formula"]
    assert "env=verifiers_episode()" in formula
    rollouts = (result.out / "rollouts.jsonl").read_text() if (result.out / "rollouts.jsonl").exists() else "Say a number."
    assert "Say a number." in rollouts or "Higher." in rollouts or "Lower." in rollouts


def test_it_is_planned_and_measured_as_it_is_trained(model):
    assert (
        "interactive(env=verifiers_episode()" in plan("grpo", model, "verifiers:vf_guess", settings=SETTINGS, max_new=6)["formula"]
    )
    found = evaluate(model, "verifiers:vf_guess", k=(1, 2), problems=3, max_new=6, device="cpu")
    assert 0 <= found["pass@1"]["value"] <= found["pass@2"]["value"] <= 1
    with pytest.raises(RewardlabError, match="plays no environment"):
        plan("sft", model, "verifiers:vf_guess", max_new=6)
