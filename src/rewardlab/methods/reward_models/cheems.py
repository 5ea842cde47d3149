"""Cheems: a reward model of a small verified set filters many pairs that nobody verified; then their lengths are balanced.

    distant supervision:   a pair without verification stays if r_gold(chosen) > r_gold(rejected), r_gold taught on verified pairs
    length debiasing:      of the pairs that stay, those with the longer reply chosen and those with the shorter are made equally
                           many, by leaving out some of the larger part at random
    L = mean over pairs of -log sigmoid(r(chosen) - r(rejected)) + lambda mean over replies of r^2

A judge model's labels are many, and wrong in ways of their own: longer is better to it. People's are right, and too few to teach
what a reply may look like. CheemsBench, whose prompts have several replies in a partial order, is measured by pairs, and by prompts
all of whose pairs are ranked right (`exact_match`).

Wen et al. 2025, arXiv:2502.17173, section 4.2 and equations 1-4; lambda = 0.1 and the loss are those of scripts/train_rm.sh and
cheems/train/model.py (AlignRM/CheemsRM, 53a64c5), which train on data that was filtered before: of the filters no code was
released. (inferred): lengths in characters, passes of the gold model. A tie is lost in both measures, as in the paper's equations;
the code's exact match (cheems/eval/metrics.py) lets ties pass.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Loop, Outputs, Problem, Recipe, Run, Trajectory, loop, measure, objective, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import number_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values, pair_gaps
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.bradley_terry import bradley_terry, on_pairs
from rewardlab.methods.baselines.rlhf import Curated, by_verified, labels_right, learn_from, pairs_in, taught_pairs
from rewardlab.objectives.pairs import last_value, preference_loss
from rewardlab.settings.domain import PositiveInt

MODEL, NAME, SIDES = "reward", "cheems", ("chosen", "rejected")
STAYING, TOLD = f"{NAME}.staying", f"{NAME}.told"


@objective(unit="row", wants=("value",))
def squared_score(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """(B,) r^2: a Gaussian prior on the scores."""
    return last_value(out, batch).square()


# ---- the data --------------------------------------------------------------------------------------------------------


@loop(wraps="inner")
def filtered_first(
    recipe: Recipe, run: Run, ops: Any, *, gold_passes: PositiveInt = 4, supervise: bool = True, debias: bool = True,
    pairs: PositiveInt | None = None, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Training steps (of the loop `inner`, if there is one) on the verified pairs and those of the others that stay.

    gold_passes: of the gold model over the verified pairs.  supervise, debias: whether the two filters are used.  pairs: so many of
    the data; None: all.
    """
    if not isinstance(ops.task.train, Curated):
        gold, rest = by_verified(pairs_in(ops, run, pairs), NAME)
        if STAYING not in run.memory:
            run.memory[STAYING] = staying(ops, run, gold, rest, gold_passes, supervise, debias)
        kept = [rest[i] for i in run.memory[STAYING]]
        learn_from(ops, [*gold, *kept])
        longer = {"raw_longer_chosen": longer_chosen(rest), "longer_chosen": longer_chosen(kept)}
        right = labels_right(kept) | {f"raw_{name}": value for name, value in labels_right(rest).items()}
        run.memory[TOLD] = {"kept": len(kept) / len(rest), **longer, **right}
    for name, value in run.memory[TOLD].items():
        run.log(name, value)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def staying(
    ops: Any, run: Run, gold: list[Problem], rest: list[Problem], passes: int, supervise: bool, debias: bool
) -> list[int]:  # fmt: skip
    """The places of the pairs that both filters leave, in ascending order."""
    stay = list(range(len(rest)))
    if supervise:
        with taught_pairs(ops, run, MODEL, gold, passes, "teaching the gold model"):
            # a tie is no agreement
            stay = [int(i) for i in np.flatnonzero(pair_gaps(rest, run, MODEL) > 0)]
    if not debias:
        return stay
    kept = balanced([lengths(rest[i]) for i in stay], random.Random(seed_of(NAME, run.seed)))
    return [stay[i] for i in kept]


