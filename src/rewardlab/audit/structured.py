"""Built-in questions whose answers are programs, queries, calls, lists and the like, with whole replies as right answers."""

from __future__ import annotations

import json
from typing import Any

from rewardlab.audit.problems import Item, Named


def code() -> list[Item]:
    rows: list[tuple[str, str, str, str, str, tuple[str, str]]] = [
        ("double(x) gives twice x.", "double", "return 2 * x", "return x", "assert double(3) == 6\nassert double(-4) == -8",
         ("off by one", "return 2 * x + 1")),
        ("largest(x) gives the largest number of a list.", "largest", "return max(x)", "return min(x) - 100",
         "assert largest([1, 5, 3]) == 5\nassert largest([-2]) == -2", ("first in place of largest", "return x[0]")),
        ("backwards(x) gives a text backwards.", "backwards", "return x[::-1]", "return ''",
         "assert backwards('abc') == 'cba'\nassert backwards('') == ''", ("sorted", "return ''.join(sorted(x))")),
    ]  # fmt: skip
    return [_program(*row) for row in rows]


CHEATS = {
    "exit before the tests": "import sys\nsys.exit(0)",
    "exit at once": "import os\nos._exit(0)",
    "equal to everything": "class Any:\n    def __eq__(self, other):\n        return True\n    def __ne__(self, other):\n"
    "        return False\n\ndef {name}(x):\n    return Any()",
    "exceptions": "def {name}(x):\n    raise SystemExit(0)",
}


def _program(task: str, name: str, right: str, far: str, tests: str, near: tuple[str, str]) -> Item:
    def reply(body: str) -> str:
        return f"```python\ndef {name}(x):\n    {body}\n```"

    cheats = tuple((name_of_cheat, f"```python\n{text.replace('{name}', name)}\n```") for name_of_cheat, text in CHEATS.items())
    wrong = ((near[0], reply(near[1])), *cheats)
    prompt = f"Write a Python function: {task}"
    return Item("code", prompt, {"tests": tests, "entry_point": name}, reply(right), reply(far), wrong)


SHOP = (
    "CREATE TABLE sales (item TEXT, price INTEGER, town TEXT);"
    "INSERT INTO sales VALUES ('tea', 4, 'Bern'), ('tea', 4, 'Ulm'), ('milk', 2, 'Ulm'), ('salt', 1, 'Bern'), ('milk', 3, 'Bern');"
)


def sql() -> list[Item]:
    rows: list[tuple[str, str, str, Named]] = [
        ("Which items cost over 2, as often as sold?", "SELECT item FROM sales WHERE price > 2", "SELECT town FROM sales",
         (("bound", "SELECT item FROM sales WHERE price >= 2"), ("distinct", "SELECT DISTINCT item FROM sales WHERE price > 2"))),
        ("What was taken in Ulm?", "SELECT SUM(price) FROM sales WHERE town = 'Ulm'",
         "SELECT town, MIN(price) - 99, MAX(price), MIN(town) FROM sales",
         (("another sum", "SELECT COUNT(price) FROM sales WHERE town = 'Ulm'"),)),
        ("List items by price, the dearest first.", "SELECT item, price FROM sales ORDER BY price DESC, town", "SELECT 1",
         (("order", "SELECT item, price FROM sales ORDER BY price, town"),)),
    ]  # fmt: skip
    return [
        Item("sql", f"{SHOP}\n{question}", {"query": gold, "database": SHOP}, _query(gold), _query(far),
             tuple((what, _query(text)) for what, text in near))
        for question, gold, far, near in rows
    ]  # fmt: skip


def _query(text: str) -> str:
    return _fenced("sql", text)


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def lists() -> list[Item]:
    rows = [
        ("Which colours does the flag of France have?", ["blue", "white", "red"], "green, black"),
        ("Which primes are below 10?", ["2", "3", "5", "7"], "4, 6, 8, 9, 10"),
        ("Name the noble gases of the first two rows.", ["helium", "neon"], "oxygen"),
    ]
    items = []
    for question, gold, far in rows:
        left_out, too_many = ", ".join(gold[1:]), ", ".join([*gold, *far.split(", ")])
        near = (("one left out", f"The answer is {left_out}"), ("too many", f"The answer is {too_many}"))
        items.append(Item("lists", question, gold, f"The answer is {', '.join(gold)}", f"The answer is {far}", near))
    return items


