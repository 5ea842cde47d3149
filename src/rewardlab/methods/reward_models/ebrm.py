"""EBRM: an energy head on a trained reward model, which stays as it is, moves each score to where it is plausible.

    p(r | e) ~ exp f(e, r),    e the reward model's state at the end of a reply, r its score
    loss = -log [ exp(f(e, r0) - log q(r0)) / sum over r0, ..., rM of exp(f(e, rm) - log q(rm)) ] + c mean f^2
    r0 = r + N(0, (b s)^2), a score with label noise;    r1, ..., rM from q = N(r, s^2)
    pairs in which the reward model contradicts the label are left out;    r* = ascent on f(e, .) from r

The head learns which scores go with which states, on pairs that labels and model agree about: so where noise put a score out of
line with those of similar replies, it is moved back. The reward model is not trained again.

Lochab and Zhang 2025, arXiv:2504.13134, and the released code (AnamikaLochab/EBRM): ebm_nce_plus.py (13e6edf) for sizes, s = 3.5,
b = 0.1, M = 768, c = 0.05, AdamW with rate 9e-5 and weight decay 0.01; filterdata.py and score.py (cce0b5f) for the filter and 50
steps of ascent from 0.5, each that does not raise f being followed by one a tenth as long. Scores are standardised over the first
replies. skywork_normalize.py does so to a deviation of 4, for one model, and the others' scores have about 1 (inferred), as here.

`reward_model` is a checkpoint or run; without one it is taught first, on `pairs`. The run's folder is the reward model's, with the
head in energy/ beside it: `scoreboard`, `--reward model:runs/X` and whatever loads reward models here give refined
scores, and transformers the model's own.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Learner, Loop, Outputs, Problem, Recipe, Run, Trajectory, Update, loop, measure, objective
from rewardlab.data.columns import Data
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.rlhf import UNTAUGHT, pairs_in, teach
from rewardlab.objectives.pairs import last_value, preference_loss
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt
from rewardlab.util.outputs import forward_batch

MODEL, BASE, TAUGHT = "reward", "base", "ebrm.taught"
SIDES = ("chosen", "rejected")
STANDARDISED = 256  # pairs whose scores have mean 0 and deviation 1
ROWS = 64  # of one pass


# ---- the loss ------------------------------------------------------------------------------------------------------------


def contrast(energy: Any, states: Tensor, scores: Tensor, noise: Tensor, spread: float, share: float, reg: float) -> Tensor:
    """(n,) the loss of standardised scores (n,) with states (n, d).

    noise (M + 1, n), standard normal: the first row makes the score with label noise, of deviation share * spread; the others
    those that it is told apart from, of deviation spread.
    """
    away = torch.cat((share * noise[:1], noise[1:])) * spread  # (M + 1, n), from the score
    log_q = -0.5 * (away / spread).square() - math.log(spread * math.sqrt(2 * math.pi))
    f = energy(states, scores + away)
    said = f - log_q
    return said.logsumexp(0) - said[0] + reg * f.square().mean(0)


@objective(unit="group", wants=("hidden", "value"))
def energy_contrast(
    out: Outputs, batch: Batch, run: Run, *, negatives: PositiveInt = 768, spread: PositiveFloat = 3.5, share: PositiveFloat = 0.1,
    reg: NonNegativeFloat = 0.05, filtered: bool = True, model: str = MODEL,
) -> Tensor:  # fmt: skip
    """(G,) the mean loss of both replies of a pair, the preferred one first; 0 where the reward model contradicts the pair.

    Nothing flows back into the reward model.  negatives: M.  spread: s.  share: b.  reg: c.  filtered: without it, all pairs count.
    """
    energy, own = run.model(model).energy, last_value(out, batch).detach()
    states = out.hidden[torch.arange(len(batch), device=own.device), batch.length - 1].detach()
    rng = run.rng("energy")
    noise = torch.randn(negatives + 1, len(batch), generator=rng).to(own.device)
    # dropout takes its numbers from PyTorch's own stream, which no run seeds
    with torch.random.fork_rng():
        torch.manual_seed(int(torch.randint(1 << 31, (1,), generator=rng)))
        loss = contrast(energy.train(), states, (own - energy.shift) / energy.scale, noise, spread, share, reg)
    pairs, agrees = loss.view(-1, 2).mean(1), own[::2] > own[1::2]
    energy.agreed.append(agrees)
    return torch.where(agrees, pairs, 0.0) if filtered else pairs


# ---- the loop and the measure --------------------------------------------------------------------------------------------


@loop(wraps="inner")
def reward_model_first(
    recipe: Recipe, run: Run, ops: Any, *, pairs: PositiveInt | None = None, inner: Loop | None = None
) -> None:  # fmt: skip
    """Before the first step, teach the reward model on the data (`pairs_in`), unless it was trained before, and standardise
    its scores. Then steps of the energy head alone, by the loop `inner` if there is one. Logs `agrees`: the share of a step's pairs
    that the model does not contradict.
    """
    model = ops.learners[MODEL].model
    if TAUGHT not in run.memory:
        problems = pairs_in(ops, run, pairs)
        if BASE in ops.learners:
            teach(ops, run, BASE, problems, 1, 32, "teaching the reward model")
            model.scorer.load_state(ops.learners[BASE].model.state())
        scores, _ = scored(model, problems[:STANDARDISED])
        model.energy.shift.fill_(float(scores.mean()))
        model.energy.scale.fill_(max(float(scores.std()), 1e-6))
        run.memory[TAUGHT] = True
    model.energy.agreed.clear()
    with without_gradients(model.scorer):
        inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    # a process that had none of the step's pairs has nothing to tell
    if model.energy.agreed:
        run.log("agrees", float(torch.cat(model.energy.agreed).float().mean()))


@contextmanager
def without_gradients(scorer: Any) -> Iterator[None]:
    """Within it no pass keeps what a gradient of the reward model would need. After it, its weights are part of its state again."""
    learning = [weight for weight in scorer.parameters() if weight.requires_grad]
    for weight in learning:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in learning:
            weight.requires_grad_(True)


@torch.no_grad()
def scored(model: Any, problems: Sequence[Problem], refined: bool = False) -> tuple[Tensor, Tensor]:
    """(2, n) each: the scores of the chosen replies and of the rejected ones by the reward model alone, and refined if so asked."""
    prompts = model.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    own, moved = [], []
    for rows in (model.write(prompts, [p.meta[side] for p in problems]) for side in SIDES):
        for i in range(0, len(rows), ROWS):
            batch = forward_batch(rows[i : i + ROWS], model.device)
            out = model.evaluate(batch, ("hidden", "value"))
            own.append(last_value(out, batch))
            states = out.hidden[torch.arange(len(batch), device=model.device), batch.length - 1]
            moved.append(model.energy.refined(states, own[-1]) if refined else own[-1])
    return tuple(torch.cat(x).view(2, -1).cpu() for x in (own, moved))  # type: ignore[return-value]


@measure
def refined_accuracy(problems: Sequence[Problem], run: Run, *, model: str = MODEL) -> dict[str, float]:
    """Share of held-out pairs in which the chosen reply's refined score is higher, ties half; base: the same without the head;
    moved: how far the head moves scores, root mean square, in deviations."""
    own, refined = scored(run.model(model), problems, refined=True)
    wins, base = (torch.where(x[0] == x[1], 0.5, (x[0] > x[1]).float()) for x in (refined, own))
    low, high = mean_interval(wins.tolist())
    moved = (refined - own).square().mean().sqrt() / run.model(model).energy.scale.cpu()
    return {
        "pair_accuracy": float(wins.mean()), "ci95_low": low, "ci95_high": high, "base": float(base.mean()),
        "moved": float(moved), "n": float(len(wins)),
    }  # fmt: skip


# ---- the recipe ----------------------------------------------------------------------------------------------------------


def ebrm(
    base: Recipe | None = None, *, reward_model: str = "value-head", pairs: int | None = None, rm_lr: float | None = None,
    negatives: int = 768, spread: float = 3.5, share: float = 0.1, reg: float = 0.05, filtered: bool = True,
    energy_lr: float = 9e-5, problems: int = 128,
) -> Recipe:  # fmt: skip
    """reward_model: a checkpoint or run; or what one starts from that is taught first (`Learner.init`), on `pairs` as in `rlhf`, by
    rm_lr.  negatives: M.  spread: s.  share: b.  reg: c.  filtered: leave out pairs that the reward model contradicts.  energy_lr:
    of the head.  problems: pairs to a step."""
    base = base or Recipe(name="ebrm", update=Update())
    loss = energy_contrast(negatives=negatives, spread=spread, share=share, reg=reg, filtered=filtered)
    head = Recipe(objective=loss, update=Update(lr=energy_lr, weight_decay=0.01, loss_kind="scorer"))
    teaching = Recipe(rollout=recorded(fields=SIDES), objective=preference_loss(), update=Update(lr=rm_lr, loss_kind="scorer"))
    # every=0: the loop alone teaches it
    taught = [Learner(BASE, reward_model, teaching, every=0)] if reward_model.startswith(UNTAUGHT) else []
    return base.but(
        rollout=recorded(fields=SIDES),
        measure=refined_accuracy(),
        # the first is what the run saves
        also=(*base.also, Learner(MODEL, f"energy:{reward_model}", head), *taught),
        loop=reward_model_first(pairs=pairs, inner=base.loop),
        problems=problems,
    )


fidelity = "core"
left_out = "validation that stops training early; random starts of the ascent, for scores far from the mean or for all"
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    rows=[
        {"prompt": "Name a red fruit.", "chosen": "A ripe cherry is red.", "rejected": "Most fruit is blue."},
        {"prompt": "Thank Ann for her help.", "chosen": "Thank you so much, Ann!", "rejected": "It was fine."},
        {"prompt": "What is half of 46?", "chosen": "Half of 46 is 23.", "rejected": "I do not do sums."},
    ],
    settings={"pairs": 2, "negatives": 8},
)

check = Check(
    says="refined by the head, scores of a reward model taught on pairs of which a quarter is mislabelled rank more pairs rightly",
    versus=None, task="notes:flip=0.25", measure="pair_accuracy", direction="higher", margin=0.01, against="base",
    settings={"pairs": 2000, "negatives": 32, "problems": 32, "energy_lr": 1e-3}, steps=100,
    judge=Within("base", 0.55, 0.95, "pairs that the reward model alone ranks rightly: learnt, and imperfect"),
    tried="one run of 60 steps at the paper's rate of 9e-5, at which a head hardly learns in so few: .53, and .56 without it",
    finding="With the head and without it, 60% of pairs are ranked right: it changes less than half a point in any of five runs.",
)  # fmt: skip
baseline = "bradley_terry"
kind = "reward-model"
