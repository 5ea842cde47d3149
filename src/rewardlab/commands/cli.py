"""The command line. Each command is a module in `commands`: HELP, flags(parser), run(args) -> document, show(document).
A command that consists of others is a folder there, with SUBCOMMANDS.

With --json the document is printed as JSON and nothing else reaches stdout; without, `show` prints it for people. What is printed
while a command runs goes to stderr, such as by a user's reward or tool, unless rows are written to stdout meanwhile. A command
with SETTINGS takes flags that are not its own: the settings of a method.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.commands import bills
from rewardlab.commands.json_text import as_json
from rewardlab.commands.words import Parser, UsageError, printable, shortened
from rewardlab.errors import RewardlabError, unknown
from rewardlab.settings.domain import OutOfDomain
from rewardlab.util.files import FULL, WRONG_PATH, intended, reason_of
from rewardlab.util.ranks import is_first, refuse_together
from rewardlab.util.signals import stopping_at_once

COMMANDS = (
    *("demo", "train", "eval", "answer", "search", "study", "reproduce", "compare", "league", "parity", "list", "show", "parts"),
    *("worlds", "export", "export-recipe", "export-env", "report", "diagnose", "doctor", "bench", "verify", "audit", "scoreboard"),
    *("serve", "serve-model", "data", "prm"),
)
TOGETHER = ("train", "parity", "list", "show", "parts", "worlds", "doctor")
"""Commands whose work several processes share, and those that do none."""
OVERVIEW = """rewardlab: learning from rewards, as recipes of small parts.

  rewardlab demo                                       train a small policy and write its report, in minutes
  rewardlab train grpo --task arithmetic --steps 40    train; the flags of a method: rewardlab show grpo

commands:
{commands}

For details: `rewardlab COMMAND --help`. --json prints one JSON document, which for an error is {{"error": "...", "code": 2}};
--debug prints a traceback. --unsafe-sandbox runs code that a model wrote even where the machine cannot isolate it: only for
machines that you can afford to lose.
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 (the machine failed), 2 (the request was wrong), 130 (Ctrl-C) or 143 (SIGTERM)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in argv
    if "--unsafe-sandbox" in argv:
        os.environ["REWARDLAB_UNSAFE_SANDBOX"] = "1"
    # these two are accepted anywhere, and by every command
    argv = [word for word in argv if word not in ("--debug", "--unsafe-sandbox")]
    if argv[:1] == ["--json"]:
        # among the flags of its command
        argv = [*argv[1:2], "--json", *argv[2:]]
    _quiet()
    try:
        with stopping_at_once():
            return run(argv)
    except KeyboardInterrupt as stop:
        # of several processes that stop together, only the first says so
        code = 128 + (getattr(stop, "number", 0) or signal.SIGINT)
        return failed(stopped(stop), code, argv) if is_first() else code
    except Exception as problem:
        if debug:
            traceback.print_exc()
        message, code = explain(problem, argv)
        return failed(message, code, argv) if message else code


def _quiet() -> None:
    """Libraries' bars do not belong in a log file (`util.progress` writes lines there), nor what they tell their own developers."""
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")


def failed(message: str, code: int, argv: Sequence[str]) -> int:
    """Say what went wrong, with --json as a document too; the exit code."""
    message = printable(message)
    print(f"rewardlab: {message}", file=sys.stderr)
    if "--json" in argv:
        print(as_json({"error": message, "code": code}))
    return code


def run(argv: list[str]) -> int:
    if argv[:1] == ["help"] and len(argv) > 1:
        argv = [argv[1], "--help"]
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(overview(), end="")
        return 0
    if argv[0] == "--version":
        print(f"rewardlab {importlib.import_module('importlib.metadata').version('rewardlab')}")
        return 0
    if argv[0] not in COMMANDS:
        raise _unknown_command(argv)
    # only the command that runs is imported, so that --help and errors do not wait for torch
    found = find(argv)
    if found is None:
        return 0
    command, name, words = found
    args = parse(command, name, words)
    if argv[0] not in TOGETHER:
        refuse_together(argv[0])
    before = bills.spent()
    streams = not args.json and "-" in map(str, vars(args).values())  # rows, while the command runs (--out -)
    # libraries, and the user's own rewards and tools, whichever thread runs them, may print to stdout, which is for results alone
    with contextlib.nullcontext() if streams else contextlib.redirect_stdout(sys.stderr):
        document = command.run(args)
    asked = bills.since(before)
    if not is_first():
        pass  # of several processes that train together, only rank 0 prints
    elif args.json:
        print(as_json({**document, "served": asked} if asked and isinstance(document, Mapping) else document))
    else:
        command.show(document)
        for usage in asked:
            print(bills.line(usage), file=sys.stderr)
    return getattr(command, "exit_code", lambda document: 0)(document)


def find(argv: list[str]) -> tuple[Any, str, list[str]] | None:
    """The module of a command, its name, and the words after it; None where the help of a group of commands was all that was
    asked."""
    command, name, words = module_of(argv[0]), argv[0], argv[1:]
    if not hasattr(command, "SUBCOMMANDS"):
        return command, name, words
    tool = next((word for word in words if not word.startswith("-")), None)
    if tool is None:
        print(group_overview(command, name), end="")
        return None
    if tool not in command.SUBCOMMANDS:
        raise unknown(f"command of {name}", tool, command.SUBCOMMANDS)
    words.remove(tool)
    return subcommand(name, tool), f"{name} {tool}", words


