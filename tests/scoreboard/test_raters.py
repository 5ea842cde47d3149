"""Raters: what they read of a checkpoint, and that their scores are those of the model run plainly."""

from __future__ import annotations

import json
from contextlib import nullcontext

import numpy as np
import pytest
import torch
import transformers

from rewardlab.core import Problem, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.models.load import load_policy
from rewardlab.prm.load import CONVENTIONS
from rewardlab.scoreboard.asked import benchmark_of
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.items import Item, users
from rewardlab.scoreboard.raters import load_rater
from rewardlab.scoreboard.raters.formula import Formula
from rewardlab.scoreboard.run import scoreboard
from tests.helpers.checkpoints import checkpoint
from tests.helpers.served_model import serving

PAIR = benchmark_of("judgebench")
ITEMS = [
    Item("a", users("2+3=?"), ("5", "2+3=6 so it is 6"), (1.0, 0.0)),
    Item("b", users("10-4*2=?"), ("4*2=8\n10-8=2\n2", "12"), (1.0, 0.0)),
    Item("c", users("1=?"), ("1", "0", "7+7+7+7=28"), (1.0, 0.0, 0.0)),
]


def classifier(folder, kind="LlamaForSequenceClassification", **config):
    return checkpoint(folder, tokenizer(), kind, **config)


def scores(rater, items=ITEMS, benchmark: Benchmark = PAIR) -> list[float]:
    return [s for verdict in rater.judge(items, benchmark) for s in verdict.scores]


@pytest.mark.parametrize(("labels", "read"), [(1, lambda x: x[0]), (2, lambda x: x[1] - x[0])])
def test_a_decoders_head_is_read_at_the_last_token_whatever_pads(tmp_path, labels, read):
    model, words = classifier(tmp_path, num_labels=labels)
    ours = scores(load_rater(str(tmp_path), "cpu", "float32"))
    plainly = []
    for item in ITEMS:
        for reply in item.replies:
            turns = [{"role": "user", "content": item.question}, {"role": "assistant", "content": reply}]
            text = words.apply_chat_template(turns, tokenize=False) if words.chat_template else f"{item.question}\n{reply}"
            ids = words(text, add_special_tokens=not words.chat_template, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                hidden = model.model(input_ids=ids).last_hidden_state[0, -1]
                plainly.append(float(read(model.score(hidden))))
    assert ours == pytest.approx(plainly, abs=1e-5)
    assert len(set(np.round(ours, 6))) == len(ours)


def test_of_several_labels_one_is_named(tmp_path):
    classifier(
        tmp_path,
        num_labels=3,
        id2label={0: "safety", 1: "helpfulness", 2: "style"},
        label2id={"safety": 0, "helpfulness": 1, "style": 2},
    )
    with pytest.raises(RewardlabError, match="safety, helpfulness, style"):
        load_rater(str(tmp_path), "cpu", "float32")
    with pytest.raises(RewardlabError, match="helpfulness"):
        load_rater(f"{tmp_path}?label=helpfulnes", "cpu", "float32")
    by_name, by_number = (scores(load_rater(f"{tmp_path}?label={x}", "cpu", "float32")) for x in ("helpfulness", "1"))
    assert by_name == by_number != scores(load_rater(f"{tmp_path}?label=0", "cpu", "float32"))


def test_an_encoder_reads_prompt_and_reply_as_a_pair(tmp_path):
    torch.manual_seed(0)
    words = tokenizer()
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, num_labels=1,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.3)
    model.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    rater = load_rater(str(tmp_path), "cpu", "float32")
    pairs = [(item.question, reply) for item in ITEMS for reply in item.replies]
    with torch.no_grad():
        plainly = [float(model(**words(a, b, return_tensors="pt")).logits) for a, b in pairs]
    assert scores(rater) == pytest.approx(plainly, abs=1e-5)


def test_what_is_longer_than_the_context_loses_its_beginning_and_is_counted(tmp_path):
    classifier(tmp_path, num_labels=1)
    rater = load_rater(f"{tmp_path}?max_tokens=6", "cpu", "float32")
    verdicts = rater.judge(ITEMS, PAIR)
    assert [v.cut for v in verdicts] == [2, 2, 3] if rater.model.tokenizer.chat_template else all(v.cut <= 3 for v in verdicts)
    assert sum(v.cut for v in verdicts) > 0
    # the end of the reply is what is left: another beginning changes nothing
    longer = [Item("x", users("9+9+9+9+" + item.question), item.replies, item.worth) for item in ITEMS[1:2]]
    assert scores(rater, longer)[0] == pytest.approx(scores(rater, ITEMS[1:2])[0])


