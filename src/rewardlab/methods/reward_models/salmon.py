"""SALMON: a reward model that reads principles in its prompt, some of them negated; the one with the largest margin decides.

    of a pair (a, b), for each principle p:    m_p = how much better a follows p than b, by a judge
    each time the pair is seen:                a few principles at random, each negated with chance 1/2:  m_p -> -m_p
    label: the sign of s_p of the principle with the largest |s_p|,  s_p = m_p / variance of m_p over the data
    L = -log sigmoid(r(x, winner | principles) - r(x, loser | principles))

The same pair is labelled one way or the other, as the principles ask, so that the model has to read them. They are then chosen
where it is used, and against what a policy exploits one more is added, without new labels:
--reward 'model:RUN?principle=Be brief.&principle=Be true.', `scoreboard 'RUN?principle=Be true.'`, or one of several at each step:
--reward 'principled_score(model="model:RUN", principles=["Be brief.", "Be true."], n=1)'.

Sun et al. 2023, arXiv:2310.05910, and IBM/SALMON (aggregate_synthetic_preference.py, data_utils_rm.py): as many principles as a
geometric variable of mean 5, at most 8; variances of a judge's numbers in both orders, as it gave them; 10% of labels turned round;
a judge's margins in both orders count where they have the same sign, by their mean, else they are 0; a pair whose largest margin is
0 is left out. There each pair is labelled four times, here anew at each visit; there variances are of the whole data, here of the
numbers seen so far. (inferred): the wording of the prompt (theirs shows the reply before the question), and of a negated principle,
of which theirs are written by hand: the column `negations` may bring such texts.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Rollout, Run, Update, measure, rollout, seed_of
from rewardlab.core.recipe import PRINCIPLES
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of, map_of, number_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import pair_accuracy
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.objectives.pairs import preference_loss
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.text.principles import with_principles

MEMORY = "salmon.margins"
NEGATED = "Not this: {principle}"
MEAN = 5
"""Of the number of principles before it is cut: a geometric variable with the chance 1/5."""


class Asked(NamedTuple):
    """A principle, its text as it is asked for, and by how much the first reply follows that better, in its own unit."""

    name: str
    text: str
    margin: float
    negated: bool


def asked(problem: Problem, name: str, margin: float, negated: bool) -> Asked:
    """The principle as it is, or its opposite."""
    if not negated:
        return Asked(name, name, margin, False)
    known = map_of(problem.meta.get("negations")) or {}
    return Asked(name, known.get(name) or NEGATED.format(principle=name), -margin, True)


def margins_of(problem: Problem) -> dict[str, float]:
    """Principle to margin of the chosen reply over the rejected one."""
    problem.required("chosen", "rejected", "margins", by="salmon")
    told = map_of(problem.meta["margins"]) or {}
    found = {name: margin(value) for name, value in told.items()}
    if not found or None in found.values():
        raise RewardlabError(
            f"problem {problem.question[:60]!r}: the column 'margins' maps each principle to a number, or two of both orders, "
            f"and this is {str(problem.meta['margins'])[:80]}"
        )
    return {name: value for name, value in found.items() if value is not None}


def margin(value: Any) -> float | None:
    """A judge's margin: a number, or one in each order, whose mean counts where both have the same sign; else it is 0."""
    both = list_of(value)
    if both is None:
        return number_of(value)
    numbers = [number_of(x) for x in both]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        return None
    return (numbers[0] + numbers[1]) / 2 if numbers[0] * numbers[1] > 0 else 0.0


def variances(run: Run, problems: Sequence[Problem]) -> dict[str, float]:
    """Of a judge's numbers for each principle, over these problems and those of earlier steps; 1 where they do not differ.

    Of a margin in both orders the two numbers count, also where they disagree and the margin is 0.
    """
    memory = run.memory.setdefault(MEMORY, {})
    for problem in problems:
        given = map_of(problem.meta["margins"]) or {}
        numbers = [(name, x) for name, mean in margins_of(problem).items() for x in _numbers(given[name], mean)]
        for name, value in numbers:
            count, total, squares = memory.get(name, (0, 0.0, 0.0))
            memory[name] = [count + 1, total + value, squares + value * value]
    return _spread(memory)


def _numbers(given: Any, mean: float) -> list[float]:
    """The numbers of a margin, which can be read; mean: what they come to."""
    return [float(x) for x in map(number_of, list_of(given) or []) if x is not None] or [mean]


def _spread(memory: Mapping[str, Sequence[float]]) -> dict[str, float]:
    spread = {name: squares / count - (total / count) ** 2 for name, (count, total, squares) in memory.items()}
    return {name: x if x > 1e-9 else 1.0 for name, x in spread.items()}


def asked_of(problem: Problem, rng: random.Random, most: int, negated: float) -> list[Asked]:
    """Principles sampled of the row's, some of them negated."""
    margins, count = margins_of(problem), most + 1
    while count > most:
        count = 1 + int(math.log(1 - rng.random()) / math.log(1 - 1 / MEAN))
    names = rng.sample(sorted(margins), min(count, len(margins)))
    return [asked(problem, name, margins[name], rng.random() < negated) for name in names]


