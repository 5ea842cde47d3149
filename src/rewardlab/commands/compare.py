"""Run several methods on the same problems and one budget; print means and paired differences, and write a page of curves.

  rewardlab compare grpo rloo ppo --task arithmetic
  rewardlab compare grpo rloo --task countdown --n 16 --rloo.lr 1e-4 --budget 100000 --out runs/mine
  rewardlab compare grpo dapo --task mine.jsonl --prompt-column question --answer-column answer --reward mine.py:score
  rewardlab compare --resume runs/mine
  rewardlab compare --resume runs/mine --seeds 8

Without --budget, every method gets the tokens that the first one which trains uses in --steps steps. A method that selects an
answer and trains nothing (best_of_n) is compared by the accuracy of its answers.

Settings of methods are flags: --n 16 is for every method that has it, --grpo.n 16 for one. Problems per training step are
--METHOD.problems, since --problems is the number of held-out ones.

DIR/runs holds an ordinary run folder for each run, without the checkpoints and, unless --keep-models is given, the models of
runs that have finished.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

from . import flags as shared

HELP = "run several methods on the same problems and one budget"
SETTINGS = True
OF_ONE_RUN = ("seed", "start", "out", "engine", "engine_options")
"""Settings that differ from run to run, or that a comparison decides."""
FIELDS = tuple(name for name, f in shared.FIELDS.items() if not f.metadata["no_flag"] and name not in OF_ONE_RUN)
OWN = ("steps", "budget", "eval_problems", "eval_every")
"""Fields whose flags have another meaning here, or another default."""
EVAL_EVERY, SEEDS = 5, 5
WHEN_RESUMED = {"--resume", "--without", "--seeds", "--jobs", "--json"}


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="two methods or more; a stack counts as one: grpo+a")
    shared.reward_flag(parser)
    parser.add_argument("--resume", type=Path, metavar="DIR", help="complete the comparison in this folder, or extend it (--seeds)")
    text = "with --resume: leave this method out from now on, such as one whose runs fail; may be repeated"
    parser.add_argument("--without", action="append", default=[], metavar="METHOD", help=text)
    shared.number_flag(parser, "seeds", f"runs of each method (default {SEEDS})")
    # a run ends after a number of steps or at a budget, not at both
    end = parser.add_mutually_exclusive_group()
    shared.config_flag(end, "steps", help="training steps of the first method (default 20)")
    shared.config_flag(end, "budget", help="tokens of each run, generated and scored by all models")
    parser.add_argument("--measure", metavar="NAME", help="the number compared (default: what the first method measures)")
    shared.config_flag(parser, "eval_problems", also=("--problems",))
    shared.config_flag(parser, "eval_every", help=f"steps between points of the curves (default {EVAL_EVERY})")
    shared.number_flag(parser, "jobs", "runs at a time (default: as many as there are cores)")
    parser.add_argument("--keep-models", action="store_true", help="keep best/ and model/ of finished runs")
    shared.config_flags(parser, (name for name in FIELDS if name not in OWN))
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write (default: a new one in runs/)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.resume:
        return resumed(args)
    if args.without:
        raise RewardlabError("--without is for a comparison that is resumed; name the methods to compare instead")
    if not args.methods:
        raise RewardlabError("which methods? rewardlab compare METHOD METHOD --task TASK (rewardlab list shows them)")
    for name in args.methods:
        if "," in name:
            apart = " ".join(filter(None, name.replace(" ", "").split(",")))
            raise RewardlabError(f"{name!r}: methods to compare are written with spaces between them: {apart}")
    # before the task is asked for: a wrong name is wrong on every task
    settings = shared.method_settings(args, *args.methods)
    if len(args.methods) < 2:
        raise RewardlabError(f"a comparison is of two methods or more; one is trained by: rewardlab train {args.methods[0]}")
    shared.require_task(args)
    config = shared.RunConfig(**{"eval_every": EVAL_EVERY} | shared.given(args, FIELDS))

    # torch is imported only now that the flags have been checked
    from rewardlab.proof.compare import compare

    how = {"measure": args.measure, "jobs": args.jobs, "out": args.out, "keep_models": args.keep_models}
    return compare(
        args.methods, config, settings=settings, reward=shared.load_reward(args), seeds=range(args.seeds or SEEDS), **how
    )


def resumed(args: argparse.Namespace) -> dict[str, Any]:
    if refused := [*args.methods, *sorted(args.flags_given - WHEN_RESUMED), *args.settings]:
        raise RewardlabError(f"--resume takes everything from {args.resume / 'plan.json'}; drop {', '.join(refused)}")

    from rewardlab.proof.compare import resume

    seeds = range(args.seeds) if args.seeds else None
    return resume(args.resume, seeds=seeds, without=args.without, jobs=args.jobs)


def show(document: Mapping[str, Any]) -> None:
    from .tables import heading, lines, table

    rows, seeds, out = document["methods"], len(document["seeds"]), Path(document["out"])
    heading(f"{document['measure']} on {document['task']}, {seeds} seed{'s' * (seeds > 1)}")
    table(("method", "mean", "95% interval", f"against {rows[0]['method']}", "95% interval", "decided"), map(_result, rows))
    table(("method", "tokens of training", "updates", "tokens per answer", "seconds"), map(_cost, rows))
    for note in document["notes"]:
        lines(note)
    heading("Next")
    lines(f"open {shlex.quote(str(out / 'compare.html'))}")
    runs, page = shlex.quote(str(out / "runs")), shlex.quote(str(out / "runs.html"))
    lines(f"rewardlab report {runs}/* --out {page}    every run, with its rollouts")
    if any(row["difference"] and row["difference"]["decision"] in UNDECIDED for row in rows):
        more = f"rewardlab compare --resume {shlex.quote(str(out))} --seeds {max(2 * seeds, SEEDS)}"
        lines(f"{more}    more seeds, beside those above")


UNDECIDED = ("too few seeds", "not decided")


def _result(row: Mapping[str, Any]) -> list[Any]:
    """A method's mean and its difference to the first method's."""
    change = row["difference"]
    mean = "undefined" if row["mean"] is None else row["mean"]
    if not change:
        return [row["method"], mean, row["ci95"], "", "", ""]
    return [row["method"], mean, row["ci95"], _signed(change["mean"]), change["ci95"], change["decision"]]


def _cost(row: Mapping[str, Any]) -> list[Any]:
    counts = [row["tokens"], row["updates"], row["tokens_per_answer"]]
    shown = ["–" if count is None else f"{count:,.0f}" for count in counts]
    return [row["method"], *shown, f"{sum(row['seconds']) / len(row['seconds']):.1f}"]


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.4g}"