def test_a_likelihood_is_the_mean_or_the_sum_of_the_replys_log_probs(tmp_path):
    checkpoint(tmp_path / "a", tokenizer())
    checkpoint(tmp_path / "b", tokenizer(), seed=1)
    a, b = (load_policy(str(tmp_path / x), "cpu", "float32") for x in "ab")
    means, sums, implicit = [], [], []
    for item in ITEMS:
        for reply in item.replies:
            (row,) = a.write(a.read([Trajectory(Problem(item.prompt))], [item.prompt]), [reply])
            ours, theirs = (policy.score([row])[0][row.mask] for policy in (a, b))
            means.append(ours.mean())
            sums.append(ours.sum())
            implicit.append(0.5 * (ours - theirs).sum())
    rater = f"likelihood:{tmp_path / 'a'}"
    assert scores(load_rater(rater, "cpu", "float32")) == pytest.approx(means, abs=1e-4)
    assert scores(load_rater(f"{rater}?norm=sum", "cpu", "float32")) == pytest.approx(sums, abs=1e-3)
    dpo = f"implicit:{tmp_path / 'a'}?reference={tmp_path / 'b'}&beta=0.5"
    assert scores(load_rater(dpo, "cpu", "float32")) == pytest.approx(implicit, abs=1e-3)


def test_a_local_judge_is_read_by_the_chances_of_its_marks_in_both_orders(tmp_path):
    checkpoint(tmp_path, tokenizer(), max_position_embeddings=1024)
    rater = load_rater(f"judge:{tmp_path}?template=ab{{prompt}}?{{first}}!{{second}}", "cpu", "float32")
    (verdict,) = rater.judge(ITEMS[:1], PAIR)
    assert set(verdict.orders) == {(0, 1), (1, 0)}
    policy = load_policy(str(tmp_path), "cpu", "float32")
    start, ids, values = rater._tokens
    prompt = "ab2+3=??5!2+3=6 so it is 6"
    (read,) = policy.read([Trajectory(Problem(users(prompt)))], [users(prompt)])
    chances = []
    for token in ids:
        (row,) = policy.write([read], [policy.decode(np.array([*start, token]))])
        chances.append(np.exp(policy.score([row])[0][row.mask][len(start)]))
    expected = sum(c * v for c, v in zip(chances, values, strict=True)) / sum(chances)
    assert verdict.orders[0, 1] == pytest.approx(expected, abs=1e-4)


def test_a_judge_of_one_reply_gives_a_score_and_one_that_does_not_fit_gives_none(tmp_path):
    checkpoint(tmp_path, tokenizer(), max_position_embeddings=1024)
    verdicts = load_rater(f"judge:{tmp_path}?kind=scale", "cpu", "float32").judge(ITEMS, PAIR)
    assert all(0.0 <= s <= 1.0 for v in verdicts for s in v.scores)
    small = tmp_path / "small"
    checkpoint(small, tokenizer(), max_position_embeddings=32)
    (verdict, *_) = load_rater(f"judge:{small}", "cpu", "float32").judge(ITEMS, PAIR)
    assert verdict.prefers(0, 1) is None
    assert "context of 32 tokens" in verdict.why


def test_a_step_scorer_scores_replies_by_its_steps(tmp_path):
    checkpoint(tmp_path, tokenizer())
    by = {
        how: load_rater(f"{tmp_path}?as=likelihood&by={how}", "cpu", "float32").judge(ITEMS[1:2], PAIR)[0].scores[0]
        for how in ("min", "last", "product")
    }
    rater = load_rater(f"{tmp_path}?as=likelihood", "cpu", "float32")
    (chances,) = rater.scorer.score([("10-4*2=?", ["4*2=8", "10-8=2", "2"])])
    assert by["min"] == pytest.approx(min(chances), abs=1e-6)
    assert by["last"] == pytest.approx(chances[-1], abs=1e-6)
    assert by["product"] == pytest.approx(float(np.prod(chances)), abs=1e-6)


