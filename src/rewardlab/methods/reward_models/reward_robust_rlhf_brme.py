"""Reward-robust RLHF (BRME): maximise a mix of the surest head's reward and the lowest one of an ensemble of heads.

    J = w E[r_nominal] + (1 - w) E[min_k r_k] - beta KL(pi || ref)
    head k says N(mu_k, sigma_k^2) of a reply's reward;    r_k = mu_k;    nominal: the head with the lowest sigma_k
    heads learn the scores of a Bradley-Terry model by the Gaussian likelihood, each on a part of the replies of its own

One reward model is wrong somewhere, and a policy that maximises it finds the place. A reply is paid fully only where all heads
agree that it is good; the surest head keeps the worst case from paying all replies alike. w = 1 leaves out the worst case, w = 0
is it alone.

Yan et al. 2024, arXiv:2409.15360, by its abstract and summaries of its formulas; no released code was found. (inferred): w = 0.5,
five heads, that each learns half of the replies, that the surest head is chosen for each reply, and the likelihood, where the
paper's squared error of sampled rewards would drive all sigma to 0. Heads are linear in the states that the starting model has at
the ends of replies: on those of the Bradley-Terry model itself, of which its score is a linear map, all would say the same.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Loop, Recipe, Run, Score, Scores, Trajectory, loop
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.rlhf import MEMORY, MODEL, SIDES, pairs_in, rlhf, teach
from rewardlab.rewards.model import model_score
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.util.outputs import forward_batch

TRUNK, HEADS, ACCURACY = "trunk", "brme.heads", "brme.pair_accuracy"
ROWS, MEASURED_ON = 64, 500  # of one pass; held-out pairs
FIT_STEPS, FIT_LR, FIT_DECAY = 300, 3e-2, 1e-2
LEAST = 1e-2  # the least standard deviation, in those of the labels


# ---- the heads -----------------------------------------------------------------------------------------------------------


def fit_heads(states: Tensor, labels: Tensor, heads: int, part: float, rng: torch.Generator) -> dict[str, Any]:
    """Heads of states (n, d), each by the likelihood of the labels (n,) of a random share `part` of the rows; as plain data.

    weights (heads, 2, d + 1): of the mean and of the log of the standard deviation, a bias last.  shift, scale: of the states;
    label: mean and standard deviation of the labels.
    """
    shift, scale = states.mean(0), states.std(0, unbiased=False).clamp(min=1e-6)
    label = labels.mean(), labels.std(unbiased=False).clamp(min=1e-6)
    x, y = _with_bias((states - shift) / scale), (labels - label[0]) / label[1]
    count = max(1, round(part * len(x)))
    rows = torch.stack([torch.randperm(len(x), generator=rng)[:count] for _ in range(heads)])  # (heads, count)
    # apart from the start, or heads that see nothing new would agree on it
    weights = (0.1 * torch.randn(heads, 2, x.shape[1], generator=rng)).requires_grad_()
    optimiser = torch.optim.AdamW([weights], lr=FIT_LR, weight_decay=FIT_DECAY)
    for _ in range(FIT_STEPS):
        mean, std = _means_and_stds(weights, x[rows])
        loss = (0.5 * ((y[rows] - mean) / std).square() + std.log()).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    plain = {"weights": weights.detach(), "shift": shift, "scale": scale, "label": torch.stack(label)}
    return {name: t.tolist() for name, t in plain.items()}


def _means_and_stds(weights: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """(heads, n) each, of states (heads, n, d + 1) or (n, d + 1) for all."""
    said = weights @ x.transpose(-1, -2)  # (heads, 2, n)
    return said[:, 0], said[:, 1].exp() + LEAST


def _with_bias(x: Tensor) -> Tensor:
    return F.pad(x, (0, 1), value=1.0)


def judged(fitted: dict[str, Any], states: Tensor) -> tuple[Tensor, Tensor]:
    """(heads, n) means and standard deviations of the rewards of replies with these states (n, d), in the units of the labels."""
    weights, shift, scale, label = (torch.tensor(fitted[name]) for name in ("weights", "shift", "scale", "label"))
    mean, std = _means_and_stds(weights, _with_bias((states - shift) / scale))
    return mean * label[1] + label[0], std * label[1]


def robust(mean: Tensor, std: Tensor, weight: float) -> tuple[Tensor, Tensor, Tensor]:
    """(n,) each, of (heads, n): w nominal + (1 - w) worst; the mean of the surest head; the lowest mean."""
    nominal = mean.gather(0, std.argmin(0, keepdim=True)).squeeze(0)
    worst = mean.min(0).values
    return weight * nominal + (1 - weight) * worst, nominal, worst


@torch.no_grad()
def end_states(model: Any, rows: Sequence[Trajectory]) -> Tensor:
    """(n, d) float32, on the CPU: the model's states at the ends of the rows."""
    found = []
    for i in range(0, len(rows), ROWS):
        part = rows[i : i + ROWS]
        hidden = model.evaluate(forward_batch(part, model.device), ("hidden",)).hidden
        found.append(hidden[torch.arange(len(part)), torch.tensor([len(t) - 1 for t in part])].float().cpu())
    return torch.cat(found)


# ---- reward and loop -----------------------------------------------------------------------------------------------------


@reward(over="groups")
def robust_score(groups: list[Group], run: Run, *, weight: Share = 0.5) -> Scores:
    """w times the reward of the surest head plus 1 - w times the lowest one; 0 before there are heads, as of an untaught model."""
    rows = [t for group in groups for t in group]
    if HEADS not in run.memory or not rows:
        return [[Score(0.0, why="no step has taught the heads yet") for _ in group] for group in groups]
    mixed, nominal, worst = (x.tolist() for x in robust(*judged(run.memory[HEADS], end_states(run.model(TRUNK), rows)), weight))
    run.log("disagreement", float(np.mean([a - b for a, b in zip(nominal, worst, strict=True)])))
    each = iter(mixed)
    return [[Score(next(each)) for _ in group] for group in groups]


