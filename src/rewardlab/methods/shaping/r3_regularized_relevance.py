"""R3: without preferences, reward relevance times length times novelty, so that none can be gamed alone.

    open question:    r = words / 100 * cos(prompt, reply) * (different trigrams / trigrams)
    closed question:  r = longest / 3.5 / 100 * cos(reference, reply) * (different trigrams / trigrams)

Relevance alone is highest for a copy of the prompt, length alone for idle talk, and both together for repetition; the factors
regularise one another. A closed question has a reference to be near to, and gains nothing by length.

Kim and Seo 2024, arXiv:2402.03469: R3 is its first version, later renamed "Rethinking the Role of Proxy Rewards". The formula is
that of the released code (naver-ai/rethinking-proxy-reward, 70f2ecf, reward_model.py), which is the first version's: relevance is a
dot product of Contriever's vectors, taken to reach 3.5, and a closed question's is stretched from there to longest / 100. A cosine
takes its place, and everything is divided by 3.5, so that both kinds of question weigh as much as there. Of a talk the last user
message alone is the question; there all of the user's are. `mixed=False` is relevance alone, the paper's first attempt.

embed=NAME takes a sentence-transformers model (facebook/contriever); without it, texts are compared by their words.
"""

from __future__ import annotations

from typing import Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores, Term
from rewardlab.data.columns import Column, Data
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.rewards.length import words
from rewardlab.rewards.repetition import distinct_ngrams
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.embedding import NGRAMS, embedded

# ---- How near a reply is to what was asked, or to a reference --------------------------------------------------------


@reward(over="group", relative=False)
def relevance(group: Group, *, to: Literal["prompt", "answer"] = "prompt", embed: str = NGRAMS) -> list[Score]:
    """The cosine of a reply with the last user message, or with the problem's answer, a text. Without such a text, no verdict.

    Easily gamed by itself: a copy of the prompt has the highest.  embed: see `redundancy`.
    """
    wanted = group[0].problem.question if to == "prompt" else group[0].problem.answer
    if not isinstance(wanted, str) or not wanted.strip():
        return [Score(None, why=f"the problem has no text as its {to}")] * len(group)
    table = embedded([wanted, *(t.reply for t in group)], embed)
    return [Score(float(cosine)) for cosine in table[1:] @ table[0]]


# ---- the recipe ---------------------------------------------------------------------------------------------------------

CLOSED = "CONSTRAINED"
HIGHEST = 3.5
"""The dot product that the paper takes for the highest of two texts: what a cosine of 1 stands for."""


@reward(over="groups")
def regularized_relevance(groups: list[Group], run: Run, *, embed: str = "ngrams", longest: PositiveInt = 512) -> Scores:
    """The product for each reply; its factors are logged beside it. A closed question without a reference gives no verdict."""
    lengths, fresh = words()(groups, run), distinct_ngrams(n=3)(groups, run)
    return [
        [_score(closed, near, length, new, longest) for near, length, new in zip(nearness, *rows, strict=True)]
        for (closed, nearness), *rows in zip(_relevance(groups, run, embed), lengths, fresh, strict=True)
    ]


def _relevance(groups: list[Group], run: Run, embed: str) -> list[tuple[bool, list[Score]]]:
    """Whether the question of a group is closed, and how near its replies are to its reference, or to the question."""
    closed = [group[0].problem.meta.get("qtype") == CLOSED for group in groups]
    pairs = zip(groups, closed, strict=True)
    return [(c, relevance(to="answer" if c else "prompt", embed=embed)([group], run)[0]) for group, c in pairs]


def _score(closed: bool, near: Score, length: Score, fresh: Score, longest: int) -> Score:
    factors = {"relevance": near.value, "words": length.value, "distinct_ngrams": fresh.value}
    logged = {name: Term(value, weight=None) for name, value in factors.items()}
    if near.value is None or length.value is None or fresh.value is None:
        return Score(terms=logged, missing=True, why=near.why)
    # texts that are opposed are not paid for being short
    value = max(0.0, near.value) * (longest / HIGHEST if closed else length.value) / 100 * fresh.value
    return Score(terms={"regularized_relevance": Term(value), **logged})


def r3_regularized_relevance(
    base: Recipe | None = None, *, embed: str = "ngrams", longest: int = 512, mixed: bool = True
) -> Recipe:  # fmt: skip
    """embed: what makes vectors of texts.  longest: words that a reply may have; a closed question pays as much as
    an open one answered in longest / 3.5.  mixed: False pays relevance alone.
    """
    base = base or ppo().but(measure=mean_reward())
    return base.but(reward=regularized_relevance(embed=embed, longest=longest) if mixed else relevance(embed=embed))


fidelity = "core"
left_out = (
    "Contriever by default: texts are compared by their words unless `embed` names a model; the released PPO, whose rewards are "
    "scaled by their running deviation and whose KL weight adapts (PPO here has its own KL); adapters; and cutting a reply off at "
    "the next speaker's name"
)
data = Data(
    answer=Column("the reference of a closed question; all rows have one, or none", optional=True),
    qtype=Column("CONSTRAINED marks a closed question; without it all are open", optional=True),
    rows=[
        {"prompt": "Which planet is nearest to the sun?", "answer": "Mercury", "qtype": "CONSTRAINED"},
        {"prompt": "Why do leaves turn red in autumn?", "answer": "The green fades first.", "qtype": "OPEN"},
    ],
)

claim = Claim(
    says="the true reward ends higher than when relevance alone is paid, which falls for being near to the prompt",
    versus="r3_regularized_relevance", task="notes", measure="reward", direction="higher", margin=0.025,
    versus_settings={"mixed": False}, by=mean_reward(), steps=40,
    fault=Within("auc.truth", high=0.55, says="the true reward while relevance alone is paid"), learns=None,
    finding="the true reward falls from .55 to .52 with the product and to .46 with relevance alone, whose replies shrink to four "
    "words of the prompt: it does less harm, and neither helps",
)  # fmt: skip
baseline = "ppo"
