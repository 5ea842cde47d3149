"""IPO, KTO and Step-DPO: losses and gradients equal TRL's, run on the same weights and the same tokens, as in test_trl.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_trl import CLOSE, assert_same_gradient, collated, hand_over, ids_of, one_row, pushed, settings, trl

from rewardlab.core import Recipe, Run, Trajectory, ask
from rewardlab.engine.update import backward
from rewardlab.methods.baselines.ipo import ipo
from rewardlab.methods.baselines.kto import BAD, GOOD, kto, mismatched
from rewardlab.methods.baselines.step_dpo import step_dpo
from rewardlab.models.embedded import untrained

pytestmark = pytest.mark.filterwarnings("ignore")

QUESTIONS = ("1+1=?", "12*3-4=?", "what comes after 41?", "Start with 7. Add 5.")
UNEQUAL = (
    ("2", "one and one make three"), ("12*3=36\n36-4=32\n32", "12*3=15\n15-4=11\n11"), ("after 41 comes 42, I should say", "no"),
    ("7+5=12\nAnswer: 12", "7+5=21\nAnswer: 21"),
)  # fmt: skip
EQUAL = (("02", "20"), ("32", "11"), ("42", "43"), ("12", "21"))
LENGTH = 3  # two digits, and the end of the reply


@pytest.fixture(scope="module")
def start():
    return untrained(hidden=32, layers=2)


def written(policy, replies: tuple[tuple[str, str], ...]) -> list[list[Trajectory]]:
    """One group for each question, with the good reply before the bad one."""
    problems = [ask(q) for q in QUESTIONS for _ in range(2)]
    asked = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = policy.write(asked, [text for pair in replies for text in pair])
    rows = [replace(t, tag=(GOOD, BAD)[i % 2]) for i, t in enumerate(rows)]
    return [rows[i : i + 2] for i in range(0, len(rows), 2)]


def by_dpo_trainer(start, learns, rows: list[dict], folder: Path, **config):
    """TRL's DPOTrainer after a backward pass on rows of ids, and its loss."""
    start.save(folder / "start")
    trainer = trl.DPOTrainer(
        str(folder / "start"),
        args=trl.DPOConfig(**settings(folder, **config)),
        train_dataset=one_row(prompt="?", chosen="a", rejected="b"),
        processing_class=start.tokenizer,
    )
    hand_over(learns, trainer.model, folder / "learns")
    trainer.model.train()
    loss = trainer.compute_loss(trainer.model, trainer.data_collator(rows))
    loss.backward()
    return trainer, loss.item()


def by_us(recipe: Recipe, start, learns, groups) -> float:
    run = Run(learns, reference=start)
    return backward(learns, collated(groups, None, recipe, run), recipe, run, 200)["loss"]


def pairs_of(groups) -> list[dict]:
    return [{"prompt_ids": ids_of(a)[0], "chosen_ids": ids_of(a)[1], "rejected_ids": ids_of(b)[1]} for a, b in groups]


def test_ipo_averaged_over_tokens(start, tmp_path):
    groups, learns = written(start, UNEQUAL), pushed(start, 3, 0.3)
    trainer, theirs = by_dpo_trainer(start, learns, pairs_of(groups), tmp_path, beta=0.3, loss_type=["ipo"])
    ours = by_us(ipo(tau=0.3, average=True), start, learns, groups)
    assert abs(ours - (1 / 0.6) ** 2) > 1e-2
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert_same_gradient(learns, trainer.model, tmp_path / "gradient")


def test_ipo_summed_over_tokens(start, tmp_path):
    """Of replies of one length L: (h - 1 / (2 tau))^2 = L^2 (h / L - 1 / (2 L tau))^2, TRL's with L tau, L^2 times."""
    groups, learns = written(start, EQUAL), pushed(start, 3, 0.3)
    assert {int(t.mask.sum()) for pair in groups for t in pair} == {LENGTH}
    _, theirs = by_dpo_trainer(start, learns, pairs_of(groups), tmp_path, beta=LENGTH * 0.3, loss_type=["ipo"])
    ours = by_us(ipo(tau=0.3), start, learns, groups)
    assert abs(ours - (1 / 0.6) ** 2) > 1e-2
    assert ours == pytest.approx(LENGTH**2 * theirs, abs=CLOSE)


def test_step_dpo(start, tmp_path):
    """TRL's DPO on prompts that hold the steps in common, and replies of one step, which do not end."""
    steps = (("", "1+1=2\n", "1+1=3\n"), ("12*3=36\n", "36-4=32\n", "36-40=0\n"), ("41\n", "42\n", "no\n"), ("", "7+5=12\n", "7\n"))
    after = "so that is it"
    problems, rows = [], []
    for question, (known, good, bad) in zip(QUESTIONS, steps, strict=True):
        problem = ask(question, chosen=known + good + after, rejected=known + bad + after)
        prompt, *replies = (start.tokenizer(text)["input_ids"] for text in (start._render(problem.prompt) + known, good, bad))
        problems.append(problem)
        rows.append({"prompt_ids": prompt, "chosen_ids": replies[0], "rejected_ids": replies[1]})
    recipe, learns = step_dpo(beta=0.3), pushed(start, 3, 0.3)
    trainer, theirs = by_dpo_trainer(start, learns, rows, tmp_path, beta=0.3, loss_type=["sigmoid"])
    ours = by_us(recipe, start, learns, recipe.rollout(problems, Run(learns)))
    assert abs(ours - 0.6931) > 1e-3
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert_same_gradient(learns, trainer.model, tmp_path / "gradient")


@pytest.mark.parametrize(("seed", "scale", "above"), [(3, 0.3, True), (4, 0.3, False)], ids=["z0 above 0", "z0 clamped"])
def test_kto(start, seed, scale, above, tmp_path):
    """Good and bad replies to four prompts, of which one prompt has only a good and one only a bad one."""
    learns = pushed(start, seed, scale)
    first, second, third, fourth = written(start, UNEQUAL)
    groups = [first, [second[0]], [third[1]], fourth]
    flat = [t for group in groups for t in group]
    apart = [ids_of(t) for t in mismatched(flat, start.context)]
    columns = [
        {"prompt_ids": ids_of(t)[0], "completion_ids": ids_of(t)[1], "KL_completion_ids": reply, "label": t.tag == GOOD}
        for t, (_, reply) in zip(flat, apart, strict=True)
    ]
    start.save(tmp_path / "start")
    config = {"beta": 0.3, "desirable_weight": 1.5, "undesirable_weight": 0.75}
    trainer = trl.KTOTrainer(
        str(tmp_path / "start"),
        args=trl.KTOConfig(**settings(tmp_path, **config)),
        train_dataset=one_row(prompt="?", completion="a", label=True),
        processing_class=start.tokenizer,
    )
    hand_over(learns, trainer.model, tmp_path / "learns")
    trainer.model.train()
    theirs = trainer.compute_loss(trainer.model, trainer.data_collator(columns))
    theirs.backward()

    recipe, run = kto(beta=0.3, desirable=1.5, undesirable=0.75), Run(learns, reference=start)
    batch = collated(groups, None, recipe, run)
    ours = backward(learns, batch, recipe, run, 200)["loss"]
    assert (run.metrics["reference_point"] > 0.01) == above
    assert run.metrics["reference_point"] == pytest.approx(trainer._metrics["train"]["kl"][0], abs=1e-4)
    assert ours == pytest.approx(theirs.item(), abs=CLOSE)
    assert_same_gradient(learns, trainer.model, tmp_path / "gradient")
