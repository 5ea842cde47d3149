"""BLEUBERI: GRPO with BLEU against reference replies as the reward, on the prompts with the base model's lowest BLEU.

    r = BLEU(reply, references) = min(1, e^(1 - shortest / |reply|)) (prod over n = 1..4 of (hits_n + 1) / (total_n + 1))^(1/4)

Several references are used at once: an n-gram counts as often as it occurs in the one that has it most often. The more good
references there are, the better BLEU agrees with what people prefer, up to what a reward model learns from preferences.

Chang et al. 2025, arXiv:2505.11080. BLEU is that of the package evaluate with smooth=True, as in the released code
(lilakk/BLEUBERI, 70a66e4): one is added at every n, and the reference length is that of the shortest. n = 8 at temperature 0.9 are
its script's (training/grpo.sh), a KL of 0.04 and the mean over tokens the defaults of TRL 0.17.0, which environment.yml names.
`hard` selects as it does 5,000 of 50,000 prompts: by one reply of the base model to each, at temperature 0.7 and top-p 0.9. It is
off unless asked for: problems must come again.
"""

from __future__ import annotations

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Sampling, Trajectory, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pair_agreement
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, PositiveShare
from rewardlab.verifiers.text import bleu

# ---- Problems chosen once, before training, by how badly the policy does on them -------------------------------------

MEMORY = "hardest.kept"


@rollout(wraps="inner", across_problems=True)
def hardest(
    problems: list[Problem], run: Run, *, inner: Rollout, by: Reward, keep: PositiveInt = 100, pool: PositiveInt = 1000,
    temperature: NonNegativeFloat = 0.7, top_p: PositiveShare = 0.9,
) -> list[Group]:  # fmt: skip
    """The groups of `inner` for the hardest problems alone. Before the first step the policy answers the next `pool` problems of
    the training data once; trained on are those `keep` of them whose answers `by` pays least.

    All others are dropped, and replaced by the next of the training data, so problems must come again: a file of problems, or a
    generated task with a size. Held-out problems are all kept. Answers without a verdict count as hard. run.memory holds the keys
    of the problems that are kept.
    """
    if run.more_problems is None:
        return inner(problems, run)
    if MEMORY not in run.memory:
        run.memory[MEMORY] = _hardest(_distinct(problems, run, pool), run, by, keep, Sampling(run.max_new, temperature, top_p))
    kept, wanted = set(run.memory[MEMORY]), len(problems)
    chosen = [p for p in problems if p.key in kept]
    looked_at = 0
    while len(chosen) < wanted:
        if looked_at > 4 * pool:
            raise RewardlabError(
                f"none of {looked_at} further problems is one of the {len(kept)} hardest of the first {pool}: problems must come "
                "again. Train on a file of problems, or give the task a size"
            )
        further = run.more_problems(wanted - len(chosen))
        found = [p for p in further if p.key in kept]
        looked_at = 0 if found else looked_at + len(further)
        chosen += found
    return inner(chosen, run)


def _distinct(problems: list[Problem], run: Run, pool: int) -> list[Problem]:
    assert run.more_problems is not None
    seen = {p.key: p for p in problems}
    if len(seen) < pool:
        # where an epoch is smaller than the pool, it repeats itself
        seen |= {p.key: p for p in run.more_problems(pool - len(seen))}
    return list(seen.values())


def _hardest(problems: list[Problem], run: Run, by: Reward, keep: int, sampling: Sampling) -> list[str]:
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    answers = run.policy.extend(prompts, sampling, run.rng("hardest"))
    paid = [row[0].total for row in by([[t] for t in answers], run)]
    ease = [float("-inf") if value is None else value for value in paid]
    # sorted is stable: equally hard problems stay in the order of the data
    order = sorted(range(len(problems)), key=ease.__getitem__)
    return [problems[i].key for i in order[:keep]]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def bleuberi(
    base: Recipe | None = None, *, references: int | None = None, hard: int = 0, weight: float = 1.0, n: int = 8,
    temperature: float = 0.9, beta: float = 0.04,
) -> Recipe:  # fmt: skip
    """references: how many of the answers are compared with; None: all.  hard: train on so many prompts, those of ten times as many
    where BLEU is lowest before training; 0: on all.  weight: of BLEU.  n, temperature, beta: of grpo. A base's reward beside the
    task's verifier is kept.
    """
    base = base or grpo(n=n, temperature=temperature, beta=beta).but(weighting=token_mean())
    score = bleu(variant="nmt", references=references)
    # BLEU stands in the place of a verifier, which few prompts of this kind have
    reward = weight * score if base.reward in (None, correct()) else base.reward + weight * score
    rollout = base.required("rollout")
    if hard:
        rollout = hardest(inner=rollout, by=score, keep=hard, pool=10 * hard)
    return base.but(reward=reward, rollout=rollout, measure=own_reward(reward=score, rollout=independent(n=1)))


MANY, ONE = (bleu(variant="nmt", references=n).named(name) for n, name in ((8, "eight"), (1, "one")))
fidelity = "core"
left_out = (
    "hard prompts by default (`hard`); and ROUGE, BERTScore and a reward model in BLEU's place, with which the paper compares it"
)
data = Data(
    answer="a good reply, or a list of several (by different models, say)",
    rows=[
        {
            "prompt": "Why is the sky blue?",
            "answer": ["Air scatters blue light more than red light.", "Blue light is scattered most by the air."],
        },
        {"prompt": "Name a use of salt.", "answer": ["Salt keeps food from spoiling.", "It seasons food."]},
    ],
)

check = Check(
    says="BLEU against eight references prefers the better of two replies more often than BLEU against one",
    versus=None, task="notes:references=8,test_size=4000", measure="pair_accuracy.eight", direction="higher", margin=0.03,
    against="pair_accuracy.one", model="untrained", by=own_share(inner=pair_agreement(reward=MANY + ONE)), problems=4000, steps=1,
    fault=Within("pair_accuracy.one", 0.55, 0.85, says="agreement of BLEU against one reference"), learns=None, start=None,
    finding="BLEU against eight references prefers the better of two replies in 79% of pairs, against one in 74%: more "
    "references agree better with what is good. A policy trained by it is not looked at",
)  # fmt: skip
baseline = "grpo"
