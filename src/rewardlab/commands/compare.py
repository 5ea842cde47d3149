"""Run several methods on the same problems, with equal updates; print means and paired differences, and write a page of curves.

  rewardlab compare grpo rloo ppo --task arithmetic
  rewardlab compare grpo rloo --task countdown --n 16 --rloo.lr 1e-4 --out runs/mine
  rewardlab compare grpo rloo --task countdown --budget 100000
  rewardlab compare grpo dapo --task mine.jsonl --prompt-column question --answer-column answer --reward mine.py:score
  rewardlab compare grpo rloo --task mine.jsonl --model smollm2 --dry-run
  rewardlab compare grpo igpo --task mine.jsonl --model smollm2 --tools mine.py:search --turns 4
  rewardlab compare --resume runs/mine
  rewardlab compare --resume runs/mine --seeds 8
  rewardlab compare grpo rloo dr_grpo --task countdown --rates 1e-4,3e-4,1e-3 --steps 40
  rewardlab compare grpo hapo grpo_lambda --hapo.weight 0.5,1,2 --grpo_lambda.alpha 0.1,0.2,0.4 --task mine.jsonl --x length

Every method makes --steps steps. With --equal tokens, every method gets the tokens that the first one which trains uses in --steps
steps, seed by seed; with --budget, that many tokens. A method that selects an answer and trains nothing (best_of_n) is compared by
the accuracy of its answers.

Means of five seeds or more have Student's intervals. Of fewer, the value of every seed is shown, with the interval over the
held-out problems.

With --rates every method gets the rate that suits it, chosen on seeds of their own by the accuracy of training, or by the reward
where a reward of yours is compared. A whole family is compared on your task by its league: rewardlab league objectives --task
mine.jsonl.

Settings of methods are flags: --n 16 is for every method that has it, --grpo.n 16 for one. --problems is one of them, the problems
of a training step; held-out ones are --eval-problems, as in train. Several values (--hapo.weight 0.5,1,2) are compared as
hapo:weight=0.5, hapo:weight=1 ... What answers the replies (--tools, --corpus or --env, and --turns) is the same for all methods.

--x and --y draw two measures against each other: every method a curve over its values, those greyed that another is better than on
both. Less of x is better, and more of y (which is what is compared if it is left out); otherwise write NAME:higher or NAME:lower.

DIR/runs holds an ordinary run folder for each run, without the checkpoints and, unless --keep-models is given, the models of
runs that have finished.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.errors import RewardlabError

HELP = "run several methods on the same problems, with equal updates or equal tokens"
SETTINGS = True
OF_ONE_RUN = ("seed", "start", "out", "engine", "engine_options")
"""Settings that differ from run to run, or that a comparison decides."""
FIELDS = tuple(name for name, f in shared.FIELDS.items() if not f.metadata["no_flag"] and name not in OF_ONE_RUN)
OWN = ("steps", "budget", "eval_problems", "eval_every")
"""Fields whose flags have another meaning here, or another default."""
EVAL_EVERY, SEEDS = 5, 5
WHEN_RESUMED = {"--resume", "--without", "--seeds", "--jobs", "--x", "--y", "--self-contained", "--json"}


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="two methods or more; a stack counts as one: grpo+a")
    shared.reward_flag(parser)
    parser.add_argument("--resume", type=Path, metavar="DIR", help="complete the comparison in this folder, or extend it (--seeds)")
    text = "with --resume: leave this method out, such as one whose runs fail; may be repeated"
    parser.add_argument("--without", action="append", default=[], metavar="METHOD", help=text)
    shared.number_flag(parser, "seeds", f"runs of each method (default {SEEDS})")
    # a run ends after a number of steps or at a budget, not at both
    end = parser.add_mutually_exclusive_group()
    shared.config_flag(end, "steps", help="training steps of every method (default 20)")
    shared.config_flag(end, "budget", help="equal tokens: this many for each run, generated and scored by all models")
    text = "what all runs get alike: updates (the default: --steps steps each), or the tokens of the first method's --steps steps"
    parser.add_argument("--equal", choices=("updates", "tokens"), help=text)
    parser.add_argument("--rates", metavar="LIST", help="choose each method's rate from these, as 1e-4,3e-4,1e-3, on other seeds")
    shared.number_flag(parser, "rate-seeds", "with --rates: runs of each method at each rate (default 2)")
    parser.add_argument("--measure", metavar="NAME", help="the number compared (default: what the first method measures)")
    parser.add_argument("--x", metavar="NAME", help="draw the frontier against this measure: length, tokens, ...")
    parser.add_argument("--y", metavar="NAME", help="with --x: the measure that is drawn upwards (default: the number compared)")
    shared.config_flag(parser, "eval_problems")
    shared.config_flag(parser, "eval_every", help=f"steps between points of the curves (default {EVAL_EVERY})")
    shared.number_flag(parser, "jobs", "runs at a time (default: one a core; of a real model one a GPU, or as many as fit)")
    parser.add_argument("--dry-run", action="store_true", help="one step of each method: what is wrong, and how long it will take")
    parser.add_argument("--keep-models", action="store_true", help="keep best/ and model/ of finished runs")
    text = "hold Plotly's library (5 MB) in every page, in place of loading it from one file in DIR"
    parser.add_argument("--self-contained", action="store_true", help=text)
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
    names, rates = args.methods, shared.rates_of(args.rates)
    settings = shared.method_settings(args, *names)
    # one method under several values of a setting is a comparison too
    several = any(isinstance(value, list) or (isinstance(value, str) and "," in value) for value in settings.values())
    if len(names) < 2 and not several:
        raise RewardlabError(f"a comparison is of two methods or more; one is trained by: rewardlab train {args.methods[0]}")
    shared.require_task(args)
    config = shared.RunConfig(**{"eval_every": EVAL_EVERY} | shared.given(args, FIELDS))

    # torch is imported only now that the flags have been checked
    from rewardlab.comparisons.compare import compare

    how = {"measure": args.measure, "jobs": args.jobs, "out": args.out, "keep_models": args.keep_models, "x": args.x, "y": args.y}
    how |= {"equal": args.equal, "rates": rates}
    how |= {"self_contained": args.self_contained, "dry_run": args.dry_run}
    if args.rate_seeds is not None:
        if not rates:
            raise RewardlabError("--rate-seeds says on how many seeds the rates of --rates are tried: give --rates too")
        how["rate_seeds"] = args.rate_seeds
    return compare(
        args.methods, config, settings=settings, reward=shared.load_reward(args), seeds=range(args.seeds or SEEDS), **how
    )


def resumed(args: argparse.Namespace) -> dict[str, Any]:
    if refused := [*args.methods, *sorted(args.flags_given - WHEN_RESUMED), *args.settings]:
        raise RewardlabError(f"--resume takes everything from {args.resume / 'plan.json'}; drop {', '.join(refused)}")

    from rewardlab.comparisons.compare import resume

    seeds = range(args.seeds) if args.seeds else None
    return resume(
        args.resume, seeds=seeds, without=args.without, jobs=args.jobs, x=args.x, y=args.y, self_contained=args.self_contained
    )


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.checks.verdict import PAIRS
    from rewardlab.commands.tables import facts, heading, lines, table

    # of --dry-run nothing was run
    if "out" not in document:
        return facts({**document, "methods": ", ".join(document["methods"])})
    rows, seeds, out = document["methods"], len(document["seeds"]), Path(document["out"])
    heading(f"{document['measure']} on {document['task']}, {seeds} seed{'s' * (seeds > 1)}")
    _results(rows, few=seeds < PAIRS)
    if ks := list(rows[0]["pass_at"]):
        table(("method", *(f"pass@{k}" for k in ks)), ([row["method"], *(_at(row, k) for k in ks)] for row in rows))
    beside = [name for name, found in rows[0]["beside"].items() if any(row["beside"][name]["mean"] is not None for row in rows)]
    table(
        ("method", "rate", *beside),
        ([row["method"], row["rate"] or "its own", *(_beside(row, name) for name in beside)] for row in rows),
    )
    table(("method", "tokens of training", "updates", "tokens per answer", "seconds"), map(_cost, rows))
    if found := document["frontier"]:
        x, y = found["x"], found["y"]
        heading(f"{y['name']} ({y['better']} is better) against {x['name']} ({x['better']} is better)")
        spread = "each seed" if seeds < PAIRS else "95% interval"
        points = [_point(point, seeds < PAIRS) for point in found["points"]]
        table(("method", x["name"], spread, y["name"], spread, "on the frontier"), points)
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


def _results(rows: Sequence[Mapping[str, Any]], few: bool) -> None:
    """The table of means and of differences to the first method.  few: seeds, each of which is then shown."""
    from rewardlab.commands.tables import table

    against = f"against {rows[0]['method']}"
    if few:
        table(("method", "mean", "each seed", "95% interval, problems", against, "each seed", "decided"), map(_seed_by_seed, rows))
    else:
        table(("method", "mean", "95% interval, seeds", against, "95% interval", "p, adjusted", "decided"), map(_result, rows))


def _seed_by_seed(row: Mapping[str, Any]) -> list[Any]:
    change = row["difference"]
    cells = [row["method"], _known(row["mean"]), _each(row["values"]), row["ci95"] or "–"]
    return [*cells, *((_signed(change["mean"]), _each(change["values"], _signed), change["decision"]) if change else ("", "", ""))]


def _result(row: Mapping[str, Any]) -> list[Any]:
    """A method's mean and its difference to the first method's."""
    change = row["difference"]
    cells = [row["method"], _known(row["mean"]), row["ci95"] or "–"]
    if not change:
        return [*cells, "", "", "", ""]
    return [*cells, _signed(change["mean"]), change["ci95"] or "–", f"{change['p_adjusted']:.2g}", change["decision"]]


def _each(values: Sequence[float | None], written: Callable[[float | None], str] | None = None) -> str:
    """The value of every seed."""
    return "  ".join((written or _short)(value) for value in values)


def _short(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"


def _at(row: Mapping[str, Any], k: str) -> Any:
    return _known(row["pass_at"].get(k, {}).get("mean"))


def _beside(row: Mapping[str, Any], name: str) -> Any:
    value = row["beside"][name]["mean"]
    return "–" if value is None else value


def _point(point: Mapping[str, Any], few: bool) -> list[Any]:
    sides = [point[axis] for axis in "xy"]
    cells = [cell for at in sides for cell in (_known(at["mean"]), _each(at["values"]) if few else at["ci95"] or "–")]
    return [point["method"], *cells, {True: "dominated", False: "yes", None: "not measured"}[point["dominated"]]]


def _known(value: float | None) -> Any:
    return "undefined" if value is None else value


def _cost(row: Mapping[str, Any]) -> list[Any]:
    counts = [row["tokens"], row["updates"], row["tokens_per_answer"]]
    shown = ["–" if count is None else f"{count:,.0f}" for count in counts]
    return [row["method"], *shown, f"{sum(row['seconds']) / len(row['seconds']):.1f}"]


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.4g}"
