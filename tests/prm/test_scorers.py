"""Scorers of steps by the conventions of those who publish them: each against logits of transformers at positions found by hand."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from rewardlab.errors import RewardlabError
from rewardlab.prm import load_scorer
from tests.helpers.checkpoints import checkpoint, with_head

PROMPT, STEPS = "what is 12 * 3, and then 7 more?", ["12*3=36", "36+7=43", "Answer: 43"]
OTHER = ("1 + 2 = ?", ["3"])


def load(path, **rest):
    return load_scorer(str(path), "cpu", rest.pop("dtype", "float32"))


def logits(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0]


def checked(scorer, expected):
    """The scores of a solution beside others in one batch; what they should be."""
    alone = scorer.score([(PROMPT, STEPS)])[0]
    assert alone == pytest.approx(expected, abs=1e-5)
    assert scorer.score([OTHER, (PROMPT, STEPS), OTHER])[1] == pytest.approx(expected, abs=1e-5)
    # three numbers that tell steps apart
    assert len({round(x, 4) for x in expected}) == len(STEPS)
    assert scorer.token_count.scored > 2 * len(STEPS)
    assert scorer.token_count.generated == 0


def test_math_shepherd(tmp_path, words):
    model, tokenizer = checkpoint(tmp_path / "math-shepherd", words, "MistralForCausalLM", added=["ки"])
    text = f"{PROMPT} Step 1: 12*3=36 ки\nStep 2: 36+7=43 ки\nStep 3: Answer: 43 ки"
    ids = tokenizer(text)["input_ids"]
    mark, plus, minus = (tokenizer(x)["input_ids"][-1] for x in ("ки", "+ +", "+ -"))
    at = [i for i, token in enumerate(ids) if token == mark]
    assert len(at) == 3
    checked(load(tmp_path / "math-shepherd"), logits(model, ids)[at][:, [plus, minus]].softmax(1)[:, 0].tolist())
    # a step that is numbered already is not numbered again
    assert load(tmp_path / "math-shepherd").encode(PROMPT, [f"Step {k}: {s}" for k, s in enumerate(STEPS, 1)]).ids == ids


def test_rlhflow_reads_the_token_before_each_plus(tmp_path, words):
    model, tokenizer = checkpoint(tmp_path / "rlhflow-prm", words)
    plus, minus = (tokenizer(x)["input_ids"][-1] for x in "+-")
    expected = []
    for k in range(3):
        # as published: a conversation for each step, whose end is `+` and the end of the turn
        turns = [{"role": "user", "content": f"{PROMPT} {STEPS[0]}"}]
        for step in STEPS[1 : k + 1]:
            turns += [{"role": "assistant", "content": "+"}, {"role": "user", "content": step}]
        ids = tokenizer(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))["input_ids"]
        expected.append(float(logits(model, ids)[-1, [plus, minus]].softmax(0)[0]))
    checked(load(tmp_path / "rlhflow-prm"), expected)


def test_qwen_math_prm_without_running_its_code(tmp_path, words):
    model, tokenizer = checkpoint(tmp_path, words, "Qwen2ForCausalLM", added=["<extra_0>"])
    torch.manual_seed(1)
    head = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
    with_head(tmp_path, "Qwen2ForProcessRewardModel", {f"score.{k}": v for k, v in head.state_dict().items()})
    turns = [
        {"role": "system", "content": "Please reason step by step, and put your final answer within \\boxed{}."},
        {"role": "user", "content": PROMPT},
        {"role": "assistant", "content": "<extra_0>".join(STEPS) + "<extra_0>"},
    ]
    ids = tokenizer(tokenizer.apply_chat_template(turns, tokenize=False))["input_ids"]
    at = [i for i, token in enumerate(ids) if token == tokenizer.convert_tokens_to_ids("<extra_0>")]
    with torch.no_grad():
        hidden = model.model(input_ids=torch.tensor([ids])).last_hidden_state[0, at]
        checked(load(tmp_path), head(hidden).softmax(1)[:, 1].tolist())


def test_skywork(tmp_path, words):
    model, tokenizer = checkpoint(tmp_path, words, "Qwen2ForCausalLM")
    torch.manual_seed(1)
    head = nn.Linear(16, 1)
    with_head(tmp_path, "Qwen2ForPrmModel", {f"v_head.summary.{k}": v for k, v in head.state_dict().items()})
    ids, at = list(tokenizer(PROMPT + "\n")["input_ids"]), []
    for step in STEPS:
        ids += tokenizer(step)["input_ids"] + tokenizer("\n")["input_ids"][-1:]
        at.append(len(ids) - 1)
    with torch.no_grad():
        hidden = model.model(input_ids=torch.tensor([ids])).last_hidden_state[0, at]
        checked(load(tmp_path), head(hidden)[:, 0].sigmoid().tolist())


@pytest.mark.parametrize("bos", [None, "<|im_start|>"])
def test_token_classifiers_are_read_as_trl_trains_them(tmp_path, words, bos):
    model, tokenizer = checkpoint(tmp_path, words, "LlamaForTokenClassification", num_labels=2)
    tokenizer.bos_token = bos
    tokenizer.save_pretrained(tmp_path)
    ids, at = [*([] if bos is None else [tokenizer.bos_token_id]), *tokenizer(PROMPT, add_special_tokens=False)["input_ids"]], []
    for step in STEPS:
        ids += tokenizer(step)["input_ids"] + tokenizer("\n")["input_ids"]
        at.append(len(ids) - 1)
    checked(load(tmp_path), logits(model, ids)[at].softmax(1)[:, 1].tolist())


def test_passes_are_halved_where_memory_runs_out_and_bounded_by_what_is_free(tmp_path, words, monkeypatch, capsys):
    checkpoint(tmp_path, words, "LlamaForTokenClassification", num_labels=2)
    scorer, rows = load(tmp_path), [(PROMPT, STEPS[: 1 + i % 3]) for i in range(7)]
    wanted, chances, passes = scorer.score(rows), scorer._chances, []

    def runs_out(part):
        if len(part) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        passes.append(len(part))
        return chances(part)

    monkeypatch.setattr(scorer, "_chances", runs_out)
    read = scorer.token_count.scored
    for found, right in zip(scorer.score(rows), wanted, strict=True):
        assert found == pytest.approx(right, abs=1e-5)
    assert scorer.token_count.scored == 2 * read
    assert sum(passes) == 7
    assert capsys.readouterr().err.count("continuing with 3") == 1
    # the next call begins with less
    assert scorer.most_tokens < 16384
    passes.clear()
    monkeypatch.setattr("rewardlab.policies.room.free_memory", lambda device: 0)
    monkeypatch.setattr("rewardlab.policies.room.LEAST_TOKENS", 64)
    scorer.score(rows)
    assert max(passes) * len(scorer.encode(PROMPT, STEPS).ids) <= 128


def test_a_model_that_says_yes_or_no(tmp_path, words):
    model, tokenizer = checkpoint(tmp_path, words, added=["Yes", "No"])
    yes, no = tokenizer.convert_tokens_to_ids(["Yes", "No"])
    first = f"{PROMPT}\n\nHere is a solution, step by step. Say of each step whether it is right: Yes or No.\n\n{STEPS[0]}"
    turns = [{"role": "user", "content": first}]
    expected = []
    for step in [*STEPS[1:], None]:
        ids = tokenizer(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))["input_ids"]
        expected.append(float(logits(model, ids)[-1, [yes, no]].softmax(0)[0]))
        turns += [{"role": "assistant", "content": "Yes"}, {"role": "user", "content": step}]
    checked(load(f"{tmp_path}?as=generative"), expected)


def test_implicit_rewards_and_likelihood(tmp_path, words):
    ours, tokenizer = checkpoint(tmp_path / "prm", words, seed=1)
    reference, _ = checkpoint(tmp_path / "reference", words, seed=2)
    turns = [{"role": "user", "content": PROMPT}]
    ids = tokenizer(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))["input_ids"]
    parts = [tokenizer(step)["input_ids"] + tokenizer("\n")["input_ids"] for step in STEPS]
    whole = ids + [token for part in parts for token in part]

    def of_tokens(model):
        return logits(model, whole)[:-1].log_softmax(1).gather(1, torch.tensor(whole[1:])[:, None])[:, 0]

    ends = [len(ids) + sum(map(len, parts[: k + 1])) for k in range(3)]
    # the log-prob of token t is at t - 1
    spans = [slice(start - 1, end - 1) for start, end in zip([len(ids), *ends], ends, strict=False)]
    ratio = of_tokens(ours) - of_tokens(reference)
    scorer = load(f"{tmp_path / 'prm'}?as=implicit&reference={tmp_path / 'reference'}&beta=0.2")
    checked(scorer, [float((0.2 * ratio[s].sum()).sigmoid()) for s in spans])
    # both models read every token
    assert load(f"{tmp_path / 'prm'}?as=likelihood").length(scorer.encode(*OTHER)) * 2 == scorer.length(scorer.encode(*OTHER))
    likely = load(f"{tmp_path / 'prm'}?as=likelihood").score([(PROMPT, STEPS)])[0]
    assert likely == pytest.approx([float(of_tokens(ours)[s].mean().exp()) for s in spans], abs=1e-5)


def test_a_checkpoint_that_says_what_it_is(tmp_path, words):
    checkpoint(tmp_path, words, "LlamaForTokenClassification", num_labels=2)
    (tmp_path / "step_scorer.json").write_text(json.dumps({"convention": "head", "layout": "chat", "separator": "\n"}))
    scorer = load(tmp_path)
    assert scorer.layout == "chat"
    # what it says of itself stays, unless something else is said
    assert load(f"{tmp_path}?as=head").layout == "chat"
    assert load(f"{tmp_path}?as=head&layout=trl").layout == "trl"
    assert scorer.score([OTHER]) != load(f"{tmp_path}?as=head&layout=trl").score([OTHER])


def test_what_cannot_be_scored_is_refused_in_words(tmp_path, words):
    checkpoint(tmp_path / "plain", words)
    with pytest.raises(RewardlabError, match=r"does not say how it scores steps: write .*\?as=CONVENTION"):
        load(tmp_path / "plain")
    with pytest.raises(RewardlabError, match="unknown convention of a scorer 'shepard'; did you mean shepherd"):
        load(f"{tmp_path / 'plain'}?as=shepard")
    with pytest.raises(RewardlabError, match="no tokens of their own for ки"):
        load(f"{tmp_path / 'plain'}?as=shepherd")
    with pytest.raises(RewardlabError, match=r"no weight score\.weight"):
        load(f"{tmp_path / 'plain'}?as=head")
    with pytest.raises(RewardlabError, match="implicit rewards need the model that it began from"):
        load(f"{tmp_path / 'plain'}?as=implicit")
    with pytest.raises(RewardlabError, match="has no setting 'beta'"):
        load(f"{tmp_path / 'plain'}?as=likelihood&beta=1")
    scorer = load(f"{tmp_path / 'plain'}?as=likelihood")
    with pytest.raises(RewardlabError, match=r"longer than the scorer's context of 256"):
        scorer.score([OTHER, (PROMPT, ["12*3=36"] * 200)])
    assert scorer.fits(*OTHER)
    assert not scorer.fits(PROMPT, ["12*3=36"] * 200)
    for steps in ([], ["3", " "]):
        with pytest.raises(RewardlabError, match="without steps, or with a blank one"):
            scorer.score([(PROMPT, steps)])


def test_a_step_that_holds_the_mark_is_refused(tmp_path, words):
    checkpoint(tmp_path / "math-shepherd", words, added=["ки"])
    with pytest.raises(RewardlabError, match="holds the mark that ends a step"):
        load(tmp_path / "math-shepherd").score([(PROMPT, ["12 ки 3", "3"])])
