"""Compare two engines on one recipe, one model and the same recorded replies: are advantages, loss and gradient equal?

Only what is random is recorded: the replies, the log-probs they were sampled with, one missing verdict, and rewards beside
the recipe's own, so that they vary and some fall on steps. All else runs for real in both engines: rollout, reward, credit,
objective, weighting, the update of second models. Weights of policy, reference and second models differ, so that ratios, KL
and learned rewards are at work.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from rewardlab.backends import trl, verl
from rewardlab.core import Recipe, Run, Sampling, Score, Scores, Task, Term, Trajectory, seed_of
from rewardlab.engine.distributed import all_reduce
from rewardlab.engine.step import Ops
from rewardlab.engine.update import backward
from rewardlab.errors import RewardlabError
from rewardlab.models.learners import learner_model
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.scores import add
from rewardlab.runs.config import RunConfig

CLOSE = 1e-5
"""The largest difference that rounding in float32 explains."""
PROBLEMS = 4
ROWS = 4
BONUS = (0.0, 0.3, 0.1, 0.5)


@dataclass(frozen=True)
class Computed:
    """What an engine computed from the recorded replies. gradients: by model and by the weight's name in its checkpoint."""

    advantages: Tensor
    loss: float
    gradients: dict[str, Tensor]


def compare(recipe: Recipe, task: Task, start: Any, verify: Reward | None, engine: str = "trl") -> dict[str, Any]:
    """Advantages, loss and gradient of one step by the embedded engine and by another, with the largest differences.

    start: a small untrained policy.  engine: "trl" or "verl". verdict: "equal" (all within 1e-5, relative to the largest number
    where that exceeds 1), "differs", or "cannot carry" with the reason.
    """
    about = {"method": recipe.name, "engine": engine}
    other = {"trl": trl, "verl": verl}[engine]
    why = other.cannot_carry(recipe) or trl.not_text(start)
    if why:
        return {**about, "verdict": "cannot carry", "why": why, "differences": {}, "largest": {}}
    other.require()
    # verl has a place for one number a reply, and its own gae for no reply without one
    by_steps = engine == "trl"
    recipe = small(recipe, steps=by_steps, missing=by_steps or not verl.by_verl(recipe))
    with tempfile.TemporaryDirectory() as folder:
        ours = by_embedded(recipe, task, models(recipe, task, start, verify))
        run = models(recipe, task, start, verify)
        theirs = through_trl(recipe, task, run, start, Path(folder)) if engine == "trl" else through_verl(recipe, task, run)
    if not largest(ours)["gradient"]:
        raise RewardlabError(f"{recipe.name} has no gradient on the recorded replies to {task.name}: compare it on another --task")
    differences = difference(ours, theirs)
    worst = max(differences, key=lambda name: differences[name])
    equal = differences[worst] <= CLOSE
    why = "" if equal else f"the {worst} differ by {differences[worst]:.2g}, more than {CLOSE:g}"
    return {
        **about, "verdict": "equal" if equal else "differs", "why": why, "differences": differences, "largest": largest(ours),
    }  # fmt: skip


def difference(ours: Computed, theirs: Computed) -> dict[str, float]:
    """The largest differences, relative to the largest number where that exceeds 1."""
    if ours.advantages.shape != theirs.advantages.shape:
        raise RewardlabError(f"batches of different shapes: {tuple(ours.advantages.shape)}, {tuple(theirs.advantages.shape)}")
    shared = ours.gradients.keys() & theirs.gradients.keys()
    # a tied vocabulary head has its gradient in the embedding's
    if unmatched := {name for name in ours.gradients.keys() ^ theirs.gradients.keys() if "lm_head" not in name}:
        raise RewardlabError(f"weights that only one engine has: {', '.join(sorted(unmatched))}")
    differences = {
        "advantages": float((ours.advantages - theirs.advantages).abs().max()),
        "loss": abs(ours.loss - theirs.loss),
        "gradient": max(float((ours.gradients[k] - theirs.gradients[k]).abs().max()) for k in shared),
    }
    return {name: off / max(1.0, largest(ours)[name]) for name, off in differences.items()}


def largest(computed: Computed) -> dict[str, float]:
    """How large the numbers compared are: if all are 0, equality proves nothing."""
    gradient = max(float(g.abs().max()) for g in computed.gradients.values())
    return {"advantages": float(computed.advantages.abs().max()), "loss": abs(computed.loss), "gradient": gradient}


