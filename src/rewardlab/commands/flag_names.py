"""Names of flags: as settings, as other libraries call them, and what a wrong one is near to."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from rewardlab.errors import RewardlabError
from rewardlab.settings.old_names import present_name

ELSEWHERE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("--lr", ("--learning-rate", "--lr-actor", "--actor-lr")),
    ("--beta", ("--kl", "--kl-coef", "--kl-coeff", "--kl-beta")),
    ("--n", ("--num-generations", "--group-size", "--num-samples", "--rollouts", "--num-rollouts")),
    ("--problems", ("--batch-size", "--train-batch-size", "--per-device-train-batch-size", "--prompts")),
    ("--max-new", ("--max-tokens", "--max-new-tokens", "--max-completion-length", "--max-length")),
    ("--steps", ("--max-steps", "--num-steps", "--iterations", "--total-steps")),
    ("--eps", ("--clip", "--epsilon", "--clip-range", "--cliprange", "--clip-eps")),
    ("--out", ("--output-dir", "--output", "--save-dir", "--run-dir")),
    ("--epochs", ("--num-train-epochs", "--num-epochs", "--ppo-epochs", "--num-iterations")),
    ("--task", ("--dataset", "--data", "--env", "--train-file", "--train-data")),
    ("--clip-norm", ("--max-grad-norm", "--grad-clip", "--clip-grad")),
    ("--lora-rank", ("--lora-r", "--rank", "--lora")),
    ("--minibatches", ("--num-minibatches", "--num-mini-batches", "--mini-batches")),
    ("--model", ("--model-name", "--model-name-or-path", "--model-path", "--policy")),
    ("--track", ("--report-to", "--logger", "--wandb")),
    ("--corpus", ("--retriever", "--retriever-url", "--search-url", "--docs", "--index")),
    ("--questions", ("--most",)),
    ("--problems", ("--problems-per-step",)),
    # where no training step is made, problems are those of a measurement
    ("--eval-problems", ("--problems",)),
    ("--on", ("--benchmark", "--benchmarks", "--bench")),
    ("--solutions", ("--train-data", "--data", "--dataset", "--task")),
    ("--in", ("--input", "--file", "--data")),
    ("--limit", ("--num-samples", "--max-samples", "--max-items")),
    ("--width", ("--beam-width", "--beam-size", "--num-beams", "--beams")),
    ("--iterations", ("--simulations", "--num-simulations", "--num-iterations")),
    ("--trees", ("--num-trees", "--subtrees")),
)
"""What a flag is called here, and what TRL, verl, OpenRLHF and others, and older versions, call it. Of several the first counts
that the command has."""
SIZES = ("--n", "--width", "--trees", "--iterations")
"""By which a search spends more: each method has one of them, and is asked for the others."""
LIKE, APART = 0.62, 0.1
"""How alike a flag and one that is suggested are (the ratio of `difflib`, without dashes), and how much less than the nearest."""


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def name_of(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def unknown_flag(command: str, flag: str, known: Iterable[str]) -> RewardlabError:
    """The error for an unknown flag; it knows what other libraries call some of them."""
    known = set(known)
    what = f"unknown flag of {command} {flag!r}"
    now = flag_of(present_name(name_of(flag), set(map(name_of, known))))
    if now in known and _foreign(known).get(flag.replace("_", "-")) is None:
        return RewardlabError(f"{what}; it is called {now} now")
    if near := nearest(flag, known):
        return RewardlabError(f"{what}; did you mean {' or '.join(near)}?")
    return RewardlabError(f"{what}; known: {', '.join(sorted(known))}")


def nearest(flag: str, known: Iterable[str]) -> list[str]:
    """The flags, at most three, of which this is a near miss, by their own names or by those that they have elsewhere."""
    known, asked, alike = set(known), _plain(flag), dict[str, float]()
    for written, meant in (*_foreign(known).items(), *_sizes(known), *zip(known, known, strict=True)):
        other = _plain(written)
        # the beginning of a long name is a near miss of it, however long the rest is
        begins = len(asked) > 3 and other.startswith(asked)
        ratio = max(difflib.SequenceMatcher(None, asked, other).ratio(), 0.9 * begins)
        alike[meant] = max(alike.get(meant, 0.0), ratio)
    best = max(alike.values(), default=0.0)
    near = [meant for meant, ratio in alike.items() if ratio >= max(LIKE, best - APART)]
    return sorted(near, key=lambda meant: (-alike[meant], meant))[:3]


def _foreign(known: set[str]) -> dict[str, str]:
    """What others call flags of a command: their name, and the one here."""
    found: dict[str, str] = {}
    for meant, others in ELSEWHERE:
        if meant in known:
            found |= {other: meant for other in others if other not in found}
    return found


def _sizes(known: set[str]) -> list[tuple[str, str]]:
    """What says elsewhere how much a search spends, and what does here, where no name is that of another flag."""
    others = {*SIZES, *(x for size, others in ELSEWHERE if size in SIZES for x in others)} - known - _foreign(known).keys()
    return [(other, meant) for other in others for meant in SIZES if meant in known]


def _plain(flag: str) -> str:
    return flag.lower().replace("-", "").replace("_", "")
