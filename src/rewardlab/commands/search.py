"""Test-time search, guided by any scorer, at a budget of tokens.

rewardlab search beam_search --task arithmetic --scorer prm:runs/prm/model --budget 400 --out answers.jsonl
rewardlab search dvts --task mine.jsonl --model smollm2 --scorer "length_penalty()" --trees 4
rewardlab search beam_search,dvts,best_of_n,majority_vote --task arithmetic --budgets 200,400,800 --page curves.html
rewardlab search mcts --task arithmetic --scorer verifier --iterations 12 --rule puct
rewardlab search best_of_n,majority_vote --task mine.jsonl --model smollm2 --tools mine.py:lookup --turns 4

A budget is all tokens that a problem may cost: those that the policy writes and those that the scorer reads. The width of each
search (n, width, trees or iterations) is the largest that keeps within it on eight of the problems; what all of them cost is
measured and said. Without a budget, methods have their own settings, which are flags: --width 8, or --dvts.branch 2 for one.

With several methods and budgets, all answer the same problems. The plan names the method to use at each budget, and those that
cannot be told apart from it. Killed and called again with the same --out, it resumes where it was.

With --tools, --corpus or --env (and --turns) the replies of best_of_n, majority_vote and others that sample independent replies are
episodes, and an answer is the last reply of one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.api.selecting import check_selects
from rewardlab.commands import flags as shared
from rewardlab.errors import RewardlabError
from rewardlab.runs.named import config_of_run, refuse_missing
from rewardlab.settings.domain import POSITIVE

HELP = "test-time search, compared at equal tokens"
SETTINGS = True
FIELDS = (*shared.DATA, *shared.LOADED, "seed")
OURS = ("likelihood", "verifier")
"""Scorers that are no rewards by name: what they stand for is the API's."""


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("methods", nargs="+", metavar="METHOD", help="methods that select an answer, such as beam_search")
    text = "prm:PATH, verifier, likelihood, or a reward as --reward of train takes it (default: the method's own)"
    parser.add_argument("--scorer", metavar="S", help=text)
    text = "tokens per problem, of policy and scorer; several for curves: 200,400,800"
    parser.add_argument("--budget", "--budgets", dest="budgets", action=Counts, default=(), metavar="TOKENS", help=text)
    shared.number_flag(parser, "problems", "held-out problems of the task (default 100)", default=100)
    shared.number_flag(parser, "batch", "problems per saved batch (default 16)", default=16)
    text = "append a row per answer; a killed command resumes, a finished one gives its result again"
    parser.add_argument("--out", type=Path, metavar="FILE", help=text)
    text = "with --out: keep every reply that was chosen among too, and its score, in a column `candidates`"
    parser.add_argument("--candidates", action="store_true", help=text)
    parser.add_argument("--page", type=Path, metavar="FILE", help="write an HTML page of accuracy against tokens")
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    methods = [name for word in args.methods for name in word.split(",") if name]
    # before torch is imported
    for method in methods:
        check_selects(method)
    settings = shared.method_settings(args, *methods)
    refuse_missing(args.model)
    if config_of_run(args.model) is None and not args.test:
        shared.require_task(args)
    if args.scorer and args.scorer not in OURS and not args.scorer.startswith("prm:"):
        from rewardlab.registry.names import check_reward

        check_reward(args.scorer)
    if args.candidates and not args.out:
        raise RewardlabError("--candidates are rows of a file: give --out FILE")
    from rewardlab import api

    return api.search(
        methods, scorer=args.scorer, budgets=args.budgets, problems=args.problems, settings=settings, out=args.out, page=args.page,
        batch=args.batch, candidates=args.candidates, **shared.given(args, FIELDS),
    )  # fmt: skip


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, heading, listing, table, warn_of_cut_off

    facts({k: v for k, v in document.items() if k not in ("results", "plan")})
    columns = ("method", "budget", "setting", "accuracy", "tokens", "of the scorer", "replies")
    cells = document["results"]
    table(columns, map(_row, cells))
    for method in dict.fromkeys(cell["method"] for cell in cells):
        # of the budget at which most were
        warn_of_cut_off(max((c for c in cells if c["method"] == method), key=lambda c: c.get("cut_off", 0.0)), method)
        if missing := sum(cell.get("missing", 0) for cell in cells if cell["method"] == method):
            print(f"warning: {method} chose among replies of which {missing:,} had no verdict of its scorer")
    if plan := document.get("plan"):
        heading("Which to use")
        listing((f"{row['budget']:,}", row["words"]) for row in plan)


def _row(cell: Mapping[str, Any]) -> list[Any]:
    if "why" in cell:
        return [cell["method"], cell["budget"], f"over budget: {cell['why']}", *[None] * 4]
    setting = ", ".join(f"{name}={value}" for name, value in cell["setting"].items())
    numbers = (cell[name] for name in ("accuracy", "tokens", "scorer_tokens", "replies"))
    return [cell["method"], cell["budget"], setting, *numbers]


class Counts(argparse.Action):
    """The values of --budget or --budgets, ascending, each once; an action, since it knows which of the two was written."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        flag = option_string or "--budget"
        found = {shared.read(flag, POSITIVE, part.strip()) for part in values.split(",")}
        setattr(namespace, self.dest, tuple(sorted(found)))
