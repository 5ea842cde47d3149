"""Every command that a page shows is one that the command line understands: its flags exist, and its methods."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tutorials

import rewardlab
from rewardlab import registry
from rewardlab.commands import cli, flags
from rewardlab.errors import RewardlabError

ROOT = Path(__file__).parents[2]
CHAPTERS = Path(rewardlab.__file__).parent / "leagues"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(CHAPTERS.glob("*.md"))]
PLACEHOLDER = re.compile(r"\b[A-Z_]{3,}\b|[\[{…]|\.\.\.")
"""A line with one of these stands for several commands."""


def shown(page: Path) -> list[list[str]]:
    """The commands of a page, as words."""
    text = page.read_text("utf-8")
    lines = [words for block in tutorials.blocks(text) if block.language == "bash" for words in tutorials.commands(block.text)]
    return [words[1:] for words in lines if words[0] == "rewardlab" and not PLACEHOLDER.search(" ".join(words))]


def trouble(words: list[str], own: set[str]) -> str:
    """What the command line would refuse before it does anything; "" if nothing. own: methods that the page writes itself."""
    try:
        if (found := cli.find(words)) is None:
            return ""
        args = cli.parse(*found)
        # a reward in a reader's file is not here
        if given := getattr(args, "reward", None):
            args.reward = [text for text in given if ".py" not in text]
        named = [*filter(None, [getattr(args, "method", None)]), *(getattr(args, "methods", None) or ())]
        if named and not own & set(named):
            flags.check_names(args, *(method for text in named for method in text.split(",")))
    except (RewardlabError, SystemExit) as problem:
        return f"rewardlab {' '.join(words)}: {problem}"
    return ""


@pytest.mark.parametrize("page", [page for page in PAGES if shown(page)], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_are_understood(page):
    own = {Path(block.title).stem for block in tutorials.blocks(page.read_text("utf-8"))}
    assert not [told for words in shown(page) if (told := trouble(words, own))]


def test_what_is_not_understood_is_told():
    assert "--weigth" in trouble(["train", "hapo", "--weigth", "1"], set())
    assert "--keep" in trouble(["data", "filter", "a.jsonl", "--out", "b.jsonl", "--keep", "1"], set())
    assert "did you mean hapo" in trouble(["train", "hap", "--task", "arithmetic"], set())
    assert not trouble(["train", "hap", "--task", "arithmetic"], {"hap"})


@pytest.mark.parametrize("page", sorted(CHAPTERS.glob("*.md")), ids=lambda page: page.stem)
def test_a_chapter_names_methods_that_exist(page):
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")]
    # a method in the middle of a table's row: in backticks, and alone in them
    named = [name for row in rows for name in re.findall(r"`([a-z][a-z0-9_]+)`", row)]
    known = set(registry.methods())
    assert named
    assert {name for name in named if "_" in name and name not in known} <= COLUMNS, page.name


COLUMNS = {
    "chosen_score", "rejected_score", "judgement_reversed", "prefers_first",
}  # fmt: skip
"""Columns and numbers that chapters name, too."""
