"""DR-IRL: rewards are learnt from demonstrations alone, one for each category, and GRPO learns most where prompts are difficult.

    reward r_c:  demonstrations above what the policy writes:  -log sigmoid(r_c(x, demonstration) - r_c(x, y)),  y ~ pi
    advantage  = GRPO's, times  w(x) = h / mean h  *  sigmoid(g) / mean sigmoid(g)
    h = 1 - cos(e(demonstration), e(y)):  the data's hardness;    g = r_c(demonstration) - r_c(y):  the policy's responsiveness

Common harms fill the data, rare ones are hardly learnt: a reward for each category does not let one drown another, and prompts on
which the policy is far from the demonstration, in words and in reward, move it more. Single demonstrations are easier to come by
than pairs.

Cheng et al. 2025, arXiv:2503.18991, of which the abstract and reports of it could be read; its code is not public. (inferred): the
contrastive form of max E_demo r - E_pi r; h and g as means over the group, their product, the sigmoid, and that both are divided by
their means over the step, so that the mean weight is near 1; e: counts of words, or embed=NAME, where the paper takes a text
encoder. A factor of the reward would be divided out by its deviation, so it multiplies the advantage. The rewards are taught in the
first step, on replies of the policy as it is then. Left out: writing the balanced demonstrations (Chain-of-Draft prompts).
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
from rewardlab.objectives.pairs import preference_loss
from rewardlab.rewards.model import category_score, model_score
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.with_demonstrations import with_demonstrations
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.embedding import embedded
from rewardlab.util.progress import Bar

# ---- How difficult prompts are for a policy: how far its replies are from a demonstration, in words and in reward ----


@reward(over="groups")
def difficulty(groups: list[Group], run: Run, *, of: Reward, field: str = "solution", embed: str = "ngrams") -> Scores:
    """A weight of each prompt, for all of its replies, near 1 on average:  h / mean h * sigmoid(g) / mean sigmoid(g)

    h: 1 - the mean cosine of the replies and the demonstration in the column `field`, by `embed`.  g: by how much the reward `of`
    pays the demonstration more than the replies.  Means are over the prompts of the step; a prompt without a demonstration or a
    verdict weighs 1.  Cheng et al. 2025, arXiv:2503.18991 (the formula is inferred)
    """
    own = [g for g, group in enumerate(groups) if group and isinstance(group[0].problem.meta.get(field), str)]
    problems = [groups[g][0].problem for g in own]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems]) if own else []
    demos = [[t] for t in run.policy.write(prompts, [p.meta[field] for p in problems])] if own else []
    known: dict[int, tuple[float, float]] = {}
    for g, (shown,), row in zip(own, of(demos, run), of([groups[g] for g in own], run), strict=True):
        paid = [s.total for s in row if s.total is not None]
        if shown.total is not None and paid:
            texts = embedded([groups[g][0].problem.meta[field], *(t.reply for t in groups[g])], embed)
            known[g] = 1 - float((texts[1:] @ texts[0]).mean()), shown.total - float(np.mean(paid))
    weights = dict(zip(known, weights_of(list(known.values())), strict=True))
    return [[Score(weights.get(g, 1.0))] * len(group) for g, group in enumerate(groups)]


def weights_of(numbers: Sequence[tuple[float, float]]) -> list[float]:
    """The weight of each prompt, by its h and its g; where no h is above 0, g alone decides."""
    if not numbers:
        return []
    hardness, gap = np.array(numbers, float).T
    # a tanh does not overflow where exp(-g) would
    response = (1 + np.tanh(gap / 2)) / 2
    parts = [x / x.mean() if x.mean() > 0 else np.ones_like(x) for x in (np.maximum(hardness, 0), response)]
    return [float(w) for w in parts[0] * parts[1]]


# ---- the recipe ---------------------------------------------------------------------------------------------------------

MEMORY = "dr_irl_grpo_s.accuracy"


@loop(inner="of")
def rewards_first(
    recipe: Recipe, run: Run, ops: Any, *, pairs: PositiveInt, categories: tuple[str, ...] = (), column: str = "category",
    field: str = "solution", at_once: PositiveInt = 32, of: Loop | None = None,
) -> None:  # fmt: skip
    """Before the first step, each category's reward learns from its part of the first `pairs` demonstrations and as many replies.

    Logged: irl_accuracy, how often it prefers a demonstration before it has learnt from it, in the last quarter of each part.
    """
    if MEMORY not in run.memory:
        problems, won = [ops.task.train[ops.position + i] for i in range(pairs)], []
        parts = [[p for p in problems if not categories or p.meta.get(column) == c] for c in categories or ("",)]
        for category, own in zip(categories, parts, strict=False):
            if not own:
                raise RewardlabError(f"none of the first {pairs} prompts has the category {category!r} in its column {column!r}")
        with Bar("teaching rewards", sum(map(len, parts))) as bar:
            for i, own in enumerate(parts):
                batches = [own[at : at + at_once] for at in range(0, len(own), at_once)]
                wins = [win for batch in batches for win in _learn(batch, run, ops, f"irl_{i}", field, bar)]
                won += wins[len(wins) * 3 // 4 :]
        run.memory[MEMORY] = float(np.mean(won))
    of(recipe, run, ops) if of else ops.standard_step(recipe)
    run.log("irl_accuracy", run.memory[MEMORY])


def _learn(problems: list[Problem], run: Run, ops: Any, model: str, field: str, bar: Bar) -> list[float]:
    """One update of a reward on demonstrations above replies; for each, whether it preferred it before, ties half."""
    # the demonstration first, as the preferred one
    both = with_demonstrations(of=independent(n=1), fields=(field,))(problems, run)
    scores = model_score(model=model)(both, run)
    ops.update(ops.collate(both, None, ops.learners[model]), ops.learners[model])
    bar.advance(n=len(problems))
    return [0.5 if a.total == b.total else float(a.total > b.total) for a, b in scores]


def dr_irl_grpo_s(
    base: Recipe | None = None, *, categories: str | tuple[str, ...] = (), column: str = "category", field: str = "solution",
    reward_model: str = "value-head", pairs: int = 2000, rm_lr: float | None = None, scaled: bool = True, embed: str = "ngrams",
    beta: float = 0.02,
) -> Recipe:  # fmt: skip
    """categories: each with a reward of its own; none: one for all.  reward_model: what they start from (`Learner.init`).
    pairs: demonstrations that they are taught on.  scaled: whether advantages are multiplied by w.  beta: weight of the KL, of
    grpo. The reward takes the place of a base's."""
    base = base or grpo(beta=beta)
    given = categories.split(",") if isinstance(categories, str) else categories
    names = tuple(filter(None, (name.strip() for name in given)))
    learnt = category_score(models="irl", categories=names, column=column).named("irl")
    teaching = Recipe(objective=preference_loss(), update=Update(lr=rm_lr, loss_kind="scorer"))
    models = tuple(Learner(f"irl_{i}", reward_model, teaching, every=0) for i in range(max(1, len(names))))
    paid: Any = learnt + 0.0 * difficulty(of=learnt, field=field, embed=embed) if scaled else learnt
    return base.but(
        reward=paid,
        credit=base.required("credit") >> scale_by_term(term="difficulty") if scaled else base.credit,
        also=(*base.also, *models),
        loop=rewards_first(pairs=pairs, categories=names, column=column, field=field, of=base.loop),
        measure=own_reward(reward=learnt, rollout=independent(n=1)),
    )


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
    "as written here: nothing is learnt in 30 steps unscaled (+.001 of right replies)",
    finding="Right replies go from 36% to 40% scaled and to 41% unscaled: by the learnt reward hardly anything is learnt on "
    "either side, so that a scaling of it cannot show.",
)  # fmt: skip
baseline = "grpo"
