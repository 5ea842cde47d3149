"""The tokenizer of a checkpoint is the one that transformers would choose, and most processes do not wait for that choice."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from transformers import AutoTokenizer

from rewardlab.models.embedded import untrained
from rewardlab.policies.tokenizer import read_tokenizer


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
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda folder: f"chosen for {folder}")
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
