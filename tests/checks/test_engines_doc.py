"""The table of docs/ENGINES.md: what the engines answer, in its place on the page."""

from __future__ import annotations

import pytest

from rewardlab.api.engine_support import carried, policy_of
from rewardlab.checks import engines_doc
from rewardlab.errors import RewardlabError
from rewardlab.registry import catalogue


@pytest.mark.parametrize(
    ("method", "embedded", "trl", "verl"),
    [
        ("grpo", "", "", ""),
        ("ppo", "", "", ""),
        ("prime", "", "", "second model (prm)"),
        ("best_of_n", "selects answers and trains nothing", "does not learn", "does not learn"),
        ("barfi", "", "its training loop is its own (bilevel)", "its training loop is its own (bilevel)"),
        ("ipl", "", "its policy (actor) is not a causal language model", "its rollout is segments"),
    ],
)
def test_what_the_engines_answer(method, embedded, trl, verl):
    found = carried(method)
    for engine, says in zip(("embedded", "TRL", "verl"), (embedded, trl, verl), strict=True):
        assert (says in found[engine]) if says else found[engine] == ""


@pytest.mark.parametrize(("method", "kind"), [("grpo", "embedded"), ("vlm_r1", "vision"), ("tempflow_grpo", "flow")])
def test_the_policy_is_read_from_the_file_of_the_claims_task(method, kind):
    assert policy_of(method) == kind


def test_the_page(tmp_path, monkeypatch):
    """The table replaces what stood between the marks, and nothing else; a reason is cut where it speaks of the engine."""
    monkeypatch.setattr(catalogue, "rows", lambda: [row for row in ROWS if row["name"] in ("grpo", "igpo")])
    monkeypatch.setattr(catalogue, "repository", lambda: tmp_path)
    page = tmp_path / "docs" / "ENGINES.md"
    page.parent.mkdir()
    page.write_text(f"# Before\n{engines_doc.BEGIN}\nold\n{engines_doc.END}\nAfter.\n")
    written = engines_doc.write().read_text()
    assert written.startswith("# Before\n")
    assert written.endswith(f"{engines_doc.END}\nAfter.\n")
    assert "old" not in written
    assert "Of 2 methods, under their default settings, 2 by embedded, 2 by TRL, 1 by verl." in written
    assert "| igpo | carried | carried | its rollout is interactive |" in written
    page.write_text("no marks")
    with pytest.raises(RewardlabError, match="has no place for its table"):
        engines_doc.write()


ROWS = catalogue.rows()


def test_the_page_of_this_checkout_says_what_the_engines_say():
    root = catalogue.repository()
    if root is None:
        pytest.skip("installed without a checkout")
    page = (root / engines_doc.PATH).read_text("utf-8")
    lines = engines_doc._lines({name: carried(name) for name in ("grpo", "prime", "rloo", "sft")})
    assert all(line in page for line in lines if line.startswith("| ") and "---" not in line)
