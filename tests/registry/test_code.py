"""The hash of the code that a definition reaches."""

from __future__ import annotations

import os
import re

import pytest

from rewardlab.registry import code, modules

FILES = {
    "methods/shaping/alpha.py": '''
"""Alpha: one."""
from rewardlab.rewards.brevity import brevity as short
from rewardlab.rollouts import many

def alpha(base=None, *, weight=1.0):
    """About alpha."""
    score = weight
    return short(by=score), many.many(n=2), unused_name

claim = Claim(says="x")
''',
    "rewards/brevity.py": '''
import numpy as np
from ..text.counts import words

LIMIT = 3
"""What it means."""

@reward
def brevity(trajectory, *, by: float = 1.0):
    # a comment
    return -by * np.maximum(words(trajectory.reply) - LIMIT, 0)

def other():
    return 1
''',
    "rollouts/__init__.py": "",
    "rollouts/many.py": "def many(n):\n    from rewardlab.text.counts import words\n    return [words] * n\n",
    "text/counts.py": "def words(text):\n    return len(text.split())\n",
}


@pytest.fixture
def hashed(tmp_path, monkeypatch):
    """The hash of alpha in a package of these files."""
    package = tmp_path / "rewardlab"
    for reading in (code, modules):
        monkeypatch.setattr(reading, "PACKAGE", package)

    def write(files: dict[str, str], name: str = "alpha", method: str = "methods/shaping/alpha.py") -> str:
        for path, text in files.items():
            (package / path).parent.mkdir(parents=True, exist_ok=True)
            (package / path).write_text(text)
        code.changed()
        return code.hash_of([(package / method, name)])

    yield write
    code.changed()


def changed(path: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[path]
    return {**FILES, path: FILES[path].replace(old, new)}


def test_it_reaches_what_names_stand_for_through_imports(hashed, tmp_path):
    hashed(FILES)
    found = code.reached([(tmp_path / "rewardlab/methods/shaping/alpha.py", "alpha")])
    assert {name for _, name in found} == {"alpha", "brevity", "LIMIT", "words", "many"}


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("methods/shaping/alpha.py", "score = weight", "score = 2 * weight"),
        ("methods/shaping/alpha.py", "weight=1.0", "weight=0.5"),
        ("methods/shaping/alpha.py", "short(by=score), many.many(n=2)", "many.many(n=2), short(by=score)"),
        ("rewards/brevity.py", "LIMIT = 3", "LIMIT = 4"),
        ("rewards/brevity.py", "np.maximum", "np.minimum"),
        ("rollouts/many.py", "* n", "* (n + 1)"),
        ("text/counts.py", "text.split()", "text"),
    ],
)
def test_another_computation_is_another_hash(hashed, path, old, new):
    before = hashed(FILES)
    assert hashed(changed(path, old, new)) != before


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("methods/shaping/alpha.py", '"""Alpha: one."""', '"""Alpha: better words."""'),
        ("methods/shaping/alpha.py", "About alpha.", "More about alpha."),
        ("methods/shaping/alpha.py", 'says="x"', 'says="y"'),
        ("rewards/brevity.py", "# a comment", "# other words"),
        ("rewards/brevity.py", "What it means.", "What else it means."),
        ("rewards/brevity.py", "return 1", "return 2"),
        ("rewards/brevity.py", "by: float", "by: int"),
        ("rewards/brevity.py", "from ..text.counts import words", "from rewardlab.text.counts import words"),
    ],
)
def test_words_imports_and_what_is_not_reached_count_for_nothing(hashed, path, old, new):
    before = hashed(FILES)
    assert hashed(changed(path, old, new)) == before


def test_a_piece_that_moves_or_gets_another_name_leaves_the_hash(hashed):
    before = hashed(FILES)
    folded = """
from numpy import maximum
from rewardlab.rollouts.many import many as several
import numpy as np
from rewardlab.text.counts import words

MOST = 3

def alpha(base=None, *, weight=1.0):
    score = weight
    return length_penalty(by=score), several(n=2), unused_name

@reward
def length_penalty(trajectory, *, by=1.0):
    return -by * np.maximum(words(trajectory.reply) - MOST, 0)
"""
    assert hashed({**FILES, "methods/shaping/alpha.py": folded}) == before
    elsewhere = {**FILES, "methods/credit/alpha.py": folded.replace("def alpha", "def beta")}
    assert hashed(elsewhere, "beta", "methods/credit/alpha.py") == before


WRAPPER = """
@rollout(wraps="of")
def alpha(problems, run, *, of, most=3):
    settings = {"of": 1}
    return [of(x)[:most] for x in many(of=problems, most=most)], settings
"""


def test_a_setting_that_is_renamed_leaves_the_hash_and_another_setting_does_not(hashed):
    now = WRAPPER.replace('"of"', '"inner"').replace("most", "max_n").replace("of(", "inner(")
    now = now.replace("*, of", "*, inner").replace("of=", "inner=")
    assert not re.search(r"\bof\b|most", now)
    before = hashed({**FILES, "methods/shaping/alpha.py": WRAPPER})
    assert hashed({**FILES, "methods/shaping/alpha.py": now}) == before
    assert hashed({**FILES, "methods/shaping/alpha.py": WRAPPER.replace("most", "other")}) != before


def test_a_local_name_stands_for_itself(hashed):
    """`words` is assigned in the function: it is not the function of that name."""
    text = "from rewardlab.text.counts import words\ndef alpha(rows):\n    words = rows\n    return [words for words in words]\n"
    before = hashed({**FILES, "methods/shaping/alpha.py": text})
    assert hashed({"text/counts.py": "def words(text):\n    return 0\n"}) == before


def test_hashes_are_kept_until_a_file_changes(hashed, tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    method = code.PACKAGE / "methods/shaping/alpha.py"
    own = tmp_path / "mine.py"
    own.write_text("from rewardlab.methods.shaping.alpha import alpha\ndef mine():\n    return alpha\n")
    computed = []

    def settled() -> str:
        # what was written just now may change again within one tick of its time stamp, and is not kept
        for path in code.PACKAGE.rglob("*.py"):
            os.utime(path, (1e9 + len(path.read_text()), 1e9 + len(path.read_text())))
        code.changed()
        return code.hash_of([(method, "alpha"), (own, "mine")])

    real = code._hashes
    monkeypatch.setattr(code, "_hashes", lambda *of: computed.append(of) or real(*of))
    hashed(FILES)
    computed.clear()
    first = settled()
    assert settled() == first
    assert len(computed) == 1
    hashed(changed("text/counts.py", "text.split()", "text.split() + []"))
    other = settled()
    own.write_text(own.read_text().replace("return alpha", "return 1"))
    assert len({first, other, settled()}) == 3
    # what was kept of the files as they were is gone
    assert len(list((tmp_path / "cache" / "registry").glob("code-*/*"))) == 1
    # other files are followed
    assert code.hash_of([(method, "alpha"), (own, "mine")], follow=lambda path: path == method) != settled()
