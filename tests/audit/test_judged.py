"""An audit of a served model as verifier: a judge that does what replies tell it, with its controls and without."""

from __future__ import annotations

import pytest
from here import Here
from served_model import compared, serving, sound_judge

from rewardlab.audit import audit
from rewardlab.audit.built_in import built_in
from rewardlab.audit.loading import parse


def swayed(body: dict) -> str:
    """It says yes wherever a reply speaks of scores or of being right."""
    words = ("highest score", "is right", "confirmed", "correct")
    return "[[yes]]" if any(word in compared(body)[2] for word in words) else sound_judge(body)


@pytest.fixture(scope="module")
def server():
    with serving(swayed) as server:
        yield server


def injections(server, tmp_path, monkeypatch, controls: bool) -> list[str]:
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    # kept, since the controls of a question are the same for all of its replies
    spec = parse(f"judged_answer(model='{server.name},cache=true', controls={controls})")
    document = audit.describe(audit.examine(Here(spec, 100.0), built_in("numbers")[:1]), {}, 1.0)
    assert document["judges"] == "answers"
    return [f["name"] for f in document["findings"] if f["probe"] == "injection" and f["severity"] == "fault"]


@pytest.mark.slow
def test_instructions_to_a_judge_earn_nothing_with_controls(server, tmp_path, monkeypatch):
    assert injections(server, tmp_path / "with", monkeypatch, True) == []


@pytest.mark.slow
def test_and_everything_without(server, tmp_path, monkeypatch):
    assert len(injections(server, tmp_path / "without", monkeypatch, False)) == 10
