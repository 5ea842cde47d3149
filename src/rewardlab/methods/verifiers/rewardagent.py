"""RewardAgent: a reward model's score plus those of verifiers that a router picks for the prompt: form and facts.

    r(x, y) = r_RM(x, y) + sum over verifiers k of lambda_k v_k(x, y),    v_k = 1/2 where the router does not pick k for x

A reward model learns what people like, length among it; whether "use at most 50 words" was followed, or a fact is right, can be
checked. The router keeps checks away from prompts that ask for nothing of the kind. Form: the share of the prompt's constraints
that hold. Facts: what the replies disagree on is looked up (`supported_facts`). Both need the replies alone, no preferences.

Peng et al. 2025, arXiv:2502.19328. The sum is the released code's "weighted_sum", with lambda = 1 (THU-KEG/Agentic-Reward-Modeling,
e8781e2). With `agent=openai:URL#NAME` a served model routes, writes the constraints as code and judges facts, as there: the reward
`verified_preference(model=...)`, which also serves best-of-n and the making of pairs (`--reward`). Without it programs do
(inferred): the router is a pattern of words in the prompt, constraints come with the data in IFEval's form, and facts are compared
by words. The reward model is trained here, as in bradley_terry; its scores are added as they are, so that lambda is in their
units (ArmoRM's, which the release takes, lie near .1).
"""

from __future__ import annotations

import re

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import pair_agreement
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.rewards.model import model_score
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.verified_preference import verified_preference
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.bm25 import index_of, words
from rewardlab.verifiers.instructions.verifier import instructions

# ---- Whether what a reply says is borne out by passages that are known to be true ------------------------------------


@reward(over="group", relative=False)
def supported_facts(group: Group, *, passages: str = "passages", k: PositiveInt = 1) -> list[Score]:
    """The share of a reply's facts right by the evidence, among those on which the replies to a problem disagree.

    As in the factuality check of RewardAgent (arXiv:2502.19328), in four steps: the words in which the replies differ; a query, of
    the prompt and these words; the k best of the problem's passages (BM25) as evidence; a judgement. Here that is by words: one
    that occurs in some passages and not in all is a claim, and holds if it occurs in the evidence. A reply without a claim gets
    1/2, as do all where they say the same. A problem without passages gives no verdict.

    passages: the column that holds them, a list of texts.
    """
    known = group[0].problem.meta.get(passages) if group else None
    if not known or not all(isinstance(text, str) for text in known):
        return [Score(None, why=f"the problem has no column {passages!r} with a list of texts")] * len(group)
    said = [set(words(t.reply)) for t in group]
    differing = said[0].union(*said) - said[0].intersection(*said)
    contents: list[set[str]] = [set(words(text)) for text in known]
    # a word of all passages tells nothing apart: "the" is no claim
    common: set[str] = contents[0].intersection(*contents) if len(known) > 1 else set()
    checkable = differing & contents[0].union(*contents) - common
    # sorted, so that the query does not depend on the order of a set
    query = " ".join([group[0].problem.question, *sorted(differing)])
    evidence = {word for text in index_of(tuple(known)).best(query, k) for word in words(text)}
    return [_judged(reply & checkable, evidence) for reply in said]


def _judged(claims: set[str], evidence: set[str]) -> Score:
    if not claims:
        return Score(0.5, why="nothing to check")
    false = sorted(claims - evidence)
    return Score(1 - len(false) / len(claims), why=f"not in the evidence: {', '.join(false)}" if false else "borne out")


# ---- Rewards that are asked only where the prompt calls for them -----------------------------------------------------


@reward(over="groups")
def routed(groups: list[Group], run: Run, *, to: Reward, when: str = "", otherwise: float = 0.5) -> Scores:
    """The reward `to` for problems whose prompt contains the regular expression `when`, in any case; `otherwise` for all others.

    Where it is not asked, `to` is not called. Where it gives no verdict it pays `otherwise` too, so that the other rewards of the
    reply still count. The share of problems that were sent to it is logged as routed/NAME.
    """
    try:
        pattern = re.compile(when, re.IGNORECASE)
    except re.error as e:
        raise RewardlabError(f"routed: {when!r} is not a regular expression: {e}") from e
    asked = [g for g, group in enumerate(groups) if group and pattern.search(group[0].problem.question)]
    judged = dict(zip(asked, to([groups[g] for g in asked], run) if asked else [], strict=True))
    if run is not None:
        run.log(f"routed/{to.label}", len(asked) / max(1, len(groups)))
    return [[_score(s, otherwise) for s in judged.get(g, [None] * len(group))] for g, group in enumerate(groups)]