# ---- what both engines are given -------------------------------------------------------------------------------------


def small(recipe: Recipe, **recording: bool) -> Recipe:
    """A step of a few rows and one optimiser step, with the recorded rewards; recording: settings of `recorded`."""
    rollout = recipe.rollout
    if rollout is not None and isinstance(n := rollout.settings.get("n"), int) and n > ROWS:
        rollout = rollout.but(n=ROWS)
    # a second optimiser step would start from different weights, and clipping would hide how large the gradients are
    once = {"epochs": 1, "minibatches": 1, "clip_norm": 1e9}
    also = tuple(replace(learner, recipe=learner.recipe.but(**once)) for learner in recipe.also)
    judged = None if recipe.reward is None else recorded(inner=recipe.reward, **recording)
    return recipe.but(rollout=rollout, reward=judged, also=also, problems=PROBLEMS, **once)


@reward(over="groups")
def recorded(groups: list[list[Trajectory]], run: Run, *, inner: Reward, steps: bool = True, missing: bool = True) -> Scores:
    """The scores of `inner` and a little more, which varies by row.

    steps: every second row has a step reward.  missing: the first row has no verdict.
    """
    scores = [list(row) for row in inner(groups, run)]
    if missing:
        unjudged = {name: Term(None, (), term.weight) for name, term in scores[0][0].terms.items()}
        scores[0][0] = Score(terms=unjudged, missing=True, why="recorded as missing")
    for trajectories, row in zip(groups, scores, strict=True):
        for i, (t, score) in enumerate(zip(trajectories, row, strict=True)):
            decisions = np.flatnonzero(t.mask)
            if not score.missing and len(decisions):
                at_half = ((int(decisions[len(decisions) // 2]), 0.25),) if steps and i % 2 else ()
                row[i] = add([score, Score(BONUS[i % len(BONUS)], at_half).named("bonus")])
    return scores


def models(recipe: Recipe, task: Task, start: Any, verify: Reward | None) -> Run:
    """A run whose models all have weights of their own, and whose policy replays recorded replies."""
    run = Run(pushed(start, "policy"), reference=start.copy("reference"), seed=1, max_new=task.max_new, verify=verify)
    for learner in recipe.also:
        init = learner.init.replace("embedded:", "untrained:")
        run.models[learner.name] = pushed(learner_model(replace(learner, init=init), start), learner.name)
    replaying(run, task, start)
    return run


def pushed(policy: Any, name: str, by: float = 0.03) -> Any:
    """A copy with slightly perturbed weights; so a value head, which starts at 0, gives values other than 0."""
    copied, generator = policy.copy(name), torch.Generator().manual_seed(seed_of(name))
    with torch.no_grad():
        for p in copied.parameters():
            # relative to the weight's size; a weight that is all 0 gets noise of its own
            p += by * (p.abs().mean() + 0.1 * (p == 0).all()) * torch.randn(p.shape, generator=generator)
    return copied


def replaying(run: Run, task: Task, wrote: Any) -> None:
    """Let all models reply with what is recorded: the policy as the task's teacher does, with the log-probs of `wrote`."""
    run.policy.extend = partial(replay, run.policy, wrote, task)
    for model in run.models.values():
        model.extend = partial(replay, model, None, None)


def replay(
    policy: Any, wrote: Any, task: Task | None, rows: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator
) -> list[Trajectory]:
    """One recorded reply for each row. It depends on the row alone, not on the caller or the order of calls."""
    times: Counter[Any] = Counter()
    extended = []
    for t in rows:
        key = (t.problem.key, t.path, len(t.turns))
        times[key] += 1
        seed = seed_of(*key, times[key])
        written = policy.write([t], [reply_to(task, t, random.Random(seed))])[0]
        logprobs = None if wrote is None else wrote.score([written])[0][len(t) :]
        reply = replace(written.turns[-1], logprobs=logprobs, sampled=logprobs, step=policy.step)
        fits = len(reply.ids) <= sampling.max_new
        extended.append(t.plus(reply if fits else reply.cut(sampling.max_new), "end" if fits else "length"))
    return extended


def reply_to(task: Task | None, t: Trajectory, rng: random.Random) -> str:
    """The reply of the task's careless teacher, right or wrong; without one, an answer that may be right."""
    # the teacher cannot solve problems that a method made itself
    known = task is not None and set(task.columns) <= {"prompt", "answer", *t.problem.meta}
    reply = task.demonstrate(t.problem, rng) if task and known and task.demonstrate else None
    if isinstance(reply, str):
        return reply
    if reply:
        return str(reply[min(2 * (len(t.turns) // 2), len(reply) - 1)])
    answer = t.problem.answer if rng.random() < 0.5 else rng.randint(0, 99)
    return f"{'well, ' * rng.randint(0, 6)}\nAnswer: {answer}"


# ---- the two engines -------------------------------------------------------------------------------------------------


def by_embedded(recipe: Recipe, task: Task, run: Run) -> Computed:
    ops = Ops(recipe, run, task, RunConfig())
    # as through TRL: the two are compared on one batch
    ops.refills = False
    groups = ops.rollout(ops.problems())
    scores = ops.score(groups)
    batch = ops.collate(groups, scores)
    stats = backward(run.policy, batch, recipe, run, ops.settings.micro_tokens)
    for p in run.policy.parameters():
        p.grad = all_reduce(p.grad)
    for name in run.models:
        ops.learn(ops.learners[name], batch, groups, scores)
    named = {"policy": run.policy, **run.models}
    return Computed(batch.credit, stats["loss"], {f"{m}.{k}": g for m, p in named.items() for k, g in gradients(p).items()})


def through_trl(recipe: Recipe, task: Task, run: Run, start: Any, folder: Path) -> Computed:
    """One step of TRL's own training loop, in several micro-batches, on the same weights as checkpoints of transformers."""
    from rewardlab.backends.trl.settings import config_of
    from rewardlab.backends.trl.training import RecipeTrainer, policy_of

    config = config_of(
        recipe, run, output_dir=str(folder), use_cpu=True, per_device_train_batch_size=2, gradient_checkpointing=False,
        disable_tqdm=True,
    )  # fmt: skip
    for name, model in {"policy": run.policy, "reference": run.reference, **run.models}.items():
        model.save(folder / name)
    run.policy, run.reference = policy_of(folder / "policy", config), loaded(folder, "reference")
    run.models = {name: loaded(folder, name) for name in run.models}
    replaying(run, task, start)
    of_policy: dict[str, Tensor] = {}
    trainer = RecipeTrainer(Ops(recipe, run, task, RunConfig()), config)
    trainer.add_callback(listener(lambda: of_policy.update(named_gradients(run.policy))))
    trainer.train()
    assert trainer.ops.step_data is not None
    both = {"policy": of_policy, **{name: named_gradients(model) for name, model in run.models.items()}}
    return Computed(
        trainer.ops.step_data.batch.credit,
        run.metrics["loss"],
        {f"{m}.{k}": g for m, grads in both.items() for k, g in grads.items()},
    )


def through_verl(recipe: Recipe, task: Task, run: Run) -> Computed:
    """One step by verl's own functions, with our models under them."""
    from rewardlab.backends.verl.parity import step

    ops = Ops(recipe, run, task, RunConfig())
    ops.refills = False
    groups = ops.rollout(ops.problems())
    advantages, loss = step(recipe, run, groups, ops.score(groups) or [])
    named = {"policy": run.policy, **run.models}
    return Computed(advantages, loss, {f"{m}.{k}": g for m, p in named.items() for k, g in gradients(p).items()})


def loaded(folder: Path, name: str) -> HFPolicy:
    model = HFPolicy.load(folder / name, "cpu", "float32")
    model.name = name
    return model


def listener(act: Callable[[], None]) -> Any:
    """A callback that runs `act` when a gradient is complete, before the optimiser step."""
    from transformers import TrainerCallback

    class Listener(TrainerCallback):
        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            act()

    return Listener()


def gradients(policy: Any) -> dict[str, Tensor]:
    """A lean policy's gradients under the names that its weights have in a checkpoint."""
    carrier = policy.copy(policy.name)
    with torch.no_grad():
        for slot, p in zip(carrier.parameters(), policy.parameters(), strict=True):
            slot.copy_(torch.zeros_like(p) if p.grad is None else p.grad)
    with tempfile.TemporaryDirectory() as folder:
        carrier.save(folder)
        return load_file(Path(folder) / "model.safetensors")


def named_gradients(policy: Any) -> dict[str, Tensor]:
    """The gradients of a model of transformers, under the same names."""
    named = dict(policy.model.named_parameters()) | ({} if policy.value_head is None else {"score.weight": policy.value_head})
    return {k: torch.zeros_like(p) if p.grad is None else p.grad.detach().clone() for k, p in named.items()}
