"""Train a policy by a method on a task.

  rewardlab train grpo --task arithmetic --steps 40 --n 8 --lr 1e-4
  rewardlab train grpo --task mine.jsonl --prompt-column question --answer-column answer --reward mine.py:score
  rewardlab train grpo --task arithmetic --reward "answer_given() >> correct() + length_penalty(per_token=0.01)"
  rewardlab train grpo --task mine.jsonl --reward "judge(model='openai:URL#NAME')" --watch
  rewardlab train --resume runs/mine
  rewardlab train --resume runs/mine --steps 80
  rewardlab train grpo --task arithmetic --engine trl --model ORG/NAME --trl per_device_train_batch_size=8

Methods that sample replies take an environment, and then sample episodes:

  rewardlab train grpo --task questions.jsonl --model hf:Qwen/Qwen3-0.6B --tools mine.py:search,mine.py:lookup --turns 6
  rewardlab train grpo --task questions.jsonl --model hf:Qwen/Qwen3-0.6B --corpus docs.jsonl
  rewardlab train grpo --task rows.jsonl --env mine.py:game

Methods stack (grpo+a+b). Their settings are flags: `rewardlab show METHOD` lists them.

--resume takes everything from the run's config.json. Only these may be given anew: --steps, --budget, --device, --sampler,
--gradient-checkpointing, --micro-tokens, --checkpoint-every, --save-every, --track. More steps, or a larger budget, extend the run,
also a finished one: from there on it is the run of so many steps. The steps done stay what they were: where the learning rate falls
(lr_end), they took it from the old number of steps.

Ctrl-C and SIGTERM end the step, save the run and stop; a second Ctrl-C stops at once. One process at a time trains in a folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.commands import flags as shared
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import ON_RESUME
from rewardlab.util.files import size

HELP = "train a policy by a method, or resume a run (--resume DIR)"
SETTINGS = True
FIELDS = tuple(name for name, f in shared.FIELDS.items() if not f.metadata["no_flag"])


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", nargs="?", metavar="METHOD", help="a method, or several stacked: grpo+a+b")
    shared.reward_flag(parser)
    parser.add_argument("--resume", type=Path, metavar="DIR", help="resume the run in this folder, or with more --steps extend it")
    changed = "resume though a file of the run's rows, rewards, tools, corpus or methods has changed, with the new one"
    parser.add_argument("--reward-changed", action="store_true", help=changed)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the columns, tokens, memory and disk space it needs; do not train"
    )
    parser.add_argument("--devices", type=int, metavar="N", help="with --dry-run: devices that train together, each by a process")
    planned = "with --dry-run: memory of a device, such as 80GB (default: this machine's)"
    parser.add_argument("--memory", metavar="SIZE", help=planned)
    watched = "benchmarks of rewards, with commas, measured at each evaluation (rewardlab scoreboard --list)"
    parser.add_argument("--eval-on", metavar="NAMES", help=watched)
    paid = "watch what pays the policy, at each evaluation: its agreement with the truth, drift, order, and what fools it; on the "
    paid += "policy's replies, or on labelled rows of a file (chosen and rejected, or reply and label)"
    parser.add_argument("--watch", nargs="?", const=True, metavar="FILE", help=paid)
    shared.config_flags(parser, FIELDS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    if (args.devices or args.memory) and not args.dry_run:
        raise RewardlabError("--devices and --memory are for --dry-run; torchrun --nproc-per-node N starts several processes")
    if args.resume:
        refuse_besides_resume(args)
    arguments = {} if args.resume else request(args)

    # torch is imported only now that the request has been checked
    from rewardlab import api
    from rewardlab.api.stages import check_stages

    if arguments:
        check_stages(**arguments)
    if args.dry_run:
        return api.plan(**arguments, devices=args.devices, memory=args.memory)
    if args.resume:
        changes = shared.given(args, ON_RESUME)
        result = api.resume(args.resume, reward_changed=args.reward_changed, **changes)
    else:
        benchmarks = [name.strip() for name in (args.eval_on or "").split(",") if name.strip()]
        result = api.train(**arguments, eval_on=benchmarks, watch=args.watch or False)
    page = result.out / "report.html"
    return {"out": str(result.out), **({"report": str(page)} if page.exists() else {}), **result.summary}


def show(document: Mapping[str, Any]) -> None:
    from rewardlab.commands.tables import facts, heading, lines, outcome

    # only the plan of --dry-run has a formula
    if "formula" not in document:
        outcome(document)
        return
    heading("Formula")
    lines(document["formula"])
    if rates := document["learning_rates"]:
        heading("Learns at")
        facts(rates)
    heading("Needs")
    sizes = {k: size(v) for k, v in document.items() if k.endswith("_bytes")}
    told = ("formula", "learning_rates", "prompts", "no_verdict", "memory", "fits", "change")
    needs = {k: v for k, v in document.items() if k not in (*told, *sizes)} | sizes
    facts({k.removesuffix("_bytes").replace("_", " "): v for k, v in needs.items()} | prompts(document["prompts"]))
    memory(document)
    if missing := document["no_verdict"]:
        heading("Rewards that judge none of the first problems, even if the reply is the gold answer")
        facts(missing)


def memory(document: Mapping[str, Any]) -> None:
    """The memory of a device, a column for each way to keep the model; and whether the run as asked fits."""
    from rewardlab.commands.tables import heading, lines, table

    found = document["memory"]
    heading("Memory of each device")
    # in the order of the sums, whichever way of keeping the model has them
    names = sorted(dict.fromkeys(name for sums in found.values() for name in sums), key=_last)
    table(["", *found], [[name, *(size(sums[name]) if name in sums else "" for sums in found.values())] for name in names])
    lines("fits" if document["fits"] else f"does not fit; change first: {document['change']}")


def _last(name: str) -> int:
    return ("training", "sampling", "total").index(name) + 1 if name in ("training", "sampling", "total") else 0


def prompts(found: Mapping[str, Any]) -> dict[str, str]:
    """One line about the training prompts, and one about the held-out ones; where texts in their rows are learnt, also of these."""
    written = found.get("written", {})
    rows = {
        f"{kind} texts": _fitted({"prompts": of["rows"]} | of)
        for kind, split in (("training", "train"), ("held-out", "test")) if (of := written.get(split))
    }  # fmt: skip
    return rows | {
        name: _fitted(of)
        for name, split in (("training prompts", "train"), ("held-out prompts", "test")) if (of := found.get(split))
    }  # fmt: skip


def _fitted(of: Mapping[str, Any]) -> str:
    """The prompts that are trained or tested on, and what became of those that are too long."""
    dropped = of.get("dropped", 0)
    line = f"{of['prompts'] - dropped:,}, the longest of {of.get('longest_kept', of['longest']):,} tokens"
    changed = [f"{n:,} {verb}" for n, verb in ((dropped, "dropped"), (of["overlong"] - dropped, "shortened")) if n]
    return line + (f" ({' and '.join(changed)}: too long, up to {of['longest']:,})" if changed else "")


def refuse_besides_resume(args: argparse.Namespace) -> None:
    """Raise RewardlabError if --resume comes with anything that a resumed run takes from its config.json."""
    allowed = [shared.FIELDS[name].metadata["flag"] or shared.flag_of(name) for name in ON_RESUME]
    given = sorted(args.flags_given - {"--resume", "--reward-changed", "--json", *allowed})
    if refused := [*filter(None, [args.method]), *given, *args.settings]:
        anew = ", ".join(allowed)
        raise RewardlabError(f"--resume takes all but {anew} from the run's config.json; drop {', '.join(refused)}")


def request(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `api.train` and `api.plan` that these flags stand for."""
    if args.reward_changed:
        raise RewardlabError("--reward-changed is for --resume DIR; a new run takes its reward as it is now")
    if not args.method:
        raise RewardlabError("which method? rewardlab train METHOD --task TASK (rewardlab list shows them)")
    config = shared.RunConfig(method=args.method, **shared.given(args, FIELDS))
    shared.check_names(args, args.method)
    shared.require_task(args)
    return {"recipe": shared.load_recipe(args), "config": config}
