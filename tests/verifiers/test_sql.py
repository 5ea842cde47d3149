"""Queries judged by what they return: equality of results by hand, partial rewards, and queries that would do harm."""

from __future__ import annotations

import datetime
import hashlib
import json
import random
import re
import sqlite3
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.verifiers.sql.engines import Result
from rewardlab.verifiers.sql.queries import Query
from rewardlab.verifiers.sql.results import difference
from rewardlab.verifiers.sql.verifier import sql as judged_by_results
from rewardlab.worlds.sql import sql as task

PETS = """CREATE TABLE pets (name TEXT, kind TEXT, age INTEGER, weight REAL);
INSERT INTO pets VALUES ('Rex','dog',3,10.5), ('Tom','cat',5,4.25), ('Ada','dog',7,NULL), ('Bo','cat',5,4.25);
CREATE TABLE homes (pet TEXT, town TEXT); INSERT INTO homes VALUES ('Rex','Oslo'), ('Tom','Rome');"""
DOGS = "SELECT name FROM pets WHERE kind = 'dog'"


@pytest.fixture(params=["sqlite", "duckdb"])
def file(request, tmp_path: Path) -> Path:
    path = tmp_path / f"pets.{request.param}"
    link = sqlite3.connect(path) if request.param == "sqlite" else duckdb.connect(str(path))
    link.executescript(PETS) if request.param == "sqlite" else link.execute(PETS)
    link.close()
    return path


def judge(query: str, gold: str = DOGS, database=PETS, **options):
    return judged_by_results(**options).check(query, {"query": gold, "database": database})


# ---- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (DOGS, ""),
        ("select p.name from pets as p where p.kind <> 'cat'", ""),
        (f"Because of dogs:\n```sql\n{DOGS};\n```\nDone.", ""),
        (f"```sql\nSELECT 1\n```\n```SQLite\n{DOGS}", ""),
        (f"<think>\n```sql\nSELECT 1\n```</think>\n{DOGS} -- dogs", ""),
        (f"{DOGS} ORDER BY age DESC", ""),
        ("SELECT name AS n FROM pets JOIN (SELECT 'dog' AS k) ON kind = k", ""),
        (f"```sql\n{DOGS}\n```\n```sql\nSELECT name FROM pets\n```", "4 rows instead of 2"),
        (f"<think>```sql\n{DOGS}\n```", "no query found"),
        ("SELECT name FROM pets WHERE kind = 'cat'", "other rows"),
        ("SELECT name, kind FROM pets WHERE kind = 'dog'", "2 columns instead of 1"),
        ("SELECT 'Rex' UNION ALL SELECT 'Ada'", "reads no table"),
        ("VALUES ('Rex'), ('Ada')", "reads no table"),
        ("SELECT nme FROM pets", "nme"),
        ("SELEC name", "fails|only reads"),
        ("The dogs are Rex and Ada.", "only reads|fails"),
        ("It's", "cannot be read"),
        (";;", "only reads|no query"),
        ("-- nothing", "only reads"),
        (f"{DOGS}; {DOGS}", "one"),
        (f"{DOGS} AND random() IS NOT NULL", "random"),
        (f"EXPLAIN {DOGS}", "only reads"),
        ("", "no query found"),
        ("SELECT " + "name, " * 5000 + "name FROM pets", "longer than"),
        ("\x00", "."),
        ("SELECT '\ud800'", "."),
    ],
)
def test_a_query_is_right_if_it_returns_what_the_gold_query_does(file, query, says):
    found = judge(query, database=str(file))
    assert found.correct is (not says), found
    assert re.search(says or "right", found.why), found.why


def result(*rows, width=None):
    return Result(list(rows), len(rows[0]) if rows else width or 1, frozenset({"t"}))


def same(a, b, ordered=False, column_order=True, tolerance=1e-9):
    return difference(a, b, ordered=ordered, column_order=column_order, tolerance=tolerance) is None


