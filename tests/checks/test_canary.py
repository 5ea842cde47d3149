"""The first steps of a recorded claim, run again: the same code confirms its record, other code does not."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rewardlab import registry
from rewardlab.checks import canary, results
from rewardlab.checks.claim import Claim
from rewardlab.checks.pairs import Pairs
from rewardlab.commands import reproduce as command
from rewardlab.errors import RewardlabError

NAME = "dr_grpo"
CLAIM = Claim(
    says="nothing: it is short", versus="grpo", task="arithmetic", measure="reward", direction="higher", margin=1.0, problems=4,
    settings={"problems": 2}, versus_settings={"problems": 2, "n": 2}, steps=3, model="untrained", learns=None,
)  # fmt: skip


@pytest.fixture
def record(tmp_path, monkeypatch):
    """The record of a run of this code, without first steps."""
    monkeypatch.setattr(registry, "claim_of", lambda name: CLAIM)
    run = {"verdict": "holds", "seeds": [100], "claim": results.as_record(CLAIM), "code": results.code(NAME, CLAIM)}
    results.append(NAME, run["claim"], run, tmp_path)
    return tmp_path


def last(folder):
    return json.loads((folder / f"{NAME}.json").read_text())["runs"][-1]


def older(folder):
    """The record becomes one of other code."""
    results.amend(NAME, folder, code={"definitions": "other", "baseline": {}, "package": "other"})


@pytest.mark.slow
def test_a_record_of_this_code_gets_its_first_steps_and_they_are_the_same_again(record):
    assert canary.canary(NAME, record)["canary"] == canary.ADDED
    kept = last(record)["canary"]
    assert (kept["seed"], len(kept["sides"])) == (100, 2)
    assert [line["step"] for line in kept["sides"][0]][-1] == 2
    again = canary.canary(NAME, record)
    assert (again["canary"], again["fresh"], again["differs"]) == (canary.SAME, True, [])
    assert last(record)["canary"] == kept


@pytest.mark.slow
def test_equal_steps_confirm_a_record_of_other_code_and_other_steps_do_not(record):
    canary.canary(NAME, record)
    older(record)
    assert not results.of_this_code(last(record), registry.file_of(NAME))
    steps = last(record)["canary"]
    wrong = json.loads(json.dumps(steps))
    wrong["sides"][1][-1]["length"] += 1
    results.amend(NAME, record, canary=wrong)
    found = canary.canary(NAME, record)
    assert (found["canary"], found["fresh"]) == (canary.OTHER, False)
    assert [said.split(": ")[0] for said in found["differs"]] == ["baseline, step 2"]
    results.amend(NAME, record, canary=steps)
    assert canary.canary(NAME, record)["fresh"]
    assert results.of_this_code(last(record), registry.file_of(NAME))


def test_what_cannot_be_compared_is_said(record, monkeypatch, tmp_path):
    older(record)
    with pytest.raises(RewardlabError, match=r"^dr_grpo: there is nothing to compare with: .* rewardlab reproduce dr_grpo runs"):
        canary.canary(NAME, record)
    # among all records it does not stop the others
    (row,) = canary.canaries(record)
    assert (row["name"], row["canary"], row["fresh"]) == (NAME, canary.UNKNOWN, False)
    results.amend(NAME, record, canary={"seed": 100, "sides": []}, seconds=3)
    assert canary.comparable(record) == [NAME]
    results.amend(NAME, record, canary=None)
    with pytest.raises(RewardlabError, match="dr_grpo has no record"):
        canary.canary(NAME, tmp_path / "empty")
    monkeypatch.setattr(registry, "claim_of", lambda name: replace(CLAIM, steps=4))
    with pytest.raises(RewardlabError, match="claims something else than its record"):
        canary.canary(NAME, record)


def test_the_exit_status_says_whether_first_steps_are_the_same():
    same, other, unknown = (
        {"name": NAME, "canary": found, "fresh": False, "differs": []} for found in (canary.SAME, canary.OTHER, canary.UNKNOWN)
    )
    assert [command.exit_code(row) for row in (same, other)] == [0, 1]
    # of all records many keep no first steps: that is told, and fails only where nothing was compared
    assert [command.exit_code(rows) for rows in ([same, unknown], [same, other, unknown], [unknown], [])] == [0, 1, 1, 0]


def test_an_example_in_the_documents_names_a_record_that_keeps_first_steps():
    page = Path(__file__).parents[2] / "README.md"
    named = set(re.findall(r"reproduce (\w+) --canary", f"{command.__doc__} {page.read_text('utf-8')}"))
    assert named
    assert named <= set(canary.comparable())


def test_numbers_that_round_otherwise_are_equal():
    assert not list(canary._unequal({"loss": 1.0, "why": "x"}, {"loss": 1.0 + 1e-7, "why": "x"}))
    assert list(canary._unequal({"loss": 1.0}, {"loss": 1.001})) == ["loss 1 is now 1.001"]
    assert list(canary._unequal({"loss": 1.0}, {})) == ["loss 1.0 is now None"]


@pytest.mark.slow
def test_the_pairs_of_a_claim_have_first_steps_on_both_sides():
    with Pairs(NAME, CLAIM, 1, "cpu") as pairs:
        found = canary.canary_of(pairs, 7)
    assert found["seed"] == 7
    assert all(line["step"] <= 2 for side in found["sides"] for line in side)
