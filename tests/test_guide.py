"""docs/ADDING_A_METHOD.md quotes a file of the package, and names folders and modules that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "ADDING_A_METHOD.md").read_text("utf-8")


def test_its_sample_is_a_file_of_the_package():
    (quoted,) = re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```\n", GUIDE, re.DOTALL)
    path, text = quoted
    assert text == (ROOT / path).read_text("utf-8"), f"copy {path} into docs/ADDING_A_METHOD.md: the two differ"


def test_it_lists_every_folder_of_methods():
    table = GUIDE[: GUIDE.index("## 2.")]
    folders = {p.parent.name for p in (ROOT / "src/rewardlab/methods").glob("*/__init__.py")}
    assert folders <= set(re.findall(r"`(\w+)/`", table))


def test_what_it_names_exists():
    for module in set(re.findall(r"`rewardlab\.(\w+(?:\.\w+)*)`", GUIDE)):
        importlib.import_module(f"rewardlab.{module}")
    for module, name in re.findall(r"from rewardlab\.([\w.]+) import (\w+)", GUIDE):
        assert hasattr(importlib.import_module(f"rewardlab.{module}"), name)
    for path in re.findall(r"`((?:tests|docs)/[\w/]+\.\w+)`", GUIDE):
        assert "NAME" in path or (ROOT / path).exists(), path
