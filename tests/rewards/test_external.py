"""Functions of the user, in every framework's shape: what they are given, how they are called, and what goes wrong."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rewardlab import registry, reward
from rewardlab.api.checking import check_columns
from rewardlab.audit.loading import load, parse
from rewardlab.audit.target import Row
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import NotFinite, RewardlabError
from rewardlab.registry.formula import read_reward
from rewardlab.rewards import call_timeout as watch

SHAPES = """
import re
import torch
from rewardlab import Score, reward

def accuracy_reward(completions: list[list[dict[str, str]]], solution: list[str], **kwargs) -> list[float]:
    contents = [completion[0]["content"] for completion in completions]
    return [float(content.endswith(sol)) for content, sol in zip(contents, solution)]

def format_reward(completions, **kwargs):
    completion_contents = [completion[0]["content"] for completion in completions]
    matches = [re.match(r"^The .*$", content, re.DOTALL | re.MULTILINE) for content in completion_contents]
    return [1.0 if match else 0.0 for match in matches]

def trl_text(prompts, completions, completion_ids, answer, trainer_state=None, log_metric=None, **kwargs):
    assert all(len(ids) > 0 for ids in completion_ids) and trainer_state.global_step >= 0
    return [float(c.endswith(a)) for c, a in zip(completions, answer)]

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": float(solution_str.endswith(ground_truth)), "acc": True}

def reward_func(queries, prompts, labels):
    replies = [q.removeprefix(p) for q, p in zip(queries, prompts)]
    right = torch.tensor([float(r.endswith(label)) for r, label in zip(replies, labels)])
    return {"rewards": right, "scores": right, "extra_logs": {"seen": right}}

def plain(completion, answer):
    return completion.endswith(answer)

async def awaited(completion, answer):
    return completion.endswith(answer)

async def awaited_together(completions, answers):
    return [c.endswith(a) for c, a in zip(completions, answers)]

def made(ending=""):
    def inner(completion, answer):
        return completion.endswith(answer + ending)
    return inner

@reward
def decorated(trajectory, *, worth=1.0):
    return worth * trajectory.reply.endswith(trajectory.problem.answer)
