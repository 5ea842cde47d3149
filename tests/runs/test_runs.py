"""What a run leaves behind, and what can be done with it."""

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from rewardlab.commands import cli
from rewardlab.core import Message, Trajectory, ask
from rewardlab.models.embedded import untrained
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.runs.metrics import read_metrics
from rewardlab.runs.record import _pieces

REWARDS = """
def spaces(completion):
    return completion.count(" ")

def brief(completions, level):
    return [0.0 if not text else -0.01 * len(text) * l for text, l in zip(completions, level)]
"""
METHODS = {
    "short": '''"""Short: pay for brevity too."""
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.length import length_penalty

def short(base=None, *, per_token=0.5):
    base = base or grpo()
    return base.but(reward=base.reward + length_penalty(per_token=per_token))

claim = None
''',
    "scripted": '''"""Scripted: held-out numbers that are known beforehand."""
from rewardlab.core import measure
from rewardlab.methods.baselines.grpo import grpo

@measure
def told(problems, run):
    return {"told": {0: 0.1, 2: 0.5, 4: 0.3}[run.step], "n": len(problems)}

def scripted(base=None):
    return (base or grpo(n=4)).but(measure=told())

claim = None
''',
}
ROWS = [{"prompt": f"Say {n} <b>twice</b>", "answer": n, "level": n % 3} for n in range(20)]
HELD_OUT = 4  # of those, by a hash of their prompts
FLAGS = "--problems 2 --lr 0.01 --max-new 6 --steps 4 --eval-every 2 --eval-problems 5 --checkpoint-every 2 --device cpu"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a model, problems, rewards and methods."""
    folder = tmp_path_factory.mktemp("runs")
    untrained().save(folder / "model")
    (folder / "rewards.py").write_text(REWARDS)
    (folder / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in ROWS))
    (folder / "methods" / "local").mkdir(parents=True)
    for name, text in METHODS.items():
        (folder / "methods" / "local" / f"{name}.py").write_text(text)
    return folder


@pytest.fixture(scope="module", autouse=True)
def own_methods(home):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REWARDLAB_METHODS", str(home / "methods"))
        yield


def rewardlab(line: str, home: Path) -> None:
    assert cli.main(line.format(home=home).split()) == 0


@pytest.fixture(scope="module")
def run(home):
    """A finished run on problems and two rewards of the user's own."""
    own = "--task {home}/mine.jsonl --reward {home}/rewards.py:spaces --reward {home}/rewards.py:brief"
    rewardlab(f"train grpo --n 4 {own} {FLAGS} --model {{home}}/model --out {{home}}/run", home)
    return home / "run"


@pytest.fixture
def asked(home, capsys):
    """Run a command line with --json and give its document."""

    def ask(line):
        capsys.readouterr()
        rewardlab(f"{line} --json", home)
        return json.loads(capsys.readouterr().out)

    return ask


def test_a_run_folder_holds_all_that_it_should(run):
    assert {p.name for p in run.iterdir()} == {
        *("config.json", "metrics.jsonl", "summary.json", "report.html"),
        *("rollouts", "checkpoints", "best", "model"),
    }
    assert [p.name for p in sorted((run / "checkpoints").iterdir())] == ["step-000002", "step-000004"]
    assert [p.stem for p in sorted((run / "rollouts").iterdir())] == ["step-000001", "step-000002", "step-000004"]
    hugging_face = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}
    hugging_face |= {"generation_config.json"}
    assert {p.name for p in (run / "model").iterdir()} == hugging_face
    assert {p.name for p in (run / "best").iterdir()} == hugging_face | {"step.json"}
    config = json.loads((run / "config.json").read_text())
    assert (config["method"], config["task"], config["seed"], config["steps"], config["max_new"]) == ("grpo", "mine", 0, 4, 6)
    assert "reward     from_file(" in config["formula"]
    assert {"rewardlab", "torch", "python"} <= config["versions"].keys()
    report = (run / "report.html").read_text()
    assert "spaces" in report
    assert "Say 1 <b>" not in report


