"""RLSQM: reward models that learn which static properties a unit test has, and a policy trained by PPO on what they say.

    flags of a test y, read in its syntax tree:  syntax, assertion, focal call, no duplicates, no conditionals, comment, name
    reward models:  -[f log sigmoid(r(x, y)) + (1 - f) log(1 - sigmoid(r(x, y)))],  one for each flag f, or one for their mean
    policy:         PPO with KL on the mean of sigmoid(r(x, y))

Models write tests that assert nothing, do not call the function, or repeat themselves. Programs see that without running anything,
so that labels cost nothing and nobody need annotate. One property alone is soon had at the price of others (a test without
assertions has no duplicate ones); several at once are not.

Steenhoek et al. 2023, arXiv:2310.02368 and 2412.14308, by their abstracts; the data are released, training code was not found.
(inferred): that flags are learnt by cross-entropy, and the combined reward is their mean; what counts as a condition or as a
descriptive name (`static_quality`); that a reply without syntax has no flag. Their tests are C#, read by tree-sitter, of a Codex
model after SFT; ours are Python, read by `ast`. Reward models learn from the policy's own tests before the first step.
"""

import math
from typing import Any

from rewardlab.checks.claim import Check
from rewardlab.core import Learner, Loop, Problem, Recipe, Run, Update, loop, measure
from rewardlab.data.columns import Data
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.methods.baselines.rlhf import pairs_in
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import threshold
from rewardlab.rewards.model import model_score
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.static_quality import FLAGS, checked, flags_of, static_quality
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveInt
from rewardlab.util.outputs import last_values
from rewardlab.util.progress import Bar

MODEL, MEMORY = "reward", "rlsqm.taught"
MEASURED_ON, ENDLESS = 200, 1000