def test_a_function_of_ones_own_and_a_formula_rate(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("def score(prompt, completion):\n    return float(len(completion))\n")
    assert scores(load_rater(f"{mine}:score")) == scores(load_rater("length"))
    assert scores(load_rater("length")) == [float(len(reply)) for item in ITEMS for reply in item.replies]


def test_what_a_rater_says_is_kept_under_what_decides_it(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("def score(prompt, completion):\n    return 1.0\n")
    before = load_rater(f"{mine}:score").fingerprint()
    mine.write_text("def score(prompt, completion):\n    return 2.0\n")
    assert load_rater(f"{mine}:score").fingerprint() != before
    classifier(tmp_path / "a", num_labels=1)
    classifier(tmp_path / "b", num_labels=1, seed=1)
    a, b, short = (load_rater(f"{tmp_path}/{x}", "cpu", "float32").fingerprint() for x in ("a", "b", "a?max_tokens=8"))
    assert len({a, b, short}) == 3


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("likelihood:nowhere/at/all", "there is no folder"), ("implicit:smollm2", "reference=MODEL"),
        ("judge:smollm2?kid=scale", "kind"), ("judge:smollm2?max_new=many", "max_new is a number"), ("lenght", "length"),
        ("judge:smollm2?kind=both", "pairwise"),
    ],
)  # fmt: skip
def test_a_name_that_stands_for_no_rater_is_told_with_what_does(name, says):
    with pytest.raises(RewardlabError, match=says):
        load_rater(name, "cpu")


def test_a_language_model_without_a_head_says_how_it_may_rate(tmp_path):
    checkpoint(tmp_path, tokenizer())
    with pytest.raises(RewardlabError, match=r"judge:.*likelihood:.*implicit:"):
        load_rater(str(tmp_path), "cpu")


