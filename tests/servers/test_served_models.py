"""Reward models behind the reward server: what they note while they are loaded, and what they have not read of a row."""

from __future__ import annotations

import json

import pytest
from listening import get, listening, post

from rewardlab.models.embedded import tokenizer
from rewardlab.servers import serve_rewards
from rewardlab.servers.http import Address
from rewardlab.util.progress import console
from tests.helpers.checkpoints import checkpoint


@pytest.fixture
def run(tmp_path):
    """A run that trained for two steps, and has kept the reward model that it began with."""
    folder = tmp_path / "run"
    for which in ("best", "model"):
        checkpoint(folder / which, tokenizer(), "LlamaForSequenceClassification", num_labels=1)
    (folder / "best" / "step.json").write_text(json.dumps({"step": 0}))
    (folder / "config.json").write_text(json.dumps({"recipe": {}}))
    rows = [{"step": 0, "eval/pair_accuracy": 0.5}, {"step": 2, "eval/pair_accuracy": 0.4}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_notes_of_a_worker_are_printed_and_a_row_that_is_longer_than_the_model_reads_says_so_and_is_counted(run, monkeypatch):
    found = {}

    def asked(app, sock, **more):
        with listening(app) as url:
            rows = [{"prompt": prompt, "response": "2"} for prompt in ("1+1=?", "1+1=?" * 20)]
            found["scores"] = post(f"{url}/score", {"rows": rows}).document["scores"]
            found["metrics"] = get(f"{url}/metrics").document

    monkeypatch.setattr(serve_rewards, "run", asked)
    with console.capture() as said:
        served = serve_rewards.serve([f"model:{run}?max_tokens=24"], None, Address("127.0.0.1", 0, None, 1, 1), workers=1)
    assert said.get().count(f"note: {run / 'best'} is the model from before training (step 0)") == 1
    read, cut = found["scores"]
    assert "cut_off" not in read
    assert read["why"] == ""
    assert cut["cut_off"] is True
    assert cut["why"] == "the conversation is longer than the 24 tokens that the reward model reads: its beginning was cut off"
    assert isinstance(cut["score"], float)
    assert "\nrewardlab_rows_cut_off 1.0" in found["metrics"]
    assert served["cut_off"] == 1