NAN = float("nan")
EQUAL = [
    (1, 1.0), (1, Decimal("1.00")), (0.1 + 0.2, 0.3), (Decimal("0.3"), 0.1 + 0.2), (NAN, NAN), (None, None), (1e308, 1e308),
    (float("inf"), float("inf")), (12345678901, 12345678901.0), ([1, 2.0], [1.0, 2]), ({"a": 1}, {"a": 1.0}), (0.0, -0.0),
    (2**70, 2.0**70),
]  # fmt: skip
UNEQUAL = [
    (1, "1"), (1, True), (0, False), (0, None), ("", None), ("a", "A"), ("a", "a "), ("a", b"a"), (1, 1.000001), (NAN, None),
    (2**53, 2**53 + 1), (Decimal("1.1"), Decimal("1.10000000001")), (0.0, 1e-300), (1.0, -1.0), ([1, 2], [2, 1]), ("nan", NAN),
    (datetime.date(2020, 1, 1), "2020-01-01"), (datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)), (10**400, float("inf")),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), EQUAL, ids=lambda value: repr(value)[:20])
def test_values_that_are_equal(a, b):
    for ordered in (False, True):
        assert same(result((a, "x"), (5, "y")), result((b, "x"), (5, "y")), ordered)
        assert same(result((b, "x"), (5, "y")), result((a, "x"), (5, "y")), ordered)


@pytest.mark.parametrize(("a", "b"), UNEQUAL, ids=lambda value: repr(value)[:20])
def test_values_that_are_not(a, b):
    for ordered in (False, True):
        assert not same(result((a, "x"), (5, "y")), result((b, "x"), (5, "y")), ordered)
        assert not same(result((b, "x"), (5, "y")), result((a, "x"), (5, "y")), ordered)


rows = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None]), st.sampled_from([0.5, 1.0, 2.5])), max_size=6)


@given(rows, rows, st.randoms(use_true_random=False))
def test_bags_and_sequences(a, b, chance):
    left, right = result(*a, width=3), result(*b, width=3)
    assert same(left, right) == (Counter(a) == Counter(b))
    assert same(left, right, ordered=True) == (a == b)
    shaken = [(i, text, x * (1 + 1e-12)) for i, text, x in a]
    chance.shuffle(shaken)
    assert same(left, result(*shaken, width=3))
    assert not same(left, result(*shaken, (0, "a", 0.5), width=3))


@given(rows, st.permutations(range(3)))
def test_columns_in_another_order_are_the_same_only_where_that_is_asked_for(a, order):
    turned = result(*[tuple(row[i] for i in order) for row in a], width=3)
    for ordered in (False, True):
        assert same(turned, result(*a, width=3), ordered, column_order=False)
    assert same(turned, result(*a, width=3)) == (Counter(turned.rows) == Counter(a))


def test_columns_that_cannot_be_matched_end_soon():
    start = time.perf_counter()
    wide = [tuple(range(i, i + 12)) for i in range(3)]
    cyclic = [tuple((i * 7 + j) % 12 for i in range(12)) for j in range(12)]
    assert not same(result(*wide), result(*[tuple(x + 1 for x in row) for row in wide]), column_order=False)
    assert not same(result(*cyclic[:-1], cyclic[0]), result(*cyclic), column_order=False)
    difference(result(*cyclic), result(*[row[::-1] for row in cyclic]), ordered=False, column_order=False, tolerance=0.0)
    # columns with the same values, but of which no two rows fit
    assert not same(result((1, 2), (2, 1)), result((1, 1), (2, 2)), column_order=False)
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize(
    ("query", "ordered", "cut"),
    [
        ("SELECT a FROM t ORDER BY a", True, False),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False, False),
        ("(SELECT a FROM t ORDER BY a LIMIT 1)", True, False),
        ("SELECT a, row_number() OVER (ORDER BY a) FROM t", False, False),
        ("SELECT a FROM t LIMIT 1", False, True),
        ("SELECT a FROM t ORDER BY a LIMIT 1", True, False),
        ("SELECT a FROM t WHERE b IN (SELECT b FROM u LIMIT 1)", False, False),
        ("WITH r AS (SELECT a FROM t ORDER BY a) SELECT 'ORDER BY' FROM r -- ORDER BY", False, False),
        ("SELECT a FROM t UNION SELECT a FROM u ORDER BY 1", True, False),
    ],
)
def test_what_the_text_of_a_query_says_of_its_order(query, ordered, cut):
    for dialect in ("sqlite", "duckdb"):
        assert (Query(query, dialect).ordered, Query(query, dialect).cut) == (ordered, cut)


