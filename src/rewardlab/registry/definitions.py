"""A definition as text that stays the same wherever it is moved, whatever it and others are called, and however it is documented.

It is the syntax tree without docstrings and annotations, with numbers for the definitions of the package that it names, and these
beside it. A setting counts by its first name (`settings/old_names.py`). What is found by a text at run time (a verifier that a task
names) is followed where it is written as `verifier="NAME"`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rewardlab.registry.modules import Key, Module, module, note_imports, origin_of
from rewardlab.settings.old_names import FIRST

NAMED_BY_TEXT = ("verifier", "step_verifier", "environment")
"""Settings whose text names a shared part."""


def references(key: Key) -> tuple[Key, ...]:
    """The definitions that this one names, in the order in which it does."""
    return skeleton(key)[1]


@functools.cache
def skeleton(key: Key) -> tuple[str, tuple[Key, ...]]:
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
            origin = origin_of(self.path, node.value.id)
            if origin and origin[1] == "" and (inner := origin_of(origin[0], node.attr)):
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
        note_imports(local, node, self.path)
        for name, (path, inner) in local.imports.items():
            if inner and (origin := origin_of(path, inner)):
                self.local[name] = origin
        return ast.Pass()

    def _said(self, name: str) -> str:
        origin = origin_of(self.path, name)
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
