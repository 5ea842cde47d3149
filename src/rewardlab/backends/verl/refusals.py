"""What verl cannot run, and why: found by reading the recipe, and by running credit and loss on verl's inputs."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType
from typing import Any

import numpy as np
import torch

from rewardlab.backends.verl.handed import Handed, HandedRun, NotHanded
from rewardlab.backends.verl.hooks import ESTIMATOR, LOSS, advantages
from rewardlab.backends.verl.settings import AGGREGATED, ENTROPY, KL, by_verl, credit_of, filter_of, own_terms
from rewardlab.core import Objective, Outputs, Part, Recipe, Rollout
from rewardlab.rewards.reward import Reward

ALONE = frozenset((
    *("correct", "detail", "format_ok", "calls_matched", "answers_covered", "set_brier", "with_answer", "right_and_fast"),
    *("calibration_loss", "from_file", "from_module"),
))  # fmt: skip
"""Rewards that take all groups at once for speed or to ask the verifier once, and score each reply by itself."""
TOGETHER = ("group", "groups", "weights")
MANAGER = "a reward manager"
SERVED = (
    ". Serve the reward by itself (rewardlab serve --reward model:PATH, or a formula with prm_score); verl gets the client that "
    "rewardlab serve --write-client verl writes (docs/SERVING.md)"
)
"""What to do about a reward with a model of its own."""
HANDED = frozenset(("verify", "verdicts", "log", "max_new", "reward_timeout", "held_out"))
"""What a reward may ask of the run in verl."""


def cannot_carry(recipe: Recipe) -> str:
    """Why verl cannot run this recipe; empty if it can."""
    if recipe.loop is not None:
        return f"its training loop is its own ({recipe.loop.name}), and verl's trainer is one too"
    if recipe.objective is None:
        return "its policy does not learn (it has no objective), and verl's trainer trains the policy"
    if recipe.rollout is None:
        return "it has no rollout to learn from"
    return (
        _rollout(recipe.rollout)
        or _learners(recipe)
        or _reward(recipe.reward)
        or _weights(recipe)
        or _objective(recipe.objective)
        or _credit(recipe)
        or _minibatches(recipe)
    )


def _rollout(rollout: Rollout) -> str:
    inner: Any = rollout.innermost if filter_of(rollout) else rollout
    if inner.name != "independent":
        return f"its rollout is {rollout.name}, and verl's own samples independent replies to each prompt"
    if inner.settings["steps"]:
        return f"its rollout marks reasoning steps ({inner.settings['steps']}), and verl keeps no such marks"
    return "its rollout stops at texts of its own, which verl's configuration has no setting for" if inner.settings["stop"] else ""


def _learners(recipe: Recipe) -> str:
    if not recipe.also or by_verl(recipe):
        return ""
    names = ", ".join(learner.name for learner in recipe.also)
    return f"it trains a second model ({names}), and verl has only a critic for its own gae, whitened"


def _minibatches(recipe: Recipe) -> str:
    update = recipe.update
    if not update.problems % update.minibatches:
        return ""
    return (
        f"its {update.problems} prompts a step are no multiple of its {update.minibatches} minibatches, and verl takes the size of "
        "one: choose --problems and --minibatches so that they divide"
    )


def _weights(recipe: Recipe) -> str:
    weighting = recipe.weighting
    if weighting is None or (weighting.unit == "token" and weighting.name in AGGREGATED):
        return ""
    return f"its weighting is {weighting.name}, which is none of verl's loss_agg_mode"


def _objective(objective: Objective) -> str:
    leaves = [leaf for _, leaf in own_terms(objective)]
    if not leaves:
        return "its objective has no term but KL and entropy"
    if unit := next((leaf.unit for leaf in leaves if leaf.unit not in ("token", "row")), ""):
        return f"its objective compares the rows of a {unit}, and verl's loss is given a micro-batch"
    if leaf := next((leaf for leaf in leaves if leaf.options.per_token), None):
        return f"its objective {leaf.name} reads the whole vocabulary's logits, and verl's loss is given log-probs"
    if leaf := next((leaf for leaf in leaves if set(leaf.options.wants) - {"logprobs"}), None):
        read = ", ".join(sorted(set(leaf.options.wants) - {"logprobs"}))
        return f"its objective {leaf.name} reads {read}, and verl's loss is given log-probs"
    negative = next((leaf.name for scale, leaf in objective.terms() if leaf.name in (KL, ENTROPY) and scale < 0), "")
    return f"{negative} has a negative factor" if negative else _tried(lambda: [try_loss(leaf) for leaf in leaves])


def _credit(recipe: Recipe) -> str:
    if by_verl(recipe):
        return ""
    chain = credit_of(recipe)
    parts = [] if chain is None else list(chain.walk())
    if needing := next((part for part in parts if part.options.needs), None):
        return f"its credit {needing.name} needs {needing.options.needs[0]}, which verl does not hand to {ESTIMATOR}"
    return _tried(lambda: try_credit(recipe))


def _reward(reward: Part | None) -> str:
    if reward is None:
        return "it learns from recorded replies, and verl's trainer from rewards of replies that it sampled"
    for part in reward.walk():
        if part.name == "from_python":
            return f"its reward {part.settings['function']} was given as a function in Python, and verl reads rewards from files"
        if why := _asks(part) or _steps(part):
            return why
        if why := together(part):
            return f"{why}, and verl scores each alone"
    return ""


def together(part: Any) -> str:
    """Why a part's reward of one reply cannot be computed without the others; empty if it can."""
    if part.name in ALONE:
        from rewardlab.rewards.user.external import call_of

        call = call_of(part)
        return f"its reward {call.name} compares the replies to a prompt" if call and call.grouped else ""
    over = getattr(part.options, "over", None)
    return f"its reward {part.name} takes the replies of a step together" if over in TOGETHER else ""


