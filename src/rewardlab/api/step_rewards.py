"""Whether the credit of a recipe pays replies for how many steps they have, where its reward pays steps.

A credit that centres every reward of a step among those of other replies, and sums what is left, gives a step that is paid nothing
minus their mean. That is GRPO's process supervision; whoever brings rewards of steps is told what it does to them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rewardlab import registry
from rewardlab.core import Credit, Part, Recipe
from rewardlab.errors import RewardlabError
from rewardlab.rewards.operator import Operator
from rewardlab.rewards.reward import Gate, Named, Product

CENTRED = ("center", "center_batch", "leave_one_out", "subtract_mean_of_others", "whiten_events")
"""Parts of credit that subtract a number from each event, so that a row of more events has more subtracted."""
PAYS_STEPS = (
    *("prm_steps", "doubted_steps", "step_score", "monte_carlo_steps", "binary_search_steps", "judged_steps", "implicit_steps"),
    *("wrong_steps", "noisy_critiques", "grounded_verdicts", "forced_accuracy", "line_labels", "principled_turns", "turn_chances"),
)
"""Rewards that pay steps, beside those whose option `steps` says so."""


def paid_by_number(recipe: Recipe) -> str:
    """What the credit makes of rewards of steps, and the way out; "" where it is not so, or where the method pays them itself."""
    if recipe.reward is None or recipe.credit is None:
        return ""
    own = _of_the_method(recipe)
    terms = [term for term in dict.fromkeys(terms_of_steps(recipe.reward)) if term not in own]
    parts = list(dict.fromkeys(name for term in terms for name in centring(recipe.credit, term)))
    if not parts:
        return ""
    paid, name = " and ".join(terms), recipe.name or "the recipe"
    return (
        f"the reward pays single steps ({paid}), and the credit of {name} ({', '.join(parts)}) subtracts a mean from each of them: "
        "where replies differ in their number of steps it also pays for that number, for more steps where most are paid little and "
        "for fewer where most are paid much. Rewards to go less one number a reply do not: the method reward_to_go is GRPO "
        "with these (dapo+reward_to_go is DAPO); aggregate(...) around the steps makes one number of them"
    )


def _of_the_method(recipe: Recipe) -> set[str]:
    """The terms of steps that the method has without a reward of the user's: its paper's, with its paper's credit."""
    with contextlib.suppress(RewardlabError):
        reward = registry.build(str(recipe.name)).reward
        return set() if reward is None else set(terms_of_steps(reward))
    return set()


def terms_of_steps(reward: Part) -> Iterator[str]:
    """The names of the terms of a reward that pay steps."""
    if isinstance(reward, Operator):
        # of several rewards, or over a whole reply, an operator makes one number
        single = len(reward.operands) == 1 and reward.options.steps and reward.over not in ("trajectory", "weights")
        if reward.over == "weights":
            yield from (term for part in reward.operands for term in terms_of_steps(part))
        elif single and any(terms_of_steps(reward.operands[0])):
            yield reward.label
    elif isinstance(reward, Named | Product | Gate):
        if any(True for part in reward.of for _ in terms_of_steps(part)):
            yield reward.label
    elif reward.of:
        for part in reward.of:
            yield from terms_of_steps(part)
    elif getattr(reward.options, "steps", False) or reward.name in PAYS_STEPS:
        yield reward.name


def centring(credit: Credit | Part, term: str) -> Iterator[str]:
    """The parts of a credit that centre the events of a term."""
    if credit.name == "by_term":
        chains, others = credit.settings["chains"], credit.settings["others"]
        chain = chains.get(term, others)
        yield from centring(chain, term) if chain is not None else ()
    elif credit.name in CENTRED:
        yield credit.name
    else:
        for part in credit.of:
            yield from centring(part, term)
