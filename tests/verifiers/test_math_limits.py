"""No verdict on an answer takes memory or time beyond a fixed budget in the caller's process, whatever the reply is."""

from __future__ import annotations

import time

import pytest

from rewardlab.verifiers.math import exact, polynomials, symbolic
from rewardlab.verifiers.math.judging import Judge
from rewardlab.verifiers.math.kinds import packed, unpacked
from rewardlab.verifiers.math.reading import read
from rewardlab.verifiers.math.verifier import math

SOON = 3.0
"""Seconds: generous, since a machine may be busy. Each takes some hundredths when it is not."""

SHAPES = [
    r"\sin(%s)", r"\sin^2(%s)", r"|%s+x|", r"\ln(%s+1)", r"\sqrt{%s+1}", r"\sqrt{1+2%s}", r"\sqrt[3]{%s-y}", r"\arctan(x+%s)",
    r"\frac{1}{1+%s}", r"\frac{%s}{%s+1}", r"(%s+1)^2", r"(%s+x+y)^{20}", r"(%s)^{x}", r"x^{%s+1}", r"2^{%s}", r"e^{%s}", r"(%s)!",
    r"\lfloor %s+x\rfloor", r"\binom{%s}{2}", r"\gcd(%s,x)", r"\max(%s,y)", r"\sum_{k=1}^{n}(%s+k)", r"\log_2(%s+x)", r"[%s]",
    r"(%s+x)(%s-y)", r"2\frac{%s}{3}", r"2\frac{1}{%s}", r"3\frac{2%s}{%s}", r"(1=%s)", r"(x=%s)", r"(1<%s)", r"(1:%s)", r"(%s,1)",
    r"(%s\approx 3)", r"\{%s,1\}", r"(%s)^{12}", r"(%s+%s)", r"\begin{cases}%s\\1\end{cases}", r"(%s\cup(1,2))", r"%s\%%",
    r"((%s)^{1000})^{x}",
]  # fmt: skip
SEEDS = ["x", "2", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"]


def nested(shape: str, seed: str, levels: int, longest: int = 1900) -> str:
    """The shape within itself, as often as the text may be long."""
    text = seed
    for _ in range(levels):
        filled = shape.replace("%%", "%").replace("%s", text, 1).replace("%s", "x")
        if len(filled) > longest:
            break
        text = filled
    return text


def at_once(reply: str, gold: str) -> bool | None:
    """The verdict that the caller's own process comes to, without computer algebra."""
    said, expected = read.__wrapped__(reply).answer, read(gold).answer
    return Judge(True, 0.0, 1.0).at_once(said, expected, False) if said is not None and expected is not None else False


@pytest.mark.parametrize("shape", SHAPES)
def test_nesting_takes_no_time(shape):
    start = time.perf_counter()
    for seed in SEEDS:
        for levels in (30, 200):
            assert at_once(nested(shape, seed, levels), "7") is not True
    assert time.perf_counter() - start < SOON


def test_no_name_of_an_atom_is_long():
    """The inner forms of nested functions were spelled out in it: its length doubled with every level."""
    for shape in (r"\sin(%s)", r"|%s+x|", r"\ln(%s+1)", r"\sqrt{%s+1}", r"\sqrt{1+2%s}", r"(%s+x)^{x+1}"):
        found = exact.Forms().form(read(nested(shape, "x", 35)).answer.tree)
        assert max(len(name) for monomial in found.above for name, _ in monomial) <= polynomials.SPELLED


@pytest.mark.parametrize(
    ("shape", "turned"),
    [(r"\sin(%s)", r"\sin(%s)"), (r"|%s+x|", r"|x+%s|"), (r"\ln(%s+1)", r"\ln(1+%s)"), (r"\sqrt{%s+1}", r"\sqrt{1+%s}"),
     (r"\sqrt[3]{2%s+1}", r"\sqrt[3]{1+%s*2}")],
)  # fmt: skip
def test_nested_functions_are_still_compared(shape, turned):
    """30 levels deep: the same in another order is right, a different one inside is not told to be."""
    assert at_once(nested(shape, "(x+y)", 30), nested(turned, "(y+x)", 30)) is True
    assert at_once(nested(shape, "(x+y)", 30), nested(turned, "(y+2x)", 30)) is None


def test_names_with_any_signs_are_told_apart():
    assert exact.equal(("fn", "sin", ("sym", "a^1:1*1.b")), ("fn", "sin", ("mul", ("sym", "a"), ("sym", "b")))) is None


LONG = [
    "+".join(rf"\frac{{1}}{{{n}^{{14000}}}}" for n in range(3, 120, 2)),
    "*".join(f"{n}^{{9000}}" for n in range(3, 250)),
    r"\operatorname{lcm}(" + ",".join(f"{n}^{{9000}}" for n in range(3, 200)) + ")",
    "2" + "^{9999}" * 200,
    r"x^{" * 36 + "9^{9}" + "}" * 36,
    r"\sin(x^{2^{50000}})",
    r"\frac{1}{" + "+".join(rf"\sqrt{{{n}}}" for n in range(2, 99)) + "}",
    "(x^{9^{9^{4}}})" + "^{9^{9}}" * 180,
    "=".join(f"(x+y+z+{n})^{{30}}" for n in range(110)),
    "<".join(f"(x+y+z+{n})^{{30}}" for n in range(3)),
    "3000!" * 390,
    r"\sqrt{" + "+".join(rf"\frac{{1}}{{{n}^{{900}}}}" for n in range(3, 150)) + "}",
    "+".join(rf"\ln({n}!)" for n in range(2000, 2200)),
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}^{12}\begin{pmatrix}" + "9" * 900 + r"&2\\3&4\end{pmatrix}^{12}",
    r"\cup".join(rf"(\sqrt{{{n}}},\sqrt{{{n + 1}}})" for n in range(60)),
    r"\cap".join(f"({-n},{n})" for n in range(200)),
]


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:20])
def test_long_numbers_and_long_chains_take_no_time(text):
    start = time.perf_counter()
    assert at_once(text, "7") is not True
    assert time.perf_counter() - start < SOON


