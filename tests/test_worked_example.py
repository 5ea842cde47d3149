"""docs/WORKED_EXAMPLE.md, number by number: the page holds the rollouts and what every method makes of them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
import torch
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Batch, Outputs, Recipe, Run
from rewardlab.engine.loss import losses_of, weigh

PAGE = (Path(__file__).parents[1] / "docs" / "WORKED_EXAMPLE.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.M)[1:]}
METHODS = [name for name, text in SECTIONS.items() if "Settings:" in text]
ROUNDING = 6e-5
RUN = Run(policy=None, max_new=12)


def table(section: str) -> list[dict[str, str]]:
    """The rows of a section's table, by column."""
    lines = [line.strip("| ") for line in SECTIONS[section].splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in f"{line} ".split("|")] for line in lines]
    return [dict(zip(head, [*cells, *[""] * (len(head) - len(cells))], strict=True)) for cells in body]


TOKENS = table("The rollouts")
ROWS = list(dict.fromkeys(token["row"] for token in TOKENS))


def column(name: str) -> list[list[float]]:
    """(B, T) a column of the rollouts, 0 where it says nothing."""
    return [[float(t[name] or 0) for t in TOKENS if t["row"] == row] for row in ROWS]


def falls(name: str, row: str) -> dict[int, float]:
    return {int(t["position"]): float(t[name]) for t in TOKENS if t["row"] == row and t[name]}


def rollouts() -> Batch:
    group = []
    for row in ROWS:
        pattern = "".join("r" if t["turn"] == "read" else "d" for t in TOKENS if t["row"] == row)
        told, right = falls("correct_steps", row), falls("correct", row)
        assert list(right) == [len(pattern) - 1]
        group.append((pattern, {"correct": outcome(*right.values()), "correct_steps": steps(told, weight=0.5)}))
    return batch_of([group], {"prm.logprobs": column("log prm/ref"), "ref": [[], []], "policy.logprobs": [[], []]})


def by_place(values: torch.Tensor, where: torch.Tensor) -> dict[tuple[str, int], float]:
    return {(ROWS[i], t): float(values[i, t]) for i, t in where.nonzero().tolist()}


def told(section: str, name: str) -> dict[tuple[str, int], float]:
    return {(t["row"], int(t["position"])): pytest.approx(float(t[name]), abs=ROUNDING) for t in table(section)}


def loss_of(recipe: Recipe, out: Outputs, batch: Batch) -> float:
    weigh(batch, recipe.objective, recipe.weighting)
    return float(sum(losses_of(recipe.objective, out, batch, RUN).values()))


def updated(batch: Batch) -> Outputs:
    ratio = torch.tensor(
        [[math.log(r) if r else 0.0 for r in (*row, *[0.0] * (batch.width - len(row)))] for row in column("ratio")]
    )
    return Outputs(logprobs=batch.old.nan_to_num() + ratio)


def stated(section: str, name: str = "Loss") -> float:
    found = re.search(rf"^{name}: (\S+)$", SECTIONS[section], flags=re.M)
    assert found, f"the section {section} states no {name}"
    return float(found[1])


def test_the_page_speaks_of_these_methods():
    assert METHODS == ["grpo", "gdpo", "pure_min_form", "prime", "igpo", "dr_kernel_trloo"]


def test_rewards_become_these_events():
    batch = rollouts()
    assert by_place(batch.reward, batch.rewarded) == told("Events", "reward")
    decided = {(t["row"], int(t["position"])) for t in TOKENS if t["turn"] != "read"}
    assert set(by_place(batch.reward, batch.mask)) == decided


@pytest.mark.parametrize("name", METHODS)
def test_credit_and_loss(name):
    settings = re.search(r"^Settings: `(.*)`$", SECTIONS[name], flags=re.M)
    assert settings
    recipe, batch = registry.build(name, json.loads(settings[1])), rollouts()
    batch.credit = recipe.credit(batch.reward, batch, RUN)
    assert by_place(batch.credit, batch.mask) == told(name, "credit")
    assert not batch.credit[~batch.mask].any()
    assert loss_of(recipe, updated(batch), batch) == pytest.approx(stated(name), abs=ROUNDING)


def test_what_the_process_reward_model_learns():
    settings = {"beta": 0.5}
    (learner,) = registry.build("prime", settings).also
    batch = rollouts()
    found = loss_of(learner.recipe, Outputs(logprobs=batch.columns["prm.logprobs"]), batch)
    assert found == pytest.approx(stated("prime", "Loss of prm"), abs=ROUNDING)
