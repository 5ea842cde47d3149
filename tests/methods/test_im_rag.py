"""IM-RAG: the progress of each round, results that are reranked, and the gold answer learnt apart."""

import numpy as np
import pytest
import torch

from rewardlab import build
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.agents.im_rag import found_by, im_rag, progress, refined, refined_search, similarity, told_answers
from rewardlab.models.embedded import untrained

GOLD = ["ant bee", "cow dog"]


def episode(*texts, gold=GOLD):
    """Replies of two tokens, messages of one."""
    turns = [Turn(None, np.zeros(3, np.int64), text="?")]
    for i, text in enumerate(texts):
        ids = np.zeros(1 if i % 2 else 2, np.int64)
        logprobs = None if i % 2 else np.zeros(2, np.float32)
        turns.append(Turn(None if i % 2 else "policy", ids, logprobs, logprobs, text=text))
    return Trajectory(ask("?", "x", supporting=gold), tuple(turns), "end")


def steps(t, **settings):
    ((score,),) = progress(**settings)([[t]])
    return score


def test_a_round_is_paid_for_what_it_brings_nearer():
    # positions: prompt 0-2, reply 3-4, message 5, reply 6-7, message 8, ...
    score = steps(episode("Search: a", "ant bee", "Search: a", "ant bee", "Search: b", "elk", "Search: c", "cow dog", "Answer: x"))
    assert score.steps == (pytest.approx((4, 0.5)), pytest.approx((7, 0.0)), pytest.approx((10, 0.0)), pytest.approx((13, 0.5)))


def test_half_a_fact_is_half_the_way():
    # one word of two that are equally rare: the cosine with "ant bee" is 1/sqrt 2 by n-grams over [ant, bee, ant bee] with weights
    # from what is compared; here by hand with tf-idf: N = 3 texts, n(ant) = 2, n(bee) = 1 of [ant bee, cow dog, ant]
    ant, bee = np.log(4 / 3) + 1, np.log(4 / 2) + 1
    cosine = ant / np.hypot(ant, bee)
    score = steps(
        episode("Search: a", "ant", "Search: a", "<information>\nDoc 1: ant bee\nDoc 2: elk\n</information>", "Answer: x")
    )
    assert [r for _, r in score.steps] == pytest.approx([cosine / 2, (1 - cosine) / 2])


def test_no_facts_no_verdict_nor_where_a_search_failed():
    assert steps(episode("Search: a", "ant", "Answer: x", gold=None)).missing
    assert steps(episode("Search: a", "The search failed: no answer", "Answer: x")).missing
    assert steps(episode("Answer: x")).missing is False


def test_an_embedding_may_say_what_is_similar():
    assert similarity(["a b"], ["a b", "c"], "ngrams")[0].tolist() == pytest.approx([1, 0], abs=1e-6)
    assert similarity([], ["a"]).shape == (0, 1)
    assert steps(episode("Search: a", "Ant bee", "Answer: x"), embed="ngrams").steps == (pytest.approx((4, 0.5)),)


def test_results_are_ranked_by_question_and_query_together():
    facts = ["Ann Vale: painter of towns.", "Ann Moor: doctor, born in Kelm, sister of Bob.", "Red Tower: a novel."]
    problem = ask("Where was Ann Moor born?", "Kelm", facts=facts)
    turn = Turn("policy", np.zeros(1, np.int64), text="Search: Ann")
    shown = {}
    for pool in (1, 10):
        env = refined_search(pool=pool)
        _, state = env.start(problem, 0)
        shown[pool] = env(state, turn)[0].text
    assert shown == {1: facts[0], 10: facts[1]}
    assert env(state, Turn("policy", np.zeros(1, np.int64), text="Answer: Kelm"))[0] is None
    assert env(state, Turn("policy", np.zeros(1, np.int64), text="Search: zebra"))[0].text == "Nothing found."
    # ties in the order of the retriever
    assert refined("zebra", [("", "a"), ("", "b")], 1) == [("", "a")]


def test_queries_learn_from_progress_alone():
    recipe = im_rag(build("ppo", {"beta": 0.0}))
    run = Run(policy=None, verify=build("ppo").reward)
    t = episode("Search: a", "ant bee", "Answer: x")
    scores = [[progress()([[t]])[0][0]]]
    batch = collate([[t]], scores, torch.device("cpu"))
    assert batch.reward[0].tolist() == pytest.approx([0, 0, 0, 0, 0.5, 0, 0, 0])
    assert [part.name for part in recipe.reward.walk() if part.name == "progress"] == ["progress"]
    assert run.policy is None
    assert "0 * correct()" in str(recipe.reward).replace("0.0 *", "0 *")


def test_the_answer_is_learnt_after_the_rounds_and_nothing_else():
    policy = untrained(hidden=32, layers=1)
    run = Run(policy, max_new=8)
    problem = ask("2+2=?", ["4", "four"], facts=["a b"])
    ((t,),) = told_answers(env=refined_search(), turns=2)([problem], run)
    assert t.reply == "<answer>4</answer>"
    assert policy.decode(t.ids[t.mask]).startswith("<answer>4</answer>")
    with pytest.raises(RewardlabError, match="has none"):
        told_answers(env=refined_search())([ask("2+2=?", facts=["a"])], run)
    recipe = im_rag(stage="answers")
    assert recipe.rollout.name.endswith("told_answers")
    assert "imitate" in str(recipe.objective)


def test_a_corpus_is_searched_with_the_refiner_too():
    env = im_rag(corpus="http://h/retrieve").rollout.settings["env"]
    assert (env.settings["results"], env.settings["pool"], env.settings["corpus"]) == (3, 10, "http://h/retrieve")
    with pytest.raises(RewardlabError, match="both say what is searched"):
        im_rag(corpus="http://h/retrieve", env=refined_search())


def test_what_is_measured():
    facts = ["Ann Vale: painter of towns.", "Ann Moor: doctor, born in Kelm, sister of Bob."]
    problem = ask(
        "Where was Ann Moor born?", "Kelm", facts=facts, supporting=facts[1:], talk=["Search: Ann", facts[0], "Answer: Kelm"]
    )
    assert found_by(column="talk")([problem], Run(policy=None)) == {"refined": 1.0, "plain": 0.0, "n": 1.0}


def test_a_search_behind_an_address_is_waited_for():
    assert im_rag(corpus="http://host/retrieve").rollout.settings["env"].waits
    assert not im_rag().rollout.settings["env"].waits