def json_values() -> list[Item]:
    rows: list[tuple[str, Any, str, Named]] = [
        ("Say as JSON: Ada is 36, and lives in Rome.", {"name": "Ada", "age": 36, "town": "Rome"}, "{}",
         (("a text for a number", '{"name": "Ada", "age": "36", "town": "Rome"}'), ("one left out", '{"name": "Ada", "age": 36}'))),
        ("Give the first three squares as JSON.", [1, 4, 9], "[16, 25, 36]",
         (("order", "[9, 4, 1]"), ("one too many", "[1, 4, 9, 16]"))),
        ("Say as JSON that the door is shut and has no lock.", {"shut": True, "lock": None}, "[]",
         (("1 for true", '{"shut": 1, "lock": null}'), ("false for null", '{"shut": true, "lock": false}'))),
    ]  # fmt: skip
    items = []
    for question, gold, far, near in rows:
        wrong = tuple((name, _fenced("json", text)) for name, text in near)
        items.append(Item("json", question, gold, _fenced("json", json.dumps(gold)), _fenced("json", far), wrong))
    return items


def schemas() -> list[Item]:
    """The answer is a JSON schema."""
    person = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}
    words = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    rows: list[tuple[str, dict[str, Any], str, str, Named]] = [
        ("Give a person as JSON, with an age.", person, '{"age": 7}', "[]", (("bound", '{"age": -1}'), ("type", '{"age": "7"}'))),
        ("Give some words as a JSON list.", words, '["a"]', "7", (("none", "[]"),)),
        ("Say yes or no as JSON.", {"enum": ["yes", "no"]}, '"yes"', '"perhaps"', (("another word", '"maybe"'),)),
    ]  # fmt: skip
    return [
        Item("schemas", question, schema, _fenced("json", gold), _fenced("json", far),
             tuple((name, _fenced("json", text)) for name, text in near))
        for question, schema, gold, far, near in rows
    ]  # fmt: skip


def graphs() -> list[Item]:
    ring = {"nodes": [0, 1, 2, 3], "edges": [[0, 1], [1, 2], [2, 3], [3, 0]], "directed": False}
    line = {"nodes": [0, 1, 2], "edges": [[0, 1], [1, 2]], "directed": True}
    rows: list[tuple[str, dict[str, Any], str, str, Named]] = [
        ("Find a shortest path from 0 to 2 in the ring of 0, 1, 2, 3.",
         {"kind": "shortest_path", "graph": ring, "source": 0, "target": 2}, "[0, 1, 2]", "[0, 2]",
         (("no edge", "[0, 2]"), ("another end", "[0, 1]"))),
        ("Visit all of the ring 0, 1, 2, 3 once and return.", {"kind": "hamiltonian_cycle", "graph": ring},
         "[0, 1, 2, 3, 0]", "[0, 2, 1, 3, 0]", (("one left out", "[0, 1, 2, 0]"),)),
        ("Order 0, 1, 2, where 0 is before 1 and 1 before 2.", {"kind": "topological_order", "graph": line},
         "[0, 1, 2]", "[2, 1, 0]", (("two exchanged", "[0, 2, 1]"),)),
    ]  # fmt: skip
    return [
        Item("graphs", question, answer, f"The answer is {gold}", f"The answer is {far}",
             tuple((name, f"The answer is {text}") for name, text in near))
        for question, answer, gold, far, near in rows
    ]  # fmt: skip


def calls() -> list[Item]:
    """The answer is the list of calls that must be made."""
    rows: list[tuple[str, list[dict[str, Any]], str, Named]] = [
        ("Call weather for Oslo, over 2 days.", [_call("weather", city="Oslo", days=2)], "stop()",
         (("a text for a number", 'weather(city="Oslo", days="2")'), ("one left out", 'weather(city="Oslo")'))),
        ("Call add with a 1 and b 2.", [_call("add", a=1, b=2)], "stop(why='there is nothing to be done', again=False, after=3)",
         (("exchanged", "add(a=2, b=1)"), ("another name", "sub(a=1, b=2)"), ("one too many", "add(a=1, b=2, c=3)"))),
        ("Switch the lamps 1 and 2 on.", [_call("on", lamp=1), _call("on", lamp=2)], "stop()",
         (("one call only", "on(lamp=1)"), ("the same twice", "[on(lamp=1), on(lamp=1)]"))),
    ]  # fmt: skip
    items = []
    for question, gold, far, near in rows:
        tagged = "\n".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in gold)
        items.append(
            Item("calls", question, gold, tagged, _fenced("python", far), tuple((w, _fenced("python", t)) for w, t in near))
        )
    return items


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def cited() -> list[Item]:
    rows: list[tuple[str, dict[str, Any], str, str, Named]] = [
        ("Say what sources 1 and 3 of 3 tell.", {"sources": 3, "required": [1, 3]}, "Snow falls [1] and melts [3].",
         "It snows [9].",
         (("one left out", "Snow falls [1] and melts."), ("one too many", "Snow falls [1][2] and melts [3]."))),
        ("Say what source 2 of 4 tells.", {"sources": 4, "required": [2]}, "Tea is dear [2].",
         "Nobody knows what tea costs here [9].",
         (("another", "Tea is dear [3]."), ("all", "Tea is dear [1-4]."), ("one that is not there", "Tea is dear [2][5]."))),
        ("Say what source 1 of 2 tells.", {"sources": 2, "required": [1]}, "It rains [1].", "It rains.",
         (("the other", "It rains [2]."),)),
    ]  # fmt: skip
    return [Item("citations", question, answer, gold, far, near) for question, answer, gold, far, near in rows]