@loop(wraps="inner")
def heads_first(
    recipe: Recipe, run: Run, ops: Any, *, pairs: PositiveInt | None = None, heads: PositiveInt = 5, part: Share = 0.5,
    passes: PositiveInt = 1, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Before the first step, teach the reward model on the data (`pairs_in`), and the heads on its scores of their replies.

    part: the share of the replies that a head learns from.  inner: how a step is taken. Logs `pair_accuracy`, how often their mix
    ranks held-out pairs rightly.
    """
    if HEADS not in run.memory:
        problems = pairs_in(ops, run, pairs)
        if not all(p.meta.get(side) for p in problems for side in SIDES):
            raise RewardlabError(
                "the heads learn from replies in the columns 'chosen' and 'rejected', which this data does not have"
            )
        learner = ops.learners[MODEL]
        if learner.recipe.objective is not None:
            teach(ops, run, MODEL, problems, passes, 32, "teaching the reward model")
        run.memory[HEADS] = _fitted(problems, run, heads, part)
        run.memory[ACCURACY] = _accuracy(recipe, ops, run)
        # rlhf's own loop below, which would teach the same model, finds it taught, and no accuracy of its score alone to log
        run.memory.setdefault(MEMORY, None)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    # at every step, so that a check's gate finds it whatever part of the run it looks at
    if run.memory[ACCURACY] is not None:
        run.log("pair_accuracy", run.memory[ACCURACY])


def _fitted(problems: list[Any], run: Run, heads: int, part: float) -> dict[str, Any]:
    groups = recorded(fields=SIDES)(problems, run)
    labels = torch.tensor([s.value for row in model_score(model=MODEL)(groups, run) for s in row])
    states = end_states(run.model(TRUNK), [t for group in groups for t in group])
    return fit_heads(states, labels, heads, part, run.rng("brme"))


def _accuracy(recipe: Recipe, ops: Any, run: Run) -> float | None:
    """Of the reward on held-out pairs; None where the data has none."""
    held_out = [p for p in ops.task.test[:MEASURED_ON] if all(p.meta.get(side) for side in SIDES)]
    with run.unbilled():
        return pair_agreement(reward=recipe.required("reward"))(held_out, run)["pair_accuracy"] if held_out else None


# ---- the recipe ----------------------------------------------------------------------------------------------------------


def reward_robust_rlhf_brme(
    base: Recipe | None = None, *, weight: float = 0.5, heads: int = 5, part: float = 0.5, reward_model: str = "value-head",
    pairs: int | None = None, passes: int = 1, rm_lr: float | None = None, n: int = 8, beta: float = 0.02,
) -> Recipe:  # fmt: skip
    """weight: of the surest head; the rest falls to the lowest reward.  heads: in the ensemble.  part: share of the replies that
    each learns from.  reward_model, pairs, passes, rm_lr, n, beta: as in `rlhf`."""
    base = base or rlhf(reward_model=reward_model, pairs=pairs, passes=passes, rm_lr=rm_lr, n=n, beta=beta)
    if all(x.name != MODEL for x in base.also):
        raise RewardlabError(f"reward_robust_rlhf_brme takes the place of a reward model's score, which {base.name} is not paid by")
    paid = robust_score(weight=weight)
    return base.but(
        reward=paid,
        loop=heads_first(pairs=pairs, heads=heads, part=part, passes=passes, inner=base.loop),
        also=(*base.also, Learner(TRUNK, "copy:policy", Recipe(), every=0)),
        measure=own_reward(reward=paid, rollout=independent(n=1)),
    )


fidelity = "reading"
left_out = "a trunk that is trained with the heads; PPO, in whose place leave-one-out REINFORCE stands, as in rlhf"
data = Data(
    chosen=Column("the better reply, of which the reward model learns; with --reward-model PATH the heads alone learn from it"),
    rejected="the worse reply",
    rows=[
        {"prompt": "Name a red fruit.", "chosen": "A ripe cherry is red.", "rejected": "Most fruit is blue."},
        {"prompt": "Thank Ann for her help.", "chosen": "Thank you so much, Ann!", "rejected": "It was fine."},
        {"prompt": "What is half of 46?", "chosen": "Half of 46 is 23.", "rejected": "I do not do sums."},
    ],
)

TAUGHT = {"pairs": 3000, "lr": 1e-3}
check = Check(
    says="by the mix of the surest and the lowest reward of heads, replies are truly better at the end than by one reward model",
    versus="rlhf", task="notes:flip=0.1,taste=0.15", measure="reward", direction="higher", margin=0.05, settings=TAUGHT,
    versus_settings=TAUGHT, by=mean_reward(), steps=40,
    fault=Within("train.truth", high=0.53, says="true quality late in training by one reward model; 0.55 at the start"),
    judge=Within("train.pair_accuracy", 0.56, 0.9, "better notes above worse ones by the mix: learnt, and imperfect"),
    tried="one run of each: half-way true quality is .37 and .21, at the end .06 and .28; the mix ranks 60% of pairs rightly",
    finding="true quality falls from .55 to .22 by the mix and to .24 by one reward model: the mix does not protect here. It ranks "
    "55.8% of pairs rightly, where 56% was asked of a reward model that has learnt what could be protected",
)  # fmt: skip
baseline = "rlhf"
