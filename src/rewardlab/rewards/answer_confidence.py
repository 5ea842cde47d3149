"""How sure a model is of the answer that a reply states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.text.pieces import tokens_with
from rewardlab.text.prefixes import stated


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


def answer_tokens(trajectory: Trajectory, pieces: Callable[[np.ndarray], list[str]]) -> list[int]:
    """The positions of the tokens in which the answer of the last reply stands; none where it states nothing."""
    answer, ends = stated(trajectory.reply), trajectory.ends
    if not answer or not ends:
        return []
    # the last reply begins after the last position that was read
    read = np.flatnonzero(~trajectory.mask[: ends[-1] + 1])
    first = int(read[-1]) + 1 if len(read) else 0
    return [first + i for i in tokens_with(answer, pieces(trajectory.ids[first : ends[-1] + 1]), last=True)]


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
