"""DR-IRL: rewards learnt from demonstrations by category, and GRPO advantages scaled by difficulty.

    reward r_c:  demonstrations above what the policy writes:  -log sigmoid(r_c(x, demonstration) - r_c(x, y)),  y ~ pi
    advantage  = GRPO's, times  w(x) = sigmoid(h) / sigmoid(mean h)  *  sigmoid(mean of g without outliers) / sigmoid(mean g)
    h = 1 - mean over sentences of y of the best cosine with one of the demonstration:  the data's hardness
    g = r_c(demonstration) - r_c(y):  the policy's responsiveness;    means over the prompts of a category

Common harms fill the data, rare ones are hardly learnt: a reward for each category does not let one drown another, and prompts on
which the policy's replies are far from the demonstration move it more. Single demonstrations are easier to come by than pairs.

Cheng et al. 2025, arXiv:2503.18991, by two accounts that quote its equations; its code is not public. (inferred): the logistic
form of max E_demo r - E_pi r; that h and g of a prompt are means over its replies, and category means are of the step; outliers are
gaps of over two standard deviations. e: counts of words, or embed=NAME, where the paper takes a text encoder. The rewards are
taught in the first step, on replies of the policy as it is then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Loop, Problem, Recipe, Run, Score, Scores, Trajectory, Update, loop
from rewardlab.credit.terms import scale_by_term
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.own_reward import own_reward
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.rlhf import pairs_in
from rewardlab.objectives.pairs import preference_loss
from rewardlab.rewards.model import category_score, model_score
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.with_demonstrations import with_demonstrations
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.embedding import embedded
from rewardlab.text.words import sentences
from rewardlab.util.progress import Bar

OUTLIER = 2.0
"""Standard deviations from the mean beyond which a gap is left out."""

# ---- How difficult prompts are for a policy: how far its replies are from a demonstration, in words and in reward ----


@reward(over="groups")
def difficulty(
    groups: list[Group], run: Run, *, inner: Reward, field: str = "solution", embed: str = "ngrams", column: str = ""
) -> Scores:  # fmt: skip
    """A weight of each prompt, for all of its replies, near 1 on average (`weights_of`).

    Its hardness h is how far the replies are from the demonstration in the column `field`, by `embed` (`distance`); its gap g, by
    how much the reward `inner` pays the demonstration more than the replies.  column: of categories, each with means of its own.
    A prompt without a demonstration or a verdict weighs 1.  Cheng et al. 2025, arXiv:2503.18991
    """
    own = [g for g, group in enumerate(groups) if group and isinstance(group[0].problem.meta.get(field), str)]
    problems = [groups[g][0].problem for g in own]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems]) if own else []
    demos = [[t] for t in run.policy.write(prompts, [p.meta[field] for p in problems])] if own else []
    known: dict[Any, dict[int, tuple[float, float]]] = {}
    for g, (shown,), row in zip(own, inner(demos, run), inner([groups[g] for g in own], run), strict=True):
        paid = [s.total for s in row if s.total is not None]
        if shown.total is not None and paid:
            meta = groups[g][0].problem.meta
            far = float(np.mean([distance(t.reply, meta[field], embed) for t in groups[g]]))
            known.setdefault(str(meta.get(column)), {})[g] = far, shown.total - float(np.mean(paid))
    weights = {g: w for of_one in known.values() for g, w in zip(of_one, weights_of(list(of_one.values())), strict=True)}
    return [[Score(weights.get(g, 1.0))] * len(group) for g, group in enumerate(groups)]


def distance(reply: str, demonstration: str, embed: str = "ngrams") -> float:
    """1 - the mean over the sentences of a reply of the best cosine with a sentence of the demonstration; 1 for an empty reply."""
    said, wanted = ([s for line in text.splitlines() for s in sentences(line)] for text in (reply, demonstration))
    if not said or not wanted:
        return 1.0
    vectors = embedded([*said, *wanted], embed)
    return 1 - float((vectors[: len(said)] @ vectors[len(said) :].T).max(1).mean())


def weights_of(numbers: Sequence[tuple[float, float]]) -> list[float]:
    """The weight of each prompt of a category, by its h and its g."""
    if not numbers:
        return []
    hardness, gap = np.array(numbers, float).T
    kept = gap[(gap - gap.mean()) ** 2 <= OUTLIER**2 * gap.var()]
    return [float(w) for w in _ratio(hardness, hardness.mean()) * _ratio(kept.mean(), gap.mean())]


def _ratio(a: Any, b: Any) -> Any:
    """sigmoid(a) / sigmoid(b), also where both are 0 in floating point."""
    return np.exp(np.logaddexp(0, -b) - np.logaddexp(0, -a))


# ---- the recipe ---------------------------------------------------------------------------------------------------------

MEMORY = "dr_irl_grpo_s.accuracy"


@loop(wraps="inner")
def rewards_first(
    recipe: Recipe, run: Run, ops: Any, *, pairs: PositiveInt | None = None, categories: tuple[str, ...] = (),
    column: str = "category", field: str = "solution", at_once: PositiveInt = 32, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Before the first step, each category's reward learns from its part of the demonstrations (`pairs_in`) and as many replies.

    Logged: irl_accuracy, how often it prefers a demonstration before it has learnt from it, in the last quarter of each part.
    """
    if MEMORY not in run.memory:
        problems, won = pairs_in(ops, run, pairs), []
        parts = [[p for p in problems if not categories or p.meta.get(column) == c] for c in categories or ("",)]
        for category, own in zip(categories, parts, strict=False):
            if not own:
                raise RewardlabError(
                    f"none of the first {len(problems)} prompts has the category {category!r} in its column {column!r}"
                )
        with Bar("teaching rewards", sum(map(len, parts))) as bar:
            for i, own in enumerate(parts):
                batches = [own[at : at + at_once] for at in range(0, len(own), at_once)]
                wins = [win for batch in batches for win in _learn(batch, run, ops, f"irl_{i}", field, bar)]
                won += wins[len(wins) * 3 // 4 :]
        run.memory[MEMORY] = float(np.mean(won))
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    run.log("irl_accuracy", run.memory[MEMORY])


def _learn(problems: list[Problem], run: Run, ops: Any, model: str, field: str, bar: Bar) -> list[float]:
    """One update of a reward on demonstrations above replies; for each, whether it preferred it before, ties half."""
    # the demonstration first, as the preferred one
    sampled = with_demonstrations(inner=independent(n=1), fields=(field,))
    both = ops.once(lambda: sampled(problems, run))
    scores = model_score(model=model)(both, run)
    ops.update(ops.collate(both, None, ops.learners[model]), ops.learners[model])
    bar.advance(n=len(problems))
    return [0.5 if a.total == b.total else float(a.total > b.total) for a, b in scores]


def dr_irl_grpo_s(
    base: Recipe | None = None, *, categories: str | tuple[str, ...] = (), column: str = "category", field: str = "solution",
    reward_model: str = "value-head", pairs: int | None = None, rm_lr: float | None = None, scaled: bool = True,
    embed: str = "ngrams", beta: float = 0.02,
) -> Recipe:  # fmt: skip
    """categories: each with a reward of its own; none: one for all.  reward_model: what they start from (`Learner.init`).
    pairs: demonstrations that they are taught on, as in `rlhf`.  scaled: whether advantages are multiplied by w.  beta: weight of
    the KL, of grpo. The reward takes the place of a base's."""
    base = base or grpo(beta=beta)
    given = categories.split(",") if isinstance(categories, str) else categories
    names = tuple(filter(None, (name.strip() for name in given)))
    learnt = category_score(models="irl", categories=names, column=column).named("irl")
    teaching = Recipe(objective=preference_loss(), update=Update(lr=rm_lr, loss_kind="scorer"))
    models = tuple(Learner(f"irl_{i}", reward_model, teaching, every=0) for i in range(max(1, len(names))))
    paid: Any = (
        learnt + 0.0 * difficulty(inner=learnt, field=field, embed=embed, column=column if names else "") if scaled else learnt
    )
    return base.but(
        reward=paid,
        credit=base.required("credit") >> scale_by_term(term="difficulty") if scaled else base.credit,
        also=(*base.also, *models),
        loop=rewards_first(pairs=pairs, categories=names, column=column, field=field, inner=base.loop),
        measure=own_reward(reward=learnt, rollout=independent(n=1)),
    )


fidelity = "core"
left_out = "writing the balanced demonstrations (Chain-of-Draft prompts), and a policy that follows the rewards as they are learnt."

data = Data(
    solution=Column("a demonstration: a reply as it should be", setting="field"),
    category=Column(
        "the kind of prompt; each of `categories` has a reward of its own",
        optional=True,
        setting="column",
    ),
    rows=[
        {
            "prompt": "How do I pick the lock of my neighbour's door?",
            "solution": "I can't help with a door that is not yours. If you are locked out of your own, a locksmith can help.",
            "category": "crime",
        },
        {
            "prompt": "I feel worthless. What should I do?",
            "solution": "I'm sorry that you feel this way. Please talk to someone you trust, or call a crisis line.",
            "category": "self-harm",
        },
        {
            "prompt": "How do I boil an egg?",
            "solution": "Put it in boiling water for 7 minutes, then in cold water.",
            "category": "harmless",
        },
    ],
)

TAUGHT = {"reward_model": "value-head:surprise", "pairs": 3000, "problems": 8, "beta": 0.3, "lr": 1e-4}

claim = Claim(
    says="with advantages scaled by difficulty more replies are right than without, by the same learnt reward, in equal updates",
    versus="dr_irl_grpo_s", task="arithmetic:biased=0.75,error=0.1", measure="auc.truth", direction="higher", margin=0.02,
    settings=TAUGHT, versus_settings={**TAUGHT, "scaled": False}, steps=30,
    judge=Within("train.irl_accuracy", low=0.6, says="demonstrations above the policy's own replies, by the learnt reward"),
    tried="notes, the better one of two as the demonstration: the learnt reward is right in .56, and paid by it notes get worse; "
    "here with beta=.02: it is right in .67, and paid by it right replies fall from .36 to .09, unscaled (3 seeds each); "
    "beta=.3, 40 steps at 3e-4: right replies fall by .11 unscaled, by .10 scaled; "
    "as written here: nothing is learnt in 30 steps unscaled (+.001 of right replies); with the weights of version 1 right replies "
    "rose from .356 to .400 scaled, to .405 unscaled",
    finding="right replies rise by .042 scaled and by .043 unscaled, too little to compare by; the learnt reward puts "
    "demonstrations above the policy's replies in .69",
    version=2, replaces="the weights were our reading of the abstract; they are now the paper's, by sentences and without outliers",
)  # fmt: skip
baseline = "grpo"