def lengths(problem: Problem) -> tuple[int, int]:
    """Characters of the chosen and of the rejected reply."""
    chosen, rejected = (len(str(problem.meta[side])) for side in SIDES)
    return chosen, rejected


def balanced(pairs: Sequence[tuple[int, int]], rng: random.Random) -> list[int]:
    """The places of the pairs that stay, in ascending order, from the lengths of their chosen and rejected replies.

    As many with the longer reply chosen as with the shorter one: the larger part is sampled. All of equal lengths stay.
    """
    longer, shorter, equal = (
        [i for i, (a, b) in enumerate(pairs) if (a > b) - (a < b) == sign] for sign in (1, -1, 0)
    )  # fmt: skip
    fewer = min(len(longer), len(shorter))
    return sorted([*rng.sample(longer, fewer), *rng.sample(shorter, fewer), *equal])


def longer_chosen(problems: Sequence[Problem]) -> float:
    """Of the pairs whose replies differ in length, the share with the longer one chosen; 0.5 of none."""
    differ = [(a > b) for a, b in map(lengths, problems) if a != b]
    return sum(differ) / len(differ) if differ else 0.5


# ---- CheemsBench -----------------------------------------------------------------------------------------------------


@measure
def ranked(problems: Sequence[Problem], run: Run, *, replies: str = "replies", scores: str = "scores") -> dict[str, float]:
    """Partial orders of replies to held-out prompts, by the reward model.

    A row's order is that of the numbers in its column `scores`, higher is better and equal ones are not compared; a row without
    replies and scores says that its chosen reply is better than its rejected one, and rows of one prompt are taken together.
    pair_accuracy: share of all ordered pairs of replies to a prompt that are scored in that order.  exact_match: share of prompts
    all of whose pairs are.  length_correlation: over these pairs, of the difference in score and that in characters, both about 0.
    """
    orders = orders_of(problems, replies, scores)
    prompts = run.policy.read([Trajectory(p) for p, _ in orders], [p.prompt for p, _ in orders])
    said = [list(dict.fromkeys(text for pair in pairs for text in pair)) for _, pairs in orders]
    flat = [(t, text) for t, texts in zip(prompts, said, strict=True) for text in texts]
    values = iter(end_values(run.models[MODEL], run.policy.write([t for t, _ in flat], [text for _, text in flat])).tolist())
    found = [{text: next(values) for text in texts} for texts in said]
    return figures([(by_text, pairs) for by_text, (_, pairs) in zip(found, orders, strict=True)])


def figures(judged: Sequence[tuple[dict[str, float], list[tuple[str, str]]]]) -> dict[str, float]:
    """The measures, from the score of each reply to a prompt and the pairs (better, worse) of that prompt."""
    gaps = [[by_text[a] - by_text[b] for a, b in pairs] for by_text, pairs in judged]
    right = [[float(gap > 0) for gap in row] for row in gaps]
    low, high = mean_interval(every := [x for row in right for x in row])
    apart = np.array([len(a) - len(b) for _, pairs in judged for a, b in pairs], float)
    flat = np.array([gap for row in gaps for gap in row], float)
    # through the origin: which reply of a pair comes first says nothing
    size = float(np.linalg.norm(flat) * np.linalg.norm(apart))
    return {
        "pair_accuracy": float(np.mean(every)), "ci95_low": low, "ci95_high": high, "n": float(len(every)),
        "exact_match": float(np.mean([all(row) for row in right])),
        "length_correlation": float(flat @ apart) / size if size else 0.0,
    }  # fmt: skip


def orders_of(problems: Sequence[Problem], replies: str, scores: str) -> list[tuple[Problem, list[tuple[str, str]]]]:
    """For each prompt its pairs (better, worse), each once. Raises RewardlabError where no row has any."""
    found: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    first: dict[str, Problem] = {}
    for p in problems:
        first.setdefault(p.key, p)
        for pair in _pairs(p, replies, scores):
            found[p.key].setdefault(pair)
    if not any(found.values()):
        raise RewardlabError(f"held-out rows have neither different {scores} of their {replies}, nor chosen and rejected replies")
    return [(first[key], list(pairs)) for key, pairs in found.items() if pairs]


