"""Find replies that a reward wrongly accepts or refuses, before you train on it: yours, a library's, or one of rewardlab's.

  rewardlab audit math
  rewardlab audit my_rewards.py:reward --problems train.jsonl --answer-column solution --out audit.html
  rewardlab audit "trl.rewards:get_soft_overlong_punishment(max_completion_len=100, soft_punish_cache=20)"
  rewardlab audit http://localhost:8000/v1 --template judge.txt
  rewardlab audit openai:http://localhost:8000/v1#my-judge --pairwise
  rewardlab audit grpo --problems arithmetic
  rewardlab audit my_rewards.py:reward --replay 3f9a01c2

Once the reward is loaded, it ends within a minute (--seconds), even if the reward hangs. Exit status: 0 without faults, 1 with
faults, 2 if the audit or some of its probes could not run. A replay exits with 1 as long as the reply gets the same reward as
before.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.settings.domain import ABOVE_ZERO

HELP = "find replies that a reward wrongly accepts or refuses"
PROBLEMS = "a task, or a file of your own problems (default: built-in problems)"
TARGET = "a built-in reward, FILE.py:FUNCTION (FILE.py, if it has only one), MODULE:FUNCTION, a judge's address, a method, or a run"


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help=TARGET)
    shared.config_flag(parser, "task", also=("--problems",), help=PROBLEMS)
    shared.config_flags(parser, shared.DATA[1:])
    parser.add_argument("--kind", metavar="KIND", help="kind of the built-in problems (default: all that the reward can judge)")
    shared.number_flag(parser, "questions", "problems with varied replies (default 24)", default=24)
    shared.number_flag(parser, "seconds", "seconds of the audit, once its target is loaded (default 50)", metavar="S", default=50)
    text = "timeout of one call in seconds (default 5)"
    shared.number_flag(parser, "limit", text, ABOVE_ZERO, metavar="S", default=5.0)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report to FILE.html, or to audit.html in a folder")
    parser.add_argument("--replay", metavar="ID", help="replay one example of a report: its id, or a JSON file with it")
    judge = parser.add_argument_group("judges")
    judge.add_argument("--judge-model", metavar="NAME", help="model of the endpoint (default: the only one that it serves)")
    text = "the prompt for the judge, with {prompt}, {response} and {answer} in it; {first} and {second} for --pairwise"
    judge.add_argument("--template", type=Path, metavar="FILE", help=text)
    text = "audit a pairwise judge: order, length and style bias, on pairs with a known better reply"
    judge.add_argument("--pairwise", action="store_true", help=text)
    judge.add_argument(
        "--score-pattern", metavar="REGEX", help="regular expression whose one group is the score in the judge's reply"
    )
    shared.number_flag(judge, "concurrency", "requests at a time (default 8)", default=8)
    judge.add_argument("--key-from", metavar="NAME", help="environment variable that holds the endpoint's key")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.errors import RewardlabError
    from rewardlab.registry import names

    # before torch is imported
    if re.match(r"(?!https?:)[\w+.-]+://", args.target):
        raise RewardlabError(f"{args.target}: the address of a judge begins with http:// or https:// (or openai:http://)")
    if names.SOURCE.fullmatch(args.target) and not args.target.startswith((names.PREFIX, names.TRAINED)):
        names.check_source(args.target)
    if args.key_from and args.key_from not in os.environ:
        raise RewardlabError(f"--key-from: the environment variable {args.key_from} is not set")

    from rewardlab.audit import audits
    from rewardlab.audit.loading import parse

    if args.out and args.out.suffix == ".html" and not args.out.parent.is_dir():
        raise RewardlabError(f"there is no folder {args.out.parent} to write {args.out.name} in")
    task = shared.load_task(args) if args.task else None
    spec = parse(args.target, _judge(args), task.verifier if task else None)
    call = {"target": args.target, "limit": args.limit}
    try:
        if args.replay:
            return audits.replay(spec, args.replay, **call)
        return audits.audit_target(
            spec, task=task, questions=args.questions, kind=args.kind, budget=args.seconds, out=args.out, **call
        )
    # a wrong request keeps its own message and exit status 2
    except RewardlabError:
        raise
    except Exception as problem:
        # exit status 1 means faults of the reward, nothing else
        raise RewardlabError(f"the audit itself failed: {type(problem).__name__}: {problem} (--debug shows where)") from problem


def _judge(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.errors import RewardlabError

    if args.template and not args.template.is_file():
        raise RewardlabError(f"there is no template {args.template}")
    return {
        "model": args.judge_model, "template": args.template.read_text("utf-8") if args.template else None,
        "pairwise": args.pairwise, "pattern": args.score_pattern, "concurrency": args.concurrency, "key": args.key_from,
        # shorter than the limit of the process that calls the judge, so that a slow endpoint is reported as such and not as a hang
        "seconds": 0.8 * args.limit,
    }  # fmt: skip


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.audit.terminal import show_audit, show_replay

    (show_replay if "replayed" in document else show_audit)(document)


def exit_code(document: Mapping[str, Any]) -> int:
    if "replayed" in document:
        # 1 while the fault is still there, so that a replay can serve as a failing test
        return int(document["unchanged"])
    return {"clean": 0, "faults": 1, "unfinished": 2}[document["verdict"]]
