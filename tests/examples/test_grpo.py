"""The example is GRPO: its gradient is the engine's."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Term
from rewardlab.engine.collate import add_columns, collate
from rewardlab.engine.update import backward
from rewardlab.models.embedded import untrained

FILE = Path(__file__).parents[2] / "examples" / "grpo.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grpo_example", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load()


def shifted(t):
    """As if written by other weights: half of the ratios lie outside the clip range, on both sides."""
    turn = t.turns[-1]
    off = torch.linspace(-0.5, 0.5, len(turn.logprobs)).numpy()
    return replace(t, turns=(*t.turns[:-1], replace(turn, logprobs=turn.logprobs + off)))


def test_its_gradient_is_the_engines():
    policy = untrained(layers=2)
    task = registry.task("arithmetic", test_size=4)
    n, problems = 4, [task.train[i] for i in range(3)]
    rows = [shifted(t) for t in example.sample(policy, problems, n, torch.Generator().manual_seed(1))]
    assert len({len(t) for t in rows}) > 1
    # a mixed group, one that is all right, and one with a single right reply
    rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0]])

    loss = example.grpo_loss(policy, *example.collate(rows), example.advantages(rewards).flatten())
    loss.backward()
    own = {k: p.grad.clone() for k, p in policy.model.named_parameters()}
    policy.model.zero_grad()

    recipe, run = registry.build("grpo"), Run(policy)
    groups = [rows[i : i + n] for i in range(0, len(rows), n)]
    scores = [[Score(terms={"correct": Term(r)}) for r in group] for group in rewards.tolist()]
    batch = add_columns(collate(groups, scores, policy.device), recipe.needs, run, 10_000)
    batch.credit = recipe.credit(batch.reward, batch, run)
    stats = backward(policy, batch, recipe, run, 10_000)
    assert stats["loss"] == pytest.approx(loss.item(), abs=1e-6)
    assert stats["ratio_far"] > 0.2
    assert sum(float(g.abs().sum()) for g in own.values()) > 0.1
    for name, p in policy.model.named_parameters():
        assert torch.allclose(p.grad, own[name], rtol=1e-5, atol=1e-6), name


def test_advantages_by_hand():
    # 1 0 0 1: mean 1/2, unbiased variance 4 * 1/4 / 3 = 1/3, std .57735;  1/2 / .57745 = .86588;  equal rewards: 0
    credit = example.advantages(torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]))
    assert credit[0].tolist() == pytest.approx([0.86588, -0.86588, -0.86588, 0.86588], abs=1e-5)
    assert credit[1].tolist() == [0, 0, 0, 0]


@pytest.mark.slow
def test_it_runs_as_a_script(tmp_path):
    untrained().save(tmp_path / "tiny")
    command = [sys.executable, str(FILE), "--steps", "1", "--problems", "2", "--n", "2", "--model", str(tmp_path / "tiny")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    lines = done.stdout.splitlines()
    assert [" ".join(line.split()[:2]) for line in lines] == [
        "held-out accuracy", "step 1", "held-out accuracy",
    ]  # fmt: skip


def test_it_uses_nothing_of_the_engine_and_stays_short():
    text = FILE.read_text()
    assert not any(name in text for name in ("rewardlab.engine", "Recipe", "Part,", "registry"))
    assert len(text.splitlines()) <= 145
