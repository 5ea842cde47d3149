"""ChatShopBuddy: hierarchical rewards, each level gated by the one below it, on rollouts chosen for contrast.

    HRM    r = form >> c + [c >= t] (a p + [p >= u] b e)
           c: correctness, p: persuasiveness, e: how few tools were called;    t, u: what passes for good
    DCPO   of n rollouts `keep` are trained on: half with the highest r, of equal ones the shortest, and half with the lowest,
           of equal ones the longest

In a flat sum a policy buys style for correctness, where style is the easier to get; behind a gate, style is worth nothing on a
wrong answer, and saving calls nothing on a bad one. The choice of rollouts makes good and short stand against bad and long.

Cheng et al. 2026, arXiv:2603.06065. The abstract names gates by logical dependence, and selection by reward and reasoning length, a
summary that half of 16 rollouts are chosen; no code or equations could be consulted: (inferred) are the order of the levels,
additions within them, the thresholds, weights, the efficiency 1 - calls / most, and that lengths break ties of reward.
`gated=False` leaves the flat sum, `keep=None` all rollouts. HRM has levels where there is something to order: a judge of `style`,
or the column `persuasive`; a `form`; or episodes that call tools. Otherwise all right replies earn the same, and DCPO alone is
left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Score, Trajectory, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.settings.domain import PositiveInt
from rewardlab.verifiers.text import rouge
from rewardlab.worlds.notes import praise_words

# ---- Rollouts of which only the most telling are kept: the best, as short as they come, and the worst, as long -------


@rollout(wraps="inner")
def contrastive(problems: list[Problem], run: Run, *, inner: Rollout, reward: Reward, keep: PositiveInt = 8) -> list[Group]:
    """Of each group of `inner`, `keep` rollouts: half with the highest `reward`, the shortest of equals, and half with the lowest,
    the longest of equals.

    Length is in sampled tokens. Rollouts without a verdict are kept only where there are not enough others.
    """
    groups = inner(problems, run)
    paid = [[s.total for s in row] for row in reward(groups, run)]
    return [
        [group[i] for i in chosen(row, [int(t.mask.sum()) for t in group], keep)] for group, row in zip(groups, paid, strict=True)
    ]


def chosen(rewards: Sequence[float | None], lengths: Sequence[int], keep: int) -> list[int]:
    """Positions of the rollouts to keep, in their order."""
    known = [(r, lengths[i], i) for i, r in enumerate(rewards) if r is not None]
    best = [i for *_, i in sorted(known, key=lambda x: (-x[0], x[1]))][: -(-keep // 2)]
    worst = [i for *_, i in sorted(known, key=lambda x: (x[0], -x[1])) if i not in best][: keep - len(best)]
    unknown = [i for i, r in enumerate(rewards) if r is None][: max(0, keep - len(best) - len(worst))]
    return sorted(best + worst + unknown)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@reward
def few_calls(trajectory: Trajectory, *, max_calls: PositiveInt = 6) -> Score:
    """1 - calls / max_calls, at least 0: a call is a reply that the environment answered."""
    calls = max(0, len(trajectory.ends) - 1)
    return Score(max(0.0, 1 - calls / max_calls), why=f"{calls} calls")


@reward
def persuasive_phrases(trajectory: Trajectory, *, phrases: str = "persuasive") -> Score:
    """The share of the phrases in the row's column `phrases`, a list or one text, that the reply holds, ignoring case; 1 without
    any."""
    told = trajectory.problem.meta.get(phrases)
    wanted = [str(text).casefold() for text in list_of(told) or ([told] if isinstance(told, str) else []) if str(text).strip()]
    said = trajectory.reply.casefold()
    return Score(sum(text in said for text in wanted) / len(wanted) if wanted else 1.0)


@operator
def by_level(
    right: float, style: float, saved: float, *, at: float = 1.0, style_at: float = 0.5, persuasion: float = 1.0,
    economy: float = 0.5,
) -> float:  # fmt: skip
    """right, and where that is at least `at` style besides, and where style is at least `style_at` what was saved."""
    if right < at:
        return right
    return right + persuasion * style + (economy * saved if style >= style_at else 0.0)


def hierarchy(
    right: Reward, style: Reward | None = None, *, form: str = "", at: float = 1.0, style_at: float = 0.5, persuasion: float = 1.0,
    economy: float = 0.5, max_calls: int = 6, gated: bool = True,
) -> Reward:  # fmt: skip
    """HRM's reward, or the sum of its parts."""
    saved = few_calls(max_calls=max_calls)
    if not gated:
        paid = right + economy * saved if style is None else right + persuasion * style + economy * saved
        return format_ok(pattern=form) + paid if form else paid
    # without a judge every right answer counts as fully persuasive
    judged = 1.0 if style is None else style
    paid = by_level(right, judged, saved, at=at, style_at=style_at, persuasion=persuasion, economy=economy)
    return format_ok(pattern=form) >> paid if form else paid