def test_order_counts_where_the_gold_query_orders():
    gold = "SELECT name FROM pets ORDER BY name"
    assert judge("SELECT name FROM pets ORDER BY 1", gold).correct
    assert judge("SELECT name FROM pets ORDER BY name DESC", gold).why == "the query returns the rows in another order"
    assert judge("SELECT name FROM pets ORDER BY name DESC", gold, ordered=False).correct
    assert judge(f"{DOGS} ORDER BY name", ordered=True).correct is False
    both, turned = "SELECT name, age FROM pets", "SELECT age, name FROM pets"
    assert judge(turned, both).correct is False
    assert judge(turned, both, column_order=False).correct


def test_duplicates_and_nulls_count():
    assert judge("SELECT DISTINCT weight FROM pets", "SELECT weight FROM pets").correct is False
    assert judge("SELECT coalesce(weight, 0) FROM pets", "SELECT weight FROM pets").correct is False
    assert judge("SELECT weight FROM pets WHERE weight IS NOT NULL", "SELECT weight FROM pets").correct is False


def test_agreement_that_proves_little_is_told_and_may_be_refused():
    for gold, query in [
        ("SELECT name FROM pets WHERE age > 90", "SELECT name FROM pets WHERE age > 99"),
        ("SELECT name FROM pets WHERE kind = 'dog' LIMIT 1", "SELECT name FROM pets LIMIT 1"),
    ]:
        assert judge(query, gold).correct
        assert "weak evidence" in judge(query, gold).why
        assert judge(query, gold, strict=True).correct is None
        assert judge("SELECT town FROM homes", gold, strict=True).correct is False


def test_a_wrong_query_that_agrees_on_one_database_is_found_out_on_another():
    gold, wrong, more = (
        "SELECT max(age) FROM pets",
        "SELECT age FROM pets WHERE name = 'Ada'",
        PETS + "UPDATE pets SET age = 9 - age;",
    )
    assert judge(wrong, gold).correct
    assert judge(wrong, gold, [PETS, more]).why == "the query returns other rows on database 2"
    assert judge("SELECT age FROM pets ORDER BY age DESC LIMIT 1", gold, [PETS, more]).correct


def test_forms_of_the_gold_answer(file):
    check, row = judged_by_results().check, {"query": DOGS, "database": str(file)}
    assert check(DOGS, json.dumps(row)).correct
    assert check(DOGS, DOGS, database=str(file)).correct
    assert judged_by_results().verl()(None, DOGS, DOGS, {"database": str(file)})["score"] == 1.0
    assert check(DOGS, {"query": DOGS, "database": PETS, "dialect": "duckdb"}).correct
    assert (
        judged_by_results(dialect="duckdb")
        .check("FROM pets SELECT name WHERE kind = 'dog'", {"query": DOGS, "database": PETS})
        .correct
    )


@pytest.mark.parametrize(
    "answer",
    [
        None, DOGS, {"query": DOGS}, {"query": "", "database": PETS}, {"query": "SELECT x FROM pets", "database": PETS},
        {"query": DOGS, "database": "/nowhere/pets.db"}, {"query": DOGS, "database": __file__}, {"query": DOGS, "database": []},
        {"query": DOGS, "database": "CREATE TABLE pets ("}, {"query": DOGS, "database": PETS, "dialect": "oracle"},
        {"query": "SELECT random() FROM pets", "database": PETS}, {"query": "DELETE FROM pets", "database": PETS},
        {"query": "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT * FROM r", "database": PETS},
    ],
    ids=str,
)  # fmt: skip
def test_a_gold_answer_that_cannot_be_used_gives_no_verdict(answer):
    found = judged_by_results().check(DOGS, answer)
    assert found.correct is None
    assert found.why


@pytest.mark.parametrize(
    ("answer", "columns", "why"),
    [
        (DOGS, {"db_id": "pets"}, "names no database"),
        ({"query": DOGS, "db_id": "pets"}, {}, "names no database"),
        (
            {"SQL": DOGS, "database": PETS},
            {},
            "not {'query', 'database'}, nor a query beside a column `database`; it has SQL, database",
        ),
    ],
)
def test_a_gold_answer_says_what_it_lacks(answer, columns, why):
    assert why in judged_by_results().check(DOGS, answer, **columns).why


