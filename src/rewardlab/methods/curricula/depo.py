"""DEPO: sample only problems whose recent visits showed room for exploration, and replay neglected ones.

    E(x) = mean over the last k visits of  sum_i |A_i| H_i,    A_i = (r_i - mean r) / std r,   H_i: mean entropy of reply i's tokens
    sampled of a step: problems never sampled, the rho_e best by E, and the most neglected of the others;  rho_e falls with epochs

Where all replies were right, or all wrong, E is 0. Wrong replies of an entropy far above that of the right ones are noise, and
count nothing. Problems are skipped before they are sampled, where DAPO samples first and drops then: the saving is in rollouts.

Tang et al. 2025, arXiv:2509.01321. E, the filter of wrong replies, rho_e = max(0.4, start - decay * epoch) and the orders follow
verl/trainer/rollout_purning/rollout_purning.py of the released code (txy77/DEPO, eb99f9a), and start, decay, window and the limit
for wrong replies its trainer/config/ppo_trainer.yaml; its script is not public. (inferred): the share of the skipped problems that
is replayed: there it is as many as make those kept a multiple of the devices, often none. H is the mean of -log p over the sampled
tokens, whose expectation is the entropy, since rollouts keep no entropies. The first selection can be made on the file:
rewardlab data diverse, data pass-rate, data curriculum --order target.

Problems must come again: a file, or a generated task with a size.
"""

from __future__ import annotations

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, PositiveShare, Share

# ----------------------------------------------------------------------------------------------------------------------
#
# Problems are sampled where there is something to explore, by what their last visits showed; neglected ones come again.

MEMORY = "explorable.visits"


def explorability(right: list[bool], surprise: list[float], limit: float) -> float:
    """Sum over the replies of |(r - mean r) / std r| times the mean surprise of the reply's tokens; 0 where all r are equal.

    Wrong replies that are more than `limit` times as surprising as the right ones on average count nothing: they are noise.
    """
    rewards, said = np.array(right, float), np.array(surprise)
    if not len(rewards) or rewards.std() == 0:
        return 0.0
    advantages = np.abs((rewards - rewards.mean()) / rewards.std())
    counted = (rewards == 1) | (said <= limit * said[rewards == 1].mean())
    return float((advantages * said * counted).sum())


@rollout(wraps="inner", across_problems=True)
def explorability_sampling(
    problems: list[Problem], run: Run, *, inner: Rollout, start: PositiveShare = 1.0, least: PositiveShare = 0.4,
    decay: Share = 0.03, window: PositiveInt = 3, limit: NonNegativeFloat = 1.5, replay: Share = 0.1,
) -> list[Group]:  # fmt: skip
    """The groups of `inner` for the most explorable share of the problems; the others are skipped before sampling.

    share: `start` less `decay` for each earlier visit of the most visited problem, `least` at least. Problems never sampled are all
    kept, and then of the skipped ones the share `replay` that was sampled least often. explorability: the mean over a problem's
    last `window` visits of the sum over replies of |advantage| times mean -log p of the tokens.  limit: see `explorability`.
    Problems must come again: an epoch is one visit. Held-out problems are all kept. run.memory holds the numbers by problem.

    A visit is what was sampled, also where a filter in `inner` drops its group: one without a signal is what is to be skipped.
    Further problems that `inner` asks for are met, and skipped, as the step's own are.
    """
    if run.verify is None:
        raise RewardlabError("explorable needs the task's verifier, and this run has none: name a task")
    if run.more_problems is None:
        return inner(problems, run)
    memory, further = run.memory.setdefault(MEMORY, {}), run.more_problems

    def chosen(some: list[Problem]) -> list[Problem]:
        return choose(some, memory, start, least, decay, window, replay)

    first = chosen(problems)
    run.log("rollouts_skipped", 1 - len(first) / len(problems))
    before = {key: len(known["visits"]) for key, known in memory.items()}
    run.more_problems = lambda n: chosen(further(n))
    try:
        groups = inner.with_innermost(visited(inner=inner.innermost, limit=limit))(first, run)
    finally:
        run.more_problems = further
    # a wrapper may have sampled another wording of a problem: then what it made of it is the visit
    unnoted = [g for g in groups if g and _visits(memory, g[0].problem) == before.get(g[0].problem.key, 0)]
    _remember(unnoted, run, limit)
    return groups


def _visits(memory: dict, problem: Problem) -> int:
    return len(memory[problem.key]["visits"]) if problem.key in memory else 0