def test_a_classifier_with_a_head_of_random_numbers_is_refused(tmp_path):
    checkpoint(tmp_path, tokenizer())
    config = json.loads((tmp_path / "config.json").read_text()) | {"architectures": ["LlamaForSequenceClassification"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(RewardlabError, match="lacks the weight"):
        load_rater(str(tmp_path), "cpu")


@pytest.mark.parametrize(
    ("file", "holds", "says"),
    [
        ("tokenizer", None, "it holds no tokenizer; copy tokenizer.json"), ("config.json", "{broken", "is not JSON"),
        ("model.safetensors", "xx", "a file of weights .* is broken or was not copied whole"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rater", ["{}", "likelihood:{}"])
def test_a_checkpoint_that_lacks_a_file_or_has_a_broken_one_says_which(tmp_path, rater, file, holds, says):
    if rater == "{}":
        classifier(tmp_path, num_labels=1)
    else:
        checkpoint(tmp_path, tokenizer())
    for path in tmp_path.glob(f"{file}*"):
        path.write_text(holds) if holds else path.unlink()
    with pytest.raises(RewardlabError, match=f"the model in .* cannot be loaded: .*{says}"):
        load_rater(rater.format(tmp_path), "cpu")


def _with_a_fault(folder, fault):
    """The folder of a model with this fault."""
    checkpoint(folder, tokenizer(), added=["<extra_0>"])
    weights, config = folder / "model.safetensors", folder / "config.json"
    changed = {"layers": {"num_hidden_layers": 3}, "sizes": {"hidden_size": 32}}.get(fault, {})
    config.write_text(json.dumps(json.loads(config.read_text()) | changed))
    match fault:
        case "no tokenizer":
            for path in folder.glob("token*"):
                path.unlink()
        case "no config" | "a list":
            config.unlink() if fault == "no config" else config.write_text("[]")
        case "no weights":
            weights.unlink()
        case "pointer":
            weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n")
        case "torn":
            weights.write_bytes(weights.read_bytes()[:-8])
        case "pickle":
            weights.unlink()
            (folder / "pytorch_model.bin").write_bytes(b"none")
        case "tokenizer.json" | "tokenizer_config.json":
            (folder / fault).write_text("{broken")
        case "other tokenizer":
            (folder / "tokenizer.json").write_text('{"a": 1}')


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("no tokenizer", "it holds no tokenizer; copy"), ("no config", "has no config.json"),
        ("a list", "config.json holds no settings"), ("no weights", "it holds no weights"), ("pointer", "git lfs pull"),
        ("torn", r"a file of weights \(model.safetensors\) is broken"), ("pickle", r"pytorch_model.bin\) is broken"),
        ("tokenizer.json", "its tokenizer.json is not JSON"), ("tokenizer_config.json", "its tokenizer_config.json is not JSON"),
        ("other tokenizer", "a file of its tokenizer is not as it should be"), ("layers", "lacks the weight"),
        ("sizes", "its weights have other sizes than its config.json says"),
    ],
)  # fmt: skip
def test_a_fault_of_a_checkpoint_is_told_alike_by_every_convention(tmp_path, fault, says):
    _with_a_fault(tmp_path / "m", fault)
    checkpoint(tmp_path / "whole", tokenizer())
    for convention in (*CONVENTIONS, "embedder"):
        beside = f"&reference={tmp_path / 'whole'}" if convention == "implicit" else ""
        with pytest.raises(RewardlabError, match=f"{tmp_path / 'm'}.*{says}"):
            load_rater(f"{tmp_path / 'm'}?as={convention}{beside}", "cpu")
    if fault != "no tokenizer":
        # the reference is the one with the fault, whose tokenizer is not read
        with pytest.raises(RewardlabError, match=f"{tmp_path / 'm'}.*{says}") if "token" not in fault else nullcontext():
            load_rater(f"{tmp_path / 'whole'}?as=implicit&reference={tmp_path / 'm'}", "cpu")


@pytest.mark.parametrize(
    ("convention", "lacks"),
    [("head", "weight score.weight"), ("qwen", "weight score.0"), ("skywork", "v_head"), ("shepherd", "tokens of their own")],
)
def test_a_checkpoint_of_another_convention_says_what_it_lacks_and_which_there_are(tmp_path, convention, lacks):
    checkpoint(tmp_path, tokenizer(), added=["<extra_0>"])
    with pytest.raises(
        RewardlabError, match=rf"{tmp_path} cannot score steps as '{convention}': .*{lacks}.*\?as=CONVENTION, one of"
    ):
        load_rater(f"{tmp_path}?as={convention}", "cpu")


def test_a_language_model_that_says_that_it_scores_steps_needs_nothing_said(tmp_path):
    checkpoint(tmp_path, tokenizer())
    (tmp_path / "step_scorer.json").write_text('{"convention": "generative"}')
    assert load_rater(str(tmp_path), "cpu").convention == "generative"


def test_a_file_of_rows_is_no_rater(tmp_path):
    (rows := tmp_path / "said.jsonl").write_text("{}")
    with pytest.raises(RewardlabError, match=rf"verdicts of others are outputs:{rows}"):
        load_rater(str(rows))


@pytest.mark.slow
def test_a_served_judge_is_asked_in_both_orders_and_its_cost_is_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    data = tmp_path / "pairs.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in PAIR.example))
    with serving(lambda body: "I like the first one: [[A]]") as server:
        name = f"judge:{server.name},price_in=1000000?by=text"
        entry = scoreboard([name], ["judgebench"], data=data)["raters"][name]["judgebench"]
        assert len(server.asked) == 4
        assert entry["figures"]["overall"]["value"] == 0.0
        assert entry["biases"]["first"] == 1.0
        assert entry["cost"]["requests"] == 4
        assert entry["cost"]["cost"] == pytest.approx(entry["cost"]["read"])
        # kept: nobody is asked again
        assert scoreboard([name], ["judgebench"], data=data)["raters"][name]["judgebench"]["figures"] == entry["figures"]
        assert len(server.asked) == 4


@pytest.mark.slow
def test_what_a_served_judge_says_that_is_no_verdict_is_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    data = tmp_path / "pairs.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in PAIR.example))
    with serving(lambda body: "Both have their merits.") as server:
        name = f"judge:{server.name}?by=text"
        entry = scoreboard([name], ["judgebench"], data=data)["raters"][name]["judgebench"]
    assert entry["no_verdict"] == 1.0
    assert "merits" in entry["why"]


def test_a_formula_s_verdicts_are_kept_under_the_model_that_it_names(tmp_path):
    rater = Formula("words()")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    rater.name = f"model:{tmp_path}"
    first = rater.fingerprint()
    assert rater.fingerprint() == first
    (tmp_path / "model.safetensors").write_bytes(b"22")
    assert rater.fingerprint() != first
    # a quotient names no folder, least of all the disk's root
    rater.name = "words() / 100"
    assert "models" not in rater.fingerprint()
