"""The built-in questions, by the kind of their answers."""

from __future__ import annotations

from collections.abc import Callable

from rewardlab.audit.problems import Item, Named, choice_item, number_item, text_item
from rewardlab.audit.structured import boolean, calls, cited, code, graphs, instructed, json_values, lists, ranked, schemas, sql


def built_in(kind: str) -> list[Item]:
    return _ITEMS_OF[kind]()


def _numbers() -> list[Item]:
    golds = {
        "A baker fills 6 trays with 7 rolls each. How many rolls are there?": "42",
        "Of 18 apples and 12 more, 12 are eaten. How many are left for 5 children?": "18",
        "The temperature is 5 degrees and falls by 12. What is it now?": "-7",
        "A pipe fills a tank in 4 hours. What part of the tank is full after 3?": "3/4",
        "What part of a day are 8 of its 24 hours?": "1/3",
        "What is one eighth as a decimal number?": "0.125",
        "What is 1111 times 1111, plus 246?": "1234567",
        "How many seconds are there in 2 days?": "172800",
        "What percent of 80 pages are 60 pages?": "75",
    }
    return [number_item(prompt, gold) for prompt, gold in golds.items()]


def _units() -> list[Item]:
    rows: list[tuple[str, str, str, str]] = [
        ("How long does a train take for 240 km at 80 km/h?", "3 hours", "3 minutes", "8 hours"),
        ("What does a parcel of 4 bags weigh, with 3 kg each?", "12 kg", "12 g", "31 kg"),
        ("How far does a runner get in 25 minutes at 12 km/h?", "5 km", "5 cm", "9 km"),
    ]
    return [Item("units", p, gold, gold, far, near=(("unit", wrong),)) for p, gold, wrong, far in rows]


_LATEX: list[tuple[str, str, Named, Named]] = [
    ("Write six eighths in lowest terms.", r"\frac{3}{4}",
     (("inverse", r"\frac{4}{3}"), ("sign", r"-\frac{3}{4}"), ("digit", r"\frac{3}{5}")), (("another fraction", r"\dfrac{3}{4}"),)),
    ("Add x^2+x-3 to 2x-2.", "x^2+3x-5",
     (("constant", "x^2+3x+5"), ("sign", "x^2-3x-5"), ("variable", "y^2+3y-5"), ("exponent", "x^3+3x-5")),
     (("spaces", "x^2 + 3x - 5"),)),
    ("What is P(X=0) + 1 for rate 1?", r"1+\frac{1}{e}", (("sign", r"1-\frac{1}{e}"), ("constant", r"2+\frac{1}{e}")), ()),
    ("Write the product as one fraction.", r"\frac{1}{2004!}",
     (("digit", r"\frac{1}{2006!}"), ("factorial", r"\frac{1}{2004}")), ()),
    ("Find the line through P and Q.", "3x+4y+14=0", (("another line", "3x-y+13=0"), ("constant", "3x+4y-14=0")), ()),
    ("Where do the two lines meet?", "(2,3)", (("order", "(3,2)"), ("sign", "(2,-3)")), (("spaces", "(2, 3)"),)),
    ("For which x is the root defined?", "[0,1)", (("bound", "(0,1)"), ("other bound", "[0,1]"), ("digit", "[0,2)")), ()),
    ("How long is the diagonal of the unit square?", r"\sqrt{2}",
     (("digit", r"\sqrt{3}"), ("sign", r"-\sqrt{2}"), ("root", "2")), ()),
    ("Give the circumference of the unit circle.", r"2\pi", (("factor", r"\pi"), ("constant left out", "2")), ()),
    ("Give the matrix of the map.", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
     (("transposed", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"), ("digit", r"\begin{pmatrix}1&2\\3&5\end{pmatrix}")), ()),
    ("Write 1358 in base 8.", "2516_8", (("digit", "2517_8"), ("another base", "2516_9")), (("braces", "2516_{8}"),)),
]  # fmt: skip


def _latex() -> list[Item]:
    far = [r"\frac{17}{29}", "t^5-8", r"\sqrt{97}", "17", r"5x+y-1=0", "(17,-9)", "[5,9]", "97", "17", "31", "6071_8"]
    rows = zip(_LATEX, far, strict=True)
    return [Item("latex", p, f"${gold}$", gold, away, near, same) for (p, gold, near, same), away in rows]


def _choice() -> list[Item]:
    rows = [
        ("Which planet is the largest?\nA) Mars\nB) Jupiter\nC) Venus\nD) Saturn", "B"),
        ("Which of these is a prime?\nA) 91\nB) 51\nC) 97\nD) 87", "C"),
        ("What melts at 0 degrees?\nA) ice\nB) iron\nC) salt\nD) glass", "A"),
        ("Who wrote Faust?\nA) Kant\nB) Schiller\nC) Heine\nD) Goethe", "D"),
    ]
    return [choice_item(prompt, gold, "ABCD") for prompt, gold in rows]


def _text() -> list[Item]:
    rows = [
        ("What is the capital of France?", "Paris", "Lagos", (("another name", "London"),)),
        ("Which animal is the largest?", "blue whale", "garden snail", (("another word", "blue shark"),)),
        ("How do plants make sugar of light?", "photosynthesis", "evaporation", (("another word", "photorespiration"),)),
        ("Who wrote the first program?", "Ada Lovelace", "Isaac Newton", (("another name", "Ada Byron King"),)),
    ]  # fmt: skip
    return [text_item(*row) for row in rows]


_ITEMS_OF: dict[str, Callable[[], list[Item]]] = {
    "numbers": _numbers, "units": _units, "latex": _latex, "choice": _choice, "text": _text,
    "code": code, "sql": sql, "lists": lists, "json": json_values, "schemas": schemas, "graphs": graphs,
    "calls": calls, "citations": cited, "instructions": instructed, "rankings": ranked, "boolean": boolean,
}  # fmt: skip
KINDS = tuple(_ITEMS_OF)
OF = {
    "choice": "choice", "code": "code", "sql": "sql", "same_set": "lists", "json_value": "json", "json_schema": "schemas",
    "graph_solution": "graphs", "graph_answer": "graphs", "function_calls": "calls", "citations": "citations",
    "instructions": "instructions", "ranking": "rankings", "boolean_query": "boolean",
    **dict.fromkeys(("token_f1", "rouge", "bleu", "edit_similarity"), "text"),
}  # fmt: skip
"""The kind of answer that a built-in verifier is made for, where trials would not show it."""
