"""An encoder of transformers (BERT, DeBERTa, ModernBERT ...) as a reward model that learns: it reads a prompt and a reply as a
pair, each word with a view of all the others, and has one score for both. It writes nothing.

    [CLS] prompt [SEP] reply [SEP]  ->  the checkpoint's own sequence classifier with one label

Saved, it is the same classifier, which `models/reward_model.py` and transformers read to the same scores. A checkpoint without
such a head gets one whose last matrix begins at zero.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rewardlab.core import Message, Outputs, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.policies.attributes import KEY, Attributes, attributes_in, labels_of, mixed
from rewardlab.policies.hf.loading import quiet
from rewardlab.policies.hf.model import context_of, recomputing
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.util.device import device_of, dtype_of
from rewardlab.util.progress import console

SCORED_AT = "prompt and reply as a pair"
"""In the config.json of one that rewardlab trained: how its input is written."""
WRITES_NOTHING = "is an encoder: it scores replies and writes none. It can be a reward model (bradley_terry), not a policy"


def is_encoder(config: Mapping[str, Any]) -> bool:
    """Whether a config.json is that of an encoder which transformers has as a sequence classifier."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    )

    kind = config.get("model_type")
    decodes = config.get("is_decoder") or config.get("is_encoder_decoder")
    return kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and kind in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES and not decodes


def asked(prompt: Sequence[Message]) -> str:
    """A conversation as the first text of a pair."""
    return prompt[0].text if len(prompt) == 1 else "\n\n".join(f"{m.role}: {m.text}" for m in prompt)


def pair(tokenizer: Any, prompt: str, reply: str, longest: int) -> tuple[Any, bool]:
    """Both texts as an encoder reads them, and whether they were too long: then the prompt loses its end, and the reply only where
    it is too long by itself."""
    whole = tokenizer(prompt, reply, verbose=False)
    if len(whole["input_ids"]) <= longest:
        return whole, False
    alone = len(tokenizer(reply, verbose=False)["input_ids"])
    how = "only_first" if alone < longest - 3 else "longest_first"
    return tokenizer(prompt, reply, truncation=how, max_length=longest), True


