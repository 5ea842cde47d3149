"""Throughput of the verifiers on MATH-style answers in LaTeX, half of them wrong.

Drawn by rule, in about the shares that such data have: whole numbers most, then fractions, expressions, roots, points, intervals,
lists, equations, units, words, and in one of fifty a form that needs computer algebra.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from _math import Triple, by_math_verify, by_rewardlab, compared, measured
from _sides import Rows, main

Draw = Callable[[random.Random], tuple[str, str, str]]
"""The gold answer, another form of it, and a wrong answer."""


def whole(r: random.Random) -> tuple[str, str, str]:
    n = r.randint(-50, 5000)
    return str(n), r.choice([f"{n}", f"{n:,}", f"x = {n}", rf"\frac{{{2 * n}}}{{2}}"]), str(r.choice([-n - 1, n + 1, 10 * n + 3]))


def fraction(r: random.Random) -> tuple[str, str, str]:
    a, b = r.randint(1, 60), r.randint(2, 40)
    return (
        rf"\frac{{{a}}}{{{b}}}",
        r.choice([rf"\dfrac{{{a}}}{{{b}}}", f"{a}/{b}", rf"\frac{{{2 * a}}}{{{2 * b}}}"]),
        rf"\frac{{{a + 1}}}{{{b}}}",
    )


def polynomial(r: random.Random) -> tuple[str, str, str]:
    a, b = r.randint(1, 9), r.randint(1, 9)
    gold = f"x^2+{a + b}x+{a * b}"
    return gold, r.choice([f"(x+{a})(x+{b})", f"{a * b}+{a + b}x+x^2", f"x^{{2}} + {a + b}x + {a * b}"]), f"x^2+{a + b}x-{a * b}"


def rational(r: random.Random) -> tuple[str, str, str]:
    a, b = r.randint(1, 9), r.randint(2, 9)
    return rf"\frac{{x+{a}}}{{{b}}}", rf"\frac{{x}}{{{b}}}+\frac{{{a}}}{{{b}}}", rf"\frac{{x-{a}}}{{{b}}}"


def surd(r: random.Random) -> tuple[str, str, str]:
    a, b = r.randint(2, 9), r.choice([2, 3, 5, 6, 7, 10, 11])
    return (
        rf"{a}\sqrt{{{b}}}",
        r.choice([rf"\sqrt{{{a * a * b}}}", rf"{a} \sqrt{{{b}}}", rf"\frac{{{a * b}}}{{\sqrt{{{b}}}}}"]),
        rf"{a + 1}\sqrt{{{b}}}",
    )


def circle(r: random.Random) -> tuple[str, str, str]:
    a = r.randint(2, 90)
    return rf"{a}\pi", r.choice([rf"\pi \cdot {a}", rf"{a} \pi", rf"\frac{{{2 * a}\pi}}{{2}}"]), rf"{a + 1}\pi"


def point(r: random.Random) -> tuple[str, str, str]:
    a, b = r.randint(-9, 9), r.randint(10, 20)
    return f"({a},{b})", rf"\left({a}, {b}\right)", f"({b},{a})"


def interval(r: random.Random) -> tuple[str, str, str]:
    a, b = r.randint(-9, 0), r.randint(1, 9)
    gold = rf"(-\infty,{a}) \cup [{b},\infty)"
    return gold, rf"\left(-\infty, {a}\right) \cup \left[{b}, \infty\right)", rf"(-\infty,{a}] \cup [{b},\infty)"


def several(r: random.Random) -> tuple[str, str, str]:
    a, b, c = r.sample(range(-20, 20), 3)
    return f"{a}, {b}, {c}", rf"{c}, {a} \text{{ and }} {b}", f"{a}, {b}, {c + 40}"


def equation(r: random.Random) -> tuple[str, str, str]:
    a, b = r.randint(2, 9), r.randint(1, 9)
    return f"y={a}x+{b}", r.choice([f"y = {a}x + {b}", f"{a}x - y + {b} = 0"]), f"y={a}x-{b}"


def degrees(r: random.Random) -> tuple[str, str, str]:
    a = r.randint(10, 170)
    return rf"{a}^\circ", r.choice([str(a), rf"{a}^{{\circ}}"]), rf"{a + 5}^\circ"


def measure(r: random.Random) -> tuple[str, str, str]:
    a = r.randint(2, 300)
    return rf"{a} \text{{ cm}}^2", r.choice([str(a), rf"{a}\text{{ cm}}^2"]), rf"{a + 1} \text{{ cm}}^2"


def matrix(r: random.Random) -> tuple[str, str, str]:
    a, b, c, d = (r.randint(-9, 9) for _ in range(4))
    gold = rf"\begin{{pmatrix}} {a} & {b} \\ {c} & {d} \end{{pmatrix}}"
    return (
        gold,
        rf"\begin{{pmatrix}}{a}&{b}\\{c}&{d}\end{{pmatrix}}",
        rf"\begin{{pmatrix}} {a} & {b} \\ {c} & {d + 1} \end{{pmatrix}}",
    )


def word(r: random.Random) -> tuple[str, str, str]:
    right, wrong = r.sample(["east", "west", "Evelyn", "Briana", "even", "odd", "ellipse", "hyperbola", "Tuesday"], 2)
    return rf"\text{{{right}}}", r.choice([right, rf"\text{{{right}}}"]), rf"\text{{{wrong}}}"


def angle(r: random.Random) -> tuple[str, str, str]:
    n = r.choice([5, 7, 8, 9, 10, 11, 12])
    return rf"\cos\frac{{\pi}}{{{n}}}", rf"\sin\left(\frac{{\pi}}{{2}}-\frac{{\pi}}{{{n}}}\right)", rf"\sin\frac{{\pi}}{{{n}}}"


def nested(r: random.Random) -> tuple[str, str, str]:
    a, b = r.randint(2, 9), r.choice([2, 3, 5, 7])
    right, wrong = (rf"\sqrt{{{a * a + b + i}+{2 * a}\sqrt{{{b}}}}}" for i in (0, 1))
    return rf"{a}+\sqrt{{{b}}}", right, wrong


SHARES: dict[Draw, int] = {
    whole: 45, fraction: 13, polynomial: 5, rational: 3, surd: 7, circle: 4, point: 5, interval: 3, several: 3, equation: 3, 
    degrees: 2, measure: 2, matrix: 1, word: 2, angle: 1, nested: 1,
}  # fmt: skip
SOLUTION = (
    "We are asked for the value that satisfies the conditions. Let $u = {a}$ and $v = {b}$, so that \\[ u + v = {c}, \\qquad "
    "uv = {d}. \\] Expanding, we have $(u+v)^2 = u^2 + 2uv + v^2$, and since $u^2 + v^2 = {e}$, the remaining terms cancel. "
    "Comparing both sides and simplifying the fraction $\\frac{{{a}}}{{{b}}}$ gives the result.\n\nTherefore, the answer is "
    "$\\boxed{{{answer}}}$."
)


def run(*, count: int = 1000) -> Rows:
    return compared("math-latex", __file__, {"answers": "in the manner of MATH, half of them wrong"}, count=count)


def pairs(count: int) -> list[Triple]:
    r = random.Random(0)
    draws, weights = list(SHARES), list(SHARES.values())
    found = []
    for i in range(count):
        gold, other, wrong = r.choices(draws, weights)[0](r)
        a, b = r.randint(2, 99), r.randint(2, 99)
        said = (r.choice([gold, other]), wrong)[i % 2]
        filled = SOLUTION.format(a=a, b=b, c=a + b, d=a * b, e=a * a + b * b, answer="@")
        found.append((filled.replace("@", said), gold, i % 2 == 0))
    return found


def ours(*, count: int) -> dict[str, Any]:
    return measured(by_rewardlab, pairs(count))


def peer(*, count: int) -> dict[str, Any]:
    return measured(by_math_verify, pairs(count))


if __name__ == "__main__":
    main(run, {"ours": ours, "peer": peer})