def chatshopbuddy(
    base: Recipe | None = None, *, style: Reward | None = None, form: str = "", at: float = 1.0, style_at: float = 0.5,
    persuasion: float = 1.0, economy: float = 0.5, max_calls: int = 6, gated: bool = True, n: int = 16, keep: int | None = 8,
) -> Recipe:  # fmt: skip
    """style: the judge of persuasiveness, from 0 to 1; without it the phrases of the column `persuasive` are, if there are any.
    form: a regular expression that replies must match.  at, style_at: t and u.  persuasion, economy: a and b.  max_calls: calls
    that are worth nothing.  n, keep: replies that are sampled, and trained on; None: all of them.
    """
    base = base or grpo(n=n)
    levels = {"at": at, "style_at": style_at, "persuasion": persuasion, "economy": economy}
    right: Any = base.reward or correct()
    paid = hierarchy(right, style or persuasive_phrases(), form=form, max_calls=max_calls, gated=gated, **levels)
    rollout = base.required("rollout")
    return base.but(reward=paid, rollout=contrastive(inner=rollout, reward=paid, keep=keep) if keep else rollout)


fidelity = "reading"
left_out = (
    "the formulas, since no equations could be read; SFT on 480 episodes before it, the benchmark with two levels of quality."
)

data = Data(
    answer="the gold answer",
    persuasive=Column(
        "what a persuasive reply says, a list of phrases; not read with `style`. Without either all right replies are persuasive",
        optional=True,
        setting="phrases",
    ),
    idle={
        "persuasive": "pays all right replies the same, but for a `form` and for tools that are called: its choice of rollouts "
        "alone is at work. Give it a judge (--style)"
    },
    rows=[
        {
            "prompt": "A kettle costs $40 at shop A, less 10%, and $35 at shop B, plus $4 for delivery. What is the lowest price? "
            "Recommend a shop, and end with the price: Answer: ...",
            "answer": "36",
            "persuasive": ["shop A", "save"],
        },
        {
            "prompt": "I need 30 m of cable. Rolls of 8 m cost $5. How many rolls do I have to buy? Explain it in a friendly way, "
            "and end with the number: Answer: ...",
            "answer": "4",
        },
    ],
)

# correct is what comes near the gold note; a shallow judge likes words of praise, of which more than two make a note worse
LEVELS = {
    name: aggregate(hierarchy(rouge(), praise_words(), at=0.66, economy=0.0, gated=gated)).named(name)
    for name, gated in (("gated", True), ("flat", False))
}
# by construction: both kinds of reply are written so that the rival orders them wrongly
check = Check(
    says="with style behind a gate of correctness, the reward prefers the truly better of two notes more often than the flat sum",
    versus=None, task="notes:test_size=4000", measure="pair_accuracy.gated", direction="higher", margin=0.04,
    against="pair_accuracy.flat", model="untrained", by=own_share(inner=pair_agreement(reward=LEVELS["gated"] + LEVELS["flat"])),
    problems=4000, steps=1,
    fault=Within("pair_accuracy.flat", high=0.74, says="better notes above worse ones, by the flat sum"),
    sanity=True,
    tried="the share of instructions followed as correctness, with the same style: a point or two between gate and sum",
    finding="Behind the gate the better of two notes is paid more in 77% of the pairs, by the flat sum in 69%. The pairs were "
    "written so that style misleads, and the choice of rollouts (DCPO) is not tested.",
)  # fmt: skip
baseline = "grpo"
