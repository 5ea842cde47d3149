"""Queries: what the teacher gets wrong, how often a wrong query is right by luck, and the languages."""

from __future__ import annotations

import random

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.worlds.queries import LANGUAGES, Query, asked, queries, read, slip

TOTAL = Query("SUM", "age", "pets", "weight", "<", "9")


def test_a_query_is_written_and_read_again():
    assert str(TOTAL) == "SELECT SUM(age) FROM pets WHERE weight < 9;"
    by_kind = Query("", "name", "pets", "kind", "=", "dog")
    assert str(by_kind) == "SELECT name FROM pets WHERE kind = 'dog';"
    assert [read(str(q)) for q in (TOTAL, by_kind)] == [TOTAL, by_kind]


def test_each_language_asks_for_the_same():
    assert asked(TOTAL, "en") == "Total age of pets with weight under 9?"
    assert asked(TOTAL, "de") == "Gesamte age von pets mit weight unter 9?"
    assert asked(TOTAL, "fr") == "Somme de age de pets avec weight moins de 9?"
    assert len({tuple(sorted(words)) for words in LANGUAGES.values()}) == 1
    task = queries(test_size=100)
    assert {task.train[i].meta["language"] for i in range(40)} == set(LANGUAGES)
    assert {queries(languages=1, test_size=1).train[i].meta["language"] for i in range(20)} == {"en"}


@pytest.mark.parametrize(
    ("query", "written"),
    [
        # adds up by counting, takes the first column for the second, and leaves out what is under
        (TOTAL, "SELECT COUNT(*) FROM pets;"),
        (Query("MIN", "age", "pets", "weight", ">", "9"), "SELECT MAX(age) FROM pets WHERE age > 9;"),
        (Query("MAX", "age", "pets", "age", ">", "9"), "SELECT MAX(age) FROM pets WHERE age > 9;"),
        (Query("", "name", "pets", "kind", "=", "dog"), "SELECT name FROM pets WHERE kind = 'dog';"),
    ],
)
def test_a_teacher_makes_each_mistake_where_it_can(query, written):
    assert slip(query, random.Random(1), biased=1.0, error=0.0) == written
    assert slip(query, random.Random(1), biased=0.0, error=0.0) == str(query)
    assert slip(query, random.Random(1), biased=0.0, error=1.0) != str(query)


@pytest.mark.slow
def test_some_wrong_queries_are_right_by_luck_on_few_rows_and_hardly_any_on_the_suite():
    pytest.importorskip("sqlglot")
    sql, task = registry.part("reward", "sql"), queries(test_size=1)
    problems = [task.train[i] for i in range(150)]
    said = [task.demonstrate(p, random.Random(i)) for i, p in enumerate(problems)]
    wrong = [(text, p) for text, p in zip(said, problems, strict=True) if text != p.meta["solution"]]
    by_rows = [v.correct for v in sql.check_all([(text, p.answer) for text, p in wrong])]
    meant = [v.correct for v in sql.check_all([(text, p.meta["suite"]) for text, p in wrong])]
    assert 0.08 < sum(by_rows) / len(wrong) < 0.35
    assert sum(meant) / len(wrong) < 0.05
    assert all(v.correct for v in sql.check_all([(p.meta["solution"], p.meta["suite"]) for p in problems[:50]]))


@pytest.mark.parametrize("options", [{"rows": 1}, {"rows": 13}, {"languages": 4}, {"biased": 1.5}, {"error": -0.1}])
def test_settings_outside_their_range_are_refused(options):
    with pytest.raises(RewardlabError):
        queries(**options)
