"""Goal-conditioned reward model: a Bradley-Terry model whose hidden states tell, early in a reply, where it is going.

    L = L_BT + beta L_C
    L_C = -log mean sigmoid(cos(h_s, h_g)) - log(1 - mean sigmoid(cos(h_s, h_r)))
    h_s: states in the preferred reply;    h_g: later states in it;    h_r: states in the rejected reply
    Q(prefix) = cos(h_t, goal),    goal: the mean state at the end of preferred replies

Future states of one preferred reply are to be alike, and unlike those of rejected ones. So the cosine to the goal is a value of
prefixes, learnt without labels of steps: a vote drops replies as soon as Q falls to a threshold, and saves the tokens that they
would still have taken.

Nath et al. 2024, arXiv:2407.13887, and the released code (vaskarnathscale/goal-conditioned-rm, 9daaf8d): openrlhf/models/loss.py,
one pair at a time, 16 states of each kind, anywhere in the reply (both percentiles 0), beta = 0.5, every source with every goal;
examples/get_representation.py for the goal, filter_and_eval.py for the vote. A reply is dropped where Q is not above the threshold
at any of its tokens; where all replies to a problem would be, none is. There the goal is the mean over all training replies after
training, here a moving average over the steps of training (inferred: 0.9), so that each checkpoint has its own.

`goal_value` is Q as a reward, a score at each token; the goal is in the memory of the run that trained it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Loop,
    Outputs,
    Problem,
    Recipe,
    Run,
    Score,
    Scores,
    Trajectory,
    loop,
    measure,
    objective,
)  # fmt: skip
from rewardlab.core.recipe import Update
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.text.votes import answer_of, majority_of
from rewardlab.util.outputs import forward_batch
from rewardlab.util.ranking import auc_of

MODEL, GOAL = "reward", "goal_conditioned_rm.goal"
ROWS = 64  # of one pass


# ---- the loss ------------------------------------------------------------------------------------------------------------


def contrast(chosen: Tensor, rejected: Tensor, samples: int, rng: torch.Generator) -> Tensor:
    """L_C of the states (n, d) of a preferred reply and (m, d) of a rejected one.

    Of two random places in the preferred reply the earlier is a source and the later a goal, `samples` times.
    """

    def at(share: Tensor, states: Tensor) -> Tensor:
        # share: of the reply that comes before; below 1
        return states[(share * len(states)).long().to(states.device)]

    places = torch.rand(2, samples, generator=rng).sort(0).values
    other = torch.rand(2, samples, generator=rng)
    toward = _cosines(at(places[0], chosen), at(places[1], chosen)).sigmoid().mean()
    away = _cosines(at(other[0], chosen), at(other[1], rejected)).sigmoid().mean()
    return -toward.log() - (1 - away).log()


def _cosines(a: Tensor, b: Tensor) -> Tensor:
    """(n, m) of each row of a (n, d) with each row of b (m, d)."""
    return F.normalize(a.float(), dim=-1) @ F.normalize(b.float(), dim=-1).T


@objective(unit="group", wants=("hidden",))
def goal_contrast(out: Outputs, batch: Batch, run: Run, *, samples: PositiveInt = 16) -> Tensor:
    """(G,) L_C of each pair of replies, the preferred one first."""
    if len(batch) != 2 * batch.groups:
        raise RewardlabError("goal_contrast needs groups of two rows, the preferred one first")
    states, rng = [h[decided] for h, decided in zip(out.hidden, batch.mask, strict=True)], run.rng("goal_contrast")
    pairs = zip(states[::2], states[1::2], strict=True)
    # a reply without a token goes nowhere
    return torch.stack([contrast(a, b, samples, rng) if len(a) and len(b) else out.hidden.sum() * 0.0 for a, b in pairs])


# ---- the goal, and what a prefix is worth --------------------------------------------------------------------------------


@loop(wraps="inner")
def with_goal(recipe: Recipe, run: Run, ops: Any, *, keep: Share = 0.9, inner: Loop | None = None) -> None:
    """A step as usual, or by the loop `inner`; then the goal moves to the mean state at the ends of this step's preferred replies,
    of which it keeps the share `keep` of what it was."""
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    ends = [h[-1] for h in _states(run.model(MODEL), [group[0] for group in ops.step_data.groups])]
    now, before = np.mean(ends, 0), run.memory.get(GOAL)
    goal = now if before is None else keep * np.array(before) + (1 - keep) * now
    run.memory[GOAL] = [float(x) for x in goal]


@torch.no_grad()
def _states(model: Any, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    """(len, d) the model's states of each row."""
    found: list[np.ndarray] = []
    for i in range(0, len(rows), ROWS):
        part = rows[i : i + ROWS]
        hidden = model.evaluate(forward_batch(part, model.device), ("hidden",)).hidden.float().cpu().numpy()
        found += [h[: len(t)] for h, t in zip(hidden, part, strict=True)]
    return found