def test_metrics_have_one_line_a_step_with_what_is_worth_watching(run):
    lines = read_metrics(run)
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4]
    held_out = {"eval/reward", "eval/pass@1", "eval/ci95_low", "eval/ci95_high", "eval/n"}
    always = {
        *("step", "reward", "reward/spaces", "reward/brief", "missing", "truth", "length", "tokens"),
        *("loss", "entropy", "grad_norm", "lr", "seconds/generate", "seconds/reward", "seconds/train", "seconds/step"),
    }
    assert lines[0].keys() == {"step", *held_out}
    for line in lines[1:]:
        assert always <= line.keys()
        assert (held_out <= line.keys()) == (line["step"] % 2 == 0)
        assert all(isinstance(v, int | float) and math.isfinite(v) for v in line.values())
        assert line["reward"] == pytest.approx(line["reward/spaces"] + line["reward/brief"])
        assert 0 < line["length"] <= 6
    assert 0 < lines[1]["tokens"] < lines[2]["tokens"] < lines[4]["tokens"]


def whole(text: str) -> str:
    """The text of a reply as far as it consists of whole characters."""
    return text.removesuffix("<|im_end|>").partition("\ufffd")[0]


def test_rollouts_say_token_by_token_what_was_drawn_and_paid(run):
    table = pq.read_table(run / "rollouts" / "step-000002.parquet").to_pylist()
    line = read_metrics(run)[2]
    assert [(r["group"], r["row"]) for r in table] == [(g, k) for g in range(2) for k in range(4)]
    assert np.mean([r["reward"] for r in table]) == pytest.approx(line["reward"])
    assert np.mean([sum(r["mask"]) for r in table]) == pytest.approx(line["length"])
    for row in table:
        n = len(row["tokens"])
        assert n == len(row["mask"]) == len(row["credit"]) == len(row["logprob"])
        drawn = "".join(t for t, own in zip(row["tokens"], row["mask"], strict=True) if own)
        # a token that is a part of a character has no text of its own
        assert row["reply"].startswith(whole(drawn))
        assert row["question"] in "".join(row["tokens"][: row["mask"].index(True)])
        assert [lp is not None for lp in row["logprob"]] == row["mask"]
        assert all(c == 0 for c, own in zip(row["credit"], row["mask"], strict=True) if not own)
        terms = json.loads(row["terms"])
        assert terms["spaces"] == row["reply"].count(" ")
        assert row["reward"] == pytest.approx(sum(terms.values()))
        assert row["stop"] in ("end", "length")
        assert (row["step"], row["truth"]) == (2, 0.0)
    assert any(whole(row["reply"]) for row in table)
    for g in range(2):
        paid = [r["reward"] for r in table if r["group"] == g]
        credit = [r["credit"][-1] for r in table if r["group"] == g]
        assert [credit[i] for i in np.argsort(paid)] == pytest.approx(sorted(credit))
        assert sum(credit) == pytest.approx(0, abs=1e-5)


def test_the_summary_tells_before_and_after(run):
    summary = json.loads((run / "summary.json").read_text())
    assert [summary[k] for k in ("method", "task", "seed", "steps")] == ["grpo", "mine", 0, 4]
    for side in ("before", "after", "best"):
        low, high = summary[side]["ci95"]
        assert low <= summary[side]["reward"] <= high
        assert summary[side]["n"] == HELD_OUT
    assert summary["seconds"]["train"] > 0