class _Head(nn.Linear):
    """A linear layer in float32: in bfloat16 a score near 4 would be a multiple of 1/32, and close replies would tie."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return F.linear(x.float(), self.weight, self.bias)


class EncoderPolicy(HFPolicy):
    """A sequence classifier that reads pairs, in the place of a text policy with a value head; its value is at the last token."""

    has_value_head = True  # type: ignore[assignment]
    writes, cuts = False, True
    _told = False
    """Whether it was said that pairs are cut."""

    def __init__(self, model: Any, tokenizer: Any, device: torch.device, dtype: torch.dtype, name: str = "policy"):
        if not tokenizer.is_fast or tokenizer.sep_token_id is None:
            raise RewardlabError(
                "an encoder learns from pairs of texts: it needs a fast tokenizer (tokenizer.json) with a sep_token"
            )
        # what ends a reply, also for those who look for the end of a sequence
        if tokenizer.eos_token_id is None:
            tokenizer.eos_token = tokenizer.sep_token
        super().__init__(model, tokenizer, device, dtype, name)
        self.attributes = attributes_in(model.config.to_dict())
        self.model.get_submodule(_last_linear(model)).__class__ = _Head
        # some count positions from the padding's id on, so that the tokenizer alone knows how many there are
        self.context = min(context_of(model, tokenizer), tokenizer.model_max_length)
        self.typed = "token_type_ids" in tokenizer("a", "b")
        # the part of a pair that stands before the reply where there is no prompt
        self._opening = _reply_at(tokenizer("", "x").encodings[0])

    @classmethod
    def load(cls, folder: Path | str, device: str = "auto", dtype: str = "auto") -> EncoderPolicy:  # type: ignore[override]
        """Read a checkpoint folder with its tokenizer. Raises RewardlabError for a classifier of several labels."""
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        where, place = device_of(device), str(folder)
        kind: Any = AutoModelForSequenceClassification
        # what is missing is random, and the same each time
        with torch.random.fork_rng(devices=[]), quiet():
            torch.manual_seed(0)
            model, told = kind.from_pretrained(
                place, num_labels=_outputs(folder), dtype=torch.float32, trust_remote_code=False, output_loading_info=True,
                ignore_mismatched_sizes=True,
            )  # fmt: skip
        if told["mismatched_keys"]:
            raise RewardlabError(f"{folder} is a classifier of several labels: a reward model that learns here has one")
        _check_missing(model, folder, told["missing_keys"])
        head = _last_linear(model)
        if any(name.startswith(head) for name in told["missing_keys"]):
            nn.init.zeros_(model.get_submodule(head).weight)
        tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
        return cls(model, tokenizer, where, dtype_of(dtype, where))

    @classmethod
    def without_numbers(cls, folder: Path, dtype: torch.dtype = torch.float32) -> EncoderPolicy:
        """The same from config.json and the tokenizer alone, on the meta device: what a plan is made with."""
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

        config = AutoConfig.from_pretrained(str(folder), num_labels=_outputs(folder), trust_remote_code=False)
        with torch.device("meta"):
            model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
        return cls(model, AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False), torch.device("meta"), dtype)

    def copy(self, name: str, value_head: bool = False) -> EncoderPolicy:
        """A copy that trains separately."""
        copied = EncoderPolicy(copy.deepcopy(self.whole), self.tokenizer, self.device, self.dtype, name)
        copied.loaded_dtype, copied.recomputes, copied.attributes = self.loaded_dtype, self.recomputes, self.attributes
        return copied

    def rate(self, attributes: Attributes) -> EncoderPolicy:
        """Let the head have an output for each of these attributes (`policies/attributes.py`)."""
        if list(attributes) != list(self.attributes):
            place = _last_linear(self.model)
            head = _Head(self.model.get_submodule(place).in_features, len(attributes), device=self.device)
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
            self.model.set_submodule(place, head)
            self.model.config.num_labels = len(attributes)
        self.attributes = attributes
        return self

    def save(self, folder: Path | str) -> None:
        """Write the classifier as transformers has it, in float32."""
        told = labels_of(self.attributes, SCORED_AT)
        config = self.model.config
        config.id2label, config.label2id = {int(i): name for i, name in told["id2label"].items()}, told["label2id"]
        config.rewardlab = told[KEY]
        self.model.save_pretrained(folder)
        self.save_tokenizer(Path(folder))

    # ---- texts to tokens ---------------------------------------------------------------------------------------------

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        """Append the conversation before a reply. Raises RewardlabError for what follows one, which no pair has a place for."""
        if any(t.turns for t in trajectories):
            raise RewardlabError(f"the model {self.name!r} is an encoder: it reads a prompt and one reply, not several turns")
        texts = [asked(new) for new in messages]
        before = [encoded.ids[: _reply_at(encoded)] for encoded in self._pairs(texts, ["x"] * len(texts))]
        turns = [Turn(None, np.asarray(ids, np.int64), text=text) for ids, text in zip(before, texts, strict=True)]
        return [t.plus(turn) for t, turn in zip(trajectories, turns, strict=True)]

    def _write(self, trajectories: Sequence[Trajectory], replies: Sequence[str]) -> list[Trajectory]:
        after = [encoded.ids[self._opening :] for encoded in self._pairs([""] * len(replies), replies)]
        return [self._answered(t, ids, text) for t, ids, text in zip(trajectories, after, replies, strict=True)]

    def _answered(self, trajectory: Trajectory, ids: list[int], text: str) -> Trajectory:
        prompt = trajectory.turns[0]
        if len(prompt.ids) + len(ids) > self.context:
            self._tell(len(prompt.ids) + len(ids))
            whole, _ = pair(self.tokenizer, prompt.text, text, self.context)
            begins = _reply_at(whole.encodings[0])
            ids, cut = whole["input_ids"][begins:], np.asarray(whole["input_ids"][:begins], np.int64)
            trajectory = replace(trajectory, turns=(replace(prompt, ids=cut),))
        return trajectory.plus(Turn(self.name, np.asarray(ids, np.int64), text=text), "end")

    def _tell(self, tokens: int) -> None:
        if self._told:
            return
        EncoderPolicy._told = True
        console.print(
            f"note: a prompt and reply of {tokens} tokens exceed the encoder's context of {self.context}: of such pairs the "
            "prompt loses its end, here as where they are scored",
            highlight=False, soft_wrap=True,
        )  # fmt: skip

    def _pairs(self, first: Sequence[str], second: Sequence[str]) -> list[Any]:
        # a tokenizer refuses an empty list
        return self.tokenizer(list(first), list(second), verbose=False).encodings if first else []

    def prompt_lengths(self, prompts: Sequence[tuple[Message, ...]]) -> list[int]:
        return [len(encoded.ids) for encoded in self._pairs([asked(p) for p in prompts], [""] * len(prompts))]

    # ---- tokens to scores --------------------------------------------------------------------------------------------

    def _forward(self, ids: Tensor, length: Tensor, mask: Tensor, wants: Sequence[str], per_token: Sequence[Any] = ()) -> Outputs:
        if per_token or set(wants) - {"value", "values"}:
            what = "hidden states" if "hidden" in wants else "log-probs"
            raise RewardlabError(
                f"the model {self.name!r} is an encoder: it has a score for prompt and reply as a whole, and no {what} of tokens, "
                "which this method reads"
            )
        place = torch.arange(ids.shape[1], device=ids.device)
        real = place < length[:, None]
        read = {"input_ids": ids, "attention_mask": real.long()}
        if self.typed:
            # from the first decision on, it is the reply
            read["token_type_ids"] = (real & mask.cummax(1).values).long()
        again = recomputing(self.model) if self.recomputes and torch.is_grad_enabled() else nullcontext()
        with again, self._autocast(cached=False):
            outputs = self.model(**read).logits.float()
        # (B, T, k): where a row ends, its outputs
        values = torch.where((place == length[:, None] - 1)[:, :, None], outputs[:, None], outputs.new_zeros(()))
        found = {"value": mixed(values, self.attributes)}
        return Outputs.of(found | {"values": values} if "values" in wants else found)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise RewardlabError(f"the model {self.name!r} {WRITES_NOTHING}")

    extend = score = adapt = _refuse

    def copy_bytes(self, sampling: bool) -> int:
        matrices = [m.weight for m in self.model.modules() if isinstance(m, nn.Linear)]
        return sum(w.numel() for w in matrices if w.dtype != self.dtype) * torch.empty(0, dtype=self.dtype).element_size()

    def sampling_bytes(self, rows: int, prompt: int, reply: int) -> dict[str, int]:
        return {}

    def vocabulary_head(self) -> Tensor:
        # none, of no size
        return self.model.get_input_embeddings().weight[:0]


def _reply_at(encoded: Any) -> int:
    """Where the second text of an encoded pair begins; where it is empty, its end token."""
    return next((i for i, which in enumerate(encoded.sequence_ids) if which == 1), len(encoded.ids) - 1)


def _check_missing(model: Any, folder: Path | str, missing: Sequence[str]) -> None:
    """Raise RewardlabError where a checkpoint lacks more than what comes after the encoder's last layer."""
    within = [name for name in missing if name.startswith(f"{model.base_model_prefix}.") and ".pooler." not in name]
    if within:
        raise RewardlabError(f"{folder}: the checkpoint lacks the weight {min(within)}")


def _last_linear(model: Any) -> str:
    """The name of the matrix that gives the score, or those of attributes."""
    outputs = model.config.num_labels
    return [name for name, m in model.named_modules() if isinstance(m, nn.Linear) and m.out_features == outputs][-1]


def _outputs(folder: Path | str) -> int:
    """How many outputs a reward model from this checkpoint has."""
    return max(1, len(attributes_in(json.loads((Path(folder) / "config.json").read_text("utf-8")))))
