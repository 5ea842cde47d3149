"""Whether what a reply says is borne out by passages that are known to be true."""

from __future__ import annotations

from rewardlab.core import Group, Score
from rewardlab.core.domain import PositiveInt
from rewardlab.rewards.reward import reward
from rewardlab.text.bm25 import index_of, words


@reward(over="group", relative=False)
def supported_facts(group: Group, *, passages: str = "passages", k: PositiveInt = 1) -> list[Score]:
    """Of what the replies to a problem disagree on, the share that a reply has right by the evidence.

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
