"""Answer problems by a method's search and selection (best_of_n, majority_vote, ...), without training.

rewardlab answer majority_vote --task arithmetic --n 16
rewardlab answer majority_vote --prompt "Start with 12. Subtract 5. Multiply by 3. Add 9."
rewardlab answer majority_vote --model smollm2 --prompt "What is 17 * 4 + 3?"
rewardlab answer majority_vote --model runs/mine
rewardlab answer majority_vote --model openai:http://localhost:8000/v1#my-model --prompt "What is 17 * 4 + 3?"
rewardlab answer majority_vote --model smollm2 --prompt "How warm is it in Oslo?" --tools mine.py:weather
rewardlab answer best_of_n --task arithmetic --reward "answer_given() >> likelihood()"

Without --model, the small policy that comes with rewardlab answers. It knows the wording of its own tasks alone. With tools
(or --env, --corpus) what was said is shown before the answer: each reply with its calls, and what they gave; --json has it whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rewardlab.api.selecting import check_selects
from rewardlab.commands import flags as shared
from rewardlab.errors import RewardlabError
from rewardlab.runs.named import config_of_run, refuse_missing

HELP = "answer problems, or one prompt, by a method's search and selection"
SETTINGS = True
SHOWN = 300
"""Characters of a reply or a result that are shown."""
FIELDS = (*shared.DATA[1:], *shared.LOADED, "seed")  # --task is added on its own: it excludes --prompt


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD", help="a method, or several stacked")
    what = parser.add_mutually_exclusive_group()
    shared.config_flag(what, "task")
    what.add_argument("--prompt", metavar="TEXT", help="one question instead of a task")
    shared.reward_flag(parser)
    shared.number_flag(parser, "problems", "held-out problems of the task (default 100)", default=100)
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    # before torch is imported; a run has a task of its own
    refuse_missing(args.model)
    if not (args.task or args.test) and args.prompt is None and config_of_run(args.model) is None:
        raise RewardlabError("nothing to answer: give --task, --test or --prompt, or a run as --model")
    check_selects(args.method)
    recipe = shared.load_recipe(args)

    from rewardlab import api

    return api.answer(recipe, task=args.task, prompt=args.prompt, problems=args.problems, **shared.given(args, FIELDS))


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, warn_of_cut_off

    facts(_flat(document))
    warn_of_cut_off(document)


def _flat(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a line for each reply and each result of a conversation, the answer last; long ones in short."""
    told: dict[str, Any] = {}
    counts = {"reply": 0, "result": 0}
    for name, x in document.items():
        if name != "conversation":
            told[name] = x
            continue
        for one in x:
            counts[one["by"]] += 1
            paid = f"  (paid {one['reward']:g})" if "reward" in one else ""
            told[f"{one['by']} {counts[one['by']]}"] = _short(one["text"]) + paid
    return told


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= SHOWN else f"{words[:SHOWN]} ... ({len(text):,} characters; --json has all)"
