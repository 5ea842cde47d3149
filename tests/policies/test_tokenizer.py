"""The tokenizer of a checkpoint is the one that transformers would choose, and most processes do not wait for that choice."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys

import pytest
import torch
from tokenizers import processors
from transformers import AutoTokenizer

from rewardlab.core import Message, Trajectory, ask
from rewardlab.models.embedded import untrained
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.tokenizer import encoded, read_tokenizer

SMALL = {
    "model_type": "llama", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24,
    "max_position_embeddings": 64,
}  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    untrained().save(folder)
    return folder


def test_it_is_what_transformers_chooses(saved):
    ours, theirs = read_tokenizer(saved), AutoTokenizer.from_pretrained(str(saved))
    text = "Start with 12. Subtract 5.\n12-5=7 <|im_end|> Answer: 7"
    assert type(ours) is type(theirs)
    assert ours(text)["input_ids"] == theirs(text)["input_ids"]
    assert ours.decode(ours(text)["input_ids"]) == theirs.decode(theirs(text)["input_ids"])
    told = ("chat_template", "eos_token", "pad_token", "bos_token", "model_max_length", "padding_side", "vocab_size")
    assert all(getattr(ours, name) == getattr(theirs, name) for name in told)


@pytest.mark.parametrize(
    ("file", "change"), [("config.json", {"model_type": "mistral"}), ("tokenizer_config.json", {"auto_map": {}})]
)
def test_for_others_transformers_chooses(saved, tmp_path, monkeypatch, file, change):
    for name in ("config.json", "tokenizer_config.json", "tokenizer.json"):
        (tmp_path / name).write_text((saved / name).read_text())
    (tmp_path / file).write_text(json.dumps(json.loads((tmp_path / file).read_text()) | change))
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda folder, **asked: f"chosen for {folder}")
    assert read_tokenizer(tmp_path) == f"chosen for {tmp_path}"
    assert read_tokenizer(saved) != f"chosen for {saved}"


def test_a_process_that_reads_it_imports_no_compiler(saved):
    code = (
        "import sys; from rewardlab.policies.tokenizer import read_tokenizer; read_tokenizer(sys.argv[1]); "
        "print('torch._dynamo' in sys.modules, 'transformers.models.auto.tokenization_auto' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, str(saved)], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.fixture
def closing(words):
    """A tokenizer without a chat template that puts <s> before what it reads, and </s> after it."""
    made = copy.deepcopy(words)
    made.add_special_tokens({"bos_token": "<s>", "eos_token": "</s>"})
    made.chat_template = None
    ids = [(token, made.convert_tokens_to_ids(token)) for token in ("<s>", "</s>")]
    made._tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ids)
    return made


def test_a_conversation_begins_once_and_is_not_closed_before_its_reply(closing):
    begin, end = closing.convert_tokens_to_ids(["<s>", "</s>"])
    assert closing("2 + 2")["input_ids"][0] == begin  # else this tests nothing
    assert closing("2 + 2")["input_ids"][-1] == end
    model = Llama(SMALL | {"vocab_size": len(closing)})
    policy = LlamaPolicy(model, closing, torch.device("cpu"), torch.float32)
    problem = ask("2 + 2 = ?")
    (row,) = policy.read([Trajectory(problem)], [problem.prompt])
    plain = closing("2 + 2 = ?\n", add_special_tokens=False)["input_ids"]
    assert row.ids.tolist() == [begin, *plain]
    assert policy.prompt_lengths([problem.prompt]) == [1 + len(plain)]
    (row,) = policy.read(policy.write([row], ["4"]), [[Message("user", "and 3 + 3?")]])
    said = row.ids.tolist()
    assert said.count(begin) == 1
    # of the reply alone
    assert said.count(end) == 1
    assert closing.decode(said) == "<s>2 + 2 = ?\n4</s>\nand 3 + 3?\n"


def test_an_end_that_stands_in_the_text_stays(closing):
    assert encoded(closing, ["2</s>"])[0][-1] == closing.eos_token_id
    assert encoded(closing, []) == []
