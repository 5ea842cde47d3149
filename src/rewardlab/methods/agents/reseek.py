"""ReSeek: after each search the agent judges whether what it found is of use, and is paid for judging rightly.

    <search>Red Tower author</search>   <information>...</information>   <judge>No</judge> <search>Red Tower novel</search> ...
    R = right + sum over verdicts j of r(j),    u: the information holds the gold answer
    r = .4 for a Yes in an episode that ends right; else .3 (.4 if it ends right) if j = u;  -.6 for a wrong Yes, -.3 for a wrong No

An agent that follows its first result wherever it leads cannot recover from a bad one. A verdict of its own makes it search anew;
the outcome alone tells little of which verdicts were right. A result without the answer may still be a step on the way, so that a
Yes is not held against an episode that ends right. Episodes that end without an answer are paid for no verdict.

Li et al. 2025, arXiv:2510.00568, and TencentBAC/ReSeek (d5a8330: reseek_regex.py, the weights above; prompt of
preprocess_reseek_dataset.py; GRPO with 5 episodes and a KL of .001 of train_grpo.sh). By a note on its ICML text the paper pays .3,
-.6 and -.3 alone, whatever the answer, which is `boost=0, trust=False`, and u is that a reranker scores gold answer and information
above .7 (with words it is a point worse); reseek_rerank.py has .5 and other weights. Here that is `embed` and `least`, a cosine. As
in the code, the sum is paid with the outcome. Ours: a verdict counts for the information right before it alone, there for any
earlier one without a verdict; the answer is looked for as whole words without articles and signs, there as characters.
`judging=0` is GRPO with the outcome in the same environment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Environment, Group, Recipe, Run, Score, Scores, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.envs.asked import asks
from rewardlab.envs.search import TELL, tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.groups import told_apart
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import NonNegativeFloat, Share
from rewardlab.text.embedding import embedded
from rewardlab.text.searches import FAILED
from rewardlab.text.words import normalised

TOLD = TELL + (
    " Whenever you receive search results, first judge whether they are of use: write <judge>Yes</judge> or <judge>No</judge>. If "
    "they are not, or if you need more, search again; after <judge>No</judge> you must not answer."
)
_VERDICT = re.compile(r"<judge>\s*(yes|no)\s*</judge>", re.IGNORECASE)


def verdicts_of(trajectory: Trajectory) -> list[tuple[str, bool]]:
    """(information, verdict) of each message of the environment that the next reply judges, True for Yes."""
    found, information = [], ""
    for decided, run in groupby(trajectory.turns[1:], key=lambda turn: turn.author is not None):
        text = "".join(turn.text for turn in run)
        if not decided:
            information = text
        elif information and FAILED not in information and (verdict := _VERDICT.search(text)):
            found.append((information, verdict[1].lower() == "yes"))
        information = "" if decided else information
    return found


def answers_in(answer: Any) -> list[str]:
    """The gold answers, of which there may be several."""
    given = list_of(answer)
    return [str(x) for x in (given if given is not None else [answer]) if x is not None]


def holds(information: str, answers: Sequence[str], embed: str = "", least: float = 0.5) -> bool:
    """Whether one of the answers is in the information, as whole words, or by an embedding at least as similar as this."""
    if not embed:
        text = f" {normalised(information)} "
        return any(f" {words} " in text for answer in answers if (words := normalised(answer)))
    vectors = embedded([information, *answers], embed)
    return bool(len(vectors) > 1 and (vectors[1:] @ vectors[0]).max() >= least)


@reward(over="groups")
def judged(
    groups: list[Group], run: Run, *, agrees: NonNegativeFloat = 0.3, boost: NonNegativeFloat = 0.1,
    wrong_yes: NonNegativeFloat = 0.6, wrong_no: NonNegativeFloat = 0.3, trust: bool = True, embed: str = "", least: Share = 0.5,
) -> Scores:  # fmt: skip
    """The sum over the verdicts of an episode: `agrees` for one that says whether the information holds the gold answer, and
    `boost` more if the episode ends right; minus `wrong_yes` or `wrong_no` for another.

    trust: a Yes counts as right wherever the episode ends right.  embed: a model of `text/embedding.py`, by which information holds
    what is at least `least` similar to the answer; "": it holds the answer's words.  0 for an episode without a verdict of its own,
    or that ends with a search; none where the task's verifier has none. Logged: judged, verdicts of an episode.
    Li et al. 2025, arXiv:2510.00568
    """

    def paid(t: Trajectory, outcome: Score) -> Score:
        if outcome.value is None:
            return Score(None, why=outcome.why)
        right, verdicts = outcome.value >= 1.0, verdicts_of(t)
        if not t.replies or asks(t.reply):
            return Score(0.0, why="it ends without an answer")
        total, answers = 0.0, answers_in(t.problem.answer)
        for information, yes in verdicts:
            if (trust and yes and right) or yes == holds(information, answers, embed, least):
                total += agrees + boost * right
            else:
                total -= wrong_yes if yes else wrong_no
        return Score(total, why=f"{len(verdicts)} results judged")

    run.log("judged", float(np.mean([len(verdicts_of(t)) for group in groups for t in group])))
    return [
        [paid(t, s) for t, s in zip(group, row, strict=True)] for group, row in zip(groups, correct()(groups, run), strict=True)
    ]


# ---- the recipe ---------------------------------------------------------------------------------------------------------------


def reseek(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", n: int | None = None, turns: int = 5,
    judging: float = 1.0, boost: float = 0.1, trust: bool = True, embed: str = "", least: float = 0.5,
) -> Recipe:  # fmt: skip
    """env: the tools, with which prompts must ask for <judge>Yes</judge> or <judge>No</judge> themselves; without it a search in
    `corpus`, a file or an address, or in the documents of each row (`tools`).  n, turns: episodes of a question (None: the
    base's, or else 5), and replies of one, at most.  judging: weight of the verdicts, 0 for none.  boost, trust, embed, least: as
    of `judged`.
    """
    base = base or grpo(n=n or 5, beta=0.001)
    env, paid = tools(env, corpus, tell=TOLD), base.reward or correct()
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns),
        reward=paid + judging * judged(boost=boost, trust=trust, embed=embed, least=least) if judging else paid,
        measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)),
    )


fidelity = "core"
left_out = (
    "a reranker (here words, or an embedding); further tries after a reply that neither searches nor answers; a quarter of the "
    "outcome for more than ten answers in a reply; the questions of FictionalHot, for which `encyclopaedia` stands"
)
data = Data(
    answer="the gold answer, or a list of them",
    facts=Column(
        "documents that can be searched, a list of texts or of {title, text}; not read with `corpus` or `env`", optional=True
    ),
    rows=[
        {
            "prompt": "Who wrote the novel that Blade Runner is based on? To search, write <search>query</search>. Judge what you "
            "find: <judge>Yes</judge> or <judge>No</judge>. To answer, write <answer>...</answer>.",
            "answer": "Philip K. Dick",
            "facts": [
                {"title": "Blade Runner", "text": "Blade Runner (1982) is based on Do Androids Dream of Electric Sheep?"},
                {"title": "Do Androids Dream of Electric Sheep?", "text": "A novel of 1968 by Philip K. Dick."},
            ],
        },
        {
            "prompt": "What is the capital of the country where Nokia was founded? Search, and judge what you find.",
            "answer": "Helsinki",
            "facts": ["Nokia was founded in Finland.", "The capital of Finland is Helsinki."],
        },
    ],
)

EPISODES = recorded(fields=("honest", "rash"))
VERDICTS = judged().named("verdicts") + judged(trust=False).named("contained") + 0.0 * correct()
check = Check(
    says="of two episodes the one whose verdicts are right oftener is paid more, though a needed result may not hold the answer",
    versus=None, task="encyclopaedia:scripted=true,test_size=4000", measure="agreement.verdicts", direction="higher", margin=0.02,
    against="agreement.contained", model="untrained",
    by=own_share(inner=told_apart(reward=VERDICTS, truth=score_in_data(), rollout=EPISODES)),
    problems=4000, steps=1, fault=Within("agreement.contained", high=0.95, says="without trust in episodes that end right"),
    tried="two development seeds: +.06 and +.05; before, on held-out questions that were 96% comparisons, +.06 and +.08",
    finding="of two scripted episodes the one that judges better is paid more in 76%, and in 69% without trust in a Yes of an "
    "episode that ends right: results on the way do not hold the answer, so that right verdicts on them are paid as wrong ones",
)  # fmt: skip
baseline = "grpo"
