"""Imports point one way, and files and functions stay small."""

import ast
from pathlib import Path

import pytest

import rewardlab.core

SRC = Path(rewardlab.core.__file__).parents[1]
FILES = sorted(SRC.rglob("*.py"))
SLOT = "rewards.reward"
"""Where the reward slot is defined: what makes a reward imports it, wherever it is."""
EVERYWHERE = {"errors", "core", "util"}
SERVICES = {"text", "processes", "sandbox"}
PARTS = {"tasks", "envs", "rollouts", "rewards", "credit", "objectives", "select", "evals"}
MAY_IMPORT = {
    "errors.py": set(),
    "core": {"errors", "core"},
    "util": {"errors", "core", "util"},
    "text": EVERYWHERE | {"text"},
    "processes": EVERYWHERE | {"processes"},
    "sandbox": EVERYWHERE | {"processes", "sandbox"},
    **{part: EVERYWHERE | SERVICES | {SLOT, part} for part in PARTS},
    "rewards": EVERYWHERE | SERVICES | {"rewards", "verifiers.contract"},
    "verifiers": EVERYWHERE | SERVICES | {SLOT, "verifiers"},
    "tasks": EVERYWHERE | SERVICES | {SLOT, "verifiers.contract", "tasks"},
    "policies": EVERYWHERE | SERVICES | {"policies"},
    "runs": EVERYWHERE | {"runs"},
    "report": EVERYWHERE | {"runs", "report"},
    "engine": EVERYWHERE | {"runs", "report", "engine"},
    "engines": EVERYWHERE | {SLOT, "runs", "report", "engine", "engines", "policies", "models", "tasks.sources"},
    "methods": EVERYWHERE | SERVICES | {"verifiers", "proof.claim", "methods.baselines", *PARTS},
}
LIMITS = {"method file": 120, "module": 300, "function": 40}


def imported(tree: ast.AST, package: tuple[str, ...]) -> set[str]:
    """Modules of rewardlab that a file imports, anywhere in it, as dotted names below `rewardlab`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join((*above, *filter(None, [node.module])))
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return {name.removeprefix("rewardlab.") for name in found if name.startswith("rewardlab.")}


def wrong_imports(path: Path, text: str) -> set[str]:
    """What a file imports and may not. Modules at the top may import all but methods."""
    package = ("rewardlab", *path.parts[:-1])
    names = imported(ast.parse(text), package)
    folder = path.parts[0]
    if folder not in MAY_IMPORT:
        return {name for name in names if name.split(".")[0] == "methods"}
    return {name for name in names if not any(f"{name}.".startswith(f"{ok}.") for ok in MAY_IMPORT[folder])}


def too_long(path: Path, text: str) -> list[str]:
    kind = "method file" if path.parts[0] == "methods" and path.name != "__init__.py" else "module"
    found = [f"{path}: {n} lines"] if (n := len(text.splitlines())) > LIMITS[kind] else []
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [f for f in functions if f.end_lineno and f.end_lineno - f.lineno + 1 > LIMITS["function"]]
    return found + [f"{path}: {f.name} is {f.end_lineno - f.lineno + 1} lines" for f in long]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_a_file_imports_only_what_it_may(path):
    assert not wrong_imports(path.relative_to(SRC), path.read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_a_file_and_its_functions_are_small(path):
    assert not too_long(path.relative_to(SRC), path.read_text())


def test_only_the_index_loads_methods():
    """By name too: no other module holds the methods' package as a string."""
    holds = []
    for path in FILES:
        constants = (n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant))
        if any(isinstance(c, str) and c.startswith("rewardlab.methods") for c in constants):
            holds.append(str(path.relative_to(SRC)))
    assert sorted(holds) == ["core/part.py", "registry/find.py"]


@pytest.mark.parametrize(
    ("path", "line", "wrong"),
    [
        ("core/batch.py", "from ..kit import machine", {"kit.machine"}),
        ("rewards/match.py", "from rewardlab.credit.group import center", {"credit.group.center"}),
        ("rewards/match.py", "def f():\n    from ..engine import train", {"engine.train"}),
        ("rewards/match.py", "from ..core import reward\nfrom .steps import x\nimport torch", set()),
        ("rewards/match.py", "import rewardlab.api", {"api"}),
        ("engine/train.py", "from ..rollouts.independent import independent", {"rollouts.independent.independent"}),
        ("methods/shaping/hapo.py", "from ..baselines.grpo import grpo\nfrom ...credit import group", set()),
        ("methods/shaping/hapo.py", "from .other import other", {"methods.shaping.other.other"}),
        ("methods/shaping/hapo.py", "from rewardlab import registry", {"registry"}),
        ("api.py", "from .methods.baselines.grpo import grpo", {"methods.baselines.grpo.grpo"}),
        ("commands/train.py", "from .. import api\nfrom ..engine import report", set()),
    ],
)
def test_the_check_of_imports_sees_them(path, line, wrong):
    assert wrong_imports(Path(path), line) == wrong


def test_the_check_of_sizes_sees_them():
    body = "def f():\n" + "    x = 1\n" * 40
    assert too_long(Path("methods/shaping/hapo.py"), body) == ["methods/shaping/hapo.py: f is 41 lines"]
    assert too_long(Path("methods/shaping/hapo.py"), "x = 1\n" * 121) == ["methods/shaping/hapo.py: 121 lines"]
    assert too_long(Path("kit/machine.py"), "x = 1\n" * 300) == []