"""
NAMES = (
    "accuracy_reward",
    "trl_text",
    "compute_score",
    "reward_func",
    "plain",
    "awaited",
    "awaited_together",
    "made()",
    "decorated",
)


def attempt(reply: str, answer: str = "4", **meta) -> Trajectory:
    asked = Turn(None, np.arange(2), text="What?")
    return Trajectory(
        ask("What?", answer, system="Be brief.", **meta), (asked, Turn("policy", np.arange(1 + len(reply)), text=reply))
    )


GROUPS = [[attempt("The answer is 4"), attempt("5")], [attempt("4"), attempt("")]]


@pytest.fixture
def file(tmp_path):
    def write(code):
        path = tmp_path / f"mine_{abs(hash(code))}.py"
        path.write_text(code)
        return path

    return write


def values(target, groups=GROUPS, run=None):
    return [[score.value for score in row] for row in read_reward(str(target))(groups, run or Run(None))]


@pytest.mark.parametrize("name", NAMES)
def test_training_and_audit_call_every_shape_alike(name, file):
    target = f"{file(SHAPES)}:{name}"
    assert values(target) == [[1.0, 0.0], [1.0, 0.0]]
    audited = load(parse(target))
    assert [r.value for t in GROUPS[0] for r in audited.score([Row("What?", "4", t.reply, {})])] == [1.0, 0.0]
    assert audited.messages is (name == "accuracy_reward")


def test_a_reward_of_form_in_open_r1s_manner(file):
    target = f"{file(SHAPES)}:format_reward"
    assert values(target) == [[1.0, 0.0], [0.0, 0.0]]
    assert load(parse(target)).messages


def test_messages_hold_the_whole_prompt(file):
    path = file(
        "def f(prompts, completions):\n    return [len(p) + (c[0]['content'] == '4') for p, c in zip(prompts, completions)]\n"
    )
    assert values(f"{path}:f") == [[2.0, 2.0], [3.0, 2.0]]


def test_the_tokens_are_those_of_the_reply_whatever_follows_it_and_in_however_many_turns(file):
    path = file("def f(completions, completion_ids):\n    return [float(''.join(map(str, i))) for i in completion_ids]\n")

    def turn(author, *ids, text="", vectors=None):
        return Turn(author, np.asarray(ids, np.int64), text=text, vectors=vectors)

    asked, told = turn(None, 1, text="What?"), turn(None, 9, text="a tool said")
    said = turn("policy", 2, 3, text="so"), turn("policy", 4, text=" 4")
    closed = turn(None, text="the environment's last word")
    thought = turn("policy", 5, vectors=np.zeros((1, 2)))
    episodes = [
        (asked, *said), (asked, *said, closed), (asked, turn("policy", 7, text="call"), told, *said, closed),
        (asked, *said, told, thought),
    ]  # fmt: skip
    groups = [[Trajectory(ask("What?", "4"), turns, "end") for turns in episodes]]
    assert [t.reply for t in groups[0]] == ["so 4"] * 4
    assert values(f"{path}:f", groups) == [[234.0] * 4]
    nothing = [[Trajectory(ask("What?", "4"), (asked,), "end")]]
    counts = file("def g(completions, completion_ids):\n    return [len(i) for i in completion_ids]\n")
    assert values(f"{counts}:g", nothing) == [[0.0]]


def test_settings_of_a_function_that_makes_one_and_of_a_decorated_reward(file):
    path = file(SHAPES)
    assert values(f"{path}:made(ending='!')") == [[0.0, 0.0], [0.0, 0.0]]
    assert values(f"{path}:decorated(worth=3)") == [[3.0, 0.0], [3.0, 0.0]]
    assert values(f'0.5 * "{path}:decorated(worth=3)" + 1')[0] == [2.5, 1.0]
    with pytest.raises(RewardlabError, match="'wort'; did you mean worth"):
        read_reward(f"{path}:decorated(wort=3)")
    with pytest.raises(RewardlabError, match=r"returned a function; give its settings, as in FILE.py:made\(x=1\)"):
        values(f"{path}:made")


def test_a_function_of_an_installed_module(file, monkeypatch):
    path = file(SHAPES)
    monkeypatch.syspath_prepend(path.parent)
    assert values(f"{path.stem}:plain") == [[1.0, 0.0], [1.0, 0.0]]
    del sys.modules[path.stem]


def test_a_function_with_a_group_is_called_for_each_group(file):
    path = file("def f(group, completions):\n    return [len(group) + len(set(completions)) for c in completions]\n")
    assert values(f"{path}:f", [GROUPS[0], [attempt("4"), attempt("4"), attempt("4")]]) == [[4.0, 4.0], [4.0, 4.0, 4.0]]


def test_a_function_may_return_a_score_with_steps(file):
    code = "from rewardlab import Score\ndef f(trajectory):\n    return Score(steps=[(2, 1.0), (3, 2.0)], why='two steps')\n"
    (score,) = read_reward(f"{file(code)}:f")([[attempt("ab")]], Run(None))[0]
    assert (score.steps, score.why, list(score.terms)) == (((2, 1.0), (3, 2.0)), "two steps", ["f"])


# ---- a file alone ----------------------------------------------------------------------------------------------------


def test_the_only_function_of_a_file_needs_no_name(file):
    path = file("import re\n_hidden = 1\ndef _helper(x): return x\ndef score(completion): return len(completion)\n")
    assert values(path)[0] == [15.0, 1.0]
    assert load(parse(str(path))).name == "score"


@pytest.mark.parametrize("read", [read_reward, parse])
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def a(completion): return 1\nasync def b(completion): return 1\n", r"It has 2; give one of .*:a, .*:b"),
        ("x = 1\n", "has no function to use as a reward"),
        ("x =\n", "cannot read .*line 1: SyntaxError"),
    ],
)
def test_a_file_with_several_functions_or_none_lists_them(read, code, says, file):
    with pytest.raises(RewardlabError, match=says):
        read(str(file(code)))


# ---- many at a time --------------------------------------------------------------------------------------------------


def test_async_calls_run_together_on_one_loop_for_all_steps(file):
    code = """
import asyncio
loops, running, most = set(), 0, 0

async def f(completion):
    global running, most
    loops.add(id(asyncio.get_running_loop()))
    running += 1
    most = max(most, running)
    await asyncio.sleep(0.01)
    running -= 1
    return len(loops) + 1000 * most
