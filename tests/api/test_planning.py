"""What a plan says of rewards: those that judge nothing, and no false alarm."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.api import plan
from rewardlab.data.columns import Data
from rewardlab.registry.formula import read_reward

PROBLEMS = [{"prompt": f"What is {i} + 2?", "answer": str(i + 2)} for i in range(4)]
PAIRS = [{"prompt": f"Name the planet {i}.", "chosen": "Mars.", "rejected": "One of them is Mars."} for i in range(4)]


@pytest.fixture
def no_verdict(tmp_path):
    def planned(recipe, rows) -> dict[str, str]:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return plan(recipe, "untrained", str(path), device="cpu")["no_verdict"]

    return planned


def test_a_reward_that_lacks_its_column_is_told_by_name(no_verdict):
    told = no_verdict(registry.build("grpo").scored_by(read_reward("right_judgement()")), PROBLEMS)
    assert "no column 'worth'" in told["right_judgement"]


def test_a_judge_that_is_trained_on_pairs_is_no_alarm(no_verdict):
    """Its reward is of judgements: no row is one, and the columns of one come with the question to the judge."""
    assert no_verdict(registry.build("rm_r1"), PAIRS) == {}


def test_a_number_in_the_formula_of_a_reward_is_planned_too(no_verdict):
    assert no_verdict(registry.build("grpo").scored_by(read_reward("2 * final_answer() - 1")), PROBLEMS) == {}


def test_a_reward_that_refuses_what_was_not_sampled_ends_no_plan(no_verdict):
    # it reads where the steps of a reply end, which a gold answer does not have
    rows = Data.from_json(next(row["data"] for row in registry.rows() if row["name"] == "fover")).rows
    assert no_verdict(registry.build("fover"), rows) == {}
