"""Every tutorial does what it says: its files are written, its commands run, and they print what it shows.

Here they run scaled down. `make tutorials` runs them whole, with the real policies, in about half an hour on two cores.
"""

from __future__ import annotations

import json
import os
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tutorials

import rewardlab
from rewardlab.commands import cli
from rewardlab.rewards.length import length_penalty

DOCS = Path(__file__).parents[2] / "docs"
WHOLE = os.environ.get("REWARDLAB_TUTORIALS") == "whole"
PAGES = sorted((DOCS / "tutorials").glob("*.md"))


@pytest.fixture
def small_policies(monkeypatch, tmp_path):
    """Untrained policies in place of those that take minutes to make, and a tiny checkpoint in place of SmolLM2."""
    from rewardlab.models import embedded, smollm2

    tiny = tmp_path / "tiny"
    if not WHOLE:
        monkeypatch.setattr(embedded, "embedded", lambda device="auto", dtype="auto", task=None: embedded.untrained(task=task))
        monkeypatch.setattr(smollm2, "checkpoint", lambda: tiny)
        embedded.untrained().save(tiny)


FIRST = "first_run"
"""The page that runs in `make test`; the others run in `make test-all`."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem, marks=[] if page.stem == FIRST else pytest.mark.slow) for page in PAGES]
)
def test_tutorial(page, tmp_path, monkeypatch, small_policies):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    # tutorials set these with `export`, which would outlive the test
    monkeypatch.setenv("REWARDLAB_METHODS", "")
    monkeypatch.setenv("PATH", os.environ["PATH"])
    wrong = tutorials.run(page.read_text("utf-8"), cli.main, WHOLE)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_the_commands_of_the_chapter_on_reward_models(tmp_path, monkeypatch, small_policies):
    from rewardlab.models import embedded

    monkeypatch.chdir(tmp_path)
    embedded.untrained().save(tmp_path / "path" / "to" / "model")
    for name, first, count in (("pairs", 0, 12), ("held_out", 20, 6), ("prompts", 40, 4)):
        rows = [
            {"prompt": f"{i}+1=?", "answer": f"{i + 1}", "chosen": f"{i + 1}", "rejected": f"{i} is it"}
            for i in range(first, first + count)
        ]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    chapter = (Path(rewardlab.__file__).parent / "leagues" / "reward_models.md").read_text("utf-8")
    assert len(re.findall(r"^rewardlab ", chapter, re.MULTILINE)) == 10
    wrong = tutorials.run(chapter.replace("--seconds 20", "--seconds 1"), cli.main)
    assert not wrong, "\n".join(wrong)


def test_the_readme_in_python(tmp_path, monkeypatch, small_policies):
    monkeypatch.chdir(tmp_path)
    readme = (DOCS.parent / "README.md").read_text("utf-8")
    shown = [block.text for block in tutorials.blocks(readme) if block.language == "python"]
    script = "\n".join(shown)
    for name, value in {"steps": 1, "eval_problems": 4, "max_new": 8}.items():
        script = re.sub(rf", {name}=\d+", "", script).replace('task="arithmetic"', f'task="arithmetic", {name}={value}')
    Path("readme.py").write_text(script.replace('{"n": 16}', '{"n": 2, "problems": 2}'))
    runpy.run_path("readme.py")
    assert len(list(Path("runs").iterdir())) == 1


@pytest.mark.parametrize("page", [DOCS / "REWARDS.md", DOCS / "parts.md"], ids=lambda page: page.stem)
def test_no_page_pays_for_length(page):
    assert length_penalty.function(SimpleNamespace(mask=np.ones(4)), per_token=0.5) == -2
    formulas = re.findall(r".*length_penalty\(.*", page.read_text("utf-8"))
    assert formulas
    assert not [line for line in formulas if re.search(r"- ([\d.]+ \* )?(clip\()?length_penalty", line)]


def test_a_line_that_is_not_printed_is_told():
    page = "```bash\nrewardlab --version\n```\n\n```text\nrewardlab 9.9.9\nno such line\n```\n"
    (wrong,) = tutorials.run(page, cli.main)
    assert wrong.startswith("'no such line'")


def test_the_site_lists_every_page():
    listed = (DOCS.parent / "mkdocs.yml").read_text("utf-8")
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if "audits" not in path.parts]
    assert not [page for page in pages if page not in listed]