def decided(problem: Problem, of: Sequence[Asked], scales: Mapping[str, float], flip: bool = False) -> Problem | None:
    """The problem told these principles, its pair in the order of the one with the largest margin / scale; None where that is 0."""
    scaled = [a.margin / scales.get(a.name, 1.0) for a in of]
    largest = max(scaled, key=abs)
    if largest == 0:
        return None
    pair = (problem.meta["chosen"], problem.meta["rejected"])
    chosen, rejected = pair if (largest > 0) != flip else pair[::-1]
    told = problem.reworded(with_principles(problem.question, [a.text for a in of]))
    return replace(told, meta={**told.meta, "chosen": chosen, "rejected": rejected})


@rollout(wraps="inner", across_problems=True)
def by_largest_margin(
    problems: list[Problem], run: Run, *, inner: Rollout, most: PositiveInt = 8, negated: Share = 0.5, noise: Share = 0.1
) -> list[Group]:
    """The groups of `inner` for each pair under sampled principles, labelled by the one with the largest margin.

    most: principles of a prompt.  negated: the chance of each to be negated.  noise: share of labels turned round.  Logged: turned,
    the share of pairs whose label is not the row's order.
    """
    spread, found = variances(run, problems), []
    for problem in problems:
        rng = random.Random(seed_of("salmon", run.seed, run.step, problem.key))
        of = asked_of(problem, rng, most, negated)
        if pair := decided(problem, of, spread, rng.random() < noise):
            found.append((pair, pair.meta["chosen"] != problem.meta["chosen"]))
    if not found:
        raise RewardlabError("salmon: of no pair of this step is any margin other than 0: there is nothing to learn from")
    run.log("turned", sum(turned for _, turned in found) / len(found))
    return inner([pair for pair, _ in found], run)


@measure
def by_principle(problems: Sequence[Problem], run: Run, *, model: str = "reward") -> dict[str, float]:
    """pair_accuracy of held-out pairs under one principle each that tells them apart, as it is and negated; ties count half.

    pair_accuracy.plain and pair_accuracy.negated: of each kind.
    """
    sides: dict[str, list[Problem]] = {"plain": [], "negated": []}
    for problem in problems:
        known = {name: value for name, value in margins_of(problem).items() if value}
        if not known:
            continue
        name = random.Random(seed_of("salmon", problem.key)).choice(sorted(known))
        for side in sides:
            sides[side] += [p for p in [decided(problem, [asked(problem, name, known[name], side == "negated")], {})] if p]
    if not sides["plain"]:
        raise RewardlabError("salmon: in no held-out row does any principle tell the replies apart")
    found = pair_accuracy(model=model)([*sides["plain"], *sides["negated"]], run)
    parts = {f"pair_accuracy.{k}": pair_accuracy(model=model)(rows, run)["pair_accuracy"] for k, rows in sides.items()}
    return found | parts


def salmon(
    base: Recipe | None = None, *, most: int = 8, negated: float = 0.5, noise: float = 0.1, reward_lr: float | None = None,
    problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """most: principles of a prompt.  negated: the chance of each to be negated.  noise: share of labels turned round.
    reward_lr, problems, init: as in `bradley_terry`."""
    base = base or bradley_terry(problems=problems)
    taught = Recipe(objective=preference_loss(), update=Update(lr=reward_lr, loss_kind="scorer"))
    others = tuple(learner for learner in base.also if learner.name != "reward")
    pairs = recorded(fields=("chosen", "rejected"))
    return base.but(
        rollout=by_largest_margin(inner=pairs, most=most, negated=negated, noise=noise),
        measure=by_principle(),
        also=(*others, Learner("reward", init, taught, reads=PRINCIPLES)),
    )


fidelity = "core"
left_out = (
    "the judge that gives margins by the log-probs of its choices (rows bring them), pre-training on other preferences, rules that "
    "override margins (replies in another language, 'as an AI language model'), the bonus for length, and PPO"
)
data = Data(
    chosen="one reply; which of the two is better, the margins say",
    rejected="another reply",
    margins="for each principle, by how much `chosen` follows it better: a number, or the judge's two numbers in both orders",
    negations=Column("for each principle, how its opposite is put", optional=True),
    rows=[
        {
            "prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone.",
            "margins": {"Be accurate.": [2.0, 1.5], "Be brief.": -0.5},
        },
        {
            "prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow.",
            "margins": {"Be accurate.": 1.0, "Be brief.": [-1.0, -2.0]}, "negations": {"Be brief.": "Take your time."},
        },
    ],
)  # fmt: skip

LEARNT = {"init": "value-head:surprise", "reward_lr": 1e-3}
check = Check(
    says="trained under negated principles too, the model ranks more pairs of notes right under a negated one than without such "
    "training (both read surprise)",
    versus="salmon", task="principled", measure="pair_accuracy.negated", direction="higher", margin=0.1,
    settings=LEARNT, versus_settings={**LEARNT, "negated": 0.0}, problems=500, steps=100,
    finding="trained under negated principles too, 46% of pairs are ranked right under a negated one, and 40% without: both below "
    "chance, since neither reads the negation, and the plain principle is followed less (55% against 64%). Five seeds do "
    "not decide",
)  # fmt: skip
baseline = "bradley_terry"