def _pairs(problem: Problem, replies: str, scores: str) -> list[tuple[str, str]]:
    texts, numbers = (problem.meta.get(column) for column in (replies, scores))
    if not texts or not numbers:
        sides = [problem.meta.get(side) for side in SIDES]
        return [(str(sides[0]), str(sides[1]))] if all(sides) and sides[0] != sides[1] else []
    known = [(str(text), x) for text, n in zip(texts, numbers, strict=True) if (x := number_of(n)) is not None]
    return [
        (a, b) if x > y else (b, a) for (a, x), (b, y) in combinations(dict(known).items(), 2) if x != y
    ]  # fmt: skip


def cheems(
    base: Recipe | None = None, *, gold_passes: int = 4, supervise: bool = True, debias: bool = True, prior: float = 0.1,
    pairs: int | None = None, reward_lr: float | None = None, problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """gold_passes: of the gold model over the verified pairs.  supervise: let it filter the others.  debias: balance lengths.
    prior: weight of the squared score, lambda.  pairs: of the data, None: all.  reward_lr, problems, init: as in
    `bradley_terry`."""
    loss = preference_loss() + prior * squared_score() if prior else preference_loss()
    base = base or bradley_terry(reward_lr=reward_lr, problems=problems, init=init)
    taught = on_pairs(base, reward_lr=reward_lr, init=init, objective=loss)
    first = filtered_first(gold_passes=gold_passes, supervise=supervise, debias=debias, pairs=pairs, inner=taught.loop)
    return taught.but(loop=first, measure=ranked())


fidelity = "core"
left_out = (
    "the making of CheemsPreference and CheemsBench: prompts and replies collected, comparisons of three by people, cycles merged "
    "in the graph of their preferences, GPT-4o's labels; several replies to a prompt in one pass, none of them in two batches "
    "(here each pair is a pass of its own, so that a reply in several pairs is read as often)"
)
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    gold=Column("true where people verified which reply is better, as in some of the rows to train on", some=True),
    replies=Column("held-out rows: several replies to the prompt, a list", optional=True, setting="replies"),
    scores=Column("held-out rows: how good each of these replies is, a list of numbers", optional=True, setting="scores"),
    qualities=Column("the true quality of both replies, where it is known: how many labels are right is logged", optional=True),
    rows=[
        {"prompt": "Name a planet.", "chosen": "Mars.", "rejected": "There are planets, of which one is Mars.", "gold": True},
        {"prompt": "Why do leaves fall?", "chosen": "Because of gravity alone.", "rejected": "To save water.", "gold": False},
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes.", "rejected": "In a pan, somehow.", "gold": False},
        {"prompt": "What is 12 * 12?", "chosen": "144.", "rejected": "12 * 12 is 124.", "gold": True},
    ],
)

SAME = {"init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16}
check = Check(
    says="where a fifth of the labels is turned round and the labeller likes words of praise, pairs filtered by a model of "
    "verified ones and balanced in length teach to order more whole sets of replies right than all raw pairs do",
    versus="bradley_terry", task="verified_notes:gold=0.2,flip=0.2,taste=0.15,writers=3,size=400", measure="exact_match",
    direction="higher", margin=0.03, settings={**SAME, "gold_passes": 10}, versus_settings=SAME, by=ranked(), problems=500,
    steps=100, moved=Within("length_correlation", high=-0.1, says="how far scores follow the length of replies"),
    tried="one run of each: sets .29 and .28, pairs .576 and .573, correlation with length .11 and .50; 78% of the labels were "
    "right for 69%",
    finding="32.8% of sets of replies ordered right, 27.1% on all raw pairs (20 seeds), with a spread between seeds that leaves "
    "it undecided; scores follow length much less (correlation lower by .19)",
)  # fmt: skip
baseline = "bradley_terry"