def test_a_power_of_a_power_of_a_matrix_has_no_long_numbers():
    tower = "(" * 30 + r"\begin{pmatrix}1&2\\3&4\end{pmatrix}" + "^{12})" * 30
    assert read(tower).answer is None
    assert (
        read(r"(\begin{pmatrix}1&1\\0&1\end{pmatrix}^{12})^{12}").answer == read(r"\begin{pmatrix}1&144\\0&1\end{pmatrix}").answer
    )


def test_lists_within_lists_are_given_to_a_worker_where_they_are_too_many():
    sets = [rf"\{{{n},{n + m}\}}" for m in range(1, 8) for n in range(0, 110, 10)]
    others = [rf"\{{{n},{n + m},{m}\}}" for m in range(1, 8) for n in range(0, 110, 10)]
    start = time.perf_counter()
    assert at_once(rf"\{{{','.join(sets)}\}}", rf"\{{{','.join(reversed(sets))}\}}") is True
    assert at_once(rf"\{{{','.join(sets)}\}}", rf"\{{{','.join(others)}\}}") is not True
    assert time.perf_counter() - start < SOON


def test_an_allowance_ends_the_comparisons_within_it_and_no_others():
    def wasteful():
        with polynomials.allowance():
            for _ in range(polynomials.ALTOGETHER + 1):
                polynomials.count(1)

    with pytest.raises(polynomials.TooHard):
        wasteful()
    assert at_once("(x+1)^2", "x^2+2x+1") is True


# ---- lists -----------------------------------------------------------------------------------------------------------


def proofs_of(reply: str, gold: str, monkeypatch) -> tuple[bool, list[tuple]]:
    """The verdict of computer algebra, and the pairs of expressions that it tried to prove."""
    tried = []
    prove = symbolic.proven
    monkeypatch.setattr(symbolic, "proven", lambda a, b: tried.append((a, b)) or prove(a, b))
    said, expected = (unpacked(packed(read(text).answer)) for text in (reply, gold))
    assert (said, expected) == (read(reply).answer, read(gold).answer)
    return symbolic.same(packed(said), packed(expected), True, 0.0, False)[0], tried


HARMONIC = [rf"\sum_{{k=1}}^{{{n}}}\frac1k" for n in range(100_000, 100_008)]


@pytest.mark.parametrize(
    ("reply", "gold", "right", "most"),
    [
        (",".join(rf"\ln({n})+x" for n in range(2, 52)), ",".join(rf"\ln({n})+y" for n in range(2, 52)), False, 0),
        (",".join(rf"\sin({n})+\cos({n + 1})" for n in range(40)), ",".join(rf"\sin({n})+\cos({n})" for n in range(40)), False, 0),
        (",".join(rf"\sin^2x+\cos^2x+{n}" for n in range(6)), "6,5,4,3,2,1", True, 6),
        (r"\{\sin^2x+\cos^2x,2\sin^2x+2\cos^2x,1\}", r"\{2,1\}", True, 2),
        (r"\{\sin 30^\circ,\frac12\}", r"\{\frac12\}", True, 1),
        (r"\sin 30^\circ,\frac12", r"\frac12,\frac13", False, 0),
        (",".join([rf"\sin^2x+\cos^2x+{n}" for n in range(6)] + [r"\sin 1"]), r"6,5,4,3,2,1,\cos 1", False, 0),
        (",".join([*HARMONIC, r"\sin 1"]), r"0,1,2,3,4,5,6,7,\cos 1", False, 0),
        (",".join(HARMONIC), ",".join(reversed(HARMONIC)), True, 0),
    ],
)  # fmt: skip
def test_only_what_has_equal_values_is_proven_and_one_item_alone_settles_a_list(reply, gold, right, most, monkeypatch):
    found, tried = proofs_of(reply, gold, monkeypatch)
    assert found is right
    assert len(tried) <= most


def test_one_verdict_takes_its_seconds_once():
    """Four sums against four numbers: sixteen comparisons, each of which took the limit."""
    start = time.perf_counter()
    verdict = math(seconds=0.5).check(rf"\boxed{{{','.join(HARMONIC[:4])}}}", "0,1,2,3")
    assert verdict.correct is False
    assert "took over 0.5 s" in verdict.why
    assert time.perf_counter() - start < SOON


@pytest.mark.parametrize(("gold", "right"), [(r"\{3, \frac12\}", True), (r"\{3, \frac12, 4\}", False), (r"\{\frac12\}", False)])
def test_a_set_is_not_told_apart_before_its_equal_items_are_known(gold, right, monkeypatch):
    reply = r"\{\sin 30^\circ, \frac12, 3\}"
    assert at_once(reply, gold) is None or not right
    assert proofs_of(reply, gold, monkeypatch)[0] is right