def test_the_best_model_is_kept_beside_the_last(home, asked):
    out = home / "scripted"
    summary = asked(f"train scripted --task {{home}}/mine.jsonl --reward {{home}}/rewards.py:spaces {FLAGS}"
                    f" --model {{home}}/model --out {out}")  # fmt: skip
    assert summary["best"] == {"step": 2, "told": 0.5, "n": HELD_OUT, "ci95": [None, None]}
    assert (summary["before"]["told"], summary["after"]["told"]) == (0.1, 0.3)
    for kept, step in (("best", 2), ("model", 4)):
        saved = load_file(out / "checkpoints" / f"step-{step:06d}" / "policy.safetensors")
        policy = LlamaPolicy.load(out / kept, "cpu", "float32")
        assert all(torch.equal(policy.state()[k], v) for k, v in saved.items())
    assert asked(f"export {out} {home}/exported-best")["which"] == "best"
    assert asked(f"export {out} {home}/exported-last --last")["which"] == "last"
    for which, kept in (("best", "best"), ("last", "model")):
        same = (home / f"exported-{which}" / "model.safetensors").read_bytes()
        assert same == (out / kept / "model.safetensors").read_bytes()
    assert (out / "best" / "model.safetensors").read_bytes() != (out / "model" / "model.safetensors").read_bytes()


def test_a_resumed_run_keeps_no_best_model_of_a_step_it_made_again_and_counts_all_its_time(home, asked, capsys):
    out = home / "resumed"
    asked(
        f"train scripted --task {{home}}/mine.jsonl --reward {{home}}/rewards.py:spaces {FLAGS} --model {{home}}/model --out {out}"
    )
    # as if it had been killed after the fourth step, which was then the best and this time is not
    for path in (out / "summary.json", out / "report.html"):
        path.unlink()
    shutil.rmtree(out / "checkpoints" / "step-000004")
    (out / "best" / "step.json").write_text('{"step": 4}')
    (out / "best" / "model.safetensors").write_bytes((out / "model" / "model.safetensors").read_bytes())
    lines = read_metrics(out)
    lines[1]["seconds/step"] = 1000.0
    (out / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    summary = asked(f"train --resume {out}")
    assert summary["best"]["step"] == json.loads((out / "best" / "step.json").read_text())["step"] == 2
    saved = load_file(out / "checkpoints" / "step-000002" / "policy.safetensors")
    policy = LlamaPolicy.load(out / "best", "cpu", "float32")
    assert all(torch.equal(policy.state()[k], v) for k, v in saved.items())
    assert 1000 < summary["seconds"]["train"] < 2000


def test_an_exported_run_is_an_ordinary_hugging_face_checkpoint(run, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    rewardlab(f"export {run} {tmp_path}/hf --last", run)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "hf", dtype=torch.float32).eval()
    words = AutoTokenizer.from_pretrained(tmp_path / "hf")
    ours = LlamaPolicy.load(run / "model", "cpu", "float32")
    text = ours.write(ours.read([Trajectory(ask("Say 7"))], [[Message("user", "Say 7")]]), ["7 and 7"])[0]
    prompt = words.apply_chat_template([{"role": "user", "content": "Say 7"}], add_generation_prompt=True, return_dict=False)
    assert text.turns[0].ids.tolist() == list(prompt)
    ids = torch.from_numpy(text.ids)[None]
    with torch.no_grad():
        logprobs = theirs(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None]).squeeze(1)
    np.testing.assert_allclose(ours.score([text])[0][1:], logprobs.numpy(), atol=1e-4)


def test_a_run_and_its_export_are_measured_alike(run, home, asked):
    asked(f"export {run} {home}/exported")
    flags = "--task arithmetic:difficulty=1,test_size=20 --k 1,2 --problems 6 --device cpu"
    whole, exported = asked(f"eval {run} {flags}"), asked(f"eval {home}/exported {flags}")
    assert whole["n"] == 6
    assert whole["pass@1"]["ci95"][0] <= whole["pass@1"]["value"] <= whole["pass@2"]["value"] <= 1
    assert {k: v for k, v in whole.items() if k != "model"} == {k: v for k, v in exported.items() if k != "model"}