def test_a_query_in_answer_tags_needs_no_fence():
    for reply in (f"<think>Dogs.</think><answer>{DOGS}</answer>", f"They are dogs.\n<answer>\n{DOGS};\n</answer>"):
        assert judged_by_results().check(reply, {"query": DOGS, "database": PETS}).correct
    fenced = f"<answer>SELECT 1</answer>\n```sql\n{DOGS}\n```"
    assert judged_by_results().check(fenced, {"query": DOGS, "database": PETS}).correct


# ---- partial rewards -------------------------------------------------------------------------------------------------


def test_parts_of_a_wrong_query():
    parts = judge("SELECT name FROM pets").parts
    assert parts == {"runs": 1, "syntax": 1, "schema": 1, "linking": pytest.approx(2 / 3), "ngrams": pytest.approx(3 / 7)}
    assert judge("SELECT nme FROM pets").parts == {
        "runs": 0,
        "syntax": 1,
        "schema": 0,
        "linking": 0.25,
        "ngrams": pytest.approx(1 / 9),
    }
    assert set(judge("SELECT FROM FROM").parts.values()) == {0}
    assert judge("SELECT town FROM homes WHERE nofunction(town)").parts["schema"] == 1
    assert set(judge(DOGS.lower()).parts.values()) == {1}
    assert judge("SELECT name FROM pets").pays == 0.0


def test_partial_rewards_are_paid_where_that_is_asked_for():
    partial = {"runs": 0.1, "linking": 0.3}
    assert judge("SELECT name FROM pets", partial=partial).pays == pytest.approx(0.1 + 0.3 * 2 / 3)
    assert judge(DOGS, partial=partial).pays == 1.0
    assert judge("", partial=partial).pays == 0.0
    assert judge(DOGS, partial={"runs": 1.1}).correct is None
    assert judge(DOGS, partial={"beauty": 0.1}).correct is None


# ---- harm ------------------------------------------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r"
ATTACKS = {
    "sqlite": [
        "ATTACH '{}/new.db' AS new", "VACUUM INTO '{}/new.db'", "SELECT load_extension('{}/x.so')", "PRAGMA writable_schema = ON",
        "SELECT * FROM pragma_database_list", "SELECT readfile('{}/canary')", "SELECT writefile('{}/new', 'x') FROM pets",
        "SELECT randomblob(1000000000) FROM pets", "SELECT zeroblob(1000000000) FROM pets",
        "SELECT hex(zeroblob(900000000)) FROM pets",
        "WITH RECURSIVE r(x) AS (SELECT zeroblob(30000000) UNION ALL SELECT x FROM r) SELECT name FROM pets, r ORDER BY x",
    ],
    "duckdb": [
        "ATTACH '{}/new.db' AS new", "COPY pets TO '{}/new.csv'", "COPY pets FROM '{}/canary'", "EXPORT DATABASE '{}/new'",
        "INSTALL httpfs", "LOAD httpfs", "PRAGMA database_list", "SET memory_limit = '9GB'", "SET enable_external_access = true",
        "CALL pragma_version()", "SELECT * FROM read_text('{}/canary')", "SELECT * FROM read_csv('{}/canary')",
        "SELECT * FROM '{}/canary'", "SELECT * FROM glob('{}/*')", "SELECT list(a.range) FROM range(100000000) a, range(100) b",
        "CREATE TEMP TABLE x AS SELECT 1",
        "SELECT column0 FROM read_csv('{}/canary', header = false), (SELECT 1 FROM pets LIMIT 1)",
        "SELECT nextval('s') FROM pets", "SELECT repeat(name, 300000000) FROM pets",
    ],
}  # fmt: skip
BOTH = [
    "DELETE FROM pets", "UPDATE pets SET name = 'x'", "INSERT INTO pets SELECT * FROM pets", "DROP TABLE pets",
    "CREATE TABLE x (a INT)", "ALTER TABLE pets RENAME TO x", "WITH x AS (SELECT 1) DELETE FROM pets", "BEGIN", "COMMIT",
    f"{DOGS}; DELETE FROM pets", ENDLESS, f"SELECT name FROM pets WHERE kind = 'dog' OR ({ENDLESS}) > 1",
    "SELECT count(*) FROM " + ", ".join(f"pets p{i}" for i in range(30)), "SELECT " + "(" * 4000 + "1" + ")" * 4000,
    "SELECT a.name FROM pets a, " + ", ".join(f"pets p{i}" for i in range(8)), "SELECT " + "-" * 19_000 + "1",
    "SELECT " + "(SELECT " * 2000, "SELECT " + "1+" * 9000 + "1", "SELECT " + "CASE WHEN 1 THEN " * 1000, "'" * 19_999,
]  # fmt: skip


