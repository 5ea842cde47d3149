"""Resa: transfer reasoning by SAE tuning: a sparse autoencoder of a reasoning model guides fine-tuning without any reasoning trace.

    1.  a sparse autoencoder S learns to rebuild the activations of a source model at one decoder layer, on questions with answers
    2.  S, frozen, stands after that layer of the target model, which learns to speak again as it did without:
        loss = mean over tokens of KL( pi_0(. | y_<t) || pi_S(. | y_<t) ),    pi_0: the target as it began, pi_S: with S inside
    3.  S is taken out, and what the target has learnt stays

The source was trained by RL and reasons well. What its activations have in common is thought to be in the directions of S, and a
target that learns to speak through them to take it over, at a thousandth of the cost of RL.

Wang et al. 2025, arXiv:2506.09967. Followed is the released code (shangshang-wang/Resa, eb1799b: scripts/train/run_sae_tuning.py,
train_from_scratch.py; a56ebce: sae_tuning.yaml, train_sae.yaml): S rebuilds without gradient, and adapters are at the matrices of
decoder layers alone, so that only the layers above S learn: no embedding, norm or head, be they trained or tied. The texts are
questions and answers in the form of a reasoner, `reply`, without its system prompt, and every token of them counts; layer 12 of 28,
65,536 directions, k = 32, adapters of rank 32 (--lora-rank 32; their scale is 2 here and 4 there), learning rate 1e-6, two passes.
(inferred): how many steps S learns. Ours: Adam and its rate in place of sign descent for S.

`source` is a checkpoint of the source model, of the same shape as the --model. Without it the policy itself is trained by the
base's recipe for the first half of the steps, and that is the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Group, Learner, Loop, Outputs, Problem, Recipe, Run, Trajectory, loop, objective, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.sft import sft
from rewardlab.settings.domain import PositiveFloat, PositiveInt, Share
from rewardlab.text.filled import filled
from rewardlab.util.outputs import forward_batch
from rewardlab.util.progress import Bar

# ---- Learning to say what another model would say --------------------------------------------------------------------


@objective(unit="token", wants=("hidden",), needs=("teacher.hidden",))
def like_teacher(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """KL(teacher || policy) at each decision, over the whole vocabulary; the teacher is the learner of that name. 0 for the first
    token of a row, which no model predicts. Hinton et al. 2015, arXiv:1503.02531
    """
    teacher, decided = run.model("teacher"), batch.mask[:, 1:]
    # the state one position before a token predicts it
    hidden, wanted = (x[:, :-1][decided] for x in (out.hidden, batch.columns["teacher.hidden"]))  # (n, d)
    losses = out.hidden.new_zeros(decided.shape).masked_scatter(decided, run.policy.divergences(hidden, teacher, wanted))
    return F.pad(losses, (1, 0))


# ---- A sparse autoencoder of activations: each is written as the sum of a few directions out of very many ------------
#
#     z = top_k(relu((x - b) E^T + e));    x' = z D + b,    rows of D of length 1
#
# Gao et al. 2024, arXiv:2406.04093. Initial weights, and the loss, the share of the activations' variance that is left
# unexplained, are those of EleutherAI/sparsify; learnt by Adam. The weights are plain tensors by name, so that they can be kept
# with a run.

Weights = dict[str, Tensor]


def untrained(width: int, latents: int, generator: torch.Generator, device: torch.device) -> Weights:
    """Random directions: encoder (latents, width), its bias (latents,), decoder (latents, width), its bias (width,)."""
    bound = width**-0.5
    encoder = torch.empty(latents, width).uniform_(-bound, bound, generator=generator).to(device)
    return {
        "encoder": encoder, "encoder_bias": torch.zeros(latents, device=device),
        "decoder": F.normalize(encoder, dim=1), "decoder_bias": torch.zeros(width, device=device),
    }  # fmt: skip


def reconstructed(x: Tensor, w: Weights, k: int) -> Tensor:
    """(n, width) -> (n, width): the sum of the k directions that each row excites most."""
    excited = F.relu(F.linear(x - w["decoder_bias"], w["encoder"], w["encoder_bias"]))  # (n, latents)
    strength, which = excited.topk(min(k, excited.shape[1]), sorted=False)  # (n, k)
    return torch.einsum("nk,nkd->nd", strength, w["decoder"][which]) + w["decoder_bias"]


def unexplained(x: Tensor, again: Tensor) -> Tensor:
    """The share of the variance of x (n, width) that its reconstruction lacks."""
    return (x - again).square().sum() / (x - x.mean(0)).square().sum().clamp(min=1e-12)


def learn(batches: Iterable[Tensor], latents: int, k: int, lr: float, generator: torch.Generator) -> tuple[Weights, float]:
    """Weights for `latents` directions, fitted to batches (n, width) of activations, one step each; and what
    was `unexplained` of the last one."""
    weights, optimiser, left = {}, None, 1.0
    for x in batches:
        if optimiser is None:
            weights = untrained(x.shape[1], latents, generator, x.device)
            # the mean is no direction: it would be one of every row's k
            weights["decoder_bias"].copy_(x.mean(0))
            optimiser = torch.optim.Adam([w.requires_grad_(True) for w in weights.values()], lr=lr)
        with torch.enable_grad():
            loss = unexplained(x, reconstructed(x, weights, k))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            weights["decoder"].copy_(F.normalize(weights["decoder"], dim=1))
        left = float(loss.detach())
    return {name: w.detach() for name, w in weights.items()}, left


# ---- the recipe ---------------------------------------------------------------------------------------------------------

SAE, TEACHER, SOURCE = "resa.sae", "teacher", "source"
LIKE_A_REASONER = "<think> {answer} </think>\n<answer> Answer: {answer}</answer>"


@rollout
def with_answers(problems: list[Problem], run: Run, *, reply: str = LIKE_A_REASONER) -> list[Group]:
    """Each question with its answer, in which every token is a decision: the question's tokens teach too."""
    if lacking := next((p for p in problems if p.answer is None), None):
        raise RewardlabError(f"problem {lacking.question[:60]!r} has no answer, and Resa learns from questions with answers")
    asked = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    written = run.policy.write(asked, [filled(reply, answer=str(p.answer)) for p in problems])
    return [[replace(t, turns=tuple(replace(turn, author=run.policy.name) for turn in t.turns))] for t in written]