@loop(wraps="inner")
def flags_first(
    recipe: Recipe, run: Run, ops: Any, *, models: tuple[str, ...], tests: PositiveInt | None = None, at_once: PositiveInt = 32,
    inner: Loop | None = None,
) -> None:  # fmt: skip
    """Before the first step, train these models on what the policy writes for the problems of the data (`pairs_in`); then by the
    recipe.

    at_once: problems of an update.  inner: how a step is taken. Logged at every step: MODEL.rm_error, by how much the model's
    chance missed the flags of tests of held-out problems, on average.
    """
    if MEMORY not in run.memory:
        learners, problems = [ops.learners[model] for model in models], pairs_in(ops, run, tests, ENDLESS)
        with Bar("teaching the reward models", -(-len(problems) // at_once)) as bar:
            for start in range(0, len(problems), at_once):
                groups = ops.rollout(problems[start : start + at_once])
                for learner in learners:
                    ops.update(ops.collate(groups, ops.score(groups, learner), learner, run.policy.name), learner)
                bar.advance()
        run.memory[MEMORY] = _errors(ops, run, learners)
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    for model, error in run.memory[MEMORY].items():
        run.log(f"{model}.rm_error", error)


def _errors(ops: Any, run: Run, learners: list[Any]) -> dict[str, float]:
    with run.unbilled():
        groups = independent(n=1)(list(ops.task.test[:MEASURED_ON]), run)
        rows = [t for group in groups for t in group]
        labels = [[s.value for row in learner.recipe.reward(groups, run) for s in row] for learner in learners]
        values = [last_values(learner.model, rows) for learner in learners]
    # a tanh does not overflow
    return {
        learner.name: sum(abs((1 + math.tanh(float(v) / 2)) / 2 - f) for v, f in zip(value, label, strict=True)) / len(label)
        for learner, value, label in zip(learners, values, labels, strict=True)
    }


@measure
def static_rates(problems: list[Problem], run: Run, *, n: PositiveInt = 1) -> dict[str, float]:
    """Of n tests for each held-out problem the share with each flag; quality: the mean of the seven; all: with all seven."""
    groups = independent(n=n)(list(problems), run)
    found = [[flags_of(t) for t in group] for group in groups]
    tests = [flags for row in found for flags in row]
    # averaged within a problem first: the interval is over problems
    quality = [sum(sum(flags.values()) for flags in row) / (len(row) * len(FLAGS)) for row in found]
    low, high = mean_interval(quality)
    return {
        "quality": sum(quality) / len(quality), "ci95_low": low, "ci95_high": high, "n": float(len(quality)),
        "all": sum(all(flags.values()) for flags in tests) / len(tests),
        **{f"quality.{flag}": sum(flags[flag] for flags in tests) / len(tests) for flag in FLAGS},
    }  # fmt: skip


def rlsqm(
    base: Recipe | None = None, *, flags: tuple[str, ...] = FLAGS, combined: bool = True, tests: int | None = None,
    reward_lr: float | None = None, init: str = "value-head", n: int = 1, problems: int = 128,
) -> Recipe:  # fmt: skip
    """flags: the properties that are rewarded.  combined: one reward model for their mean; else one for each, whose chances are
    averaged.  tests: problems whose tests by the policy the reward models learn from; None: all, of data
    without an end 1,000.  reward_lr, init: as in `bradley_terry`.
    n, problems: tests of a problem and problems of a step, of PPO."""
    flags = checked(tuple(flags))
    base = base or ppo(n=n).but(problems=problems)
    learners = [_model(MODEL, flags, reward_lr, init)] if combined else [
        _model(f"{MODEL}_{flag}", (flag,), reward_lr, init) for flag in flags
    ]  # fmt: skip
    # a chance, not a score: PPO's critic then learns numbers of one size, and nothing is gained beyond being sure
    said: list[Reward] = [threshold(model_score(model=learner.name).named(learner.name), at=0.0, soft=1.0) for learner in learners]
    total = said[0]
    for other in said[1:]:
        total = total + other
    return base.but(
        reward=total if len(said) == 1 else (1 / len(said)) * total,
        also=(*base.also, *learners),
        loop=flags_first(models=tuple(learner.name for learner in learners), tests=tests, inner=base.loop),
        measure=static_rates(),
    )


def _model(name: str, flags: tuple[str, ...], lr: float | None, init: str) -> Learner:
    """A reward model of the mean of these flags; every=0: the loop alone teaches it."""
    taught = Recipe(
        reward=static_quality(flags=flags), objective=label_cross_entropy(), update=Update(lr=lr, loss_kind="scorer")
    )  # fmt: skip
    return Learner(name, init, taught, every=0)


fidelity = "core"
left_out = "SFT on tests that have the properties, from which the policy starts; training on one reward after another; C#"
data = Data(
    prompt="the code to be tested, and what is asked for",
    focal="the name of the function or method under test",
    verified_by="static_quality",
    rows=[
        {
            "prompt": "Write a pytest test of this function.\n\ndef has_close_elements(numbers, threshold):\n    # whether any two "
            "numbers are closer to each other than the threshold",
            "focal": "has_close_elements",
        },
        {
            "prompt": "Write a pytest test of this function.\n\ndef truncate_number(number):\n    # the decimal part of a number",
            "focal": "truncate_number",
        },
        {
            "prompt": "Write a pytest test of this function.\n\ndef below_zero(operations):\n    # whether the balance of an "
            "account that starts at 0 ever falls below 0",
            "focal": "below_zero",
        },
    ],
)  # fmt: skip

check = Check(
    says="PPO on a reward model of static properties gives more of them than sampling before it, and not only of those that are "
    "easily had",
    versus=None, task="smelly_tests", measure="all", direction="higher", margin=0.1, against="before.all",
    settings={"tests": 1000, "problems": 64}, steps=20,
    finding="10% of the tests have all seven properties after PPO and 4% before; the share of the properties that they have rises "
    "from .57 to .70, but not of an assertion, without which a test tests nothing (43% to 36%). Five "
    "seeds do not decide",
)  # fmt: skip
baseline = "ppo"
