"""Serve a reward on HTTP: to OpenRLHF, slime, verl, or any program. Or documents to be searched, by the protocol of Search-R1.

  rewardlab serve --task arithmetic
  rewardlab serve --reward my_rewards.py:score --reward "0.1 * format_ok(pattern='.*####.*')" --port 8100
  rewardlab serve --reward math --workers 8 --host 0.0.0.0 --key-from REWARD_TOKEN
  rewardlab serve --write-client verl --out reward_client.py
  rewardlab serve --corpus docs.jsonl --port 8000

POST /score {"prompt", "response", "answer", "meta"}, or {"rows": [...]}: score, steps and terms, null where there is no verdict.
POST /get_reward is OpenRLHF's, POST /slime is slime's; GET /health, /ready, /metrics. See docs/SERVING.md. Of a corpus: POST
/retrieve {"queries", "topk", "return_scores"}. SIGTERM and Ctrl-C end it when its last request is answered.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import ABOVE_ZERO

HELP = "serve a reward on HTTP, to OpenRLHF, slime, verl or any program; or a corpus to be searched"
PORT = 8100
CLIENTS = ("verl",)
SPLITTERS = ("newline", "paragraph", "tag", "sentence", "token")


def flags(parser: argparse.ArgumentParser) -> None:
    shared.reward_flag(parser, "what is served")
    shared.config_flag(parser, "task", help="a task: its verifier is served, also as correct() in --reward")
    parser.add_argument("--corpus", metavar="FILE", help="instead of a reward: a file of documents to search")
    shared.number_flag(parser, "topk", "documents of a query, where a request does not say (default 3)", default=3)
    parser.add_argument("--tokenizer", metavar="NAME", help="tokenizer of responses (default: characters)")
    parser.add_argument("--splitter", choices=SPLITTERS, default="newline", help="where steps of a response end (default newline)")
    shared.address_flags(parser, PORT)
    limits = parser.add_argument_group("limits")
    shared.number_flag(limits, "workers", "processes that score (default: one for each core)")
    shared.number_flag(
        limits, "seconds", "seconds for one row; more is given up (default 30)", ABOVE_ZERO, metavar="S", default=30.0
    )
    shared.number_flag(limits, "batch", "rows or queries of one request, at most (default 1024)", default=1024)
    shared.number_flag(limits, "queue", "rows in the queue; more are refused until it drains (default 8192)", default=8192)
    client = parser.add_argument_group("clients")
    client.add_argument("--write-client", choices=CLIENTS, help="write a trainer's client of this server, and exit")
    client.add_argument("--out", type=Path, metavar="FILE", help="the file of --write-client (default rewardlab_reward.py)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.write_client:
        return _client(args)
    if args.corpus:
        return _corpus(args)
    if not args.reward and not args.task:
        raise RewardlabError("which reward? give --reward REWARD, or --task TASK for a task's verifier; or --corpus FILE instead")
    if args.queue < args.batch:
        raise RewardlabError(f"--queue {args.queue} is smaller than --batch {args.batch}: such a request would never fit")
    from rewardlab.registry import names
    from rewardlab.registry.named_tasks import check_task

    address = shared.address(args)
    # before worker processes import torch
    for reward in args.reward:
        names.check_reward(reward)
    if args.task:
        check_task(args.task)

    from rewardlab.servers import serve_rewards

    return serve_rewards.serve(
        args.reward, args.task, address, tokenizer=args.tokenizer, splitter=args.splitter, workers=args.workers,
        seconds=args.seconds, batch=args.batch, queue=args.queue,
    )  # fmt: skip


def _corpus(args: argparse.Namespace) -> dict[str, Any]:
    if args.reward or args.task:
        raise RewardlabError("--corpus serves documents, and --reward or --task a reward: serve each by a process of its own")
    address = shared.address(args)

    from rewardlab.servers import serve_corpus

    return serve_corpus.serve(args.corpus, address, topk=args.topk, batch=args.batch)


def _client(args: argparse.Namespace) -> dict[str, Any]:
    from rewardlab.util.files import check_writable, write_text

    out = args.out or Path("rewardlab_reward.py")
    check_writable(out)
    source = (Path(__file__).parents[1] / "servers" / f"{args.write_client}_client.py").read_text("utf-8")
    write_text(out, source.replace('"http://127.0.0.1:8100"', f'"http://{args.host}:{args.port}"'))
    return {"client": args.write_client, "out": str(out)}


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts

    facts(document)
