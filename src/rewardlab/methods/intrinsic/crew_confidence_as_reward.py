"""CRew: confidence in the tokens of the final answer as the reward; DPO on pairs that it ranks.

    c(y) = mean over the tokens t of the stated answer of pi(y_t | x, y_<t)
    pair: of n replies the right one and the wrong one of the widest gap c(right) - c(wrong);     loss: DPO's

The probability of a whole reply says how usual its words are. That of the answer, after the reasoning, says how far the reasoning
settled it. As a reward it needs no training: `rewardlab answer best_of_n --reward answer_confidence` and the measure `reranked`
use it to choose. Pairs of a wide gap teach a policy to be sure of what is right and unsure of what is not, so that its confidence
becomes a better judge; `widest=False` pairs any right reply with any wrong one: the plain DPO that the paper compares with.

Du et al. 2025, arXiv:2510.13501, sections 3.1, 3.2, A.2. beta = 0.3 is the paper's. There the K pairs of the widest gap are
taken of 30 samples to each problem (K = 10 or 15), beforehand; here one of n = 8, by the model as it started. (inferred): the
gap has a sign, right less wrong; the rate is that of `dpo`.

Confidence alone, as a reward, needs no answers.
"""

from __future__ import annotations

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.ranked import ranked
from rewardlab.text.answer_tokens import answer_tokens

# ---- How sure a model is of the answer that a reply states -----------------------------------------------------------


@reward(over="groups")
def answer_confidence(groups: list[Group], run: Run, *, model: str = "policy") -> Scores:
    """The mean probability that a model gives to the tokens of the answer which a reply states, given all before them.

    The answer is what stands in the last box, else after "answer:", else the last number, else the last line; outside of thinking.
    model: "policy", "reference" or a learner of the run, with the policy's tokenizer. It need not have written the reply. No
    verdict on a reply that states nothing.  Du et al. 2025, arXiv:2510.13501
    """
    rows = [t for group in groups for t in group]
    scorer = run.model(model)
    if scorer is not run.policy and scorer.tokenizer.get_vocab() != run.policy.tokenizer.get_vocab():
        raise RewardlabError(f"the model {model!r} cannot score the policy's replies: their tokenizers differ")
    spans = [answer_tokens(t, run.policy.pieces) for t in rows]
    found = [i for i, span in enumerate(spans) if span]
    logprobs = dict(zip(found, scorer.score([rows[i] for i in found]), strict=True)) if found else {}
    scores = iter([_score(logprobs.get(i), span) for i, span in enumerate(spans)])
    return [[next(scores) for _ in group] for group in groups]


def _score(logprobs: np.ndarray | None, span: list[int]) -> Score:
    if logprobs is None:
        return Score(None, why="the reply states no answer")
    return Score(float(np.exp(logprobs[span].astype(np.float64)).mean()), why=f"over {len(span)} tokens")


@reward(over="groups")
def right_and_sure(groups: list[Group], run: Run, *, model: str = "policy") -> Scores:
    """The confidence of a reply, and 1 more where it is right: most for those that are right and sure, least for those that are
    wrong and unsure. So the best and the worst reply to a problem are its pair of the widest gap in confidence, right over wrong.

    No verdict where the replies to a problem are all right or all wrong, or where a reply has no verdict or no confidence.
    Du et al. 2025, arXiv:2510.13501
    """
    sure, verdicts = answer_confidence(model=model)(groups, run), correct()(groups, run)
    return [_both(*rows) for rows in zip(sure, verdicts, strict=True)]


def _both(sure: list[Score], verdicts: list[Score]) -> list[Score]:
    # what has no confidence makes no pair, so it does not count as the other kind either
    known = [None if v.value is None or s.value is None else v.value >= 1 for s, v in zip(sure, verdicts, strict=True)]
    if not {True, False} <= set(known):
        return [Score(None, why="the replies are not both right and wrong")] * len(sure)
    return [
        Score(None, why=s.why or "no verdict") if ok is None or s.value is None else Score(s.value + ok, why=s.why)
        for s, ok in zip(sure, known, strict=True)
    ]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def crew_confidence_as_reward(
    base: Recipe | None = None, *, widest: bool = True, scorer: str = "reference", n: int = 8, temperature: float = 1.0,
    top_p: float = 1.0,
) -> Recipe:  # fmt: skip
    """widest: false pairs a right with a wrong reply whatever their confidence.  scorer: who samples, and whose confidence ranks
    pairs: "reference" or "policy".  n, temperature, top_p: of the samples.
    """
    base = base or dpo(beta=0.3)
    by = right_and_sure(model=scorer) if widest else correct()
    return base.but(rollout=ranked(by=by, n=n, model=scorer, temperature=temperature, top_p=top_p))


fidelity = "core"
left_out = (
    "the K widest pairs of 30 samples to each problem (here one of n = 8), a second iteration (--model RUN), the "
    "paper's benchmarks of judges, and filtering a data set by c"
)
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A shirt of 40 is 25% off. What does it cost?", "answer": "30"},
        {"prompt": "What is the next prime after 13?", "answer": "17"},
        {"prompt": "Simplify $\\frac{6}{8}$.", "answer": "\\frac{3}{4}"},
    ],
)

# right and wrong replies that the model wrote before it learnt, so that both sides judge the same ones
JUDGED = ranked(by=correct(), n=8)
claim = Claim(
    says="confidence in the answer finds the right one of two replies oftener after DPO on the widest gaps than on any pairs",
    versus="crew_confidence_as_reward", task="choices", measure="agreement", direction="higher", margin=0.074,
    versus_settings={"widest": False}, by=told_apart(reward=answer_confidence(), truth=correct(), rollout=JUDGED), problems=600,
    steps=40, fault=Within("agreement", high=0.9, says="how often the model is surer of the right one of two, after plain DPO"),
    learns=None, start=None,
    tried="frozen, 60 problems: in arithmetic the answer repeats the last line, and is certain whatever it is: .53, whole replies "
    ".65; in choices, where rationales contradict answers, .59 and .60; in cells, queries and judgments .44, .29 and .48",
    finding="confidence finds the right one of two replies in 70% before, in 69% after DPO on the widest gaps and in 70% on any "
    "pairs: neither choice of pairs makes it a better judge",
)  # fmt: skip
baseline = "dpo"
