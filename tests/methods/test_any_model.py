"""Methods take a step on any model of transformers and on rows of a user's own."""

from __future__ import annotations

import json
import math

import pytest

from rewardlab import registry
from rewardlab.api import train
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.settings.hyperparameters import hyperparameters
from tests.helpers.checkpoints import checkpoint
from tests.helpers.seen import looker, saved
from tests.helpers.tiers import one_in

SEARCHERS = (
    "igpo", "spa_rl", "hdpo_metis", "masksearch", "oprl_implicit_step", "stepsearch", "search_r2", "spear", "otc_po",
    "atom_searcher", "ppr_renorm",
)  # fmt: skip
SCORERS = (
    "er_prm", "groundedprm", "fin_prm", "calibrated_prm_ias", "meds3", "glore", "omegaprm", "hierarchical_reward_model",
    "reasonflux_prm", "aurora_universal_prm", "pqm", "scan", "pdpo_planning",
)  # fmt: skip
GUESSING = """
from rewardlab.core import Message, environment

def opened(problem, seed):
    return None, problem

@environment(start=opened)
def guessing(state, turn):
    return Message("user", "no", reward=len(turn.text) % 3 / 2), state
"""
DOCUMENTS = [
    {"id": "a", "title": "Emma", "text": "A novel by Jane Austen."},
    {"id": "b", "title": "Dublin", "text": "The capital of Ireland."},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny Qwen2 with random weights: no model that the small policies come from."""
    folder = tmp_path_factory.mktemp("model")
    checkpoint(folder, tokenizer(), "Qwen2ForCausalLM", max_position_embeddings=1024)
    return f"hf:{folder}"


def one_step(method, model, rows, folder, lora_rank=None, **settings):
    """A run of one step on these rows; settings that the method does not have are left out."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    known = hyperparameters(registry.method(method)).keys() | {"problems", "minibatches", "epochs"}
    small = {"problems": 2, "minibatches": 1, "epochs": 1, "n": 2, "turns": 2, "choose": 2, "continuations": 2, "iterations": 2}
    given = {k: v for k, v in (small | settings).items() if k in known}
    return train(
        method, model, str(folder / "rows.jsonl"), steps=1, out=folder / "run", settings=given, eval_problems=2, max_new=6,
        device="cpu", patience=0, max_missing=1.0, lora_rank=lora_rank,
    )  # fmt: skip


def finished(result) -> bool:
    """Whether the step was taken, and all that was measured in it is a number."""
    rows = [json.loads(line) for line in (result.out / "metrics.jsonl").read_text().splitlines()]
    assert all(math.isfinite(x) for name, x in rows[-1].items() if "loss" in name or "grad_norm" in name)
    return result.summary["steps"] == rows[-1]["step"] == 1


@pytest.mark.parametrize("method", one_in(3, SEARCHERS))
def test_a_method_that_searches_takes_a_step_on_documents_of_the_users(method, model, tmp_path):
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(d) + "\n" for d in DOCUMENTS))
    rows = [
        {"prompt": f"Who wrote Emma? {i}", "answer": "Jane Austen", "masks": 1, "searches": ["Emma novel"],
         "gold_documents": [DOCUMENTS[0]["text"]], "supporting": [DOCUMENTS[0]["text"]]}
        for i in range(6)
    ]  # fmt: skip
    result = one_step(method, model, rows, tmp_path, corpus=str(tmp_path / "docs.jsonl"))
    assert finished(result)


# without adapters they take the road test, on another family
@pytest.mark.parametrize("lora_rank", [pytest.param(None, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("method", one_in(3, SCORERS))
def test_a_process_reward_model_starts_from_any_model(method, lora_rank, model, tmp_path):
    if lora_rank:
        pytest.importorskip("peft")
    rows = [{"prompt": f"{i} + 1 = ?", "answer": i + 1} for i in range(6)]
    result = one_step(method, model, rows, tmp_path, lora_rank=lora_rank)
    assert finished(result)


def test_the_generator_and_the_verifier_of_tango_are_the_users_model(model, tmp_path):
    rows = [{"prompt": f"{i} + 1 = ?", "answer": i + 1} for i in range(6)]
    result = one_step("rl_tango", model, rows, tmp_path, n_verdicts=2, every=1, max_judgement=8)
    assert finished(result)
    # both were asked, and the verifier learnt from solutions with a verdict
    assert "verdict" in result.summary["after"]
    assert (result.out / "checkpoints" / "step-000001" / "verifier.safetensors").exists()


@pytest.mark.parametrize(
    ("method", "columns", "match"),
    [
        ("barfi", {}, "barfi takes no rows of text: a world of moves: train it on --task gridworld"),
        (
            "ipl",
            {"chosen": "yes", "rejected": "no"},
            "ipl takes no rows of text: a world of forces, not of text: train it on --task pointmass",
        ),
        ("thinkprm", {}, r"thinkprm needs a column that the data lacks:\s+verdicts: a label for each step"),
        ("vlm_r1", {}, r"vlm_r1 needs 2 columns that the data lacks:\s+images: .*\n\s+boxes: .*\[left, top, right, bottom\]"),
    ],
)
def test_rows_without_what_a_method_reads_are_refused_in_words(method, columns, match, model, tmp_path):
    rows = [{"prompt": f"{i} + 1 = ?", "answer": i + 1, **columns} for i in range(6)]
    with pytest.raises(RewardlabError, match=match):
        one_step(method, model, rows, tmp_path)


def test_one_gold_box_is_referred_to_and_several_are_detected(model, tmp_path):
    boxes, names = ([[0, 0, 4, 4]], [[0, 0, 4, 4], [5, 5, 9, 9]]), saved(tmp_path, 6)
    rows = [{"prompt": "where is it ?", "answer": "none", "boxes": boxes[i % 2], "image": name} for i, name in enumerate(names)]
    with pytest.raises(RewardlabError, match="line 1: the prompt shows a picture, and the model reads text alone"):
        one_step("vlm_r1", model, rows, tmp_path)
    blind = [{k: v for k, v in row.items() if k != "image"} | {"prompt": f"{i} ?"} for i, row in enumerate(rows)]
    with pytest.raises(RewardlabError, match=r"vlm_r1 needs a column that the data lacks:\s+images: pictures"):
        one_step("vlm_r1", model, blind, tmp_path)
    assert finished(one_step("vlm_r1", looker(tmp_path / "model"), rows, tmp_path))


@pytest.mark.parametrize("method", ["dr_kernel_trloo"])
def test_a_method_with_a_task_of_its_own_takes_an_environment_of_the_users(method, model, tmp_path):
    (tmp_path / "mine.py").write_text(GUESSING)
    rows = [{"prompt": f"Guess a number, {i}.", "answer": i} for i in range(6)]
    assert finished(one_step(method, model, rows, tmp_path, env=f"{tmp_path / 'mine.py'}:guessing", turns=2))
    with pytest.raises(RewardlabError, match=f"{method} takes no rows of text"):
        one_step(method, model, rows, tmp_path)
