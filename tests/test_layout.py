"""Imports point one way and never in a circle, and files and functions stay small."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import rewardlab.core
from rewardlab import data

SRC = Path(rewardlab.core.__file__).parents[1]
ROOT = Path(__file__).parents[1]
FILES = sorted(SRC.rglob("*.py"))

EVERYWHERE = {"errors", "settings", "core", "util"}
SERVICES = {"text", "processes", "sandbox", "data", "clients", "judges"}
"""What parts are made with: text, child processes, isolated code, rows of data, models behind an address, forms of judges."""
SLOT = "rewards.reward"
"""The reward slot: every module that makes rewards imports it."""
PARTS = {"rewards", "verifiers", "tasks", "worlds", "envs", "rollouts", "credit", "objectives", "evals", "policies"}
"""Folders of parts. They import one another only where the table names a module."""
TRAINING = {"runs", "report", "engine"}

MAY_IMPORT = {
    "errors.py": set(),
    # what the settings of functions may be: needed where importing torch would take too long
    "settings": {"errors", "settings"},
    # an environment may be asynchronous
    "core": {"errors", "settings", "core", "util.background"},
    "util": EVERYWHERE,
    "text": EVERYWHERE | {"text"},
    "processes": EVERYWHERE | {"processes"},
    "sandbox": EVERYWHERE | {"processes", "sandbox"},
    "clients": EVERYWHERE | {"text", "clients"},
    # how a judge is asked and read, whoever asks
    "judges": EVERYWHERE | {"text", "clients.messages", "data.values", "judges"},
    # it serves files of any kind, and needs no torch
    "data": {"errors", "util", "text", "data"},
    **{part: EVERYWHERE | SERVICES | {SLOT, part} for part in PARTS},
    # an environment or a tool in a file of the user's own is found as a reward is; calls are read as their verifier reads them
    "envs": EVERYWHERE | SERVICES | {SLOT, "envs", "rewards.user", "verifiers.calls"},
    # a run may be watched by benchmarks of rewards
    "evals": EVERYWHERE | SERVICES | {SLOT, "evals", "scoreboard"},
    # what a scorer of steps is to learn from is written as it will be read; a reply may be chosen by asking a judge
    "rollouts": EVERYWHERE | SERVICES | {SLOT, "rollouts", "prm", "rewards.tournament"},
    # a policy scores text; it knows no reward
    "policies": EVERYWHERE | SERVICES | {"policies"},
    # models that score steps: read by their conventions, measured, trained, and what they learn from
    "prm": EVERYWHERE
    | SERVICES
    | TRAINING
    | {SLOT, "rewards", "objectives.step_labels", "rollouts", "policies", "models", "registry"}
    | {"tasks.rows", "tasks.sources", "tasks.conversations", "evals", "api", "prm"},
    # a reward may be made of a verifier, or of a model that scores steps; a task names its verifier
    "rewards": EVERYWHERE | SERVICES | {"rewards", "verifiers.contract", "prm.load_scorer", "models.reward_model"},
    # a task may be made of what a small policy says, which is sampled when a problem is first asked for
    # one of games, or of environments of others, asks the environment for its problems and what they earned
    "tasks": EVERYWHERE | SERVICES | {SLOT, "verifiers.contract", "tasks", "envs", "models.samples"},
    # a small world, in one file: what a method pays there may be written with it; it may be a small corner of an environment of
    # others
    "worlds": EVERYWHERE
    | SERVICES
    | {"rewards", "verifiers.contract", "tasks", "envs", "worlds", "rollouts", "evals", "models.samples"},
    # which file a corpus is, whose hash is kept, and which pictures a prompt showed
    "runs": EVERYWHERE | {"data.corpus", "data.pictures", "runs"},
    "report": EVERYWHERE | {"runs", "report"},
    # it logs how many different answers are right
    "engine": EVERYWHERE | TRAINING | {"text.answers"},
    # another engine runs the same recipes on its own models; its numbers are compared with ours where scores are added
    "backends": EVERYWHERE
    | TRAINING
    | {SLOT, "rewards.scores", "rewards.user", "backends", "policies", "models", "tasks.sources", "verifiers.contract"},
    # a small policy is warmed up on its task, which is looked up by name; a reward model may read replies beside a reference; an
    # encoder that a package carries is found where texts are embedded
    "models": EVERYWHERE
    | {
        "clients",
        "models",
        "policies",
        "prm",
        "engine",
        "runs.config",
        "runs.named",
        "runs.metrics",
        "registry",
        "text.reference",
        "text.principles",
        "text.embedding",
    },
    "methods": EVERYWHERE
    | SERVICES
    | PARTS
    | {"scoreboard.agreement", "scoreboard.pairs", "scoreboard.procedural"}
    | {"data.columns", "prm", "checks.claim", "methods.baselines"}
    # a benchmark of rewards: how it is read, and its figures
    | {"scoreboard.benchmark", "scoreboard.items", "scoreboard.figures", "scoreboard.reproduced"}
    | {"scoreboard.correlation", "scoreboard.steps", "scoreboard.planted", "scoreboard.choices"}
    | {"scoreboard.drawn", "data.pictures"},
    # anything that scores, on any benchmark of rewards
    "scoreboard": EVERYWHERE
    | {"text", "data", "clients", "judges", "models", "policies", "prm", "registry", "servers.scoring", "report", "scoreboard"}
    # programs are rated by tests; items are shared out over a cluster
    | {"evals.process", "sandbox.asserts", "processes.cluster"},
    # names to files; `list` needs no torch, so that core is imported only where a recipe is built
    "registry": EVERYWHERE
    | {SLOT, "envs", "rollouts.independent", "rollouts.interactive", "evals.episodes", "evals.episode_curve", "evals.passk"}
    # rows given in Python stand in the place of a file's name
    | {"rewards.user", "data.columns", "data.in_memory", "registry"},
    # models that a reward names are loaded before the first call
    "audit": EVERYWHERE | SERVICES | {SLOT, "rewards.user", "rewards.model", "verifiers", "registry", "audit"},
    # scoring.py is what its worker processes load; functions in chats are told, and their calls read, as in training
    "servers": EVERYWHERE
    | SERVICES
    | {SLOT, "rewards.user", "rewards.process", "rewards.model", "verifiers.contract", "registry", "models", "servers"}
    | {"envs.tool_messages", "verifiers.calls"},
    "api": EVERYWHERE | SERVICES | TRAINING | PARTS | {"data", "prm", "registry", "models", "backends", "scoreboard", "api"},
    # the checks of methods: what a claim promises, its runs, verdicts and records
    "checks": EVERYWHERE
    | {SLOT, "evals.cached_start", "evals.passk", "evals.core_metrics", "processes", "runs", "report", "models", "registry", "api"}
    | {"comparisons.forest", "comparisons.league_records", "comparisons.telling", "checks"},
    # one a family: they name methods, and never import them
    "leagues": {"registry", "comparisons.league", "evals", "rollouts", "rewards", "envs"},
    # methods against one another
    "comparisons": EVERYWHERE
    | {SLOT, "evals.cached_start", "evals.passk", "evals.core_metrics", "processes", "runs", "report", "models", "registry", "api"}
    | {"checks", "comparisons", "engine.rates", "data.in_memory"},
    "commands": EVERYWHERE
    | TRAINING
    | {
        "text",
        "data",
        "clients",
        "models",
        "backends",
        "registry",
        "api",
        "audit",
        "checks",
        "comparisons",
        "prm",
        "scoreboard",
        "servers",
        "commands",
    },
    "__init__.py": {
        "errors",
        "core",
        SLOT,
        "rewards.operator",
        "registry",
        "models",
        "runs.config",
        "runs.named",
        "api",
        "comparisons.compare",
        "report.diagnosis",
    },
    "__main__.py": {"commands.cli"},
}
"""By folder: the modules that its files may import, anywhere in a file. Nobody imports methods: the registry finds them by name."""

SHARED_ROOMS = {"rewards", "rollouts", "credit", "objectives", "evals", "envs", "text", "data", "policies"}
"""What stands there serves two methods, or a task, or is called by name."""
LIMITS = {"method file": 300, "world": 400, "module": 500, "function": 40}
KNOWN_CIRCLES: tuple[set[str], ...] = ()
"""Circles that are still to be mended. This list only gets shorter: a circle that is gone must be taken off it."""


def module_name(path: Path) -> str:
    """`core/part.py` as "core.part"; a package is named after its folder, the top package is ""."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parsed(text: str) -> ast.Module:
    """The syntax tree of a file that several tests read; none of them changes it."""
    return ast.parse(text)


