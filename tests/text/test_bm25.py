"""BM25 by hand, and the world of facts that is searched with it."""

import math
import random
import re

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Trajectory, Turn, ask
from rewardlab.envs.search import search
from rewardlab.errors import RewardlabError
from rewardlab.text.bm25 import BM25, words
from rewardlab.verifiers.match import final_answer
from rewardlab.worlds.facts import NOTHING, facts, look_up


def said(text: str) -> Turn:
    return Turn("policy", np.zeros(1, np.int64), text=text)


def judged(problem, reply: str) -> float:
    return final_answer()([[Trajectory(problem, (said(reply),))]])[0][0].value


def test_scores_are_those_of_the_formula():
    # N=3, mean length 2. "cat" in 2 documents: idf = log(1 + 1.5/2.5); "dog" in 1: idf = log(1 + 2.5/1.5)
    # document 0 (length 3, "cat" twice): tf / (tf + 1.2 (0.25 + 0.75 * 1.5)) = 2 / (2 + 1.65)
    # document 1 (length 2, each once): 1 / (1 + 1.2)
    found = BM25(["Cat, cat bird", "dog cat", "fish"]).scores("the DOG cat?")
    cat, dog = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
    assert found.tolist() == pytest.approx([cat * 2 / 3.65, (cat + dog) / 2.2, 0])


def test_best_first_and_of_equals_the_first_document():
    index = BM25(["a b", "a", "b a", "c"])
    assert index.best("a b", 3) == ["a b", "b a", "a"]
    assert index.best("z") == []


CHINESE = ["北京是中华人民共和国的首都，人口超过两千万。", "上海是中国最大的城市，位于长江入海口。", "熊猫是一种以竹子为食的动物。"]
JAPANESE = ["東京は日本の首都であり、世界最大の都市圏です。", "富士山は日本で一番高い山です。", "猫はとても人気のあるペットです。"]
THAI = ["กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "น้ำตกเอราวัณอยู่ในจังหวัดกาญจนบุรี", "ช้างเป็นสัตว์ประจำชาติของไทย"]
KOREAN = ["서울은 대한민국의 수도이다.", "김치는 한국의 전통 음식이다.", "한라산은 제주도에 있는 산이다."]
MIXED = ["iPhone 15を東京で買う方法", "Android端末の使い方", "Buy an iPhone in Paris"]


@pytest.mark.parametrize(
    ("documents", "query", "best"),
    [
        (CHINESE, "中国的首都是哪里", 0), (CHINESE, "长江", 1), (CHINESE, "熊猫吃什么", 2), (CHINESE, "竹", 2),
        (JAPANESE, "日本の首都はどこですか", 0), (JAPANESE, "富士山の高さ", 1), (JAPANESE, "猫", 2),
        (THAI, "เมืองหลวงของไทย", 0), (THAI, "จังหวัดกาญจนบุรี", 1), (THAI, "สัตว์ประจำชาติ", 2),
        (KOREAN, "서울", 0), (KOREAN, "김치", 1), (KOREAN, "제주도의 한라산", 2),
        (MIXED, "東京 iPhone", 0), (MIXED, "使い方", 1), (MIXED, "iphone Paris", 2),
    ],
)  # fmt: skip
def test_scripts_without_spaces_are_found_by_neighbouring_characters(documents, query, best):
    assert BM25(documents).best(query) == [documents[best]]


def test_of_all_other_text_words_are_what_they_were():
    text = "The NAÏVE café's 3.5 x_1, Привет мир. हिन्दी, مرحبا; שלום ß İ"
    assert words(text) == words(text, characters=True) == re.findall(r"\w+", text.lower())
    assert words("Doc 7: 東京tower 猫 น้ำ") == ["doc", "7", "東京", "tower", "猫", "น้", "้ำ"]
    assert words("東京 猫", characters=True) == ["東京", "東", "京", "猫"]


def test_a_name_finds_what_is_said_of_its_bearer_not_who_merely_mentions_it():
    known = ["Ann: the boss of Ann is Bob.", "Bob: the boss of Bob is Cal.", "Bob: the friend of Bob is Ann."]
    assert look_up(known, "Bob boss") == known[1]
    assert look_up(known, "Zoe") == NOTHING


def test_the_gold_searches_lead_to_the_answer_and_a_wrong_answer_is_wrong():
    for hops in (1, 2, 4):
        task = facts(hops=hops, test_size=20)
        for problem in task.test:
            *talk, last = problem.meta["solution"]
            assert len(talk) == 2 * hops
            assert problem.answer in talk[-1]
            assert judged(problem, last) == 1.0
            other = next(f.split(":")[0] for f in problem.meta["facts"] if not f.startswith(problem.answer))
            assert judged(problem, f"Answer: {other}") == 0.0
            assert judged(problem, talk[0]) == 0.0


def test_the_environment_answers_as_the_teacher_saw_it_answered():
    problem = facts(test_size=1).test[0]
    env = search()
    message, state = env.start(problem, 0)
    assert message is None
    query, answer, *_ = problem.meta["solution"]
    message, state = env(state, said(f"I wonder.\n{query}"))
    assert message.text == answer
    assert env(state, said("Search: nobody"))[0].text == NOTHING
    assert env(state, said(f"Answer: {problem.answer}"))[0] is None


def test_documents_must_be_there_to_be_searched():
    with pytest.raises(RewardlabError, match="no 'facts'"):
        search().start(ask("2+2=?", 4), 0)


@pytest.mark.slow
def test_the_teacher_goes_wrong_about_as_often_as_he_is_told_to():
    task = facts(test_size=1)
    rng = random.Random(0)
    wrong = [judged(p, task.demonstrate(p, rng)[-1]) == 0.0 for p in (task.train[i] for i in range(300))]
    # 40% go wrong at one of two hops; some land on the gold answer all the same (another relation may be the same one, of three)
    assert 0.2 < sum(wrong) / 300 < 0.4
    perfect = facts(test_size=1, error=0.0)
    assert all(perfect.demonstrate(p, rng) == p.meta["solution"] for p in (perfect.train[i] for i in range(20)))


@pytest.mark.parametrize("wrong", [{"hops": 5}, {"people": 2}, {"relations": 0}, {"error": 2.0}])
def test_worlds_that_cannot_be_are_refused(wrong):
    with pytest.raises(RewardlabError, match=r"must be between|more than hops|above 0, not 0|from 0 to 1, not 2"):
        registry.task("facts", **wrong)
