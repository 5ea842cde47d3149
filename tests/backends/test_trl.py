"""Credit, losses and gradients equal TRL's, run on the same weights and the same tokens.

TRL's own trainers do the work: each is made on a small Llama that we saved as a checkpoint, is handed recorded token ids
instead of drawing them, and computes advantages, loss and gradient with its own code. Ours run on the lean policy.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from rewardlab.core import Batch, Recipe, Run, Score, Trajectory, ask
from rewardlab.engine.collate import add_columns, collate
from rewardlab.engine.update import backward
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.rloo import rloo
from rewardlab.methods.baselines.sft import sft
from rewardlab.models.embedded import untrained

trl = pytest.importorskip("trl", reason="parity with TRL needs pip install 'rewardlab[parity]'")
datasets = pytest.importorskip("datasets")

pytestmark = pytest.mark.filterwarnings("ignore")
CLOSE = 1e-5
N = 4
QUESTIONS = ("1+1=?", "12*3-4=?", "what comes after 41?")
REPLIES = (
    "2", "1+1=2\n2", "3", "one and one make two", "12*3=36\n36-4=32\n32", "32", "12*3=15\n15-4=11\n11", "no",
    "42", "41+1=42\n42", "after 41 comes 42, I should say", "43",
)  # fmt: skip
REWARDS = (1.0, 1.0, 0.0, 0.25, 1.0, 0.5, 0.0, -0.5, 0.75, 0.75, 0.75, 0.75)
MISSING = (1.0, None, 0.0, 0.25, None, None, None, 1.0, None, None, None, None)


@pytest.fixture(scope="module")
def start():
    return untrained(hidden=32, layers=2)


@pytest.fixture(scope="module")
def groups(start) -> list[list[Trajectory]]:
    """Replies of unequal length, N to a question."""
    problems = [ask(q) for q in QUESTIONS for _ in range(N)]
    asked = start.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = start.write(asked, REPLIES)
    return [rows[i : i + N] for i in range(0, len(rows), N)]


def pushed(policy, seed: int, scale: float = 0.1):
    """A policy whose weights are a little elsewhere."""
    other, generator = policy.copy("policy"), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in other.parameters():
            p += scale * p.abs().mean() * torch.randn(p.shape, generator=generator)
    return other


def weights(policy, folder: Path) -> dict[str, Tensor]:
    """The weights under their Hugging Face names."""
    policy.save(folder)
    return load_file(folder / "model.safetensors")


def hand_over(policy, model, folder: Path) -> None:
    """Put our weights into a model of transformers."""
    left_out = model.load_state_dict(weights(policy, folder), strict=False)
    assert not left_out.unexpected_keys
    assert set(left_out.missing_keys) <= {"lm_head.weight"}


def assert_same_gradient(policy, model, folder: Path) -> None:
    """Ours, under Hugging Face names, against what autograd left in the model of transformers."""
    ours = policy.copy(policy.name)
    with torch.no_grad():
        for mine, p in zip(ours.parameters(), policy.parameters(), strict=True):
            mine.copy_(p.grad)
    theirs = {name: p.grad for name, p in model.named_parameters()}
    largest = max(float(g.abs().max()) for g in theirs.values())
    assert largest > 1e-4
    for name, grad in weights(ours, folder).items():
        assert float((grad - theirs[name]).abs().max()) < CLOSE * max(1.0, largest), name


def collated(groups, scores, recipe: Recipe, run: Run) -> Batch:
    batch = add_columns(collate(groups, scores, run.policy.device), recipe.needs, run, 200)
    batch.credit = recipe.credit(batch.reward, batch, run) if recipe.credit else batch.reward
    return batch


def scored(rewards) -> list[list[Score]]:
    return [[Score(r) for r in rewards[i : i + N]] for i in range(0, len(rewards), N)]


def row_credit(batch: Batch) -> Tensor:
    """(B,) the one advantage that all decisions of a row share."""
    rows = [batch.credit[i][batch.mask[i]] for i in range(len(batch))]
    assert all(bool((row == row[0]).all()) for row in rows)
    return torch.stack([row[0] for row in rows])


def ids_of(row: Trajectory) -> tuple[list[int], list[int]]:
    return row.turns[0].ids.tolist(), row.turns[1].ids.tolist()


def settings(folder: Path, **changes) -> dict:
    """What every trainer is given."""
    common = {"output_dir": str(folder / "trl"), "report_to": [], "use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    return common | {"per_device_train_batch_size": 12} | changes


def one_row(**columns):
    return datasets.Dataset.from_list([columns])


# ---- online ----------------------------------------------------------------------------------------------------------


def online_trainer(kind: str, start, groups, rewards, folder: Path, **changes):
    """A trainer of TRL that replays our rollouts and rewards."""
    prompts, replies = zip(*(ids_of(row) for group in groups for row in group), strict=True)
    start.save(folder / "start")
    config = {"num_generations": N, "temperature": 1.0, "epsilon": 0.2} | changes
    trainer = getattr(trl, f"{kind}Trainer")(
        str(folder / "start"),
        reward_funcs=lambda completions, **_: list(rewards),
        args=getattr(trl, f"{kind}Config")(**settings(folder, **config)),
        train_dataset=one_row(prompt="?"),
        processing_class=start.tokenizer,
    )
    trainer._tokenize_prompts = lambda texts: (list(prompts), None, {})
    drawn = (list(replies), None) if kind == "GRPO" else list(replies)
    trainer._generate_single_turn = lambda *_: drawn
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    return trainer


def replay(trainer) -> dict[str, Tensor]:
    return trainer._generate_and_score_completions([{"prompt": "?"} for _ in REPLIES])


@pytest.mark.parametrize("rewards", [REWARDS, MISSING], ids=["all judged", "some without a verdict"])
def test_grpo_advantages(start, groups, rewards, tmp_path):
    """The mean and the unbiased deviation of the group, over those judged alone; no credit for the others."""
    theirs = replay(online_trainer("GRPO", start, groups, rewards, tmp_path))["advantages"]
    batch = collated(groups, scored(rewards), grpo(n=N), Run(start))
    assert float(theirs.abs().max()) > 0.5
    assert torch.allclose(row_credit(batch), theirs, atol=CLOSE)


@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("drift", [0.0, 0.3], ids=["on policy", "off policy"])
def test_grpo_loss_and_gradient(start, groups, beta, drift, tmp_path):
    """loss_type="grpo" with old log-probs of other weights, the reference of a third: clipping and KL are at work.

    TRL multiplies the KL by the ratio unless use_bias_correction_kl=False, which is GRPO as its paper has it.
    """
    wrote = pushed(start, 1)
    learns = pushed(wrote, 2, drift)
    config = {"loss_type": "grpo", "beta": beta, "num_iterations": 2, "use_bias_correction_kl": False}
    trainer = online_trainer("GRPO", start, groups, REWARDS, tmp_path, **config)
    hand_over(wrote, trainer.model, tmp_path / "wrote")
    inputs = replay(trainer)
    hand_over(learns, trainer.model, tmp_path / "learns")
    theirs = trainer.compute_loss(trainer.model, inputs)
    theirs.backward()

    recipe = grpo(n=N, beta=beta, eps=0.2)
    run = Run(wrote, reference=start)
    batch = collated(groups, scored(REWARDS), recipe, run)
    stats = backward(learns, batch, recipe, run, 200)
    assert (stats["ratio_far"] > 0.1) == (drift > 0)
    assert stats["loss"] == pytest.approx(theirs.item(), abs=CLOSE)
    assert_same_gradient(learns, trainer.model, tmp_path / "gradient")


@pytest.mark.parametrize("rewards", [REWARDS, MISSING], ids=["all judged", "some without a verdict"])
def test_rloo_advantages(start, groups, rewards, tmp_path):
    """Each against the mean of the others that were judged; no credit where there are none."""
    theirs = replay(online_trainer("RLOO", start, groups, rewards, tmp_path, beta=0.0))["advantages"]
    batch = collated(groups, scored(rewards), rloo(n=N), Run(start))
    assert float(theirs.abs().max()) > 0.5
    assert torch.allclose(row_credit(batch), theirs, atol=CLOSE)


def test_rloo_gradient(start, groups, tmp_path):
    """On policy the gradients are one.

    TRL's loss is -A times the clipped ratio of whole sequences, ours -A log pi as in the paper: other numbers, but where
    the weights are those that wrote, d ratio = ratio d log pi = d log pi, and nothing is clipped. After the first of
    several updates they part: TRL goes on with the ratio, ours has none. TRL subtracts the KL from the reward, we add
    it to the loss, so beta is 0 here.
    """
    learns = pushed(start, 1)
    trainer = online_trainer("RLOO", start, groups, REWARDS, tmp_path, beta=0.0)
    hand_over(learns, trainer.model, tmp_path / "learns")
    inputs = replay(trainer)
    trainer.compute_loss(trainer.model, inputs).backward()
    recipe = rloo(n=N)
    run = Run(learns)
    backward(learns, collated(groups, scored(REWARDS), recipe, run), recipe, run, 200)
    assert_same_gradient(learns, trainer.model, tmp_path / "gradient")


# ---- recorded --------------------------------------------------------------------------------------------------------


def pairs_of(groups) -> list[list[Trajectory]]:
    """The first reply of a group preferred to the second, the third to the fourth."""
    return [group[i : i + 2] for group in groups for i in (0, 2)]


def test_dpo(start, groups, tmp_path):
    pairs, learns = pairs_of(groups), pushed(start, 3, 0.3)
    start.save(tmp_path / "start")
    trainer = trl.DPOTrainer(
        str(tmp_path / "start"),
        args=trl.DPOConfig(**settings(tmp_path, beta=0.3, loss_type=["sigmoid"])),
        train_dataset=one_row(prompt="?", chosen="a", rejected="b"),
        processing_class=start.tokenizer,
    )
    hand_over(learns, trainer.model, tmp_path / "learns")
    trainer.model.train()
    rows = [{"prompt_ids": ids_of(a)[0], "chosen_ids": ids_of(a)[1], "rejected_ids": ids_of(b)[1]} for a, b in pairs]
    theirs = trainer.compute_loss(trainer.model, trainer.data_collator(rows))
    theirs.backward()

    recipe, run = dpo(beta=0.3), Run(learns, reference=start)
    stats = backward(learns, collated(pairs, None, recipe, run), recipe, run, 200)
    assert abs(stats["loss"] - 0.6931) > 1e-3
    assert stats["loss"] == pytest.approx(theirs.item(), abs=CLOSE)
    assert_same_gradient(learns, trainer.model, tmp_path / "gradient")


def test_bradley_terry(start, groups, tmp_path):
    pairs, model = pairs_of(groups), pushed(start, 4).copy("reward", value_head=True)
    torch.nn.init.normal_(model.model.value_head, generator=torch.Generator().manual_seed(5))
    model.save(tmp_path / "model")
    trainer = trl.RewardTrainer(
        str(tmp_path / "model"),
        args=trl.RewardConfig(**settings(tmp_path, disable_dropout=True)),
        train_dataset=one_row(chosen_ids=[5, 6], rejected_ids=[5, 7]),
        processing_class=start.tokenizer,
    )
    trainer.model.train()
    rows = [{"chosen_ids": a.ids.tolist(), "rejected_ids": b.ids.tolist()} for a, b in pairs]
    theirs = trainer.compute_loss(trainer.model, trainer.data_collator(rows))
    theirs.backward()

    recipe, run = bradley_terry().also[0].recipe, Run(start)
    stats = backward(model, collated(pairs, None, recipe, run), recipe, run, 200)
    assert abs(stats["loss"] - 0.6931) > 1e-3
    assert stats["loss"] == pytest.approx(theirs.item(), abs=CLOSE)
    assert_same_gradient(model, trainer.model, tmp_path / "gradient")


def test_sft(start, groups, tmp_path):
    """The mean over all tokens of all replies; prompts are read, not imitated."""
    start.save(tmp_path / "start")
    rows = [ids_of(row) for group in groups for row in group]
    columns = [{"input_ids": p + r, "completion_mask": [0] * len(p) + [1] * len(r)} for p, r in rows]
    trainer = trl.SFTTrainer(
        str(tmp_path / "start"),
        args=trl.SFTConfig(**settings(tmp_path, completion_only_loss=True)),
        train_dataset=datasets.Dataset.from_list(columns),
        processing_class=start.tokenizer,
    )
    trainer.model.train()
    theirs = trainer.compute_loss(trainer.model, trainer.data_collator(list(trainer.train_dataset)))
    theirs.backward()

    learns, recipe = start.copy("policy"), sft()
    stats = backward(learns, collated(groups, None, recipe, Run(learns)), recipe, Run(learns), 200)
    assert stats["loss"] == pytest.approx(theirs.item(), abs=CLOSE)
    assert_same_gradient(learns, trainer.model, tmp_path / "gradient")
