"""Measure pass@k of a model, or of a run's policy, on held-out problems.

rewardlab eval embedded --task arithmetic --k 1,8
rewardlab eval runs/mine --problems 500
rewardlab eval runs/mine --test held.jsonl
rewardlab eval path/to/model --test held.jsonl
rewardlab eval runs/mine --judge openai:http://localhost:8000/v1#my-judge

Right is a verdict of at least 1. Of a judge whose verdicts lie between, mean_verdict says what the replies are worth.

With --best-of it says what the best of k replies by a reward is worth, by the task's verifier, and what the reward pays it: where
the one falls as the other rises, the reward is over-optimised. KL is that of choosing one of k.
rewardlab eval embedded --task arithmetic --k 1,4,16,64,256 --best-of model:runs/rm

With --reasoning the reasoning of right replies is judged too: cot_pass@k counts what is right for a right reason. An answer that
can be guessed is found by any model in enough tries.
rewardlab eval embedded --task mine.jsonl --k 1,16 --reasoning openai:http://localhost:8000/v1#my-judge

A run that was trained in an environment is measured there, for as many turns as in the run, or as --turns says. Any model is with
--tools, --corpus or --env:
rewardlab eval hf:Qwen/Qwen3-0.6B --task questions.jsonl --tools mine.py:search

With --workers ray, processes of a Ray cluster sample and judge; each loads the model.

The run of a reward model or of a judge is measured on held-out pairs, by the measure of its method: rewardlab eval runs/rm --task
pairs.jsonl. So is a policy that learnt from pairs (dpo), where rows have no answers: how often it finds the chosen reply likelier.

A run is measured on the held-out problems of its own task, read as in the run, unless flags say otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.runs.named import config_of_run, refuse_missing
from rewardlab.settings.domain import NOT_NEGATIVE, POSITIVE

HELP = "measure pass@k of a model or a run on held-out problems"
FIELDS = (*shared.DATA, *shared.LOADED[1:], "seed")  # the model is an argument


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL_OR_RUN",
        help="embedded, smollm2, a folder (checkpoint, PEFT adapter, run), ORG/NAME of the hub, or openai:URL#NAME (served)",
    )  # fmt: skip
    parser.add_argument("--k", type=counts, default=(1, 8), metavar="K,K", help="replies per problem (default 1,8)")
    shared.number_flag(parser, "problems", "held-out problems of the task (default 200)", default=200)
    text = "sampling temperature (default 1; 0 is greedy)"
    shared.number_flag(parser, "temperature", text, NOT_NEGATIVE, metavar="T", default=1.0)
    shared.workers_flag(parser)
    text = "judge of the answers: openai:URL#NAME (served), a verifier's name, or FILE.py:function (default: the task's own)"
    parser.add_argument("--judge", metavar="VERIFIER", help=text)
    text = "reward by which the best of k replies is chosen: FILE.py:function, a name, a formula, model:RUN"
    parser.add_argument("--best-of", metavar="REWARD", help=text)
    text = "what judges the reasoning of right replies, for cot_pass@k: openai:URL#NAME (served), or a reward as of --best-of"
    parser.add_argument("--reasoning", metavar="REWARD", help=text)
    shared.environment_flags(parser)
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    # before torch is imported, so that a missing task is reported at once
    refuse_missing(args.model)
    if config_of_run(args.model) is None and not args.test:
        shared.require_task(args)

    from rewardlab import api

    about = {"k": args.k, "problems": args.problems, "temperature": args.temperature, "judge": args.judge, "workers": args.workers}
    about |= {"best_of": args.best_of, "reasoning": args.reasoning}
    return api.evaluate(args.model, **about, **shared.load_environment(args, of_run=True), **shared.given(args, FIELDS))


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, table, warn_of_cut_off

    facts({name: x for name, x in document.items() if name != "best"})
    if rows := document.get("best"):
        table(("best of", "worth", "95% interval", "is paid", "KL"), [
            [row["k"], row["value"], row["ci95"] and [round(x, 3) for x in row["ci95"]], row["paid"], row["kl"]] for row in rows
        ])  # fmt: skip
    warn_of_cut_off(document)


def counts(text: str) -> tuple[int, ...]:
    """The values of --k, ascending, each once."""
    return tuple(sorted({shared.read("--k", POSITIVE, k.strip()) for k in text.split(",")}))