def module_of(name: str) -> Any:
    """The module of a command."""
    return importlib.import_module(f"rewardlab.commands.{name.replace('-', '_')}")


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
        from rewardlab.commands.flag_names import unknown_flag

        raise unknown_flag(name, next(iter(settings)), own)
    if {"-h", "--help"} & set(words) and hasattr(command, "help_of"):
        # the help of a command may depend on what it is to be done with
        parser.epilog = command.help_of(words)
    try:
        args = parser.parse(words)
    except UsageError as problem:
        raise UsageError(f"{problem}{_misspelt(settings, own)}") from None
    args.settings, args.own_flags, args.flags_given = settings, own, {word.partition("=")[0] for word in words if word[:2] == "--"}
    return args


def _misspelt(settings: Mapping[str, str], own: Mapping[str, bool]) -> str:
    """What is said beside an error of the command's flags, where one that it does not know is nearly one that it has."""
    if not settings:
        return ""
    from rewardlab.commands.flag_names import nearest

    found = {flag: near for flag in settings if (near := nearest(flag, own))}
    return "".join(f"; {flag} is no flag of it: did you mean {' or '.join(near)}?" for flag, near in found.items())


def split(argv: list[str], own: Mapping[str, bool]) -> tuple[list[str], dict[str, str]]:
    """Words for the command's own flags (`own`: whether each takes a value), and the other flags with their values."""
    words: list[str] = []
    settings: dict[str, str] = {}
    remaining = list(argv)
    while remaining:
        word = remaining.pop(0)
        flag, equals, value = word.partition("=")
        # a flag may be spelled as in Python
        if flag[:2] == "--" and (hyphens := flag.replace("_", "-")) in own:
            flag, word = hyphens, f"{hyphens}{equals}{value}"
        # only a double dash begins a flag: -0.5 is a value
        follows = bool(remaining) and not remaining[0].startswith("--")
        if not flag.startswith("--") or flag == "--":
            words.append(word)
        elif flag not in own:
            if flag.replace("_", "-") in (other.replace("_", "-") for other in settings):
                raise UsageError(f"{flag} is given twice")
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
    helps = {name: module_of(name).HELP for name in COMMANDS}
    return OVERVIEW.format(commands="\n".join(f"  {name:<15}{text}" for name, text in helps.items()))


def group_overview(group: Any, name: str) -> str:
    """The text of the help of a command that consists of others."""
    helps = {tool: subcommand(name, tool).HELP for tool in group.SUBCOMMANDS}
    listed = "\n".join(f"  {tool:<15}{text}" for tool, text in helps.items())
    return f"{group.__doc__}\ncommands:\n{listed}\n\nFor details: `rewardlab {name} COMMAND --help`.\n"


def subcommand(group: str, name: str) -> Any:
    """The module of a command within another."""
    return importlib.import_module(f"rewardlab.commands.{group}.{name.replace('-', '_')}")


def explain(problem: Exception, argv: Sequence[str] = ()) -> tuple[str, int]:
    """What went wrong in a command line, in one line or as the lines of a RewardlabError, and the exit code."""
    if isinstance(problem, UsageError):
        return shortened(str(problem)), 2
    if isinstance(problem, BrokenPipeError):
        # the reader of stdout (such as `head`) has gone; without this, Python would raise again when it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "", 1
    text, code = " ".join(str(problem).split()), 1
    if isinstance(problem, OutOfDomain):
        text, code = as_typed(text, problem.name.split()[0], argv), 2
    elif isinstance(problem, RewardlabError):
        text, code = "\n".join(" ".join(line.split()) for line in str(problem).splitlines() if line.strip()), 2
    elif isinstance(problem, OSError):
        text, code = in_words(problem) or text, 2 if problem.errno in WRONG_PATH and problem.filename else 1
    else:
        text = f"{type(problem).__name__}: {text} (--debug shows where)"
    return with_notes(shortened(text), problem), code


def as_typed(text: str, name: str, argv: Sequence[str]) -> str:
    """A message that begins with the name of a setting, with its flag instead where that was typed."""
    flag = f"--{name.replace('_', '-')}"
    typed = {word.partition("=")[0].replace("_", "-") for word in argv}
    return f"{flag}{text.removeprefix(name)}" if flag in typed else text


def in_words(problem: OSError) -> str | None:
    """What an error of the system means, with its path and what to do; None for one that is not about files."""
    reason = reason_of(problem)
    if not problem.filename:
        return reason if problem.errno in FULL else None
    return reason and f"{intended(str(problem.filename))}: {reason}"


def stopped(stop: KeyboardInterrupt) -> str:
    """The message after Ctrl-C or SIGTERM: how to resume the run, if there is one."""
    return with_notes("stopped", stop)


def with_notes(text: str, problem: BaseException) -> str:
    """The text of an error, and what was added to it on its way: how to resume."""
    return "; ".join([text, *(" ".join(note.split()) for note in getattr(problem, "__notes__", ()))])


def _unknown_command(argv: list[str]) -> Exception:
    from rewardlab import registry

    if argv[0] in registry.methods():
        return UsageError(f"{argv[0]} is a method, not a command: rewardlab train {' '.join(argv)}, or rewardlab show {argv[0]}")
    if argv[0].startswith("-"):
        return unknown("flag", argv[0], ("--help", "--version", "--json", "--debug", "--unsafe-sandbox"))
    return unknown("command", argv[0], COMMANDS)
