"""Pairwise-RL: a generative model compares a reply with an anchor, in both orders; the chance of winning is the reward.

    the model reads (x, y1, y2) and says A or B:      p(y1, y2) = P(A) / (P(A) + P(B))
    taught: L = -log P(right letter), each pair in both orders
    reward: r(x, y) = [p(y, y*) + 1 - p(y*, y)] / 2,  from 0 to 1;   y* an anchor, the same for all replies to x
    policy: maximise  E r(x, y) - beta KL(pi || ref)

A score of a reply alone has another scale and zero at every prompt, and a head that was never trained to speak. Here both replies
are read, as annotators read them, and the judgement is a next token, which the model was pretrained to predict. The average over
both orders cancels what a reply wins by where it stands.

Xu et al. 2025, arXiv:2504.04950, by its abstract and a summary; no code was found. (inferred): the wording of the prompt, the
probability and not its log-odds as the reward, the anchor (the column `anchor`, else `chosen`), and the policy's part, as in
`rlhf`: leave-one-out REINFORCE with a KL; the stack ppo+pairwise_rl has PPO. The model is taught in the first step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Loop, Problem, Recipe, Run, Score, Scores, Trajectory, Update, loop, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.calibration import expected_calibration_error
from rewardlab.evals.own_reward import own_reward
from rewardlab.methods.baselines.rlhf import MEASURED_ON, SIDES, pairs_in, rlhf, teach
from rewardlab.objectives.labels import language_model
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.filled import filled

MODEL, MEMORY = "comparer", "pairwise_rl.held_out"
LETTERS = ("A", "B")
PROMPT = "{question}\n\nA: {first}\n\nB: {second}\n\nWhich reply is better, A or B?"


def comparison(problem: Problem, first: str, second: str) -> Problem:
    """The question which of two replies is better."""
    asked = filled(PROMPT, question=problem.question, first=first, second=second)
    return replace(problem.reworded(asked), meta={})


def _pair(problem: Problem) -> tuple[str, str]:
    problem.required(*SIDES, by="pairwise_rl")
    return problem.meta["chosen"], problem.meta["rejected"]


@rollout(rows=lambda **_: 2)
def both_orders_told(problems: list[Problem], run: Run) -> list[Group]:
    """Of each pair its two comparisons, with the right letter as the reply: A where the better reply stands first, then B."""
    asked = [comparison(p, *order) for p in problems for order in (_pair(p), _pair(p)[::-1])]
    read = run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    done = run.policy.write(read, [LETTERS[i % 2] for i in range(len(asked))])
    for t in done:
        run.policy.check_fits(t, 0)
    return [done[i : i + 2] for i in range(0, len(done), 2)]


def first_wins(model: Any, asked: Sequence[Problem]) -> np.ndarray:
    """(n,) P(A) / (P(A) + P(B)) of each comparison."""
    if not asked:
        return np.zeros(0)
    read = model.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    said = [t for letter in LETTERS for t in model.write(read, [letter] * len(read))]
    # the letter is the first token that the model decides
    logprobs = [float(x[int(np.argmax(t.mask))]) for t, x in zip(said, model.score(said), strict=True)]
    a, b = np.array(logprobs, float).reshape(2, -1)
    # a tanh does not overflow, as 1 / (1 + exp(-z)) does
    return (1 + np.tanh((a - b) / 2)) / 2


def chances(model: Any, problems: Sequence[Problem], pairs: Sequence[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the chance that the first of each pair wins, over both orders; and (n,) that of whatever stands first."""
    orders = [comparison(p, *order) for p, pair in zip(problems, pairs, strict=True) for order in (pair, pair[::-1])]
    there, back = first_wins(model, orders).reshape(-1, 2).T
    # the same reply twice is a tie to the last bit
    return 0.5 + (there - back) / 2, (there + back) / 2


def anchor_of(problem: Problem, column: str) -> str | None:
    """What replies to this problem are compared with; None where it has neither that column nor a better reply."""
    return next((text for name in (column, "chosen") if isinstance(text := problem.meta.get(name), str) and text), None)


