"""Atom-Searcher: a judge scores atomic thoughts, and their mean is a process reward that anneals in favour of the outcome.

    r = a ATR + (1 - a) F1,    a = (1 - t/T) / 2;    r = -1 if the form is violated
    ATR = mean of what a judge says of the atoms of all thoughts of an episode: <think><plan>...</plan><risk>...</risk></think>

An outcome alone punishes all good steps of an episode for one bad one. A judge can only help where there is something to judge:
of thinking as a whole it says little, of single functions, each with a tag that the policy chooses, it says which are sound. Early
in training the thinking is what can be learnt; late, a judge that can be pleased should count for nothing.

Deng et al. 2025, arXiv:2508.12800; the authors have released a demo and no training code (antgroup/Research-Venus, 186f126). F1 is
the task's verifier here (`--verifier token_f1`). (inferred): the mean is over atoms of all turns; every reply needs one atom, and
after its thinking a call or an answer. `whole=True` has the judge score each thought as a whole.
"""

from typing import Any

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Environment, Recipe, Score, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.envs.search import tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.groups import told_apart
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.algebra import scheduled
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rewards.turns import atomic_thoughts, grounded, thoughts
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.rollouts.recorded import recorded


@reward
def thinks_in_atoms(trajectory: Trajectory) -> Score:
    """1 where every reply begins by thinking in tagged atoms, and goes on with something else; -1 where one does not."""
    replies = trajectory.replies
    formed = bool(replies) and all(
        thoughts(reply) and reply.lstrip().startswith("<think>") and reply.rpartition("</think>")[2].strip() for reply in replies
    )
    return Score(1.0 if formed else -1.0, why="" if formed else "a reply does not think in atoms")


def blended(outcome: Reward, judge: Reward, alpha: float = 0.5, whole: bool = False) -> Reward:
    """r, with a that falls from alpha to 0."""
    thought = atomic_thoughts(inner=judge, whole=whole).named("thoughts")
    return thinks_in_atoms() >> scheduled(thought, start=alpha, end=0.0) + scheduled(outcome, start=1 - alpha, end=1.0)


def atom_searcher(
    base: Recipe | None = None, *, judge: Reward | None = None, alpha: float = 0.5, whole: bool = False,
    env: Environment | None = None, corpus: str = "", n: int | None = None, turns: int = 6,
) -> Recipe:  # fmt: skip
    """corpus: a file of documents to search (`tools`).  judge: a reward from 0 to 1 of single thoughts in their
    episode; without one, whether their names and numbers have been read (`grounded`).  alpha: what a starts at.  whole: judge
    thoughts as a whole.  env: the tools; without it, those that the base plays with, else a search.  n: episodes
    of a problem; None: as many as the base has, or else 8.  turns: the most that an episode may have.
    """
    base = base or grpo(n=n or 8)
    right: Any = base.reward or correct()
    paid = blended(right, judge or grounded(), alpha, whole)
    if not (env or corpus) and base.sampling_settings.get("env"):
        return base.but(reward=paid)
    env = tools(env, corpus)
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns),
        reward=paid,
        measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)),
    )


fidelity = "core"
left_out = (
    "SFT on atomic thoughts before it, what keeps the entropy up, and the reasoning reward model, for which a rule stands "
    "without `judge`."
)

data = Data(
    answer="the gold answer",
    facts=Column("documents to search, texts or {'title', 'text'}; not read with --corpus or --env", optional=True),
    verified_by="token_f1",
    rows=[
        {
            "prompt": "In which country was the author of The Trial born? Think between <think> and </think>, in parts such as "
            "<plan>...</plan> and <check>...</check>. Then search by <search>...</search>, or answer by <answer>...</answer>.",
            "answer": "Austria-Hungary",
            "facts": [
                {"title": "The Trial", "text": "The Trial is a novel by Franz Kafka, published in 1925."},
                {"title": "Franz Kafka", "text": "Franz Kafka was born in Prague, then in Austria-Hungary, in 1883."},
            ],
        },
        {
            "prompt": "Which river flows through the capital of Hungary? Think between <think> and </think>, in parts such as "
            "<plan>...</plan>. Then search by <search>...</search>, or answer by <answer>...</answer>.",
            "answer": ["Danube", "the Danube"],
            "facts": ["Budapest is the capital of Hungary.", "The Danube divides Budapest into Buda and Pest."],
        },
    ],
)

BY_ATOMS = atomic_thoughts(inner=grounded()).named("atoms")
AS_A_WHOLE = atomic_thoughts(inner=grounded(), whole=True).named("whole")
check = Check(
    says="of two searches that differ in how much they make up, the sounder is paid more oftener by atoms than by whole thoughts",
    versus=None, task="inquiries:test_size=4000", measure="agreement.atoms", direction="higher", margin=0.07,
    against="agreement.whole", model="untrained",
    by=own_share(inner=told_apart(reward=BY_ATOMS + AS_A_WHOLE, truth=score_in_data(), rollout=recorded(fields=("sound",
    "unsound")))), problems=4000, steps=1,
    fault=Within("agreement.whole", high=0.85, says="the sounder of two searches paid more, judged by whole thoughts"),
    finding="Of two searches the sounder is paid more in 92% of the pairs by its atoms, and in 78% by whole thoughts. The "
    "judge is a rule that knows made-up names exactly; what a model says of single thoughts may gain less.",
)  # fmt: skip
baseline = "grpo"