"""
    path, groups = file(code), [[attempt("x") for _ in range(40)]]
    values(f"{path}:f", groups)
    # bounded: 32 of the 40 at a time; and the second step runs on the loop of the first
    assert values(f"{path}:f", groups)[0][-1] == 32_001.0


def test_an_error_in_an_async_function_has_its_file_line_and_rollout(file):
    path = file("async def f(completion):\n    if completion == '5':\n        return {}['five']\n    return 1.0\n")
    with pytest.raises(RewardlabError, match=r"line 3: KeyError: 'five' \(rollout 1 of group 0\)"):
        values(f"{path}:f")


def test_an_async_reward_made_in_python():
    @reward
    async def length(trajectory):
        return len(trajectory.reply)

    assert [s.value for s in length()(GROUPS, Run(None))[0]] == [15.0, 1.0]


# ---- what never comes back, and what leaves --------------------------------------------------------------------------

HANGING = {
    "sleeps": "import time\ndef f(completion):\n    if completion == '5':\n        time.sleep(60)\n    return 1.0\n",
    "goes on": "import time\ndef f(completion):\n    while completion == '5':\n        try:\n            time.sleep(60)\n"
    "        except Exception:\n            pass\n    return 1.0\n",
    "backtracks": "import re\ndef f(completion):\n    re.match('(a+)+b', 'a' * 60 * (completion == '5'))\n    return 1.0\n",
    "awaits": "import asyncio\nasync def f(completion):\n    await asyncio.sleep(60 * (completion == '5'))\n    return 1.0\n",
}  # fmt: skip


@pytest.mark.parametrize("code", HANGING.values(), ids=HANGING)
def test_a_reward_that_hangs_is_stopped_at_its_limit_and_named(code, file):
    started = time.monotonic()
    # what awaits is not on the stack while the event loop waits: its line is known only where the loop has just run it
    line = r"(, line \d+)?" if "await" in code else r", line \d+"
    with pytest.raises(RewardlabError, match=rf"reward f of .*\.py{line} took over 0.2 s \(rollout 1 of group 0\)"):
        values(f"{file(code)}:f", run=Run(None, reward_timeout=0.2))
    assert time.monotonic() - started < 10


def test_a_reward_in_python_that_hangs_is_stopped_too():
    @reward
    def sleepy(trajectory):
        time.sleep(60 if trajectory.reply == "5" else 0)
        return 1.0

    with pytest.raises(RewardlabError, match=r"the reward sleepy of .*line \d+ took over 0.2 s \(rollout 1 of group 0\)"):
        sleepy()(GROUPS, Run(None, reward_timeout=0.2))


def test_in_another_thread_a_late_call_is_an_error_once_it_is_back(file):
    path, raised = file("import time\ndef f(completion):\n    time.sleep(0.2)\n    return 1.0\n"), []

    def score():
        try:
            values(f"{path}:f", run=Run(None, reward_timeout=0.1))
        except RewardlabError as e:
            raised.append(str(e))

    thread = threading.Thread(target=score)
    thread.start()
    thread.join()
    assert "took over 0.1 s (rollout 0 of group 0)" in raised[0]


def test_a_slow_reward_is_reported_while_it_runs(file, monkeypatch, capsys):
    monkeypatch.setattr(watch, "NOTICE", 0.1)
    monkeypatch.setattr(watch, "TICK", 0.05)
    monkeypatch.setattr(watch, "_reported", {})
    printed = []
    monkeypatch.setattr(watch, "console", SimpleNamespace(print=lambda text, **kw: printed.append(text)))
    path = file("import time\ndef f(completion):\n    time.sleep(0.3 if completion == '5' else 0)\n    return 1.0\n")
    assert values(f"{path}:f", run=Run(None, reward_timeout=60.0))[0] == [1.0, 1.0]
    (notice,) = printed
    assert f"the reward f of {path} has been at rollout 1 of group 0 for 0 s" in notice
    assert "it is stopped after 60 s (--reward-timeout SECONDS)" in notice


@pytest.mark.parametrize(
    "code", ["import sys\ndef f(completion):\n    sys.exit(0)\n", "async def f(completion):\n    raise SystemExit\n"]
)
def test_leaving_by_sys_exit_is_an_error_of_the_reward(code, file):
    with pytest.raises(RewardlabError, match=r"the reward f of .*line [23]: it called sys.exit.*rollout 0 of group 0"):
        values(f"{file(code)}:f")


def test_ctrl_c_goes_through(file):
    with pytest.raises(KeyboardInterrupt):
        values(f"{file('def f(completion):' + chr(10) + '    raise KeyboardInterrupt')}:f")


# ---- what is returned ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ("'abc'", "a list with a reward for each of the 4 rollouts; it returned the text 'abc'"),
        ("{'a': 1}", "it returned the dict"),
        ("{1.0, 2.0}", "it returned the set"),
        ("None", r"it returned None \(is there a `return`\?\)"),
        ("[1.0, 2.0]", "returned 2 rewards for 4 rollouts"),
        ("(1 / 0 for c in completions)", "line 1: ZeroDivisionError"),
        ("['a'] * 4", "returned 'a', not a number"),
    ],
)
def test_a_wrong_answer_for_a_batch_is_told_in_words(returned, says, file):
    with pytest.raises(RewardlabError, match=says):
        values(f"{file(f'def f(completions): return {returned}')}:f")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_what_is_not_finite_names_function_and_rollout(number, file):
    path = file(f"def f(completion): return float('{number}') if completion == '5' else 1.0\n")
    with pytest.raises(NotFinite, match=rf"reward f of {path} returned {number} \(rollout 1 of group 0, reply '5'\)"):
        values(f"{path}:f")


def test_a_text_function_that_wanted_messages_hears_how_to_say_so(file):
    code = (
        "def first(x):\n    return list(x)\n\ndef f(completions):\n    return [len(first(c)[0]['content']) for c in completions]\n"
    )
    with pytest.raises(RewardlabError, match=r"annotate its argument: completions: list\[list\[dict\]\]"):
        values(f"{file(code)}:f")


@pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="needs pip install 'rewardlab[trl]'")
def test_trls_own_reward_is_handed_messages():
    pytest.importorskip("trl.rewards")
    assert load(parse("trl.rewards:accuracy_reward")).messages
    assert Path(read_reward("trl.rewards:think_format_reward").settings["module"]) == Path("trl.rewards")


# ---- before a run -----------------------------------------------------------------------------------------------------


ASKING = """
def scores_one(completion, answer, dificulty): return 1.0
def scores_all(completions, dificulty, **kwargs): return [1.0] * len(completions)
def scores_a_group(group, dificulty): return [1.0] * len(group)
def of_verl(data_source, solution_str, ground_truth, dificulty): return 1.0
def with_default(completion, dificulty=0): return 1.0
def everything(completions, prompts, answers, run, trainer_state, log_metric, difficulty, **kwargs): return [1.0] * len(completions)
def by_group(group, completions, answer): return [1.0] * len(group)
def of_openrlhf(queries, prompts, labels): return [1.0] * len(queries)
def of_verifiers(prompt, completion, answer, state, info): return 1.0
"""
WRONG = ("scores_one", "scores_all", "scores_a_group", "of_verl")


@pytest.mark.parametrize("name", [line.split("(")[0][4:] for line in ASKING.strip().splitlines()])
def test_an_argument_that_rows_cannot_fill_is_named_before_a_model_is_loaded(name, tmp_path):
    (tmp_path / "asking.py").write_text(ASKING)
    rows = [{"prompt": f"What is {i} + 1?", "answer": str(i + 1), "difficulty": i} for i in range(20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = registry.task(str(tmp_path / "rows.jsonl"))
    recipe = registry.build("grpo").but(reward=read_reward(f"{tmp_path / 'asking.py'}:{name}"))
    if name not in WRONG:
        check_columns(recipe, task)
        return
    with pytest.raises(RewardlabError, match=rf"reward {name} of .*asks for unknown argument 'dificulty'; did you mean"):
        check_columns(recipe, task)


@pytest.mark.parametrize("name", ["episode", "turns", "messages", "rollouts"])
def test_who_asks_for_an_episode_is_told_of_the_trajectory(name, tmp_path):
    (tmp_path / "asking.py").write_text(f"def score(completion, {name}): return 1.0")
    with pytest.raises(RewardlabError, match=rf"unknown argument '{name}'; .*trajectory \(the whole episode, with its turns\)"):
        read_reward(f"{tmp_path / 'asking.py'}:score")([[attempt("4")]], Run(None))


def test_an_argument_like_no_other_is_told_with_the_columns_there_are(tmp_path):
    (tmp_path / "asking.py").write_text("def score(completion, zzz): return 1.0")
    given = [[attempt("4", hint="a", level=3)]]
    with pytest.raises(RewardlabError, match="'zzz'; columns of the data besides prompt and answer: hint, level; oth"):
        read_reward(f"{tmp_path / 'asking.py'}:score")(given, Run(None))


@pytest.mark.parametrize("returned", ["10 ** 400", "[10 ** 400]", "{'score': 10 ** 400}", "'1'", "(1.0, 'fine')", "object()"])
def test_whatever_is_no_number_names_function_and_rollout(returned, tmp_path):
    (tmp_path / "odd.py").write_text(f"def score(completion): return {returned}")
    with pytest.raises(RewardlabError, match=r"the reward score of .*odd.py returned .* \(rollout 0 of group 0\)"):
        read_reward(f"{tmp_path / 'odd.py'}:score")([[attempt("4")]], Run(None))
