"""Serve a run or a model by the OpenAI API: chat and text completions, streamed or whole, with log-probs.

  rewardlab serve-model runs/mine
  rewardlab serve-model smollm2 --port 8200 --max-new 256
  rewardlab serve-model embedded:arithmetic --name small

Any client of the API talks to it at http://127.0.0.1:8000/v1, and so does rewardlab: --model openai:http://127.0.0.1:8000/v1#NAME.
See docs/SERVING.md. SIGTERM and Ctrl-C end it when its last request is answered.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.runs.named import refuse_missing

HELP = "serve a run or a model by the OpenAI API, to any client"
PORT = 8000


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="RUN_OR_MODEL",
        help="a run, a folder (checkpoint, PEFT adapter), ORG/NAME of the hub, smollm2, embedded:TASK",
    )
    parser.add_argument("--name", metavar="NAME", help="model name for clients (default: the folder's, or the model's own)")
    shared.config_flags(parser, ("chat_template_kwargs", "device", "dtype"))
    shared.config_flag(parser, "max_new", help="tokens of a reply, at most, and where a request does not say (default 1024)")
    shared.number_flag(parser, "queue", "requests in the queue; more are refused until it drains (default 256)", default=256)
    shared.address_flags(parser, PORT)


def run(args: argparse.Namespace) -> dict[str, Any]:
    # before torch is imported
    refuse_missing(args.model)
    address = shared.address(args)

    from rewardlab.servers import serve_policy

    given = shared.given(args, ("chat_template_kwargs", "device", "dtype", "max_new"))
    most_new = given.pop("max_new", 1024)
    return serve_policy.serve(args.model, address, name=args.name, most_new=most_new, queue=args.queue, **given)


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts

    facts(document)