def statements(body: Iterable[ast.AST], run: bool = False) -> Iterator[ast.AST]:
    """The statements of a file and all in them; no expressions, which are most of a tree. run: without what stands under
    `if TYPE_CHECKING`, which is never run."""
    for node in body:
        if run and isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, field, ()), run)


def imported(text: str, package: tuple[str, ...], run: bool = False) -> set[str]:
    """What a file imports from rewardlab, anywhere in it, as dotted names below `rewardlab`. run: see `statements`."""
    names: set[str] = set()
    for node in statements(parsed(text).body, run):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join((*above, *filter(None, [node.module])))
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return {name.removeprefix("rewardlab.") for name in names if name.startswith("rewardlab.")}


def wrong_imports(path: Path, text: str) -> set[str]:
    """What a file imports and may not."""
    names = imported(text, ("rewardlab", *path.parts[:-1]))
    return {name for name in names if not any(f"{name}.".startswith(f"{ok}.") for ok in MAY_IMPORT[path.parts[0]])}


def import_graph(files: dict[Path, str]) -> dict[str, set[str]]:
    """Module to the modules that it imports, at its top or inside a function. What is imported under `if TYPE_CHECKING` closes no
    circle."""
    modules = {module_name(path) for path in files}

    def module_of(name: str) -> str:
        # `core.part.Part` is a name in the module core.part
        while name not in modules:
            name = name.rpartition(".")[0]
        return name

    graph = {}
    for path, text in files.items():
        names = imported(text, ("rewardlab", *path.parts[:-1]), run=True)
        graph[module_name(path)] = {module_of(name) for name in names} - {module_name(path), ""}
    return graph


