"""The methods that select an answer, by the names that they have here and elsewhere. No method is imported."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from pathlib import Path

from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.find import file_of, methods, names_in, spell

ELSEWHERE = {
    "majority_vote": (
        "self_consistency", "sc", "cot_sc", "maj", "majority", "majority_voting", "vote", "voting", "cons", "consensus",
    ),
    "best_of_n": ("bon", "bo", "best_of", "best_of_k", "rejection", "rejection_sampling", "rerank", "reranking"),
    "weighted_vote": ("weighted_majority", "weighted_majority_vote", "weighted_self_consistency", "weighted_bon"),
    "beam_search": ("beam", "beams", "step_beam_search"),
    "dvts": ("diverse_verifier_tree_search",),
    "mcts": ("monte_carlo_tree_search", "uct", "tree_search"),
}  # fmt: skip
"""What others call a method, without the number of samples (maj@8, bo16)."""
PASS = ("pass", "passk", "passn")


def selecting() -> list[str]:
    """The methods whose function gives its recipe something to select by, under some of its settings at least."""
    return [name for name, path in methods().items() if _selects(name, path)]


def _selects(name: str, file: Path) -> bool:
    text = file.read_text("utf-8")
    if "select=" not in text:
        return False
    with suppress(SyntaxError):
        functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name)
        calls = (node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call))
        made = (call for call in calls if ast.unparse(call.func).rpartition(".")[2] in ("but", "Recipe"))
        return any(word.arg == "select" for call in made for word in call.keywords)
    return False


def check_selects(stack: str) -> None:
    """Raise RewardlabError for a method of a stack that does not exist: with the name that it has here, or those that select."""
    known = methods()
    for name in names_in(stack):
        if spell(name) in known:
            continue
        plain = _letters(name)
        if plain in PASS:
            raise RewardlabError(f"{name} selects no answer: it measures the replies of a policy; rewardlab eval --k 1,8 does")
        meant = [here for here, others in ELSEWHERE.items() if plain in map(_letters, others)]
        if meant and meant[0] in known:
            raise RewardlabError(f"unknown method {name!r}; it is called {meant[0]} here")
        # several names with blanks between them, and files that cannot be imported
        if re.search(r"[\s,&]", name.strip()):
            file_of(name)
        raise unknown("method that selects an answer", name, selecting())


def _letters(name: str) -> str:
    """A name without its number of samples, and without what separates its words."""
    return re.sub(r"[^a-z]", "", re.sub(r"@[kn]$", "", name.strip().lower()))
