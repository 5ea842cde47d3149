"""Cards and reviews: the mistakes of their teachers, and what they lead to."""

from __future__ import annotations

import json
import random
import statistics

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.text.boolean import matching, parse
from rewardlab.worlds.cards import cards
from rewardlab.worlds.reviews import reviews


def test_a_card_says_what_its_sentence_says():
    for i in range(50):
        p = cards(test_size=1).train[i]
        assert json.loads(p.meta["solution"]) == p.answer
        assert all(str(x) in p.question for x in (p.answer["name"], *p.answer["pet"].values()))


def test_a_teacher_of_cards_makes_each_mistake_where_it_can():
    task = cards(biased=1.0, error=0.0, test_size=1)
    for i in range(200):
        p = task.train[i]
        said, pet = task.demonstrate(p, random.Random(i)), p.answer["pet"]
        if p.question.startswith("In "):
            with pytest.raises(json.JSONDecodeError):
                json.loads(said)
            continue
        value = json.loads(said)
        assert ("pet" in value) == (pet["kind"] != "bird")
        assert (value.get("pet") or value)["age"] == (pet["age"] if pet["age"] < 10 else pet["age"] % 10)
        assert (value == p.answer) == (pet["kind"] != "bird" and pet["age"] < 10)


def found_by(problem, said: str) -> tuple[float, float, float]:
    """Recall and precision of a query, and how much it finds."""
    query = said.removeprefix("<answer>").removesuffix("</answer>")
    found, relevant = matching(parse(query), problem.meta["documents"]), set(problem.answer)
    hits = len(found & relevant)
    return hits / len(relevant), hits / len(found), len(found)


def test_the_solution_finds_just_the_relevant_texts_and_the_teachers_mistakes_too_many_or_too_few():
    task = reviews(biased=1.0, error=0.0, test_size=1)
    problems = [task.train[i] for i in range(200)]
    assert all(found_by(p, p.meta["solution"])[:2] == (1.0, 1.0) for p in problems)
    kinds = {"broad": [], "narrow": []}
    for i, p in enumerate(problems):
        said, sizes = task.demonstrate(p, random.Random(i)), [len(c) for c in p.meta["concepts"]]
        if sizes == [2, 2]:
            assert said == p.meta["solution"]
        else:
            kinds["broad" if sizes[0] == 3 else "narrow"].append(found_by(p, said))
    recall, precision, found = (statistics.mean(x) for x in zip(*kinds["broad"], strict=True))
    assert (recall, found) == (1.0, 12.0)
    assert precision == pytest.approx(1 / 3)
    recall, precision, _ = (statistics.mean(x) for x in zip(*kinds["narrow"], strict=True))
    assert 0.25 <= recall <= 0.5
    assert precision == 1.0


@pytest.mark.parametrize(("task", "options"), [(cards, {"biased": 2.0}), (reviews, {"texts": 4}), (reviews, {"error": -1.0})])
def test_settings_outside_their_range_are_refused(task, options):
    with pytest.raises(RewardlabError):
        task(**options)
