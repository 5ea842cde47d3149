"""Designs of any kind, by programs that must be installed: Icarus Verilog compiles and simulates, Yosys synthesises.

Runs in a worker process. A design is compiled alone, so that it cannot reach into the testbench of its problem, and then simulated
with it. It can do nothing but compute: system tasks (which print, and open files) and directives (which include them) are refused
before it is run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

PROGRAMS = ("iverilog", "vvp", "yosys")
LONGEST = 50_000
HARMLESS = frozenset({"$signed", "$unsigned", "$clog2", "$bits"})
_DIRECTIVES = re.compile(r"`(?!(?:timescale|default_nettype)\b)")
_STATISTIC = re.compile(r"Number of cells:\s+(\d+)|^\s+(\d+)\s+(?:[\d.E+-]+\s+)?cells\s*$", re.MULTILINE)
_LONGEST_PATH = re.compile(r"Longest topological path in \S+ \(length=(\d+)\)")
SYNTHESIS = (
    "read_verilog -sv {file}; hierarchy -check {top}; synth -flatten; abc -g AND,OR,XOR,NAND,NOR,XNOR; opt_clean; stat; ltp -noff"
)


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def judge(design: str | None, answer: dict[str, Any], passes: str, seconds: float) -> dict[str, Any]:
    """{"compiles", "works", "area", "delay", "reference": [area, delay] or None, "why"}; {"unusable": reason} for a bad answer.

    answer: "testbench", and where designs are to be compared, "reference"; "top": the module that is measured.
    """
    reference = answer.get("reference")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        compared = _size(reference, answer, place, seconds) if reference else None
        if reference and compared is None:
            return {"unusable": "the reference cannot be synthesised"}
        if design is None:
            return {}
        if refused := _refused(design):
            return {"compiles": False, "works": False, "area": None, "delay": None, "reference": compared, "why": refused}
        compiled, why = _compiled(design, "", place, seconds)
        works = False
        if compiled:
            built, why = _compiled(design, answer["testbench"], place, seconds)
            printed = _run(["vvp", "-n", "design.vvp"], place, seconds)[1] if built else ""
            works = bool(re.search(passes, printed))
            why = "passes the testbench" if works else why or f"the testbench says: {printed.strip()[-200:] or 'nothing'}"
        size = _size(design, answer, place, seconds) if compiled else None
        area, delay = size or (None, None)
        return {"compiles": compiled, "works": works, "area": area, "delay": delay, "reference": compared, "why": why}


def _refused(design: str) -> str:
    if len(design) > LONGEST:
        return f"longer than {LONGEST} characters"
    if _DIRECTIVES.search(design):
        return "directives other than `timescale and `default_nettype are not run"
    tasks = set(re.findall(r"\$\w+", design)) - HARMLESS
    return f"system tasks are not run: {', '.join(sorted(tasks))[:100]}" if tasks else ""


def _compiled(design: str, testbench: str, place: Path, seconds: float) -> tuple[bool, str]:
    (place / "design.sv").write_text(f"{design}\n{testbench}\n")
    code, said = _run(["iverilog", "-g2012", "-o", "design.vvp", "design.sv"], place, seconds)
    return code == 0, "" if code == 0 else f"does not compile: {said.strip()[:200]}"


def _size(design: str, answer: dict[str, Any], place: Path, seconds: float) -> tuple[int, int] | None:
    """Cells after synthesis, and the longest path; None where it fails. Area and delay do not depend on a library of cells."""
    (place / "synth.sv").write_text(design)
    top = f"-top {answer['top']}" if answer.get("top") else "-auto-top"
    code, said = _run(["yosys", "-Q", "-p", SYNTHESIS.format(file="synth.sv", top=top)], place, seconds)
    cells, path = _STATISTIC.findall(said), _LONGEST_PATH.findall(said)
    if code or not cells or not path:
        return None
    return int("".join(cells[-1])), int(path[-1])


def _run(command: list[str], place: Path, seconds: float) -> tuple[int, str]:
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return -1, f"{command[0]} took over {seconds:g} s"
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")[-200_000:]
