"""A hash of the code that a definition reaches, invariant under moves, renames and documentation.

    hash = H(sorted round-3 hashes of all definitions reached)
    round 0 of a definition: H(its syntax tree, without docstrings, with numbers for the names of definitions of the package)
    round k: H(the same, the round k-1 hashes of those that it names)

A definition is a function, a class, or what is assigned to a name at the top of a file. It reaches the definitions of the package
that its names stand for, through imports. Records and caches are kept by such hashes: a piece that moves to another file, or gets a
better name, confirms them; one that computes something else does not. Files are read, not imported.

A setting counts by its first name (`settings/old_names.py`), so that one that is renamed changes no hash.

What is found by a text at run time (a verifier that a task names) is followed where it is written as `verifier="NAME"`.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardlab.registry.find import PACKAGE, methods
from rewardlab.registry.index import kept_while
from rewardlab.settings.old_names import FIRST

ROUNDS = 3
"""How far around a definition its hash tells which of two definitions stands where."""
NAMED_BY_TEXT = ("verifier", "step_verifier", "environment")
"""Settings whose text names a shared part."""

Key = tuple[Path, str]
"""A definition: its file, and its name there."""
Start = tuple[Path, str | None]
"""Where to begin: a definition, or, without a name, all definitions of a file."""
Scope = dict[str, str]


@dataclass
class Module:
    """A file as definitions: name to its statements, and name to (file, name there; None for the file itself) of what it imports.

    outside: imported name to its full name, of what other packages define.
    """

    own: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[Path, str | None]] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)


def hash_of(starts: Iterable[Start], settings: Any = None, follow: Callable[[Path], bool] = lambda path: True) -> str:
    """The hash of what these definitions reach in the files that `follow` accepts, and of `settings`."""
    reach = frozenset(starts)
    hashes = _kept(reach, follow) if reach else ""
    return _digest("\n".join([*filter(None, [hashes]), repr(settings)]))


@functools.lru_cache(256)
def _kept(starts: frozenset[Start], follow: Callable[[Path], bool]) -> str:
    """The hashes of all definitions that these reach: the same for many settings, as of the runs of a league, and in every process
    while no file changes; to compute them takes seconds.
    """
    files = _package()
    # a user's own files too: a text may name a part in any of them
    own = sorted({*methods().values(), *(path for path, _ in starts)} - set(files))
    told = [(str(path), _digest(path.read_text("utf-8")), follow(path)) for path in own]
    asked = repr((sorted((str(path), name or "") for path, name in starts), [follow(path) for path in files], told))
    return kept_while(files, "code", asked, lambda: "\n".join(_hashes(starts, follow)))


@functools.cache
def _package() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


def _hashes(starts: frozenset[Start], follow: Callable[[Path], bool]) -> list[str]:
    keys = reached(starts, follow)
    hashes = {key: _digest(_skeleton(key)[0]) for key in keys}
    for _ in range(ROUNDS):
        around = {key: [hashes.get(other, "") for other in _skeleton(key)[1]] for key in keys}
        hashes = {key: _digest("\n".join([_skeleton(key)[0], *around[key]])) for key in keys}
    return sorted(hashes.values())


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def reached(starts: Iterable[Start], follow: Callable[[Path], bool] = lambda path: True) -> set[Key]:
    """The definitions that these reach, themselves among them."""
    waiting = [key for path, name in starts for key in _keys(path, name)]
    found: set[Key] = set()
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += [other for other in _skeleton(key)[1] if follow(other[0])]
    return found


@functools.cache
def room_of(path: Path) -> str:
    """The first folder of a file of the package; "" outside it."""
    return path.relative_to(PACKAGE).parts[0] if PACKAGE in path.parents else ""


def changed() -> None:
    """Forget what was read: files have changed since."""
    for cached in (module, _skeleton, _kept, _package):
        cached.cache_clear()


def _keys(path: Path, name: str | None) -> list[Key]:
    return [(path, own) for own in module(path).own] if name is None else [(path, name)]


# ---- files -----------------------------------------------------------------------------------------------------------


@functools.cache
def module(path: Path) -> Module:
    """The definitions and imports of a file."""
    read = Module()
    for node in _statements(ast.parse(path.read_text("utf-8"), str(path)).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            _note_imports(read, node, path)
        else:
            for name in _defined(node):
                read.own.setdefault(name, []).append(node)
    return read


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a file, those under its conditions too (TYPE_CHECKING, optional imports)."""
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _statements(node.body)
            yield from _statements(getattr(node, "orelse", []))
            yield from _statements(statement for handler in getattr(node, "handlers", []) for statement in handler.body)
        else:
            yield node


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def _note_imports(read: Module, node: ast.Import | ast.ImportFrom, path: Path) -> None:
    package = path.relative_to(PACKAGE.parent).parts[:-1] if PACKAGE in path.parents else ("",)
    level = node.level if isinstance(node, ast.ImportFrom) else 0
    above = package[: len(package) + 1 - level] if level else ()
    base = ".".join((*above, *filter(None, [getattr(node, "module", None)])))
    for alias in node.names:
        whole = f"{base}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        name = alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else alias.name.partition(".")[0])
        if found := _found(whole):
            read.imports[name] = found
        elif isinstance(node, ast.Import) and not alias.asname:
            read.outside[name] = name
        else:
            read.outside[name] = whole


