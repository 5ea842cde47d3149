"""Which references stay beside the checkpoints of a run whose method renews them."""

from types import SimpleNamespace

import pytest
import torch

from rewardlab.core import Run
from rewardlab.engine import checkpoint


def reference(value: float) -> SimpleNamespace:
    """A reference model of one weight."""
    model = SimpleNamespace(weight=torch.tensor([value]))
    model.state = lambda: {"weight": model.weight}
    model.load_state = lambda state: setattr(model, "weight", state["weight"])
    return model


def train(folder, steps, renewed):
    """Checkpoints at these steps, some of them with a reference that was renewed since the one before."""
    for step in steps:
        if step in renewed:
            checkpoint.save_reference(folder, reference(float(step)), step)
        checkpoint.save(folder, Run(None, step=step), {}, position=0)


def kept(folder):
    return [path.name for path in sorted(folder.glob("reference*"))]


def loaded(folder, step):
    found = reference(-1.0)
    checkpoint.load_reference(folder, found, step)
    return float(found.weight)


def test_a_reference_goes_with_the_last_checkpoint_that_was_made_with_it(tmp_path):
    train(tmp_path, [0, 3, 6], renewed=[0, 6])
    # the checkpoint of step 3 was made with the first one
    assert kept(tmp_path) == ["reference", "reference-000006"]
    assert [loaded(tmp_path, step) for step in (3, 6)] == [0.0, 6.0]
    train(tmp_path, [9], renewed=[])
    assert kept(tmp_path) == ["reference-000006"]
    assert [loaded(tmp_path, step) for step in (6, 9)] == [6.0, 6.0]
    train(tmp_path, [12, 15, 18], renewed=[12, 15, 18])
    assert kept(tmp_path) == ["reference-000015", "reference-000018"]
    assert [loaded(tmp_path, step) for step in (15, 18)] == [15.0, 18.0]


@pytest.mark.parametrize("removed", [False, True])
def test_a_run_killed_while_it_drops_references_resumes_and_drops_them_later(removed, tmp_path, monkeypatch):
    train(tmp_path, [0, 3], renewed=[0, 3])
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_drop_references", lambda folder: None)
        train(tmp_path, [6], renewed=[6])
    if removed:
        (tmp_path / "reference" / "model.safetensors").unlink()
    assert len(kept(tmp_path)) == 3
    assert [loaded(tmp_path, step) for step in (3, 6)] == [3.0, 6.0]
    train(tmp_path, [9], renewed=[])
    assert kept(tmp_path) == ["reference-000006"]


def test_a_run_without_a_reference_has_none_to_drop(tmp_path):
    train(tmp_path, [0, 3, 6, 9], renewed=[])
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["step-000006", "step-000009"]
    assert kept(tmp_path) == []


def test_a_reference_of_a_step_that_is_made_again_is_not_taken_for_one_of_this_time(tmp_path):
    train(tmp_path, [0, 3], renewed=[0])
    # killed before the checkpoint of step 6; resumed, the run renews its reference at another step
    checkpoint.save_reference(tmp_path, reference(6.0), 6)
    checkpoint.drop_later_references(tmp_path, 3)
    train(tmp_path, [6], renewed=[])
    assert loaded(tmp_path, 6) == 0.0
