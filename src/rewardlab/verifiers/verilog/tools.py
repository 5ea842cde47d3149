"""Designs of any kind, by programs that must be installed: Icarus Verilog compiles and simulates, Yosys synthesises.

Runs in a worker process. A design is compiled alone, so that it cannot reach into the testbench of its problem, and then simulated
with it. It can do nothing but compute: what prints, opens or includes files, or calls C (as Yosys lets `import "DPI-C"` do) is
refused before anything is run. Both programs see it without its comments and attributes, by which parts could be hidden from
synthesis alone (`// synthesis translate_off`). Testbenches and references are those of the data, and run as they are.
"""

from __future__ import annotations

import math
import re
import resource
import shutil
import subprocess
import tempfile
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from rewardlab.processes.child import kill

PROGRAMS = ("iverilog", "vvp", "yosys")
LONGEST = 50_000
LARGEST = 1 << 28
"""Bytes of a file that a program may write; testbenches dump waves."""
HARMLESS = frozenset({"$signed", "$unsigned", "$clog2", "$bits"})
_DIRECTIVES = re.compile(r"`(?!(?:timescale|default_nettype)\b)")
_HIDING = re.compile(r'("[^"\n]*")|//[^\n]*|/\*.*?(?:\*/|\Z)|\(\*(?!\s*\)).*?(?:\*\)|\Z)', re.DOTALL)
"""Texts, which stay; comments; attributes, but not the @(*) of a block."""
_STATISTIC = re.compile(r"Number of cells:\s+(\d+)|^\s+(\d+)\s+(?:[\d.E+-]+\s+)?cells\s*$", re.MULTILINE)
_LONGEST_PATH = re.compile(r"Longest topological path in \S+ \(length=(\d+)\)")
SYNTHESIS = (
    "read_verilog -sv {file}; hierarchy -check -top {top}; synth -flatten; "
    "abc -g AND,OR,XOR,NAND,NOR,XNOR; opt_clean; stat; ltp -noff"
)


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def judge(design: str | None, answer: dict[str, Any], passes: str, seconds: float) -> dict[str, Any]:
    """{"compiles", "works", "area", "delay", "reference": [area, delay] or None, "why"}; {"unusable": reason} for a bad answer.

    answer: "testbench", and where designs are to be compared, "reference" and "top", the module that is measured of either.
    """
    testbench, top = answer["testbench"], answer.get("top")
    unusable, compared = _reference(answer["reference"], testbench, top, passes, seconds) if answer.get("reference") else ("", None)
    if unusable:
        return {"unusable": unusable}
    if design is None:
        return {}
    refused, design = _refused(design), plain(design)
    if refused:
        return {"compiles": False, "works": False, "area": None, "delay": None, "reference": compared, "why": refused}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        compiled, why = _compiled(design, "", place, seconds)
        works, why = _works(design, testbench, passes, place, seconds) if compiled else (False, why)
        area, delay = (_size(design, top, place, seconds) if compiled and top else None) or (None, None)
    return {"compiles": compiled, "works": works, "area": area, "delay": delay, "reference": compared, "why": why}


@lru_cache(maxsize=256)
def _reference(text: str, testbench: str, top: str, passes: str, seconds: float) -> tuple[str, tuple[int, int] | None]:
    """Why it is of no use, or ""; and its size. Kept, since all replies to a problem are compared with it."""
    with tempfile.TemporaryDirectory() as folder:
        works, why = _works(text, testbench, passes, Path(folder), seconds)
        size = _size(text, top, Path(folder), seconds) if works else None
    if not works:
        return f"the reference does not pass its testbench: {why}", None
    return "" if size else f"the reference cannot be synthesised with the module {top} on top", size


def plain(design: str) -> str:
    """Without comments and attributes."""
    return _HIDING.sub(lambda found: found[1] or " ", design)


def _refused(design: str) -> str:
    if len(design) > LONGEST:
        return f"longer than {LONGEST} characters"
    if "\\" in design:
        # a name such as \" would make texts, and so comments, end elsewhere than for the programs
        return "escaped names are not run"
    if _DIRECTIVES.search(design):
        return "directives other than `timescale and `default_nettype are not run"
    if re.search(r'\b(?:import|export)\s*"', plain(design)):
        return "imports from C are not run"
    tasks = set(re.findall(r"\$\w+", design)) - HARMLESS
    return f"system tasks are not run: {', '.join(sorted(tasks))[:100]}" if tasks else ""


def _works(design: str, testbench: str, passes: str, place: Path, seconds: float) -> tuple[bool, str]:
    built, why = _compiled(design, testbench, place, seconds)
    if not built:
        return False, why
    printed = _run(["vvp", "-n", "design.vvp"], place, seconds)[1]
    works = bool(re.search(passes, printed))
    return works, "passes the testbench" if works else f"the testbench says: {printed.strip()[-200:] or 'nothing'}"


def _compiled(design: str, testbench: str, place: Path, seconds: float) -> tuple[bool, str]:
    (place / "design.sv").write_text(f"{design}\n{testbench}\n")
    code, said = _run(["iverilog", "-g2012", "-o", "design.vvp", "design.sv"], place, seconds)
    return code == 0, "" if code == 0 else f"does not compile: {said.strip()[:200]}"


def _size(design: str, top: str, place: Path, seconds: float) -> tuple[int, int] | None:
    """Cells after synthesis, and the longest path; None where it fails. Area and delay do not depend on a library of cells."""
    (place / "synth.sv").write_text(design)
    code, said = _run(["yosys", "-Q", "-p", SYNTHESIS.format(file="synth.sv", top=top)], place, seconds)
    cells, path = _STATISTIC.findall(said), _LONGEST_PATH.findall(said)
    if code or not cells or not path:
        return None
    return int("".join(cells[-1])), int(path[-1])


def _run(command: list[str], place: Path, seconds: float) -> tuple[int, str]:
    """The exit code, and the end of what was said. With the program end those that it started: Icarus and Yosys call others."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=place, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=partial(_limit, math.ceil(seconds)),
        )  # fmt: skip
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            kill(process)
            return -1, f"{command[0]} took over {seconds:g} s"
        said.seek(max(0, said.seek(0, 2) - 200_000))
        return code, said.read().decode(errors="replace")


def _limit(seconds: int) -> None:
    """Of a program and those that it starts; it holds too where this process is killed before it can end them."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
