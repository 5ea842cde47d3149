"""PPR: score every turn of an agent by principles, and shift the scores by the outcome, so that failure never pays.

    r_t = (p_t - 1/2) + (o - 1/2),  on the last decision of turn t;    besides o on the last one        (ReNorm)

p_t, from 0 to 1: what a judge says of turn t, given the episode until then;  o: 1 for a right answer, else 0. Raw scores are paid
for whatever the judge likes, turn after turn, be the answer right or not; moved, no turn of a failed episode earns more than 0, and
none of a successful one less.

Xu et al. 2025, arXiv:2509.25598. The paper was not to be had in full: that ReNorm takes 1/2 from both is what a review of it says
(OpenReview, "Principle Process Reward For Search Agents"); (inferred): they are added at every turn, and the last decision gets o
as well. `center="trajectory"` takes an episode's own mean from its scores, p_t - mean(p) + o; "none" leaves the raw sum. PPO as in
the paper, or any base.

judge="mine.py:score" scores a reply, 0 to 1, in its episode by principles of your own. Without it a program asks for one: names
and numbers must have been read (`grounded`).
"""

from typing import Literal

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Environment, Group, Recipe, Run, Score, Scores, Term
from rewardlab.data.columns import Column, Data
from rewardlab.envs.search import tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.groups import told_apart
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.rewards.algebra import aggregate, clip
from rewardlab.rewards.length import words
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.scores import derive
from rewardlab.rewards.task import correct
from rewardlab.rewards.turns import each_turn, grounded
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.rollouts.recorded import recorded

Center = Literal["half", "trajectory", "none"]


def renorm(process: list[float], outcome: float, center: Center = "half") -> list[float]:
    """r_t of each turn, without the outcome on the last decision."""
    if center == "none":
        return process
    off = 1 - outcome if center == "half" else sum(process) / max(1, len(process)) - outcome
    return [p - off for p in process]


@reward(over="groups", steps=True)
def renormed(
    groups: list[Group], run: Run, *, process: Reward, outcome: Reward, center: Literal["half", "trajectory", "none"] = "half"
) -> Scores:  # fmt: skip
    """The step rewards of `process`, shifted by the outcome, and the outcome on the last decision; both are logged unchanged.

    center: half, each less 1/2; trajectory, the episode's mean taken from its step rewards; none, both as they are. No verdict
    where one of the two has none.
    """
    rows = zip(process(groups, run), outcome(groups, run), strict=True)
    return [[_together(p, o, center) for p, o in zip(*row, strict=True)] for row in rows]


def _together(process: Score, outcome: Score, center: Center) -> Score:
    right, whole = outcome.total, process.total
    if right is None or whole is None:
        return derive("", None, [process, outcome])
    moved = renorm([r for _, r in process.steps], right, center)
    places = [at for at, _ in process.steps]
    logged = {"process": Term(whole / max(1, len(moved)), weight=None), "outcome": Term(right, weight=None)}
    return Score(terms={"": Term(right, tuple(zip(places, moved, strict=True))), **logged}, why=outcome.why)


def ppr_renorm(
    base: Recipe | None = None, *, judge: Reward | None = None, center: Center = "half", env: Environment | None = None,
    corpus: str = "", n: int | None = None, turns: int = 6,
) -> Recipe:  # fmt: skip
    """judge: a reward of single replies, which is asked about every turn.  env: the tools; without it, those that the base
    plays with, else a search.  corpus: a file of documents to search (`tools`).  n: episodes per problem (None: as many as
    the base has, or else 8).  turns: the most that an episode may have.
    """
    # a critic needs no group: 16 problems with 8 episodes are as many rows as ppo's 128 with one
    base = base or ppo(n=n or 8).but(problems=16)
    paid = renormed(process=each_turn(inner=judge or grounded()), outcome=base.reward or correct(), center=center)
    if not (env or corpus) and base.sampling_settings.get("env"):
        return base.but(reward=paid)
    env = tools(env, corpus)
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns),
        reward=paid,
        measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)),
    )


fidelity = "reading"
left_out = (
    "the judge that is taught on principles, a model that writes its reasons before it scores a turn: a rule takes its place "
    "unless there is a `judge`; and NVProcessBench"
)
data = Data(
    answer="the gold answer",
    facts=Column(
        "documents that can be searched, a list of texts or of {title, text}; not read with `corpus` or `env`", optional=True
    ),
    rows=[
        {
            "prompt": "Who wrote the book that Kurosawa's Ran is based on? Search, then end with Answer: and the name.",
            "answer": "Shakespeare",
            "facts": ["Ran, a film by Kurosawa, is based on King Lear.", "King Lear is a play by Shakespeare."],
        },
        {
            "prompt": "In which year did the river Arno last flood Florence? Search first.",
            "answer": "1966",
            "facts": [
                {"title": "Arno", "text": "A river of Tuscany. It flooded Florence in 1966."},
                {"title": "Po", "text": "The longest river of Italy."},
            ],
        },
    ],
)

# a judge that likes long replies as much as grounded ones
JUDGE = each_turn(inner=0.5 * clip(words() / 80, high=1.0) + 0.5 * grounded())
RENORMED = aggregate(renormed(process=JUDGE, outcome=correct())).named("renormed")
RAW = aggregate(renormed(process=JUDGE, outcome=correct(), center="none")).named("raw")
# by construction: the judge's liking for words is planted, and is what the formula takes out
check = Check(
    says="with scores of turns by a judge that likes many words, ReNorm prefers the better of two searches oftener than their sum",
    versus=None, task="inquiries:test_size=4000", measure="agreement.renormed", direction="higher", margin=0.145,
    against="agreement.raw", model="untrained",
    by=own_share(inner=told_apart(reward=RENORMED + RAW, truth=score_in_data(), rollout=recorded(fields=("direct", "wandering")))),
    problems=4000, steps=1,
    fault=Within("agreement.raw", high=0.6, says="the better of two searches paid more, by the sum"), learns=None, start=None,
    sanity=True,
    finding="of two searches the better one is paid more in 82% of pairs by ReNorm, and in 55% by the raw sum, whose judge likes "
    "many words. The outcome alone would do so in 86%: ReNorm repairs a bad judge, and adds nothing to the outcome here",
)  # fmt: skip
baseline = "ppo"
