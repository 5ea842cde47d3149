"""Measure pass@k of a model, or of a run's policy, on held-out problems.

rewardlab eval embedded --task arithmetic --k 1,8
rewardlab eval runs/mine --problems 500
rewardlab eval runs/mine --test held.jsonl
rewardlab eval runs/mine --judge openai:http://localhost:8000/v1#my-judge

A run that was trained in an environment is measured there. Any model is with --tools, --corpus or --env:
rewardlab eval hf:Qwen/Qwen3-0.6B --task questions.jsonl --tools mine.py:search

With --workers ray, processes of a Ray cluster sample and judge; each loads the model.

The run of a reward model or of a judge is measured on held-out pairs, by the measure of its method: rewardlab eval runs/rm --task
pairs.jsonl

A run is measured on the held-out problems of its own task, read as in the run, unless flags say otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.runs.config import config_of_run, refuse_missing
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
    text = "judge of the answers: openai:URL#NAME (served), or a verifier's name (default: the task's own)"
    parser.add_argument("--judge", metavar="VERIFIER", help=text)
    shared.environment_flags(parser)
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    # before torch is imported, so that a missing task is reported at once
    refuse_missing(args.model)
    if config_of_run(args.model) is None:
        shared.require_task(args)

    from rewardlab import api

    about = {"k": args.k, "problems": args.problems, "temperature": args.temperature, "judge": args.judge, "workers": args.workers}
    return api.evaluate(args.model, **about, **shared.load_environment(args), **shared.given(args, FIELDS))


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, warn_of_cut_off

    facts(document)
    warn_of_cut_off(document)


def counts(text: str) -> tuple[int, ...]:
    """The values of --k, ascending, each once."""
    return tuple(sorted({shared.read("--k", POSITIVE, k.strip()) for k in text.split(",")}))