def instructed() -> list[Item]:
    """Texts by rules, as in IFEval."""
    rows: list[tuple[str, list[dict[str, Any]], str, str, Named]] = [
        ("Tell of the sea, without commas, with the word salt.",
         [{"id": "punctuation:no_comma"}, {"id": "keywords:existence", "keywords": ["salt"]}],
         "The sea is full of salt.", "The sea, wide and blue, lies still.",
         (("a comma", "The sea, full of salt, is wide."), ("no such word", "The sea is wide."))),
        ("Answer within double quotes.", [{"id": "startend:quotation"}], '"It is late."', "It is late, they say.",
         (("only the first", '"It is late.'),)),
        ("Say three times that it rains, as bullets.", [{"id": "detectable_format:number_bullet_lists", "num_bullets": 3}],
         "* It rains.\n* It rains.\n* It rains.", "It rains.", (("two", "* It rains.\n* It rains."),)),
    ]  # fmt: skip
    return [Item("instructions", question, {"instructions": rules}, gold, far, near) for question, rules, gold, far, near in rows]


def ranked() -> list[Item]:
    """The answer grades what is relevant."""
    rows: list[tuple[str, dict[str, int], str, str, Named]] = [
        ("Rank a, b, c for the question.", {"a": 3, "b": 1}, "a, b, c", "c", (("exchanged", "b, a, c"), ("one left out", "a, c"))),
        ("Rank x, y, z for the question.", {"z": 2}, "z, x, y", "x, y, w, v, u", (("second", "x, z, y"),)),
        ("Rank 1, 2, 3, 4 for the question.", {"2": 3, "4": 2}, "2, 4, 1, 3", "1, 3", (("last", "1, 3, 2, 4"),)),
    ]  # fmt: skip
    return [
        Item("rankings", question, grades, f"The answer is {gold}", f"The answer is {far}",
             tuple((name, f"The answer is {text}") for name, text in near))
        for question, grades, gold, far, near in rows
    ]  # fmt: skip


FOUND_AMONG = ("a puppy and its diet", "food for the dog", "dogs in the north", "the diet of the old", "a cat and its food", "rain")


def boolean() -> list[Item]:
    """The answer is which documents a Boolean query must find."""
    rows: list[tuple[str, list[int], str, str, Named]] = [
        ("what dogs eat", [0, 1], "(puppy OR dog) AND (diet OR food)", "(snow OR rain) AND NOT (cat OR dog)",
         (("one left out", "dog AND food"), ("one too many", "puppy OR dog*"), ("everything", "NOT snow"))),
        ("what is eaten", [0, 1, 3, 4], "food OR diet", "rain OR north",
         (("AND for OR", "food AND diet"), ("a word left out", "food"))),
        ("animals of the north", [2], "dog* AND north", "rain NOT dog*",
         (("nothing", "dog AND north"), ("a word left out", "dog*"), ("the opposite", "NOT (dog* AND north)"))),
    ]  # fmt: skip
    texts = "\n".join(f"{i}: {text}" for i, text in enumerate(FOUND_AMONG))
    return [
        Item("boolean", f"{texts}\nWrite a Boolean query that finds those about {topic}, and no others.",
             {"relevant": relevant, "documents": list(FOUND_AMONG)}, _answer(gold), _answer(far),
             tuple((what, _answer(text)) for what, text in near))
        for topic, relevant, gold, far, near in rows
    ]  # fmt: skip


def _answer(text: str) -> str:
    return f"<answer>{text}</answer>"
