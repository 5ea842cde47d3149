"""Reward models: any sequence classifier of transformers, with its own head, template and labels.

A decoder's head is read at the last token of the conversation as its chat template writes it; whatever stands for padding cannot
change that place. An encoder (DeBERTa, BERT) reads prompt and reply as a pair. One label is the score; of two labels, the second
is the better one, and the score is the difference of their logits; of more, one is named: PATH?label=NAME.
Runs and exports of rewardlab are read as they were trained, to the end token of the reply (`layout=ours`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rewardlab.core import Message
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models.checkpoint import Checkpoint
from rewardlab.policies.hf.model import context_of, with_saved_adapter
from rewardlab.scoreboard.items import Item, Verdict, flat
from rewardlab.scoreboard.raters.passes import parts
from rewardlab.scoreboard.raters.rater import Rater, verdicts
from rewardlab.util.device import device_of, dtype_of

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark


class Classifier(Rater):
    """label: of several, the one that is the score, by name or number.  layout: "template", the whole conversation as the chat
    template writes it, or "ours".  max_tokens: of a conversation; without it, the model's context. The beginning of what is longer
    is cut off."""

    scale = True

    def __init__(
        self, name: str, found: Checkpoint, device: str, dtype: str, *, label: str = "", layout: str = "", max_tokens: int = 0
    ):
        super().__init__(name)
        from transformers import AutoTokenizer

        self.found, self.device = found, device_of(device)
        self.dtype = dtype_of(dtype, self.device)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(found.folder), trust_remote_code=False)
        self.model = _loaded(found, self.dtype).to(self.device).eval()
        self.reads_pairs = not isinstance(getattr(self.model, "score", None), nn.Linear)
        self.layout = layout or ("ours" if _is_ours(found) else "template")
        self.label = _label(self.model.config, label)
        self.longest = max_tokens or min(context_of(self.model, self.tokenizer), self.tokenizer.model_max_length)

    def fingerprint(self) -> str:
        return f"classifier {self.found.base.weights} {self.layout} {self.label} {self.longest} {self.dtype}"

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        rows = [self._encoded(item, k) for item, k in flat(items)]
        lengths = [min(len(row["input_ids"]), self.longest) for row in rows]
        scores = [0.0] * len(rows)
        for part in parts(lengths, self.device):
            with torch.inference_mode():
                found = self._scores([rows[i] for i in part]).tolist()
            for i, score in zip(part, found, strict=True):
                scores[i] = score
        return verdicts(items, scores, (), [int(row["cut"]) for row in rows], lengths)

    # ---- texts to tokens ------------------------------------------------------------------------------------------

    def _encoded(self, item: Item, k: int) -> dict[str, Any]:
        if self.reads_pairs:
            return self._pair(item.question, item.replies[k])
        ids = self._conversation(item.prompt, item.replies[k])
        return {"input_ids": ids[-self.longest :], "cut": len(ids) > self.longest}

    def _pair(self, prompt: str, reply: str) -> dict[str, Any]:
        """As an encoder reads it; a prompt that is too long loses its end, and a reply only where it is too long by itself."""
        whole = self.tokenizer(prompt, reply, verbose=False)
        if len(whole["input_ids"]) <= self.longest:
            return {**whole, "cut": False}
        alone = len(self.tokenizer(reply)["input_ids"])
        how = "only_first" if alone < self.longest - 3 else "longest_first"
        return {**self.tokenizer(prompt, reply, truncation=how, max_length=self.longest), "cut": True}

    def _conversation(self, prompt: Sequence[Message], reply: str) -> list[int]:
        if not self.tokenizer.chat_template:
            text = "".join(f"{m.text}\n" for m in prompt) + reply
            return self.tokenizer(text, verbose=False)["input_ids"] + ([self._end] if self.layout == "ours" else [])
        turns = [{"role": m.role, "content": m.text} for m in prompt]
        ours = self.layout == "ours"
        answered = turns if ours else [*turns, {"role": "assistant", "content": reply}]
        text = self.tokenizer.apply_chat_template(answered, tokenize=False, add_generation_prompt=ours)
        ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        own = self.tokenizer(reply, add_special_tokens=False, verbose=False)["input_ids"] + [self._end] if ours else []
        return ids + own

    @property
    def _end(self) -> int:
        from rewardlab.policies.ends import turn_end

        end = turn_end(self.tokenizer)
        assert end is not None
        return end

    # ---- tokens to scores -----------------------------------------------------------------------------------------

    def _scores(self, rows: Sequence[dict[str, Any]]) -> Tensor:
        names = [name for name in rows[0] if name != "cut"]
        batch = {name: _padded([row[name] for row in rows]).to(self.device) for name in names}
        length = torch.tensor([len(row["input_ids"]) for row in rows], device=self.device)
        batch["attention_mask"] = (torch.arange(batch["input_ids"].shape[1], device=self.device) < length[:, None]).long()
        if self.reads_pairs:
            return self._one(self.model(**batch).logits.float())
        hidden = self.model.base_model(**batch, use_cache=False).last_hidden_state
        return self._one(self.model.score(hidden[torch.arange(len(rows)), length - 1]).float())

    def _one(self, logits: Tensor) -> Tensor:
        if logits.shape[1] == 2 and self.label is None:
            return logits[:, 1] - logits[:, 0]
        return logits[:, self.label or 0]


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """(B, T), padded on the right with 0, which no attention sees."""
    table = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for i, row in enumerate(rows):
        table[i, : len(row)] = torch.tensor(row)
    return table


def _loaded(found: Checkpoint, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForSequenceClassification

    kind: Any = AutoModelForSequenceClassification
    model, told = kind.from_pretrained(str(found.folder), dtype=dtype, trust_remote_code=False, output_loading_info=True)
    if missing := told["missing_keys"]:
        # transformers would go on with random numbers
        raise RewardlabError(f"{found.folder}: the checkpoint lacks the weight {min(missing)}: it is no reward model")
    return with_saved_adapter(model, found.adapter, trains=False) if found.adapter else model


def _is_ours(found: Checkpoint) -> bool:
    """Whether rewardlab trained it: its layout is then known."""
    return "rewardlab" in found.config or (found.folder.parent / "metrics.jsonl").is_file()


def _label(config: Any, label: str) -> int | None:
    """The place of the logit that is the score; None for one label, and for the difference of two."""
    names = {str(name): int(i) for i, name in (config.id2label or {}).items()}
    if label:
        if label.isdecimal() and int(label) < config.num_labels:
            return int(label)
        if label not in names:
            raise unknown("label of the classifier", label, names)
        return names[label]
    if config.num_labels > 2:
        raise RewardlabError(
            f"this classifier has {config.num_labels} labels: say which one is the score, PATH?label=NAME: {', '.join(names)}"
        )
    return None
