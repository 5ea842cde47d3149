"""The command line. Each command is a module in `commands`: HELP, flags(parser), run(args) -> document, show(document).

With --json the document is printed as JSON and nothing else reaches stdout; without, `show` prints it for people. A
command with SETTINGS takes flags that are not its own: the settings of a method.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

COMMANDS = (
    *("demo", "train", "eval", "answer", "study", "reproduce", "compare", "parity"),
    *("list", "show", "export", "report", "bench", "verify", "audit"),
)
OVERVIEW = """rewardlab: learning from rewards, as recipes of small parts.

  rewardlab demo                                       train a small policy and write its report, in minutes
  rewardlab train grpo --task arithmetic --steps 40    train; the flags of a method: rewardlab show grpo

commands:
{commands}

For details: `rewardlab COMMAND --help`. --json prints one JSON document, --debug a traceback. --unsafe-sandbox runs code that a
model wrote even where the machine cannot isolate it: only for machines that you can afford to lose.
"""


class UsageError(Exception):
    """A command line that cannot be parsed."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 (the machine failed), 2 (the request was wrong) or 130 (stopped)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in argv
    if "--unsafe-sandbox" in argv:
        os.environ["REWARDLAB_UNSAFE_SANDBOX"] = "1"
    # these two are accepted anywhere, and by every command
    argv = [word for word in argv if word not in ("--debug", "--unsafe-sandbox")]
    try:
        return run(argv)
    except KeyboardInterrupt as stop:
        print(f"rewardlab: {stopped(argv, stop)}", file=sys.stderr)
        return 130
    except Exception as problem:
        if debug:
            raise
        message, code = explain(problem)
        if message:
            print(f"rewardlab: {message}", file=sys.stderr)
        return code


def run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(overview(), end="")
        return 0
    if argv[0] == "--version":
        print(f"rewardlab {importlib.import_module('importlib.metadata').version('rewardlab')}")
        return 0
    if argv[0] not in COMMANDS:
        raise _unknown("command", argv[0], COMMANDS)
    # only the command that runs is imported, so that --help and errors do not wait for torch
    command = importlib.import_module(f"rewardlab.commands.{argv[0]}")
    args = parse(command, argv[0], argv[1:])
    # libraries may print to stdout, which is for the document alone
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        document = command.run(args)
    if os.environ.get("RANK", "0") != "0" and "WORLD_SIZE" in os.environ:
        pass  # of several processes that train together, only rank 0 prints
    elif args.json:
        print(as_json(document))
    else:
        command.show(document)
    return getattr(command, "exit_code", lambda document: 0)(document)


def parse(command: Any, name: str, argv: list[str]) -> argparse.Namespace:
    """The arguments of a command. Flags that it does not define are kept, in order, in `settings`."""
    parser = Parser(f"rewardlab {name}", description=command.__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    command.flags(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    # switches, such as --json, have nargs 0: the next word is not their value
    own = {flag: action.nargs != 0 for flag, action in parser._option_string_actions.items() if flag.startswith("--")}
    words, settings = split(argv, own)
    if settings and not getattr(command, "SETTINGS", False):
        raise _unknown(f"flag of {name}", next(iter(settings)), own)
    args = parser.parse_args(words)
    args.settings, args.own_flags, args.flags_given = settings, own, {word.partition("=")[0] for word in words if word[:2] == "--"}
    return args


def split(argv: list[str], own: Mapping[str, bool]) -> tuple[list[str], dict[str, str]]:
    """Words for the command's own flags (`own`: whether each takes a value), and the other flags with their values."""
    words, settings = [], {}
    remaining = list(argv)
    while remaining:
        word = remaining.pop(0)
        flag, equals, value = word.partition("=")
        # only a double dash begins a flag: -0.5 is a value
        follows = bool(remaining) and not remaining[0].startswith("--")
        if not flag.startswith("--") or flag == "--":
            words.append(word)
        elif flag not in own:
            # a setting without a value is a switch
            settings[flag] = value if equals else remaining.pop(0) if follows else "true"
        elif own[flag] and not equals and follows:
            # joined by =, or argparse would take a value that begins with a dash for a flag
            words.append(f"{flag}={remaining.pop(0)}")
        else:
            words.append(word)
    return words, settings


def overview() -> str:
    """The text of `rewardlab --help`."""
    helps = {name: importlib.import_module(f"rewardlab.commands.{name}").HELP for name in COMMANDS}
    return OVERVIEW.format(commands="\n".join(f"  {name:<10}{text}" for name, text in helps.items()))


def explain(problem: Exception) -> tuple[str, int]:
    """One line that says what went wrong, and the exit code."""
    if isinstance(problem, UsageError):
        return str(problem), 2
    if isinstance(problem, BrokenPipeError):
        # the reader of stdout (such as `head`) has gone; without this, Python would raise again when it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "", 1
    if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
        where = f" ({problem.filename})" if problem.filename else ""
        return f"the disk is full{where}; free some space, then resume with: rewardlab train --resume DIR", 1
    if isinstance(problem, OSError):
        return " ".join(str(problem).split()), 1
    from rewardlab.errors import RewardlabError

    if isinstance(problem, RewardlabError):
        return " ".join(str(problem).split()), 2
    return f"{type(problem).__name__}: {' '.join(str(problem).split())} (--debug shows where)", 1


def stopped(argv: list[str], stop: KeyboardInterrupt) -> str:
    """The message after Ctrl-C: how to resume the run, if it has a folder. The trainer may name the folder in the exception."""
    # --out DIR and --out=DIR alike
    words = [part for word in argv for part in word.split("=", 1)]
    named = [words[i + 1] for i, word in enumerate(words[:-1]) if word in ("--out", "--resume")]
    where = str(stop.args[0]) if stop.args else next(iter(named), None)
    if where and Path(where).is_dir():
        command = "compare" if argv[:1] == ["compare"] else "train"
        return f"stopped; resume with: rewardlab {command} --resume {where}"
    return "stopped"


def as_json(document: Any) -> str:
    """The document as one JSON text, without NaN, which JSON does not know."""
    import json

    return json.dumps(plain(document), ensure_ascii=False, allow_nan=False, indent=1)


def plain(value: Any) -> Any:
    """A document in JSON's types: paths as text, numpy numbers as numbers, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    # arrays and tensors, without importing either library
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _unknown(kind: str, name: str, known: Any) -> Exception:
    from rewardlab.errors import unknown

    return unknown(kind, name, known)
