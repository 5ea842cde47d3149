"""The verifier of Verilog designs: form, syntax and function, and area and delay relative to a reference."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, Failed, workers
from rewardlab.settings.domain import PositiveFloat
from rewardlab.text.answers import after_thinking
from rewardlab.text.blocks import last_block
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

from . import netlist, tools

PARTS = ("form", "compiles", "works", "area", "delay", "smaller", "faster")
NOTHING = dict.fromkeys(PARTS, 0.0)
MOST = 2.0
"""A design without gates is that many times smaller than any reference, and none counts as more."""
CALLS = 8
"""Programs that are run for a design and its reference, each up to `seconds`, with some time to spare."""


@verifier(over="pairs")
def verilog(
    pairs: list[Pair], *, engine: Literal["gates", "tools"] = "gates",
    passes: str = r"Mismatches: 0 in \d+|Your Design Passed", seconds: PositiveFloat = 10.0,
) -> list[Verdict]:  # fmt: skip
    """Right if the design does what it should: the reply's last ```verilog block, else what it has from `module` to `endmodule`.

    engine="gates": modules of single wires and `assign` (`netlist.py`); the answer is the reference module, and a design works if
    it computes the same outputs from all inputs.  area: gates as written; delay: gates on the longest way.
    engine="tools": any design, by the programs iverilog, vvp and yosys, which must be installed; the answer is {"testbench"},
    or to compare sizes {"testbench", "reference", "top"}, and a design works if the testbench prints what matches `passes`
    (VerilogEval's and RTLLM's words), as the reference must too.  area, delay: cells and longest path of the module `top` after
    synthesis, which both have.  seconds: of each program.  Testbenches run as they are: take them from those you trust.

    parts: form, compiles, works, area, delay; smaller, faster: the reference's area and delay divided by the design's, at most 2,
    whether it works or not; 0 where it does not compile, or there is no reference.
    """
    texts = [stated_design(pair.response) for pair in pairs]
    if engine == "gates":
        return [_by_gates(text, pair.answer) for text, pair in zip(texts, pairs, strict=True)]
    if missing := tools.missing():
        return [no_verdict(f"verilog(engine='tools') needs {', '.join(missing)}: apt install iverilog yosys") for _ in pairs]
    return _by_tools(texts, [_testbench(pair.answer) for pair in pairs], passes, seconds)


def stated_design(response: str) -> str:
    """The design of a reply, after any thinking; "" where it has none."""
    text = after_thinking(response)
    block = last_block(text, "verilog", "systemverilog", "sv", "v", "")
    text = text if block is None else block
    found = re.search(r"\bmodule\b", text)
    end = text.rfind("endmodule")
    return text[found.start() : end + len("endmodule")] if found and end > found.start() else ""


def _by_gates(text: str, answer: Any) -> Verdict:
    try:
        reference = netlist.measured(netlist.read(str(answer)))
    except ValueError as problem:
        return no_verdict(f"the reference is no module of single wires: {problem}")
    if not text:
        return wrong("no module found", parts=NOTHING)
    try:
        design = netlist.measured(netlist.read(text))
    except ValueError as problem:
        return wrong(f"does not compile: {problem}", text[:500], parts=NOTHING | {"form": 1.0})
    works = design.same(reference)
    sizes = (design.area, design.delay), (reference.area, reference.delay)
    return _verdict(text, works, "computes the same" if works else "computes something else", *sizes)


def _by_tools(texts: list[str], answers: list[Any], passes: str, seconds: float) -> list[Verdict]:
    try:
        re.compile(passes)
        pool = workers("rewardlab.verifiers.verilog.tools:judge", seconds=CALLS * seconds)
        usable = [i for i, answer in enumerate(answers) if answer is not None]
        results = dict(zip(usable, pool.map([(texts[i] or None, answers[i], passes, seconds) for i in usable]), strict=True))
        failed = [i for i, result in results.items() if isinstance(result, Failed)]
        alone = dict(zip(failed, pool.map([(None, answers[i], passes, seconds) for i in failed]), strict=True))
    except (RewardlabError, re.error) as problem:
        return [no_verdict(str(problem)) for _ in texts]
    return [_of_result(text, results.get(i), alone.get(i)) for i, text in enumerate(texts)]


def _testbench(answer: Any) -> Mapping[str, Any] | None:
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except ValueError:
            return None
    if not isinstance(answer, Mapping) or not isinstance(answer.get("testbench"), str):
        return None
    top, reference = answer.get("top"), answer.get("reference")
    # it becomes part of a command of Yosys, which would else choose itself: an empty module on top of the rest, say
    named = isinstance(top, str) and re.fullmatch(r"\w+", top, re.ASCII) is not None
    return dict(answer) if (named or not top) and (not reference or (named and isinstance(reference, str))) else None


def _of_result(text: str, result: Done | Failed | None, alone: Done | Failed | None) -> Verdict:
    gold = alone or result
    if gold is None:
        return no_verdict("the gold answer is neither {'testbench'} nor {'testbench', 'reference', 'top'}")
    if isinstance(gold, Failed) or "unusable" in gold.value:
        return no_verdict(gold.why if isinstance(gold, Failed) else gold.value["unusable"])
    if not text:
        return wrong("no module found", parts=NOTHING)
    if isinstance(result, Failed):
        return wrong(f"the design {result.why}", text[:500], parts=NOTHING | {"form": 1.0})
    assert result is not None
    found = result.value
    if not found["compiles"]:
        return wrong(found["why"], text[:500], parts=NOTHING | {"form": 1.0})
    return _verdict(text, found["works"], found["why"], (found["area"], found["delay"]), found["reference"])


def _verdict(text: str, works: bool, why: str, size: Any, reference: Any) -> Verdict:
    """size, reference: area and delay; None where they are not known."""
    ratios = [_ratio(a, b) for a, b in zip(reference or (None, None), size, strict=True)]
    numbers = (1.0, 1.0, float(works), float(size[0] or 0), float(size[1] or 0), *ratios)
    parts = dict(zip(PARTS, numbers, strict=True))
    return right(text[:500], why, parts=parts) if works else wrong(why, text[:500], parts=parts)


def _ratio(reference: int | None, own: int | None) -> float:
    if reference is None or own is None:
        return 0.0
    if own == 0:
        # as good as can be, where the reference has no gate either
        return 1.0 if reference == 0 else MOST
    return min(MOST, reference / own)
