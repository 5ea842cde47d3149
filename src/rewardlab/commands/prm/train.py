"""Train a process reward model on labelled solutions, and save it with a model card.

rewardlab prm train labelled.jsonl --model ORG/NAME --out prm --lora-rank 32
rewardlab prm train labelled.jsonl --model embedded:arithmetic:judge --out prm --loss soft --steps 100
rewardlab prm train judged.jsonl --model ORG/NAME --out prm --taught outcome --as implicit

--as head puts a value head on the model and saves a token classifier with two labels; generative has the model say Yes or No
after each step; implicit takes its log-ratio to what it was before. --loss: bce (labels rounded to right or wrong, at
--threshold), soft (shares as they are), mse, rank (PQM: right steps above wrong ones, by a margin --zeta), quantile (the --tau
quantile of the shares). --taught outcome learns whether whole solutions are right, as an outcome reward model does: rows need the
column right and no labels; each step's score is then the chance that the solution so far ends right.

A share of the problems is held out: the figures printed, and in the model card, are of these. Of 40 held-out solutions or more,
those of one half of the problems choose the step of training that is saved, and the figures are of the others; of fewer, all do
both, and the figures flatter. A scorer that learnt nothing is saved with a warning. Training writes a run with its report
in OUT.run; killed and called again, it resumes from there.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.settings.domain import ABOVE_ZERO, NOT_NEGATIVE, POSITIVE_SHARE, SHARE

HELP = "train a process reward model on labelled steps; saved for transformers"
FIELDS = (
    "steps", "lora_rank", "chat_template_kwargs", "device", "dtype", "seed", "eval_every", "checkpoint_every", "micro_tokens",
    "track",
)  # fmt: skip


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="labelled solutions, in our format or a published one (rewardlab prm --help)")
    parser.add_argument("--model", required=True, metavar="MODEL", help="the base model: a folder, a hub model, embedded:TASK ...")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder of the trained model")
    parser.add_argument("--run", metavar="DIR", help="folder of the run (default: OUT.run)")
    parser.add_argument("--as", dest="kind", default="head", metavar="KIND", help="head (default), generative or implicit")
    parser.add_argument("--loss", default="bce", metavar="LOSS", help="bce (default), soft, mse, rank or quantile")
    shared.number_flag(parser, "lr", "learning rate (default: by model and kind)", POSITIVE_SHARE, metavar="LR")
    shared.number_flag(parser, "problems", "solutions in a batch (default 16)", default=16)
    shared.number_flag(parser, "beta", "of implicit (default 0.05)", ABOVE_ZERO, metavar="B", default=0.05)
    shared.number_flag(parser, "zeta", "margin, for --loss rank (default 4)", NOT_NEGATIVE, metavar="Z", default=4.0)
    shared.number_flag(parser, "tau", "quantile, for --loss quantile (default 0.5)", SHARE, metavar="T", default=0.5)
    shared.number_flag(parser, "test_share", "share of held-out problems (default 0.1)", POSITIVE_SHARE, metavar="P", default=0.1)
    parser.add_argument("--format", default="auto", metavar="NAME", help="of DATA (default: by its columns)")
    text = "a label from LABEL up is right, a lower one wrong (default: .5 for bce and rank, else labels as they are); 0.01: hard "
    text += "labels of Monte Carlo shares"
    shared.number_flag(parser, "threshold", text, POSITIVE_SHARE, metavar="LABEL")
    text = "steps (default), by every label; first-error, by those up to the first wrong step; outcome, by whether the solution is "
    text += "right, in the column right: no label of a step is needed"
    parser.add_argument("--taught", default="steps", metavar="BY", help=text)
    text = "what a step is, saved with the model: newline, paragraph, sentence or tag (default: as DATA was labelled)"
    parser.add_argument("--splitter", metavar="NAME", default="", help=text)
    text = "leave out the alternative steps of PRM800K, and PRMBench's originals"
    parser.add_argument("--no-alternatives", dest="alternatives", action="store_false", help=text)
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab import api

    return api.train_scorer(
        args.data, args.model, args.out, kind=args.kind, loss=args.loss, lr=args.lr, problems=args.problems, beta=args.beta,
        zeta=args.zeta, tau=args.tau, test_share=args.test_share, format=args.format, alternatives=args.alternatives,
        threshold=args.threshold, taught=args.taught, splitter=args.splitter, run=args.run, **shared.given(args, FIELDS),
    )  # fmt: skip


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, heading

    facts({name: value for name, value in document.items() if name not in ("first_error", "steps")})
    for title, part in (("First errors", "first_error"), ("Steps", "steps")):
        heading(title)
        facts(document[part])