@reward(over="groups")
def win_probability(groups: list[Group], run: Run, *, anchor: str = "anchor", model: str = MODEL) -> Scores:
    """The chance that the reply beats the anchor, by a model of the run that compares; no verdict where the row has no anchor.

    anchor: the column with the reply that all are compared with; where a row has none, its `chosen` is.  The anchor itself is a
    tie, 1/2. Logged: prefers_first, the mean chance of what stands first, 1/2 for a model that does not look at the order.
    """
    rows = [t for group in groups for t in group]
    anchors = {i: text for i, t in enumerate(rows) if (text := anchor_of(t.problem, anchor)) is not None}
    values = dict.fromkeys(range(len(rows)), Score(None, why=f"the row has no reply in {anchor!r} or 'chosen' to compare with"))
    if anchors:
        pairs = [(rows[i].reply, text) for i, text in anchors.items()]
        won, first = chances(run.model(model), [rows[i].problem for i in anchors], pairs)
        run.log("prefers_first", float(first.mean()))
        values |= {i: Score(float(p)) for i, p in zip(anchors, won, strict=True)}
    found = iter(values.values())
    return [[next(found) for _ in group] for group in groups]


@loop(wraps="inner")
def compared_first(
    recipe: Recipe, run: Run, ops: Any, *, pairs: PositiveInt | None = None, passes: PositiveInt = 1, at_once: PositiveInt = 32,
    inner: Loop | None = None,
) -> None:  # fmt: skip
    """Teach the model that compares on the problems of the data (`pairs_in`), `passes` times, before the first step; then train by
    the recipe.

    at_once: pairs of an update.  Logged of held-out pairs: pair_accuracy, ece of the chances, and order, the mean chance of what
    stands first.
    """
    if MEMORY not in run.memory:
        problems = pairs_in(ops, run, pairs)
        teach(ops, run, MODEL, problems, passes, at_once, "teaching the model that compares replies")
        run.memory[MEMORY] = held_out(ops.task.test[:MEASURED_ON], run)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    for name, value in run.memory[MEMORY].items():
        run.log(name, value)


def held_out(problems: Sequence[Problem], run: Run) -> dict[str, float]:
    """What the model that compares says of pairs whose better reply is known; ties count half."""
    known = [p for p in problems if all(p.meta.get(side) for side in SIDES)]
    if not known:
        return {}
    with run.unbilled():
        chance, first = chances(run.model(MODEL), known, [_pair(p) for p in known])
    wins = np.where(chance == 0.5, 0.5, chance > 0.5).astype(float)
    sure = np.maximum(chance, 1 - chance)
    ece = expected_calibration_error(sure.tolist(), wins.tolist())
    return {"pair_accuracy": float(wins.mean()), "ece": ece, "order": float(first.mean())}


def pairwise_rl(
    base: Recipe | None = None, *, pairs: int | None = None, passes: int = 1, rm_lr: float | None = None, init: str = "copy:policy",
    anchor: str = "anchor", n: int = 8, beta: float = 0.02,
) -> Recipe:  # fmt: skip
    """pairs, passes: that the model which compares is taught on, and how often, as in `rlhf`.  rm_lr, init: its learning rate, and
    what it starts from (`Learner.init`).  anchor: the column of the reply that all are compared with, if not `chosen`. n, beta: as
    in `rlhf`."""
    if init.startswith("value-head"):
        raise RewardlabError(f"pairwise_rl: init={init!r} has no words to compare by; give a language model, such as copy:policy")
    earned = win_probability(anchor=anchor)
    # rlhf without a model of its own
    base = base or rlhf(score=correct(), n=n, beta=beta)
    teaching = Recipe(rollout=both_orders_told(), objective=language_model(), update=Update(lr=rm_lr))
    return base.but(
        reward=earned,
        # every=0: the loop alone teaches it
        also=(*base.also, Learner(MODEL, init, teaching, every=0)),
        loop=compared_first(pairs=pairs, passes=passes, inner=base.loop),
        measure=own_reward(reward=earned, rollout=independent(n=1)),
    )


fidelity = "reading"
left_out = "PPO itself (the stack ppo+pairwise_rl), and how the paper's model is pretrained"
data = Data(
    chosen="the better reply; the anchor, too, where there is no other",
    rejected="the worse reply",
    anchor=Column("the reply that all others to the prompt are compared with", optional=True, setting="anchor"),
)

SMALL = {"pairs": 1000, "rm_lr": 1e-3, "n": 2}
check = Check(
    says="a model that compares two replies ranks more held-out pairs right than one that scores each alone, taught on the same "
    "1,000 pairs",
    versus="rlhf", task="notes", measure="train.pair_accuracy", direction="higher", margin=0.03,
    settings=SMALL, versus_settings=SMALL, problems=20, steps=2,
    finding="Stopped after 6 pairs of runs, undecided: taught once on 1,000 pairs of notes, the model that compares ranks 61% of "
    "held-out pairs right, at two and a half times the tokens of the one that scores each alone, which ranks 64% right",
)  # fmt: skip
baseline = "rlhf"
