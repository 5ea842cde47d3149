"""IM-RAG: each query is paid for the progress that its results make towards the supporting facts, and results are reranked first.

    question -> [ query -> Retriever: `pool` documents -> Refiner: the `results` best of them -> Progress Tracker: p_t ]* -> answer
    p_t = S_t - S_{t-1},    S_t = mean over supporting facts g of the highest similarity of g with a document shown up to round t
    Questioner: PPO with the reward p_t at the end of round t;    Answerer: SFT on the gold answer after the Questioner's rounds

A query is of use by what it brings nearer, which is known at once where the supporting facts are; the answer at the end says it
late, and is right or wrong for other reasons too. What was shown before makes no progress again. A weak retriever finds the right
document among others; the refiner, which knows the whole question, moves it to where the policy reads it.

Yang et al. 2024, arXiv:2405.13021, after the abstract (the text was not found, nor code). (inferred): the similarity, a cosine of
TF-IDF or of embeddings (`embed`), the gain as reward, the mean over facts; the refiner, which ranks by the similarity with question
and query together (theirs is a language model that reranks); weights; the queries are paid for progress alone, as the answer is
learnt apart. `stage="answers"` is the second stage: it plays on as the Questioner does and learns the gold answer in the place of
its own last reply; start it from the run of the first (--model RUN). `pool=results` is without a refiner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.clients.retriever import SearchFailed, is_address
from rewardlab.core import Environment, Group, Message, Problem, Recipe, Run, Score, Trajectory, Turn, environment, measure, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.data.corpus import absolute
from rewardlab.data.values import list_of
from rewardlab.envs.search import RESULTS, TELL, candidates, search
from rewardlab.errors import RewardlabError
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.retrieved import failure_of, rounds, similarity, texts_in
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import interactive
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.searches import CLOSE, answered, failed, queries_of, query_of, results_of

# ---- the refiner: a search whose results are reranked by what the whole question asks -----------------------------------------


def _start(problem: Problem, seed: int, *, results: int, pool: int, embed: str, **settings: Any) -> tuple[Message | None, Any]:
    message, state = search(**settings).start(problem, seed)
    return message, {**state, "question": problem.question}


@environment(start=_start, waits=lambda *, corpus, **_: is_address(corpus))
def refined_search(
    state: Any, turn: Turn, *, results: PositiveInt = 1, pool: PositiveInt = 10, embed: str = "", field: str = "facts",
    corpus: str = "", tell: str = "", stop: tuple[str, ...] = (),
) -> tuple[Message | None, Any]:  # fmt: skip
    """As `search`, but the best `pool` documents of a query are ranked anew, by how like they are to the question and the query
    together, and the best `results` of them shown.  embed: of `similarity`. Ties stay in the retriever's order.
    """
    query = query_of(turn.text)
    if query is None:
        return None, state
    try:
        (found,) = candidates(state, corpus, [query], max(pool, results))
    except SearchFailed as problem:
        return Message("user", failed(turn.text, problem.why)), state
    return Message("user", answered(turn.text, refined(f"{state['question']} {query}", found, results, embed))), state


def refined(wanted: str, found: list[tuple[str, str]], k: int, embed: str = "") -> list[tuple[str, str]]:
    """The k documents (title, text) that are most like what is wanted."""
    near = similarity([wanted], [f"{title} {text}" for title, text in found], embed)[0]
    return [found[i] for i in np.argsort(-near, kind="stable")[:k]]


# ---- the progress tracker -----------------------------------------------------------------------------------------------------


@reward(steps=True)
def progress(trajectory: Trajectory, *, gold: str = "supporting", embed: str = "") -> list[tuple[int, float]] | Score:
    """At the end of each reply that was answered: by how much the answer brings the documents seen nearer to those of a column.

    S_t - S_{t-1},   S_t: the mean over the column's documents of the highest similarity with a result of the rounds up to t
    embed: of `similarity`. No verdict where the column is no list, or a search failed.  Yang et al. 2024, arXiv:2405.13021
    """
    wanted = texts_in(trajectory.problem, gold)
    if not wanted:
        return Score(None, why=f"the column {gold!r} is no list of documents")
    if failed_why := failure_of(trajectory):
        return Score(None, why=failed_why)
    best, steps = np.zeros(len(wanted)), []
    for end, _, answer in rounds(trajectory):
        # a search of small policies shows all its results in one line
        nearest = np.maximum(best, similarity(wanted, results_of(answer), embed).max(1, initial=0.0))
        steps.append((end, float((nearest - best).mean())))
        best = nearest
    return steps


# ---- the answerer -------------------------------------------------------------------------------------------------------------


@rollout
def told_answers(
    problems: list[Problem], run: Run, *, env: Environment, turns: PositiveInt = 5, form: str = "<answer>{answer}</answer>"
) -> list[Group]:  # fmt: skip
    """An episode of each problem, in which the gold answer stands in the place of the last reply, and is all that is learnt.

    form: how an answer is written, with {answer}. Of several gold answers the first is told.
    """
    episodes = [group[0] for group in interactive(env=env, n=1, turns=turns)(problems, run)]
    kept = []
    for t in episodes:
        last = max((i for i, turn in enumerate(t.turns) if turn.author is not None), default=len(t.turns))
        while last > 1 and t.turns[last - 1].author is not None:
            last -= 1
        # what the Questioner wrote is read here, and not learnt
        read = tuple(replace(turn, author=None, logprobs=None, sampled=None, reward=None) for turn in t.turns[:last])
        kept.append(replace(t, turns=read, stop=None))
    return [[t] for t in run.policy.write(kept, [form.format(answer=_answer(t.problem)) for t in kept])]


def _answer(problem: Problem) -> str:
    several = list_of(problem.answer)
    if problem.answer is None or several == []:
        raise RewardlabError(f"the Answerer learns gold answers, and problem {problem.question[:60]!r} has none")
    return str(several[0] if several else problem.answer)


# ---- the recipe ---------------------------------------------------------------------------------------------------------------


@measure
def found_by(problems: Sequence[Problem], run: Run, *, column: str, pool: int = 10) -> dict[str, float]:
    """Of the queries that an episode in a column makes, the share that shows a document of `supporting`: with the refiner among so
    many (refined), and without (plain)."""
    hits: dict[str, list[bool]] = {"refined": [], "plain": []}
    for problem in problems:
        wanted = texts_in(problem, "supporting")
        for reply in (list_of(problem.meta.get(column)) or [])[:-1:2]:
            for name, size in (("refined", pool), ("plain", 1)):
                env = refined_search(pool=size)
                _, state = env.start(problem, 0)
                for query in queries_of(reply):
                    shown = env(state, Turn("policy", np.zeros(1, np.int64), text=f"Search: {query}"))[0].text
                    hits[name].append(any(text in shown for text in wanted))
    return {name: float(np.mean(row)) for name, row in hits.items()} | {"n": float(len(hits["plain"]))}


def im_rag(
    base: Recipe | None = None, *, stage: Literal["queries", "answers"] = "queries", env: Environment | None = None,
    corpus: str = "", n: int = 1, turns: int = 5, pool: int = 10, embed: str = "", gold: str = "supporting", answer: float = 0.0,
    form: str = "<answer>{answer}</answer>",
) -> Recipe:  # fmt: skip
    """stage: what is learnt.  env: the tools, which then have no refiner; without it a search in `corpus`, a file or an address, or
    in the documents of each row.  n, turns: episodes of a question, and replies of one, at most.  pool: documents that the refiner
    reads.  embed: of `similarity`.  gold: the column of the supporting facts.  answer: weight of the outcome beside progress.
    form: of `told_answers`.
    """
    base = base or (ppo(n=n) if stage == "queries" else sft())
    if env is not None and corpus:
        raise RewardlabError("env and corpus both say what is searched: give one of them")
    if env is None:
        where = {"corpus": corpus if is_address(corpus) else absolute(corpus), "tell": TELL, "stop": (CLOSE,)} if corpus else {}
        env = refined_search(results=RESULTS if corpus else 1, pool=pool, embed=embed, **where)
    play = partial(interactive, env=env, turns=turns)
    if stage == "answers":
        return base.but(rollout=told_answers(env=env, turns=turns, form=form), measure=episode_accuracy(rollout=play(n=1)))
    outcome: Any = base.reward or correct()
    return base.but(
        rollout=play(n=n),
        reward=progress(gold=gold, embed=embed) + answer * outcome,
        measure=episode_accuracy(rollout=play(n=1)),
    )


fidelity = "reading"
left_out = (
    "a language model as the refiner, which also rephrases; adapters of their own for the Questioner and the Answerer, which here "
    "are two runs; and the training of the Reasoner before"
)
data = Data(
    answer="the gold answer",
    supporting=Column("the documents that answer the question, a list of texts or of {title, text}", setting="gold"),
    facts=Column(
        "documents that can be searched, a list of texts or of {title, text}; not read with `corpus` or `env`", optional=True
    ),
    rows=[
        {
            "prompt": "In which city was the composer of Fidelio born?",
            "answer": "Bonn",
            "facts": ["Fidelio is an opera by Beethoven.", "Beethoven was born in Bonn.", "Mozart was born in Salzburg."],
            "supporting": ["Fidelio is an opera by Beethoven.", "Beethoven was born in Bonn."],
        },
        {
            "prompt": "What is the capital of the country where Nokia was founded?",
            "answer": "Helsinki",
            "facts": ["Nokia was founded in Finland.", "The capital of Finland is Helsinki."],
            "supporting": ["Nokia was founded in Finland.", "The capital of Finland is Helsinki."],
        },
    ],
)

check = Check(
    says="of careless queries more show a supporting document where the results are reranked by question and query together",
    versus=None, task="encyclopaedia:scripted=true,test_size=4000", measure="refined", direction="higher", margin=0.05,
    against="plain", model="untrained", by=own_share(inner=found_by(column="wandering")), problems=4000, steps=1,
    fault=Within("plain", high=0.9, says="queries that show a supporting document, by BM25 alone"),
    tried="two development seeds: +.09 and +.11; before, on held-out questions that were 96% comparisons, -.07 and -.14: a "
    "question that names two persons does not say which of them a query is about",
    finding="of careless queries 89% show a supporting document where question and query rerank what BM25 finds, and 78% without. "
    "On comparisons alone it does not help",
)  # fmt: skip
baseline = "ppo"