@loop(wraps="inner")
def source_then_target(
    recipe: Recipe, run: Run, ops: Any, *, first: Share, layer: int, k: PositiveInt, latents: PositiveInt, sae_steps: PositiveInt,
    sae_lr: PositiveFloat, lr: PositiveFloat, reply: str, random: bool = False, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Training steps of the source for the share `first` of all; then the autoencoder learns, and the policy, again as it began,
    is tuned with it inside.

    random: the directions stay as they began, and only their origin is learnt, the mean of a batch.
    run.memory holds the autoencoder.  Logged: unexplained, the share of the source's activations that it does not rebuild.
    """
    if run.progress < first:
        inner(recipe, run, ops) if inner else ops.standard_step(recipe)
        return
    texts, at = with_answers(reply=reply), layer if layer >= 0 else round(run.policy.depth * 3 / 7)
    if SAE not in run.memory:
        source = run.models.get(SOURCE, run.policy)
        seeded = torch.Generator().manual_seed(run.seed)
        heard = _activations(source, at, 1 if random else sae_steps, texts, ops)
        weights, left = learn(heard, latents, k, 0.0 if random else sae_lr, seeded)
        run.memory[SAE] = {"weights": weights, "unexplained": left}
        run.policy.load_state(run.model(TEACHER).state())
        ops.policy.reset_optimizer()
    weights = run.memory[SAE]["weights"]
    run.log("unexplained", run.memory[SAE]["unexplained"])
    tuning = sft(lr=lr, problems=recipe.update.problems).but(rollout=texts, objective=like_teacher())
    # the inserted layer passes no gradient down, as in the released code
    with run.policy.inserted(at, lambda x: reconstructed(x, weights, k).detach()), only_layers_above(run.policy, at):
        ops.standard_step(tuning)


@contextmanager
def only_layers_above(policy: Any, layer: int) -> Iterator[None]:
    """A context in which no weight of a model trains but those of decoder layers above this one, counted from 0."""
    held = [p for name, p in policy.model.named_parameters() if p.requires_grad and not _layer_of(name) > layer]
    for p in held:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in held:
            p.requires_grad_(True)


def _layer_of(name: str) -> int:
    """The number of the decoder layer that a weight belongs to; -1 for embeddings, the last norm and the head."""
    found = re.search(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.", name)
    return int(found.group(1)) if found else -1


def _activations(source: Any, layer: int, steps: int, texts: Any, ops: Any) -> Iterator[torch.Tensor]:
    """(n, width) activations on the next problems, a batch for each step of the autoencoder."""
    with Bar("the autoencoder learns", steps) as bar:
        for _ in range(steps):
            rows = [row for group in texts(ops.problems(), ops.run) for row in group]
            yield source.activations(forward_batch(rows, source.device), layer)
            bar.advance()


def resa_sae_tuning(
    base: Recipe | None = None, *, source: str = "", first: float = 0.5, layer: int = -1, k: int = 32, latents: int = 65_536,
    sae_steps: int = 1000, sae_lr: float = 1e-3, tune_lr: float = 1e-6, reply: str = LIKE_A_REASONER, random: bool = False,
) -> Recipe:  # fmt: skip
    """source: checkpoint of the source model.  first: share of the steps in which the policy becomes the source, without one.
    layer: counted from 0; -1: three sevenths of the way up.  k: directions that a token may use; latents: all there are, 8 to 64
    times the width of a small model.  random: they are not learnt.  sae_steps, sae_lr: of the autoencoder.  tune_lr: of the
    target.  reply: the answer's form, with {answer} in it.
    """
    base = base or grpo()
    settings = {
        "layer": layer,
        "k": k,
        "latents": latents,
        "random": random,
        "sae_steps": sae_steps,
        "sae_lr": sae_lr,
        "reply": reply,
    }
    tuned = source_then_target(first=0.0 if source else first, lr=tune_lr, inner=base.loop, **settings)
    models = [Learner(TEACHER, "copy:policy", Recipe(), every=0)]
    if source:
        models.append(Learner(SOURCE, source, Recipe(), every=0))
    return base.but(loop=tuned, also=(*base.also, *models))


fidelity = "core"
left_out = "the sign descent by which the autoencoder learns (here Adam), and how many steps it learns is inferred"
data = Data(
    answer="the answer to the question; no reasoning is needed",
    rows=[
        {"prompt": "A box holds 12 eggs. How many do 4 boxes hold?", "answer": "48"},
        {"prompt": "What is the square root of 144?", "answer": "12"},
        {"prompt": "If $2x + 3 = 11$, what is $x$?", "answer": "4"},
    ],
)

HERE = {"tune_lr": 1e-4, "latents": 1024, "k": 16, "sae_steps": 400, "reply": "Answer: {answer}"}
claim = Claim(
    says="tuned through the directions of a source that RL has trained, the policy solves more problems than through random ones",
    versus="resa_sae_tuning", task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.05,
    settings=HERE, versus_settings={**HERE, "random": True}, steps=80,
    judge=Within("train.unexplained", high=0.3, says="share of the source's activations that the autoencoder does not rebuild"),
    learns=None,
    finding="35% right through the source's directions, 36% through random ones, 35% before: what RL taught the source did not "
    "come over, by either",
    version=2, replaces="its rival was the policy before, which says nothing of what the directions hold",
)  # fmt: skip
system = "resa-sae-tuning"