def test_a_dry_run_tells_what_training_would_need_and_writes_nothing(home, asked, tmp_path):
    line = "train grpo --n 4 --beta 0.1 --problems 3 --task {home}/mine.jsonl --max-new 6 --model {home}/model"
    plan = asked(f"{line} --dry-run --out {tmp_path}/none")
    weights = sum(p.numel() for p in untrained().parameters())
    assert plan["parameters"] == weights
    assert plan["rows_per_step"] == 12
    assert 12 * (6 + len("Say 1 twice") // 2) < plan["tokens_per_step"] < 12 * (6 + 60)
    assert 4 * weights * 5 < plan["memory_bytes"] < 4 * weights * 5 + 2**24
    assert (plan["columns"], plan["batch_columns"]) == (["prompt", "answer", "level"], ["old", "ref"])
    assert "kl_to_reference()" in plan["formula"]
    assert not (tmp_path / "none").exists()


def test_a_dry_run_names_the_rewards_that_lack_a_column(asked, tmp_path):
    rows = [{"prompt": f"Which, {i}?\nA one\nB two", "answer": "A"} for i in range(9)]
    lacking, whole = tmp_path / "lacking.jsonl", tmp_path / "whole.jsonl"
    lacking.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole.write_text("".join(json.dumps(row | {"options": ["one", "two"], "required": ["one"]}) + "\n" for row in rows))
    reward = "correct()+rationale_agrees()+rationale_coverage()"
    line = f"train grpo --reward {reward} --max-new 6 --model {{home}}/model --dry-run --task"
    missing = asked(f"{line} {lacking}")["no_verdict"]
    assert "'options'" in missing["rationale_agrees"]
    assert "'required'" in missing["rationale_coverage"]
    assert asked(f"{line} {whole}")["no_verdict"] == {}


def test_a_stack_of_methods_trains_and_logs_every_term(home, asked):
    out = home / "stacked"
    base = f"--task arithmetic:difficulty=1,test_size=20 {FLAGS} --model {{home}}/model --out {out}"
    summary = asked(f"train grpo+short --n 4 --short.per-token 0.25 {base}")
    assert summary["method"] == "grpo+short"
    for line in read_metrics(out)[1:]:
        assert line["reward/length_penalty"] == pytest.approx(-0.25 * line["length"])
        assert line["reward"] == pytest.approx(line["reward/correct"] + line["reward/length_penalty"])
        assert line["truth"] == line["reward/correct"]


def test_problems_come_from_parquet_with_columns_of_any_name(home, asked):
    table = pa.table({"q": [f"What is {n}?" for n in range(12)], "a": [str(n) for n in range(12)]})
    pq.write_table(table, home / "mine.parquet")
    columns = "--prompt-column q --answer-column a --system Think."
    own = f"--task {{home}}/mine.parquet {columns} --reward {{home}}/rewards.py:spaces"
    asked(f"train rloo --n 4 {own} {FLAGS} --model {{home}}/model --out {{home}}/parquet")
    row = pq.read_table(home / "parquet" / "rollouts" / "step-000001.parquet").to_pylist()[0]
    assert "".join(row["tokens"]).startswith("<|im_start|>system\nThink.<|im_end|>\n<|im_start|>user\nWhat is ")
    source = json.loads((home / "parquet" / "config.json").read_text())["source"]
    assert source["options"] == {"prompt_column": "q", "answer_column": "a", "system": "Think."}


def test_a_character_of_several_tokens_is_recorded_whole():
    """Tokens here are bytes, as a tokenizer takes for characters that it has not met."""
    ids = np.frombuffer("aé漢字🤗b\ufffd".encode() + b"\xe6c", np.uint8)
    policy = SimpleNamespace(
        pieces=lambda ids: [bytes([i]).decode("utf-8", "replace") for i in ids],
        decode=lambda ids: bytes(ids).decode("utf-8", "replace"),
    )
    pieces = _pieces(policy, ids)
    assert len(pieces) == len(ids)
    assert pieces[:3] == ["a", "é", ""]
    assert "".join(pieces[:13]) == "aé漢字🤗"
    assert "".join(pieces).endswith("c")
    assert _pieces(policy, ids[:0]) == []