@rollout(wraps="inner")
def visited(problems: list[Problem], run: Run, *, inner: Rollout, limit: NonNegativeFloat = 1.5) -> list[Group]:
    """The groups of `inner`, recorded for `explorability_sampling` before any filter."""
    groups = inner(problems, run)
    _remember(groups, run, limit)
    return groups


def _remember(groups: list[Group], run: Run, limit: float) -> None:
    memory = run.memory[MEMORY]
    for group, row in zip(groups, run.verdicts(groups), strict=True):
        judged = [(s.value >= 1.0, _surprise(t)) for t, s in zip(group, row, strict=True) if s.value is not None]
        # a visit that nobody judged says nothing, and least of all that there is nothing to explore
        if judged:
            visit = explorability([r for r, _ in judged], [x for _, x in judged], limit)
            memory.setdefault(group[0].problem.key, {"seen": 0, "visits": []})["visits"].append(visit)


def choose(
    problems: list[Problem], memory: dict, start: float, least: float, decay: float, window: int, replay: float
) -> list[Problem]:
    """The problems that are sampled, in their order; the memory counts that all were met."""
    known = [i for i, p in enumerate(problems) if memory.get(p.key, {}).get("visits")]
    met = max((memory[problems[i].key]["seen"] for i in known), default=0)
    share = max(least, min(1.0, start - decay * met))

    def score(i: int) -> tuple[float, int]:
        visits = memory[problems[i].key]["visits"]
        return -float(np.mean(visits[-window:])), len(visits)

    ranked = sorted(known, key=score)
    top = int(len(ranked) * share)
    # the most neglected first, and of those the most explorable
    skipped = sorted(ranked[top:], key=lambda i: (score(i)[1], score(i)[0]))
    kept = {*ranked[:top], *skipped[: round(replay * len(skipped))], *(set(range(len(problems))) - set(known))}
    for p in problems:
        memory.setdefault(p.key, {"seen": 0, "visits": []})["seen"] += 1
    return [p for i, p in enumerate(problems) if i in (kept or ranked[:1])]


def _surprise(t) -> float:
    """Mean -log p of the sampled tokens, an unbiased estimate of their mean entropy."""
    logprobs = t.column("logprobs")[t.mask]
    return -float(np.mean(logprobs)) if len(logprobs) else 0.0


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def depo(
    base: Recipe | None = None, *, start: float = 1.0, least: float = 0.4, decay: float = 0.03, window: int = 3, limit: float = 1.5,
    replay: float = 0.1,
) -> Recipe:  # fmt: skip
    """start, decay, least: the share that is sampled is start - decay * epoch, at least `least`.  window: visits that count.
    limit: of the entropy of wrong replies, in means of the right ones.  replay: share of the skipped problems that is sampled too.
    """
    base = base or grpo()
    kept = explorability_sampling(
        inner=base.required("rollout"), start=start, least=least, decay=decay, window=window, limit=limit, replay=replay
    )  # fmt: skip
    return base.but(rollout=kept)


fidelity = "core"
left_out = (
    "the first selection of a fifth of the data, by diversity and influence on a graph and by difficulty (tools on files come "
    "near), and entropies of all tokens (their log-probs stand for them)"
)
data = Data(
    answer="the gold answer",
    again="chooses rows by what their last visits showed",
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60"},
        {"prompt": "A shirt costs 40 euros and is reduced by 15%. What does it cost now?", "answer": "34"},
        {"prompt": "What is $7^2 - 3^2$? Put the answer in \\boxed{}.", "answer": "40"},
        {"prompt": "How many prime numbers are there below 20?", "answer": "8"},
    ],
)
claim = Claim(
    says="sampled groups have a signal more often than GRPO's in as many updates, with fewer rollouts, at the same accuracy",
    versus="grpo", task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5],size=96", measure="train.signal", direction="higher",
    margin=0.06, settings={"problems": 16, "start": 0.8, "decay": 0.1}, versus_settings={"problems": 16}, steps=40,
    guard=Within("pass@1", low=-0.03), fault=Within("train.signal", high=0.75, says="share of GRPO's groups with a signal"),
    moved=Within("tokens", high=-20_000, says="tokens generated and scored in all"),
    finding="start 40% right; DEPO ends at 55% and GRPO at 63% after as many updates, DEPO with a third fewer tokens: more of its "
    "groups have a signal (70%, not 60%), but with half of the problems a step it learns less",
)  # fmt: skip
system = "depo-data-efficient"