def _score(score: Score | None, otherwise: float) -> Score:
    if score is None:
        return Score(otherwise, why="not asked")
    return Score(otherwise, why=f"no verdict: {score.why}") if score.total is None else Score(score.total, why=score.why)


# ---- the recipe ---------------------------------------------------------------------------------------------------------

CONSTRAINED = r"\b(at (least|most)|exactly|words?|sentences?|paragraphs?|include|mention|avoid|without|format|bullets?|in all)\b"
FACTUAL = r"\b(who|when|where|which|what|how (many|much|old|far)|facts?|true)\b"
"""Words of prompts that ask for a form, and of those that ask for facts."""


@reward
def constraints_met(trajectory: Trajectory, *, column: str = "instructions") -> Score:
    """The share of the constraints in a column of the problem that the reply meets; 1/2 where there are none."""
    constraints = trajectory.problem.meta.get(column)
    if not constraints:
        return Score(0.5, why="no constraints")
    verdict = instructions(share=True).check(trajectory.reply, {"instructions": constraints})
    return Score(verdict.pays, why=verdict.why)


def agent_reward(form: float, facts: float, form_when: str, facts_when: str, model: str = "reward") -> Reward:
    """The sum of the reward model's score and those of the verifiers, each for the prompts that its pattern matches."""
    form_check = routed(to=constraints_met(), when=form_when).named("form")
    return model_score(model=model) + form * form_check + facts * routed(to=supported_facts(), when=facts_when).named("facts")


def rewardagent(
    base: Recipe | None = None, *, form: float = 1.0, facts: float = 1.0, form_when: str = CONSTRAINED, facts_when: str = FACTUAL,
    init: str = "value-head", agent: str = "", longest: int | None = None,
) -> Recipe:  # fmt: skip
    """form, facts: lambda of the two verifiers.  form_when, facts_when: regular expressions of the prompts that they are asked for;
    "" is all of them.  init: what the reward model starts from (`Learner.init`).  agent: a served model, which routes and verifies
    in place of the patterns and programs.  longest: tokens of each of its replies; None: 512."""
    base = base or bradley_terry(init=init)
    scored, asked = model_score(model="reward"), {"model": agent, "max_new": longest or 512}
    served = verified_preference(**asked, preference=scored, form=form, facts=facts) if agent else None
    return base.but(measure=pair_agreement(reward=served or agent_reward(form, facts, form_when, facts_when)))


fidelity = "core"
left_out = (
    "the models that route, write constraints as code and judge facts, unless `agent` names one: programs by default; a search of "
    "the web for facts, where a row's passages are searched; and the two other ways to judge, by a model and by a weighted vote"
)
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    instructions=Column('constraints in IFEval\'s form, a list of {"id", ...}', optional=True),
    passages=Column("texts that are known to be true: a list", optional=True),
    rows=[
        {
            "prompt": "Name a planet, in at most three words.",
            "chosen": "Mars.",
            "rejected": "There are many planets, and one of them is Mars.",
            "instructions": [{"id": "length_constraints:number_words", "num_words": 4, "relation": "less than"}],
        },
        {
            "prompt": "Who wrote Faust?",
            "chosen": "Goethe wrote it.",
            "rejected": "Schiller wrote it.",
            "passages": ["Faust is a play by Goethe.", "Schiller wrote The Robbers."],
        },
    ],
)

check = Check(
    says="with verifiers added, a reward model of biased preferences prefers the better reply more often than alone",
    versus=None, task="notes:taste=0.3", measure="pair_accuracy", direction="higher", margin=0.04,
    against="pair_accuracy.model_score", settings={"form_when": "hurry|rush|be kind|be brief", "facts_when": r"\bneed\b"},
    steps=100,
    fault=Within("pair_accuracy.model_score", high=0.85, says="pairs that the reward model alone gets right"),
    judge=Within("pair_accuracy.model_score", low=0.55, says="pairs that the reward model alone gets right"), learns=None,
    sanity=True,
    finding="the better reply is preferred in 63% of pairs by a reward model of biased preferences, in 70% with the verifiers, "
    "which read constraints and passages that it does not see. The check of form alone gets 73%: the model takes from it",
)  # fmt: skip
baseline = "bradley_terry"
