"""Contracts of methods: what can be proved of them, and what hostile text costs."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("z3")

from rewardlab.verifiers.contracts import prover
from rewardlab.verifiers.contracts.language import read_contract, read_method
from rewardlab.verifiers.contracts.verifier import method_contract

CODE = "{ assert x >= 4; if x < y { r := x - 4; } else { r := y; } }"
HEAD = "method m(x: int, y: int) returns (r: int)"
GOLD = f"{HEAD}\nrequires x >= 4\nensures x < y ==> r == x - 4\nensures x >= y ==> r == y\n{CODE}"
EFFORT = 2_000_000


def judged(text: str, gold: str = GOLD) -> dict[str, bool]:
    found = prover.judge(text, gold, EFFORT)
    return {name: found[name] for name in ("reads", "trivial", "verifies", "weaker", "stronger")}


def flags(reads=True, trivial=False, verifies=True, weaker=True, stronger=True) -> dict[str, bool]:
    return {"reads": reads, "trivial": trivial, "verifies": verifies, "weaker": weaker, "stronger": stronger}


WHOLE = "ensures r == (if x < y then x - 4 else y)"


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        # the reference itself; the same in other words
        ("requires x >= 4\nensures x < y ==> r == x - 4\nensures x >= y ==> r == y", flags()),
        (f"requires x > 3 {WHOLE}", flags()),
        # one case alone; a bound that follows from the code, and is less
        ("requires x >= 4\nensures x < y ==> r == x - 4", flags(stronger=False)),
        ("requires x >= 4 ensures r <= y", flags(stronger=False)),
        # without what the assertion needs it is not kept, although it implies the reference
        (WHOLE, flags(verifies=False)),
        # empty contracts are kept: a false or narrow requirement is not weaker
        ("requires false ensures r == 77", flags(weaker=False, stronger=False)),
        (f"requires x == 5 {WHOLE}", flags(weaker=False)),
        ("requires x >= 4 ensures true", flags(trivial=True, stronger=False)),
        ("requires x >= 4 ensures r == r", flags(trivial=True, stronger=False)),
        ("requires x >= 4", flags(stronger=False)),
        # a contradiction implies all, and is not kept
        ("requires x >= 4 ensures r > r", flags(verifies=False)),
        # clauses that cannot be read: a result in a requirement, types, unknown names, mixed && and ||
        ("requires r >= 4", flags(False, False, False, False, False)),
        ("requires x ensures r == y", flags(False, False, False, False, False)),
        ("ensures q == 1", flags(False, False, False, False, False)),
        ("ensures r > 1 && x > 1 || y > 1", flags(False, False, False, False, False)),
        ("I think it ensures r > 1", flags(False, False, False, False, False)),
    ],
)
def test_what_is_proved_of_a_contract(contract, expected):
    assert judged(contract) == expected


def test_results_are_any_that_are_ensured_not_those_of_the_code():
    """Behind the code the result is known, and even `r >= 0` would imply the reference."""
    gold = "method m(x: int) returns (r: int) ensures r == x * x { r := x * x; }"
    assert judged("ensures r >= x - x", "method m(x: int) returns (r: int) ensures r == 2 * x - x { r := x; }") == flags(
        verifies=False, stronger=False
    )
    assert judged("ensures r == x * x", gold) == flags()


def test_paths_assertions_and_division_are_those_of_dafny():
    gold = "method m(x: int) returns (r: int) ensures 7 * r <= x < 7 * r + 7 { var t := x / 7; if x < 0 { return t; } r := x / 7; }"
    assert judged("ensures r == (x - x % 7) / 7", gold) == flags()
    # division rounds down where the divisor is above 0, for negative numbers too: -1 / 7 is -1
    assert judged("ensures x == -1 ==> r == -1", gold) == flags(stronger=False)
    late = "method m(x: int) returns (r: int) requires x > 1 ensures r > 2 { r := x + 1; assert r > 2; }"
    assert judged("requires x > 1 ensures r == x + 1", late) == flags()
    assert judged("requires x > 0 ensures r == x + 1", late)["verifies"] is False


def test_the_whole_method_may_be_repeated_but_not_changed():
    check = method_contract().check
    block = f"Here:\n```dafny\n{HEAD}\n  requires x > 3 // needed\n  {WHOLE}\n{CODE}\n```"
    verdict = check(block, GOLD)
    assert (verdict.correct, dict(verdict.parts)) == (True, dict.fromkeys(verdict.parts, 1.0))
    changed = check(block.replace("assert x >= 4; ", ""), GOLD)
    assert changed.correct is False
    assert "changed" in changed.why
    assert changed.parts["found"] == 1
    assert changed.parts["unchanged"] == 0
    assert changed.parts["reads"] == 0


def test_a_comment_may_end_a_contract():
    expected = flags()
    assert judged("requires x > 3 // at least 4\nensures r == (if x < y then x - 4 else y) // by case x") == expected
    assert judged(f"requires x > 3 {WHOLE} //") == judged(f"requires x > 3 {WHOLE} ////// 7") == expected


def test_replies_without_a_contract_and_gold_methods_that_cannot_be_used():
    check = method_contract().check
    assert (check("", GOLD).correct, check("", GOLD).parts["found"]) == (False, 0.0)
    for gold in (None, "", "ensures r > 1", GOLD.replace("requires x >= 4\n", ""), HEAD):
        assert check(WHOLE, gold).correct is None


def test_hostile_text_is_read_in_no_time():
    begun = time.process_time()
    for text in ("(" * 4000, "!" * 4999, "requires " * 500, "//" * 2400, "ensures " + "x+" * 2400 + "x", "-" * 9999, "x " * 2499):
        try:
            read_contract(text)
        except ValueError:
            continue
    with pytest.raises(ValueError, match="brackets"):
        read_contract("ensures " + "(" * 60 + "r" + ")" * 60)
    ifs = "if x > 1 { r := 1; } " * 70
    with pytest.raises(ValueError, match="ways"):
        prover.keeps(read_method(f"method m(x: int) returns (r: int) {{ {ifs} }}"), read_contract("ensures r > 1"), EFFORT)
    # a proof that nobody knows ends with its effort
    gold = "method m(x: int) returns (r: int) ensures r > x { r := x + 1; }"
    hard = "requires x > 1 ensures r * r * r != x * x * x + (r - x) * (r - x) * r * x"
    assert prover.judge(hard, gold, 100_000)["stronger"] is False
    assert time.process_time() - begun < 10