def _steps(part: Any) -> str:
    pays_steps = getattr(part.options, "steps", False) and isinstance(part, Reward) and not part.of
    return f"its reward {part.name} pays single steps, and verl keeps one number for a reply" if pays_steps else ""


def _asks(part: Any) -> str:
    if part.needs:
        return f"its reward {part.name} needs {part.needs[0]}, which verl does not hand to {MANAGER}"
    asked = sorted(_read_of_run(getattr(part, "function", None)) - HANDED)
    if not asked:
        return ""
    return f"its reward {part.name} reads run.{asked[0]}, which verl does not hand to {MANAGER}{SERVED if 'model' in asked else ''}"


def _read_of_run(function: Any, seen: frozenset[str] = frozenset()) -> set[str]:
    """The attributes of an argument `run` that a function reads, and the functions of its module that it names."""
    if not isinstance(function := inspect.unwrap(function) if callable(function) else None, FunctionType):
        return set()
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return set()
    read = {
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "run"
    }
    named = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - seen
    helpers = [
        x for name in named if isinstance(x := function.__globals__.get(name), FunctionType) and x.__module__ == function.__module__
    ]
    return read.union(*(_read_of_run(helper, seen | named) for helper in helpers))


# ---- tried out -------------------------------------------------------------------------------------------------------


def _tried(what: Any) -> str:
    try:
        what()
    except NotHanded as why:
        return str(why)
    return ""


ROWS, WIDTH = 6, 5


def _mask() -> torch.Tensor:
    return torch.arange(WIDTH) < torch.tensor([5, 3, 4, 2, 5, 1])[:, None]


def try_credit(recipe: Recipe) -> torch.Tensor:
    """The credit of six replies to two prompts, one of them without a verdict. Raises NotHanded as `advantages` does."""
    mask = _mask()
    rewards = torch.zeros(ROWS, WIDTH)
    rewards[torch.arange(ROWS), mask.sum(1) - 1] = torch.tensor([1.0, 0.0, 0.5, 1.0, 0.0, torch.nan])
    return advantages(recipe, rewards, mask, np.array(["a", "b", "a", "b", "a", "b"]))


def try_loss(leaf: Objective) -> torch.Tensor:
    """The losses of one objective on the same replies."""
    mask = _mask()
    old = torch.linspace(-2, -0.1, ROWS * WIDTH).reshape(ROWS, WIDTH)
    batch = Handed(LOSS, mask=mask, old=old, credit=torch.where(mask, old + 1, 0.0), length=mask.sum(1))
    return leaf(Outputs(logprobs=old * 1.1), batch, HandedRun(LOSS, WIDTH))
