"""A Python interpreter that keeps its state over the turns of an episode."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from scripted import ScriptedPolicy

from rewardlab.core import Run, Turn, ask
from rewardlab.envs.interpreter import NOTHING, TELL, UNFINISHED, interpreter
from rewardlab.errors import RewardlabError
from rewardlab.rollouts.interactive import interactive
from rewardlab.sandbox import ProgramRun, Sandbox
from rewardlab.text.code_calls import code_of


@pytest.fixture(scope="module", autouse=True)
def _isolated():
    try:
        Sandbox().run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))


def tagged(code: str) -> str:
    return f"<code>\n```python\n{code}\n```\n</code>"


def play(*blocks: str, seed: int = 0, **settings):
    """What is answered to each block, without the marks, and the last state."""
    env = interpreter(**settings)
    _, state = env.start(ask("6 * 7?", "42"), seed)
    said = []
    for block in blocks:
        message, state = env(state, Turn("policy", np.zeros(1, np.int64), text=block if "<code>" in block else tagged(block)))
        text = message.text
        assert text.startswith("<interpreter>\n")
        assert text.endswith("\n</interpreter>")
        said.append(text.removeprefix("<interpreter>\n").removesuffix("\n</interpreter>"))
    return said, state


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("So:\n<code>\n```python\nx = 1\nx\n```\n</code>", "x = 1\nx"),
        ("<think>Hm, <code>print(1)</code>", "print(1)"),
        ("<code>\nprint('''\n```\n''')\n</code>", "print('''\n```\n''')"),
        ("<code>a = 1</code> and <code>a</code>", "a = 1\na"),
        ("Let me compute.\n```python\nprint(2)\n```", "print(2)"),
        ("1.\n   ```py\nx = 1\n   ```\nthen\n```Python\nx\n```  \n", "x = 1\nx"),
        # text after a block: no output is awaited
        ("```python\nprint(2)\n```\nThe answer is 2.", None),
        ("The program:\n```\nls\n```", None),
        ("The answer is \\boxed{42}.", None),
        ("", None),
        # cut off
        ("<code>\n```python\nx = 1", ""),
    ],
)
def test_code_is_read_of_replies(reply, code):
    assert code_of(reply) == code


def test_bare_blocks_can_be_left_alone():
    assert code_of("```python\nprint(2)\n```", fenced=False) is None
    assert code_of(tagged("print(2)"), fenced=False) == "print(2)"


def test_state_stays_over_turns_and_only_the_new_output_is_shown():
    said, state = play("x = sum(range(100))\nprint('first', x)\nx", "def f(y): return x + y", "import math\nf(1), math.pi > 3")
    assert said == ["first 4950\n4950", NOTHING, "(4951, True)"]
    assert state["blocks"][0] == "x = sum(range(100))\nprint('first', x)\nx"


def test_a_block_that_raises_stays_as_far_as_it_came():
    (error, after, wrong), _ = play("a = 1\nb = 1 / 0\nc = 3", "print(a)\nc", "def f(:")
    assert error.splitlines() == [
        "Traceback (most recent call last):", '  File "<code 1>", line 2, in <module>', "    b = 1 / 0", "        ~~^~~",
        "ZeroDivisionError: division by zero",
    ]  # fmt: skip
    assert after.startswith("1\nTraceback")
    assert after.endswith("NameError: name 'c' is not defined")
    assert wrong.endswith("SyntaxError: invalid syntax")


def test_long_output_is_cut_and_the_error_still_shown():
    (said,), _ = play("print('x' * 300 + 'y' * 700)\nraise KeyError('k')", shown=100)
    lines = said.splitlines()
    assert lines[:3] == ["x" * 75, "[... 900 characters are not shown ...]", "y" * 25]
    assert lines[-1] == "KeyError: 'k'"


def test_chance_comes_again_within_an_episode_and_differs_between_episodes():
    blocks = ("import random\na = random.random()\na", "a", "random.random()")
    (first, again, second), _ = play(*blocks, seed=1)
    assert first == again != second
    assert play(*blocks, seed=1)[0] == [first, again, second]
    assert play(*blocks, seed=2)[0][0] != first


def test_a_state_can_be_branched_and_saved():
    env = interpreter()
    _, state = env.start(ask("?"), 3)
    _, state = env(state, Turn("policy", np.zeros(1, np.int64), text=tagged("x = [1]")))
    saved = json.loads(json.dumps(state))
    left, right = (Turn("policy", np.zeros(1, np.int64), text=tagged(f"x.append({n}); x")) for n in (2, 3))
    before = copy.deepcopy(state)
    assert "[1, 2]" in env(state, left)[0].text
    assert "[1, 3]" in env(state, right)[0].text
    assert "[1, 2]" in env(saved, left)[0].text
    assert state == before


@pytest.mark.slow
def test_code_that_ends_the_interpreter_is_undone():
    said, state = play("x = 1", "x = 2\nprint('here')\nimport os\nos._exit(0)", "while True: pass", "x", seconds=1.5)
    assert said[1] == "here\nThis code ended the interpreter: the program ended itself. It was undone: all is as before it."
    assert "took over 1.5 s" in said[2]
    assert said[3] == "1"
    assert len(state["blocks"]) == 2


@pytest.mark.slow
def test_the_time_is_that_of_all_blocks_together():
    wait = "import time\ntime.sleep(0.8)\nprint('slept')"
    said, _ = play(wait, wait, seconds=1.5)
    assert said[0] == "slept"
    assert "took over 1.5 s" in said[1]
    assert len(play(wait, wait, seconds=10)[1]["blocks"]) == 2


def test_exits_threads_and_input_of_a_notebook():
    said, _ = play(
        "x = 1\nexit()\nx = 2", "x", "input()", "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n3"
    )
    assert said[1] == "1"
    assert said[2].endswith("EOFError: EOF when reading a line")
    assert said[3] == "3"


def test_classes_of_earlier_blocks_can_be_pickled():
    assert play("class A: pass", "import pickle\ntype(pickle.loads(pickle.dumps(A()))).__name__")[0][1] == "'A'"


def test_unfinished_code_is_not_run():
    env = interpreter(tell="")
    message, state = env.start(ask("?"), 0)
    assert message is None
    answer, after = env(state, Turn("policy", np.zeros(1, np.int64), text="<code>\nprint(1)"))
    assert UNFINISHED in answer.text
    assert after == state


def test_a_policy_plays_it():
    """An episode as it is rolled out: the prompt says how, replies end at the tag, and the last one is final."""

    class Replies(ScriptedPolicy):
        """`extend` of the base ends a reply at single characters; here, at texts."""

        def read(self, trajectories, messages):
            rows = zip(trajectories, messages, strict=True)
            return [t.plus(Turn(None, np.array([1]), text="".join(m.text for m in said))) for t, said in rows]

        def extend(self, trajectories, sampling, rng):
            assert sampling.stop == ("</code>",)
            texts = [tagged("2 ** 70"), "It is \\boxed{1180591620717411303424}."]
            said = [texts[len(t.ends)] for t in trajectories]
            made = [np.array([ord(c) for c in text]) for text in said]
            rows = zip(trajectories, said, made, strict=True)
            return [t.plus(Turn("policy", ids, *[np.zeros(len(ids), np.float32)] * 2, text)) for t, text, ids in rows]

    run = Run(Replies({}), seed=0, max_new=100)
    ((episode, _),) = interactive(env=interpreter(), n=2, turns=4)([ask("2 ** 70?", "1180591620717411303424")], run)
    assert episode.turns[0].text.endswith(TELL)
    assert episode.turns[2].text == "<interpreter>\n1180591620717411303424\n</interpreter>"
    assert episode.turns[2].author is None
    assert (episode.stop, len(episode.ends)) == ("end", 2)
