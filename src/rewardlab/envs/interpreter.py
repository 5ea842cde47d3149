"""A Python interpreter as a tool, which keeps its state over the turns of an episode (ReTool, Feng et al. 2025, arXiv:2504.11536).

    <code>                                             <interpreter>
    ```python                            ->            4950
    x = sum(range(100))                                </interpreter>
    x
    ```
    </code>

The state of an episode is its blocks of code so far, as text. A turn is one program in the sandbox: it runs the earlier blocks
again, silently, then the new one, and ends. So nothing stays alive between turns, an episode can be branched and resumed, and
whatever a block leaves behind, files and processes too, is gone with its program; files of earlier blocks are made again.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.sandbox import Limits, ProgramRun, RunOutput, Sandbox
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.text.code_calls import ANSWER, CLOSE, code_of, shortened

State = dict[str, Any]

TELL = (
    "You can run Python code while you work on this: write it as\n<code>\n```python\nprint(6 * 7)\n```\n</code>\nand stop there. "
    "What it prints, and the value of a last expression, will be shown to you between <interpreter> and </interpreter>; then go "
    "on. Variables and imports stay for the next code, there is only Python's standard library, and no network. Run code as "
    "often as you need to. When you know the answer, reply without code."
)
UNFINISHED = f"The code did not come to its end, so nothing was run: end it with {CLOSE}, and write less in one go."
NOTHING = "(nothing was printed)"
MIB = 1 << 20
OUTPUT = 1 * MIB
"""Bytes of a block's output that are read."""
TRACEBACK = 12
"""Lines at the end of a traceback that are shown."""

_MARK = re.compile(r"<(/?interpreter)>")

DRIVER = '''
def drive(blocks, seed, lines):
    import ast, json, linecache, os, random, sys, traceback, types
    out, told, first = os.dup(1), os.dup(2), os.getpid()
    # held, since a stream that nobody holds closes its descriptor
    held = [sys.stdout, sys.stderr]
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    random.seed(seed)

    def fresh():
        """Every block prints to an empty file, as if it were the first."""
        os.ftruncate(out, 0)
        os.lseek(out, 0, os.SEEK_SET)
        os.dup2(out, 1)
        os.dup2(out, 2)
        streams = [os.fdopen(i, "w", 1, "utf-8", "replace", closefd=False) for i in (1, 2)]
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__ = streams
        held.extend(streams)
        # exit() closes it
        sys.stdin = open(os.devnull)

    def ended(report):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass
        if os.getpid() != first:
            # a block has forked, and this is not the interpreter
            os._exit(0)
        return report

    def run(number, text):
        name = f"<code {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        try:
            tree = compile(text, name, "exec", ast.PyCF_ONLY_AST)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), vars(module))
            value = eval(compile(ast.Expression(last.value), name, "eval"), vars(module)) if last else None
            if value is not None:
                sys.stdout.write(repr(value) + "\\n")
        except SystemExit:
            pass
        except BaseException as problem:
            here = problem.__traceback__
            try:
                # without the frame of this function
                text = "".join(traceback.format_exception(type(problem), problem, here and here.tb_next))
            except BaseException:
                text = type(problem).__name__
            return ended("\\n".join(text.rstrip().splitlines()[-lines:]))
        return ended("")

    for number, text in enumerate(blocks, 1):
        fresh()
        if number == len(blocks):
            os.write(told, b"[]\\n")
        report = run(number, text)
    os.write(told, (json.dumps([report[:20000]]) + "\\n").encode(errors="replace"))
    os._exit(0)
'''
"""Run in the sandbox. It writes [] where it comes to the new block, and [the end of a traceback, or ""] after that."""


def _start(problem: Problem, seed: int, *, tell: str, **_: Any) -> tuple[Message | None, State]:
    # a message after the prompt; the answer of the problem never comes near the sandbox
    return (Message("user", tell) if tell else None), {"seed": seed % (1 << 31), "blocks": []}


@environment(start=_start, waits=True)
def interpreter(
    state: State, turn: Turn, *, seconds: PositiveFloat = 10.0, memory: PositiveInt = 512, shown: PositiveInt = 2000,
    tell: str = TELL, fenced: bool = True, stop: tuple[str, ...] = (CLOSE,),
) -> tuple[Message | None, State]:  # fmt: skip
    """Runs the code of a reply (`code_of`), and answers with what it printed. A reply without code is final.

    As in a notebook: variables stay, the value of a last expression is printed, and a block that raises stays as far as it came.
    `random` has the seed of the episode, and hashes are always the same; what depends on the clock may differ when it is run again.
    A block that ends the interpreter (it takes too long, os._exit, a crash) is undone, and the reply is told so. Each begins with
    open, empty output; threads and processes that it leaves end with its turn.

    seconds: for a block together with the earlier ones, which are run again.  memory: MiB.  shown: the most characters of what was
    printed, and of an error; the middle of a longer text is left out, and so it says.  tell: a message after the prompt, which says
    how to run code.  fenced: whether a reply that ends in a ```python block calls the interpreter without the tags, too.
    stop: texts at which replies end.
    """
    code = code_of(turn.text, fenced)
    if code is None:
        return None, state
    if not code.strip():
        return _answer(UNFINISHED), state
    blocks = [*state["blocks"], code]
    limits = Limits(seconds=seconds, memory=memory * MIB, output=OUTPUT)
    call = f"drive({blocks!r}, {state['seed']}, {TRACEBACK})"
    (output,) = Sandbox(limits).run_programs([ProgramRun([DRIVER, call])])
    text, kept = _read(output, shown)
    return _answer(text), {**state, "blocks": blocks} if kept else state


def _start_untold(problem: Problem, seed: int, *, stop: tuple[str, ...]) -> tuple[Message | None, State]:
    return interpreter(tell="").start(problem, seed)


@environment(start=_start_untold, waits=True)
def untold_interpreter(state: State, turn: Turn, *, stop: tuple[str, ...] = (CLOSE,)) -> tuple[Message | None, State]:
    """`interpreter`, for a policy that knows how to run code: no message says so.  stop: texts at which replies end."""
    return interpreter(tell="", stop=stop)(state, turn)


def _read(output: RunOutput, shown: int) -> tuple[str, bool]:
    """What the policy is shown of a program's output, and whether its block stays."""
    if output.ended is None:
        return f"The interpreter does not work at present, and nothing was run: {output.why}", False
    reports = [json.loads(line) for line in output.stderr.splitlines() if _report(line)]
    if not reports or not reports[-1]:
        before = "" if reports else " while the earlier code was run again"
        why = output.why or "the program ended itself"
        text = shortened(output.stdout, shown, len(output.stdout.encode()) >= OUTPUT) if reports else ""
        return f"{text}\nThis code ended the interpreter{before}: {why}. It was undone: all is as before it.".lstrip(), False
    # half of a pair of code points, which no tokeniser reads
    error = reports[-1][0].encode(errors="replace").decode()
    printed = shortened(output.stdout, shown, more=len(output.stdout.encode()) >= OUTPUT)
    return "\n".join(filter(None, (printed, shortened(error, shown)))) or NOTHING, True


def _report(line: str) -> bool:
    """Whether a line is a report of the driver. A block may write such lines too, and deceives nobody but its own policy."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, list) and len(said) <= 1 and all(isinstance(part, str) for part in said)


def _answer(text: str) -> Message:
    # the marks of the answer stand once each, whatever a program prints
    return Message("user", "\n".join((ANSWER[0], _MARK.sub(r"[\1]", text), ANSWER[1])))
