"""A shell in a folder of the sandbox, whose last state is tested (Endless Terminals, Gandhi et al. 2026, arXiv:2601.16443).

    <command>sort -n a.txt > b.txt</command>     ->      <output>
    <command>cat b.txt</command>                         1
                                                         2
                                                         </output>
                                                         exit code 0

A problem brings files, and tests of what the folder is to hold. The state of an episode is what the folder holds, the current
folder and the exported variables, as plain data: so it can be branched and saved, and a command is a program of its own, in a
new folder with the same files. What else a shell may leave ends with it: processes, other variables, files outside the folder.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.data.values import is_missing, list_of, map_of
from rewardlab.errors import RewardlabError
from rewardlab.sandbox.shell import Ran, Session, Tests, packed, run
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.text.code_calls import COMMAND, command_of, shortened

State = dict[str, Any]

TELL = (
    "You work in a Linux shell (bash), in the folder that holds the files of this task. Write one command at a time as\n"
    "<command>ls -l</command>\nand stop there: you will be shown what it prints and its exit code. The folder, its files and "
    "exported variables stay from command to command; there is no network, and nobody answers questions. When the task is done, "
    "write <action>done</action>."
)
OUTPUT = ("<output>", "</output>")
UNFINISHED = f"The command did not come to its end, so nothing was run: end it with {COMMAND[1]}."
SETUP_SECONDS = 30.0


def session_of(files: Any, setup: Any = None) -> Session:
    """The session that a row's files, and its commands `setup`, make. Raises RewardlabError where they make none."""
    commands = list_of(setup)
    if commands is None:
        commands = [] if is_missing(setup) else [setup]
    if not all(isinstance(command, str) for command in commands):
        raise RewardlabError(f"setup is a command or a list of commands, each a text, not {str(setup)[:60]}")
    named = map_of(files or {})
    if named is None:
        raise RewardlabError(f"files are names with their texts, {{'notes/a.txt': 'one'}}, not {str(files)[:60]}")
    return _made(json.dumps(named), tuple(commands))


@functools.lru_cache(maxsize=512)
def _made(files: str, setup: Sequence[str]) -> Session:
    session = Session(packed(json.loads(files)))
    for command in setup:
        ran = run(session, command, seconds=SETUP_SECONDS)
        if ran.code != 0:
            why = ran.why or f"exit code {ran.code}"
            raise RewardlabError(f"the setup command {command!r} ended with {why}: {ran.output[-200:]}")
        session = ran.session
    return Session(session.files)


def tests_of(tests: Any) -> Tests:
    """The tests of a row: a Python program, or commands. Raises RewardlabError for anything else, and for none."""
    commands = None if isinstance(tests, str) and not tests.lstrip().startswith("[") else list_of(tests)
    if isinstance(tests, str) and commands is None and tests.strip():
        return tests
    if commands and all(isinstance(command, str) for command in commands):
        return commands
    raise RewardlabError(f"tests are a Python program with asserts, or a list of commands, not {str(tests)[:60]}")


def _start(problem: Problem, seed: int, *, tell: str, **_: Any) -> tuple[Message | None, State]:
    problem.required("tests", by="terminal")
    session = session_of(problem.meta.get("files"), problem.meta.get("setup"))
    state = {"session": {**vars(session)}, "tests": tests_of(problem.meta["tests"]), "passed": 0.0}
    return (Message("user", tell) if tell else None), state


@environment(start=_start, waits=True)
def terminal(
    state: State, turn: Turn, *, seconds: PositiveFloat = 10.0, shown: PositiveInt = 4000, tell: str = TELL,
    stop: tuple[str, ...] = (COMMAND[1],),
) -> tuple[Message | None, State]:  # fmt: skip
    """Runs the command of a reply (`command_of`), and answers with what it printed and its exit code. A reply without one is final.

    Columns: files, names with texts; setup, commands that are run first; tests, a Python program of asserts that is run in the
    folder, or commands that must all end with code 0. They are run after every command, when nothing of it is alive any more, in a
    process that it could not reach; the policy sees nothing of them. A command is paid what it changed: 1 where the tests pass and
    did not before, -1 where they no longer do. So the sum is what the last state is worth, wherever the episode ends, and
    `final_state` judges by it. Tests may run what the policy wrote, but must not import it.

    seconds: for a command, which is killed then.  shown: the most characters of an answer.  tell: a message after the prompt, which
    says how to use the shell.  stop: texts at which replies end.
    """
    command = command_of(turn.text)
    if command is None:
        return None, state
    if not command:
        return Message("user", UNFINISHED, reward=0.0), state
    ran = run(Session(**state["session"]), command, state["tests"], seconds=seconds)
    if ran.failed or ran.passed is None:
        return Message("user", f"The shell does not work at present, and nothing was run: {ran.why}"), state
    paid = float(ran.passed) - state["passed"] if ran.code is not None else 0.0
    message = Message("user", _told(ran, shown), reward=paid)
    return message, {**state, "session": {**vars(ran.session)}, "passed": state["passed"] + paid}


def _told(ran: Ran, shown: int) -> str:
    printed = shortened(ran.output, shown).replace(OUTPUT[1], "</ output>")
    end = f"exit code {ran.code}" if ran.code is not None else f"The command was undone: {ran.why}."
    return "\n".join(filter(None, (OUTPUT[0], printed, OUTPUT[1], end)))


def _start_untold(problem: Problem, seed: int, *, stop: tuple[str, ...]) -> tuple[Message | None, State]:
    return terminal(tell="").start(problem, seed)


@environment(start=_start_untold, waits=True)
def untold_terminal(state: State, turn: Turn, *, stop: tuple[str, ...] = (COMMAND[1],)) -> tuple[Message | None, State]:
    """`terminal`, for a policy that knows how to use it: no message says so.  stop: texts at which replies end."""
    return terminal(tell="", stop=stop)(state, turn)