def prefix_values(run: Run, rows: Sequence[Trajectory], model: str = MODEL) -> list[np.ndarray]:
    """Q at each decided position of each row, from -1 to 1."""
    if GOAL not in run.memory:
        return [np.zeros(int(t.mask.sum())) for t in rows]
    goal = np.array(run.memory[GOAL])
    goal /= max(float(np.linalg.norm(goal)), 1e-12)
    states = [h[t.mask] for t, h in zip(rows, _states(run.model(model), rows), strict=True)]
    return [h @ goal / np.maximum(np.linalg.norm(h, axis=1), 1e-12) for h in states]


@reward(over="groups", steps=True)
def goal_value(groups: list[Group], run: Run, *, model: str = MODEL) -> Scores:
    """Q of the text up to each token. No verdict before there is a goal, and on an empty reply."""
    rows = [t for group in groups for t in group]
    said = iter(zip(rows, prefix_values(run, rows, model), strict=True))
    return [[_at_tokens(*next(said), GOAL in run.memory) for _ in group] for group in groups]


def _at_tokens(t: Trajectory, values: np.ndarray, known: bool) -> Score:
    places = np.flatnonzero(t.mask)
    if not known or not len(places):
        return Score(None, why="no step has made a goal yet" if not known else "the policy wrote nothing")
    return Score(steps=[(int(at), float(q)) for at, q in zip(places, values, strict=True)])


# ---- a vote without the replies that go astray ---------------------------------------------------------------------------


def pruned(values: Sequence[np.ndarray], threshold: float) -> tuple[list[bool], int]:
    """Which replies to a problem stay in the vote, and how many tokens those that do not would have taken after they were dropped.

    A reply is dropped at the first token whose value is not above the threshold; if all would be, all stay and nothing is saved.
    """
    fallen = [np.flatnonzero(v <= threshold) for v in values]
    stay = [not len(at) for at in fallen]
    if not any(stay):
        return [True] * len(values), 0
    return stay, sum(len(v) - int(at[0]) for v, at in zip(values, fallen, strict=True) if len(at))


@measure
def pruned_votes(
    problems: Sequence[Problem], run: Run, *, n: PositiveInt = 8, threshold: float = 0.0, model: str = MODEL
) -> dict[str, float]:
    """accuracy of the majority of the policy's n replies that stay; accuracy.all, of all; saved, the share of tokens saved."""
    groups = independent(n=n)(list(problems), run)
    right = [[s.value for s in row] for row in run.verify(groups, run)]
    found, tokens = [], 0
    for group, verdicts in zip(groups, right, strict=True):
        stay, saved = pruned(prefix_values(run, group, model), threshold)
        tokens += sum(int(t.mask.sum()) for t in group)
        found.append((_vote(group, verdicts, stay), _vote(group, verdicts, [True] * len(group)), saved))
    after, before, saved_tokens = (np.array(x, float) for x in zip(*found, strict=True))
    low, high = mean_interval(after.tolist())
    return {
        "accuracy": float(after.mean()), "ci95_low": low, "ci95_high": high, "accuracy.all": float(before.mean()),
        "saved": float(saved_tokens.sum() / max(1, tokens)), "n": float(len(problems)),
    }  # fmt: skip


def _vote(group: Group, verdicts: Sequence[float | None], stay: Sequence[bool]) -> float:
    answers = [answer_of(t.reply) if kept else None for t, kept in zip(group, stay, strict=True)]
    winner = majority_of(answers)
    return 0.0 if winner is None else float((verdicts[answers.index(winner)] or 0.0) >= 1.0)