def test_no_query_does_harm_gets_credit_or_hangs(file):
    """All of a step at once, with a good query behind each bad one; then nothing has changed."""
    (file.parent / "canary").write_text("Rex\nAda\n")
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in file.parent.iterdir()}
    gold = {"query": DOGS, "database": str(file)}
    attacks = [attack.replace("{}", str(file.parent)) for attack in [*ATTACKS[file.suffix[1:]], *BOTH]]
    start = time.perf_counter()
    found = judged_by_results(seconds=0.4).check_all(
        [(q, gold) for attack in attacks for q in (attack, f"{DOGS} -- {len(attack)}")]
    )
    assert [attack for attack, v in zip(attacks, found[::2], strict=True) if v.correct is not False] == []
    assert all(v.correct for v in found[1::2])
    assert all(v.why and v.pays == 0.0 for v in found[::2])
    assert time.perf_counter() - start < 30
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in file.parent.iterdir()} == before


@pytest.mark.slow
def test_an_operation_that_cannot_be_interrupted_ends_with_its_process_from_any_thread():
    stuck = "SELECT instr(hex(zeroblob(8000000)), hex(zeroblob(4000000)) || '1') FROM pets"
    found, pairs = [], [(query, {"query": DOGS, "database": PETS}) for query in (DOGS, stuck, DOGS + " ")]
    thread = threading.Thread(target=lambda: found.extend(judged_by_results(seconds=0.2).check_all(pairs)))
    thread.start()
    thread.join(20)
    assert [v.correct for v in found] == [True, False, True]
    assert "took over" in found[1].why
    lame = {"query": stuck, "database": PETS}
    assert judged_by_results(seconds=0.2).check(DOGS, lame).correct is None


def test_reading_a_database_with_a_write_ahead_log_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "pets.db"
    link = sqlite3.connect(path)
    link.execute("PRAGMA journal_mode = WAL")
    link.executescript(PETS)
    link.close()
    assert judge(DOGS + " ", database=str(path)).correct
    assert [p.name for p in tmp_path.iterdir()] == ["pets.db"]


# ---- the task --------------------------------------------------------------------------------------------------------


def test_every_near_miss_of_the_task_is_found_out():
    train = task(test_size=1).train
    problems = [train[i] for i in range(60)]
    misses = [(miss, p.answer) for p in problems for miss in p.meta["misses"]]
    assert [pair for pair, v in zip(misses, judged_by_results().check_all(misses), strict=True) if v.correct] == []
    gold = [(f"```sql\n{p.meta['solution']}\n```", p.answer) for p in problems]
    assert all(v.why == "right" for v in judged_by_results(strict=True).check_all(gold))


def test_a_faultless_teacher_writes_the_gold_query_and_a_careless_one_near_misses():
    problem = task(test_size=1).train[0]
    for error, texts in ((0.0, [problem.meta["solution"]]), (1.0, problem.meta["misses"])):
        teach = task(test_size=1, error=error).demonstrate
        assert {teach(problem, random.Random(i)) for i in range(50)} == set(texts)


def test_rows_that_are_written_into_a_log_while_judging_are_seen(tmp_path):
    path = tmp_path / "pets.db"
    link = sqlite3.connect(path)
    link.execute("PRAGMA journal_mode = WAL")
    link.executescript(PETS)
    answers = []
    for _ in range(3):
        # the gold query's result is kept as long as the file is the same, and now it is the log that changes
        answers.append(judge(f"{DOGS} -- {len(answers)}", database=str(path)).correct)
        link.execute("INSERT INTO pets SELECT * FROM pets")
        link.commit()
    link.close()
    assert answers == [True] * 3