def circles(graph: dict[str, set[str]]) -> Iterator[set[str]]:
    """Groups of modules each of which imports every other, through others or not (strongly connected components)."""

    # what imports nothing that is left is in no circle: most modules go, and no path is searched among them
    left = dict(graph)
    while ends := [module for module, read in left.items() if not read & left.keys()]:
        left = {module: left[module] for module in left.keys() - set(ends)}

    def reached(start: str) -> set[str]:
        seen, waiting = set(), [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    reach = {module: reached(module) for module in left}
    inside = {module for module in left if module in reach[module]}
    while inside:
        first = min(inside)
        circle = {other for other in reach[first] & inside if first in reach[other]}
        inside -= circle
        yield circle


def too_long(path: Path, text: str) -> list[str]:
    kind = {"methods": "method file", "worlds": "world"}.get(path.parts[0], "module")
    long = [f"{path}: {n} lines"] if (n := len(text.splitlines())) > LIMITS[kind] else []
    functions = [n for n in statements(parsed(text).body) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    sizes = {f: f.end_lineno - f.lineno + 1 for f in functions if f.end_lineno}
    return long + [f"{path}: {f.name} is {size} lines" for f, size in sizes.items() if size > LIMITS["function"]]


def test_files_import_only_what_they_may():
    wrong = {path.relative_to(SRC): wrong_imports(path.relative_to(SRC), path.read_text("utf-8")) for path in FILES}
    told = [f"{path} imports {', '.join(sorted(names))}" for path, names in wrong.items() if names]
    assert not told, "imports that MAY_IMPORT does not allow:\n" + "\n".join(told)


def test_files_and_their_functions_are_small():
    told = [line for path in FILES for line in too_long(path.relative_to(SRC), path.read_text("utf-8"))]
    assert not told, f"longer than {LIMITS} lines:\n" + "\n".join(told)


def test_core_stays_small():
    """Only what the engine and the parts both need is a noun of core."""
    assert sum(len(path.read_text("utf-8").splitlines()) for path in (SRC / "core").glob("*.py")) <= 1800


def test_every_folder_has_its_line_in_the_table():
    assert {path.relative_to(SRC).parts[0] for path in FILES} == MAY_IMPORT.keys()


def test_no_modules_import_each_other_in_a_circle():
    found = list(circles(import_graph({path.relative_to(SRC): path.read_text() for path in FILES})))
    assert [sorted(circle) for circle in found] == [sorted(circle) for circle in KNOWN_CIRCLES]


def pieces_of_one_method(graph: dict[str, set[str]], called: set[str]) -> dict[str, str]:
    """Modules of shared rooms that serve one method alone, directly or through one another, and that method.

    called: modules that stay, since users or tasks call what they hold by name.
    """
    users: dict[str, set[str]] = {module: {other for other, read in graph.items() if module in read} for module in graph}
    owner = {module: module for module in graph if module.startswith("methods.")}
    shared = [m for m in graph if m.partition(".")[0] in SHARED_ROOMS and "." in m and m not in called]
    growing = True
    while growing:
        growing = False
        for module in shared:
            owners = {owner.get(user) for user in users[module]}
            if module not in owner and len(owners) == 1 and None not in owners:
                owner[module] = owners.pop() or ""
                growing = True
    return {module: method for module, method in owner.items() if module != method}


def called_by_name(files: dict[Path, str]) -> set[str]:
    """Modules that hold a part which the handbook or a task names, or a verifier."""
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md"), ROOT / "README.md"]
    prose = " ".join(page.read_text("utf-8") for page in pages if page.name not in ("methods.md", "parts.md", "ENGINES.md"))
    named = set(re.findall(r"`(\w+)", prose))
    for text in files.values():
        named |= set(re.findall(r'(?:verifier|step_verifier|environment)=\(?\s*"(\w+)"', text))
    # what users call by `rewardlab.data`, which loads it when it is first used
    named |= set(data.__all__)
    found = set()
    for path, text in files.items():
        functions = [node for node in parsed(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        if any(f.name in named or "verifier" in map(ast.unparse, f.decorator_list) for f in functions):
            found.add(module_name(path))
    return found


def test_what_serves_one_method_stands_in_its_file():
    files = {path.relative_to(SRC): path.read_text("utf-8") for path in FILES}
    pieces = pieces_of_one_method(import_graph(files), called_by_name(files))
    told = [f"{module} serves {method} alone" for module, method in pieces.items()]
    assert not told, "move each into its method:\n" + "\n".join(told)


def test_the_check_of_pieces_sees_them():
    files = {
        "methods/a/one.py": "from rewardlab.rewards import own, named\nfrom rewardlab.rewards.both import x",
        "methods/a/two.py": "from rewardlab.rewards.both import x",
        "rewards/__init__.py": "",
        "rewards/own.py": "from rewardlab.text.deeper import x",
        "rewards/both.py": "",
        "rewards/named.py": "",
        "text/deeper.py": "",
        "text/of_a_task.py": "",
        "tasks/rows.py": "from rewardlab.text.of_a_task import x",
        "__init__.py": "",
    }
    graph = import_graph({Path(path): text for path, text in files.items()})
    assert pieces_of_one_method(graph, {"rewards.named"}) == {"rewards.own": "methods.a.one", "text.deeper": "methods.a.one"}


def test_only_the_registry_loads_methods():
    """By name too: no other module holds the methods' package as a string."""
    loading = []
    for path in FILES:
        if "methods" not in (text := path.read_text("utf-8")):
            continue
        constants = (n.value for n in ast.walk(parsed(text)) if isinstance(n, ast.Constant))
        if any(isinstance(c, str) and c.startswith("rewardlab.methods") for c in constants):
            loading.append(str(path.relative_to(SRC)))
    # core/part.py recognises the parts of methods, to save them by the method's name
    assert sorted(loading) == ["core/part.py", "registry/find.py"]


@pytest.mark.parametrize(
    ("path", "line", "wrong"),
    [
        ("core/batch.py", "from ..util import device", {"util.device"}),
        ("rewards/match.py", "from rewardlab.credit.group import center", {"credit.group.center"}),
        ("rewards/match.py", "def f():\n    from ..engine import loop", {"engine.loop"}),
        ("rewards/match.py", "from ..core import credit\nfrom .steps import x\nimport torch", set()),
        ("rewards/match.py", "import rewardlab.api", {"api"}),
        ("policies/text.py", "from ..rewards.reward import Reward", {"rewards.reward.Reward"}),
        ("engine/loop.py", "from ..rollouts.independent import independent", {"rollouts.independent.independent"}),
        ("methods/shaping/hapo.py", "from ..baselines.grpo import grpo\nfrom ...credit import group", set()),
        ("methods/shaping/hapo.py", "from .other import other", {"methods.shaping.other.other"}),
        ("methods/shaping/hapo.py", "from rewardlab import registry", {"registry"}),
        ("api/training.py", "from ..methods.baselines.grpo import grpo", {"methods.baselines.grpo.grpo"}),
        ("registry/find.py", "import rewardlab.methods.baselines.grpo", {"methods.baselines.grpo"}),
        ("commands/train.py", "from .. import api\nfrom ..engine import loop", set()),
    ],
)
def test_the_check_of_imports_sees_them(path, line, wrong):
    assert wrong_imports(Path(path), line) == wrong


def test_the_check_of_circles_sees_them():
    files = {
        "__init__.py": "from .a.one import x",
        "a/__init__.py": "from .one import x\nfrom .two import y",
        "a/one.py": "def f():\n    from ..b import three",
        "a/two.py": "if TYPE_CHECKING:\n    from .one import x\nimport rewardlab.b.three",
        "b/__init__.py": "",
        "b/three.py": "from rewardlab.a.one import x, y",
    }
    graph = import_graph({Path(path): text for path, text in files.items()})
    assert graph["a"] == {"a.one", "a.two"}
    assert list(circles(graph)) == [{"a.one", "b.three"}]
    # a package that is imported by one of its own modules
    files = {"a/__init__.py": "from .b import x", "a/b.py": "from . import y"}
    assert list(circles(import_graph({Path(path): text for path, text in files.items()}))) == [{"a", "a.b"}]


def test_the_check_of_sizes_sees_them():
    body = "def f():\n" + "    x = 1\n" * 40
    assert too_long(Path("methods/shaping/hapo.py"), body) == ["methods/shaping/hapo.py: f is 41 lines"]
    assert too_long(Path("methods/shaping/hapo.py"), "x = 1\n" * 301) == ["methods/shaping/hapo.py: 301 lines"]
    assert too_long(Path("util/device.py"), "x = 1\n" * 500) == []