@measure
def values_of_pairs(problems: Sequence[Problem], run: Run, *, model: str = MODEL) -> dict[str, float]:
    """On held-out pairs: auroc, the chance that the score of a chosen reply is above that of any rejected one; pair_accuracy, of
    its own one; prefix_auroc, as the first by Q half-way through the replies; goal_auroc, by Q at their ends."""
    reader = replace(run, policy=run.model(model)).policy
    prompts = reader.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sides = [reader.write(prompts, [p.meta[side] for p in problems]) for side in ("chosen", "rejected")]
    scores = [end_values(reader, side) for side in sides]
    values = [prefix_values(run, side, model) for side in sides]
    halves, ends = ([[float(v[at(len(v))]) for v in side] for side in values] for at in (lambda n: (n - 1) // 2, lambda n: n - 1))
    wins = np.where(scores[0] == scores[1], 0.5, scores[0] > scores[1]).tolist()
    low, high = mean_interval(wins)
    return {
        "auroc": _auroc(*scores), "ci95_low": low, "ci95_high": high, "pair_accuracy": float(np.mean(wins)),
        "prefix_auroc": _auroc(*halves), "goal_auroc": _auroc(*ends), "n": float(len(wins)),
    }  # fmt: skip


def _auroc(chosen: Any, rejected: Any) -> float:
    return auc_of([(float(x), right) for side, right in ((chosen, True), (rejected, False)) for x in side])


# ---- the recipe ----------------------------------------------------------------------------------------------------------


def goal_conditioned_rm(
    base: Recipe | None = None, *, beta: float = 0.5, samples: int = 16, reward_lr: float | None = None, problems: int = 32,
    init: str = "value-head",
) -> Recipe:  # fmt: skip
    """beta: weight of the contrastive loss; 0 leaves it out.  samples: states of each kind.  reward_lr, problems, init: as in
    `bradley_terry`."""
    base = base or bradley_terry(reward_lr=reward_lr, problems=problems, init=init)
    fresh = [Learner(MODEL, init, Recipe(update=Update(lr=reward_lr, loss_kind="scorer")))]
    own = [x for x in base.also if x.name == MODEL] or fresh
    added = beta * goal_contrast(samples=samples)
    learners = [
        replace(x, recipe=x.recipe.but(objective=x.recipe.objective + added if x.recipe.objective else added)) if beta else x
        for x in own
    ]
    others = tuple(x for x in base.also if x.name != MODEL)
    return base.but(also=(*others, *learners), loop=with_goal(inner=base.loop), measure=values_of_pairs())


fidelity = "core"
left_out = (
    "steering: decoding by Q beside the likelihood, and goals of attributes such as complexity; PPO with the reward model; in the "
    "vote, replies are written whole and what would be saved is counted"
)
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    rows=[
        {"prompt": "What is 3 * 4 + 5?", "chosen": "3 * 4 = 12, and 12 + 5 = 17.", "rejected": "3 * 4 = 14, and 14 + 5 = 19."},
        {"prompt": "Name a red fruit.", "chosen": "A ripe cherry is red.", "rejected": "Most fruit is blue."},
        {"prompt": "What is half of 46?", "chosen": "Half of 40 is 20, half of 6 is 3: 23.", "rejected": "46 - 2 = 44."},
    ],
)

# a small model's plain head hardly learns to compare solutions
LEARNT = {"problems": 16, "init": "value-head:surprise", "reward_lr": 1e-3}
check = Check(
    says="scores of held-out solutions tell right from wrong better, by AUROC, than by a Bradley-Terry model of as many pairs",
    versus="bradley_terry", task="preferences:biased=0.75,error=0.1", measure="auroc", direction="higher", margin=0.03,
    settings=LEARNT, versus_settings=LEARNT, by=values_of_pairs(), problems=500, steps=60,
    guard=Within("pair_accuracy", low=-0.03), moved=Within("goal_auroc", low=0.05),
    tried="prefix_auroc, Q half-way through the replies, in the place of auroc: one run of each, .46 with the contrastive loss and "
    ".49 without; a plain value head, 120 steps: .48 and .49, and auroc .59 and .56",
    finding="AUROC .694, and .702 without the contrastive loss (12 seeds): no effect. The loss does what it is for, goals of right "
    "replies are told from those of wrong ones (AUROC higher by .15), and the scores are no better for it",
)  # fmt: skip
baseline = "bradley_terry"
kind = "reward-model"