def _found(whole: str) -> tuple[Path, str | None] | None:
    """The file of a module of the package, or the file and the name in it, that an import stands for."""
    if whole.partition(".")[0] != PACKAGE.name:
        return None
    if file := _file(whole):
        return file, None
    above, _, name = whole.rpartition(".")
    file = _file(above)
    return (file, name) if file else None


def _file(name: str) -> Path | None:
    place = PACKAGE.parent.joinpath(*name.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def _origin(path: Path, name: str) -> Key | None:
    """The definition that a name of a file stands for, through re-exports; None for what other packages define."""
    for _ in range(20):
        read = module(path)
        if name in read.own:
            return path, name
        if name not in read.imports:
            # `from . import results`: the name of a file in the folder of an __init__
            return None
        path, inner = read.imports[name]
        if inner is None:
            return path, ""
        name = inner
    return None


# ---- definitions -----------------------------------------------------------------------------------------------------


def references(key: Key) -> tuple[Key, ...]:
    """The definitions that this one names, in the order in which it does."""
    return _skeleton(key)[1]


@functools.cache
def _skeleton(key: Key) -> tuple[str, tuple[Key, ...]]:
    """The syntax tree of a definition as text, with numbers for the definitions that it names; and these."""
    named: dict[Key, str] = {key: "itself"}
    texts = []
    for node in module(key[0]).own.get(key[1], ()):
        tree = _Names(key[0], lambda other: named.setdefault(other, f"@{len(named)}")).visit(_bare(node))
        if hasattr(tree, "name"):
            tree.name = "itself"
        for target in getattr(tree, "targets", [getattr(tree, "target", None)]):
            if isinstance(target, ast.Name):
                target.id = "itself"
        texts.append(ast.dump(tree))
    return "\n".join(texts), tuple(other for other in named if other != key)


def _bare(node: ast.stmt) -> Any:
    """A copy of a statement without docstrings, and without the texts that follow constants."""
    copied = ast.parse(ast.unparse(node)).body[0]
    for inner in ast.walk(copied):
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kept = [s for s in inner.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            inner.body = kept or [ast.Pass()]
    return copied


class _Names(ast.NodeTransformer):
    """Put what `stand_in` says in the place of each name that stands for a definition of the package.

    Names that a function binds itself (arguments, what it assigns) stand for nothing else, and stay; settings get their first name.
    bound: those names, scope by scope, each with what is written for it.
    """

    def __init__(self, path: Path, stand_in: Callable[[Key], str]):
        self.path, self.stand_in = path, stand_in
        self.bound: list[dict[str, str]] = []
        self.local: dict[str, Key] = {}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.local:
            return ast.Name(self.stand_in(self.local[node.id]), node.ctx)
        for names in reversed(self.bound):
            if node.id in names:
                return ast.Name(names[node.id], node.ctx)
        read = module(self.path)
        if node.id in read.own or node.id in read.imports:
            return ast.Name(self._said(node.id), node.ctx)
        return ast.Name(read.outside.get(node.id, node.id), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        # `results.read`, where `results` is a file of the package
        if isinstance(node.value, ast.Name) and not any(node.value.id in names for names in self.bound):
            origin = _origin(self.path, node.value.id)
            if origin and origin[1] == "" and (inner := _origin(origin[0], node.attr)):
                return ast.Name(self.stand_in(inner), node.ctx)
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        if node.arg in NAMED_BY_TEXT and isinstance(node.value, ast.Constant) and (named := _by_text(node.arg, node.value.value)):
            return ast.keyword(node.arg, ast.Name(self.stand_in(named), ast.Load()))
        if node.arg == "wraps" and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = FIRST.get(node.value.value, node.value.value)
        node.arg = FIRST.get(node.arg, node.arg) if node.arg else None
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        for key in node.keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                key.value = FIRST.get(key.value, key.value)
        return self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """An import inside a function: its names stand for what they are imported from, as those of the file do."""
        local = Module()
        _note_imports(local, node, self.path)
        for name, (path, inner) in local.imports.items():
            if inner and (origin := _origin(path, inner)):
                self.local[name] = origin
        return ast.Pass()

    def _said(self, name: str) -> str:
        origin = _origin(self.path, name)
        if origin is None or origin[1] == "":
            return "@"
        return self.stand_in(origin)

    def _function(self, node: Any) -> ast.AST:
        # decorators, defaults and annotations belong to the scope around
        for part in ("decorator_list", "returns"):
            value = getattr(node, part, None)
            if isinstance(value, list):
                setattr(node, part, [self.visit(x) for x in value])
            elif value is not None:
                setattr(node, part, self.visit(value))
        if isinstance(getattr(node, "returns", None), ast.AST):
            node.returns = None
        arguments: ast.arguments = node.args
        arguments.defaults = [self.visit(x) for x in arguments.defaults]
        arguments.kw_defaults = [x and self.visit(x) for x in arguments.kw_defaults]
        for argument in _arguments(arguments):
            if argument.annotation is not None:
                self.visit(argument.annotation)
                # what a type checker reads decides no number; the domain of a setting is checked, not computed with
                argument.annotation = None
        settings = {argument.arg: FIRST.get(argument.arg, argument.arg) for argument in arguments.kwonlyargs}
        self.bound.append({name: name for name in _bound_in(node)} | settings)
        for argument in arguments.kwonlyargs:
            argument.arg = settings[argument.arg]
        body = node.body if isinstance(node.body, list) else [node.body]
        visited = [self.visit(x) for x in body]
        if isinstance(node.body, list):
            node.body = [x for x in visited if not isinstance(x, ast.Pass)] or [ast.Pass()]
        else:
            node.body = visited[0]
        self.bound.pop()
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        # methods do not see what the class body binds, but its own statements do
        own = {s.target.id for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
        node.decorator_list = [self.visit(x) for x in node.decorator_list]
        node.bases = [self.visit(x) for x in node.bases]
        node.keywords = [self.visit(x) for x in node.keywords]
        body = []
        for statement in node.body:
            functions = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
            self.bound.append({} if functions else {name: name for name in own})
            body.append(self.visit(statement))
            self.bound.pop()
        node.body = body
        return node

    def _comprehension(self, node: Any) -> ast.AST:
        targets = (n for g in node.generators for n in ast.walk(g.target))
        self.bound.append({n.id: n.id for n in targets if isinstance(n, ast.Name)})
        self.generic_visit(node)
        self.bound.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    several = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return [*several, *filter(None, (arguments.vararg, arguments.kwarg))]


def _bound_in(node: Any) -> set[str]:
    """The names that a function binds: arguments, and what it assigns, in itself and in what it defines."""
    names = {argument.arg for argument in _arguments(node.args)}
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) if inner is not node:
                names.add(name)
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                names.add(name)
            case ast.MatchMapping(rest=str() as name):
                names.add(name)
    return names


def _by_text(setting: str, name: Any) -> Key | None:
    """The shared part that the text of a setting names."""
    from rewardlab.registry.parts import parts_of_methods, shared_parts

    key = ("environment" if setting == "environment" else "reward", name)
    path = shared_parts().get(key) or next(iter(parts_of_methods().get(key, ())), None)
    return (path, name) if path else None
