"""Reward models: any sequence classifier of transformers, with its own head, template and labels.

A decoder's head is read at the last token of the conversation as its chat template writes it; whatever stands for padding cannot
change that place. An encoder (DeBERTa, BERT) reads prompt and reply as a pair. One label is the score; of two labels, the second
is the better one, and the score is the difference of their logits; of more, one is named: PATH?label=NAME. Of one that was taught
ratings by attribute the score is their sum, by the weights of its training or by others: PATH?weights=helpfulness=1,verbosity=-1.
Runs and exports of rewardlab are read as they were trained, to the end token of the reply (`layout=ours`), and beside a reference
where they were trained so (`models/layouts.py`). One that was taught to read more is told its principles, PATH?principle=TEXT, in
the prompt or in a question after the reply, as it was trained, or refused (`models/reads.py`). Where an energy head lies beside the
weights, it refines the score (`policies/energy.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import torch
from torch import Tensor, nn

from rewardlab.core import Group, Message, TokenCount
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models.checkpoint import Checkpoint, find, loading
from rewardlab.models.classifiers import classifier, config_of, reads_surprise, tokenizer_of
from rewardlab.models.conversations import as_trained, by_template
from rewardlab.models.layouts import layout_of
from rewardlab.models.lean_scorer import LeanScorer
from rewardlab.models.reads import PLAIN, beside, check_reads, question_after, reads_of, told
from rewardlab.models.writing import Writer, is_writing
from rewardlab.policies.attributes import Attributes, attributes_in, mixed, read_attributes
from rewardlab.policies.energy import load_energy
from rewardlab.policies.hf.encoder import asked, pair
from rewardlab.policies.hf.model import context_of, reading_bytes
from rewardlab.policies.room import in_passes
from rewardlab.text.principles import AFTER
from rewardlab.text.reference import against
from rewardlab.util.device import device_of, dtype_of
from rewardlab.util.passes import numbered

CPU_TOKENS, GPU_TOKENS = 2048, 16384
"""Padded tokens in one pass: a processor gains nothing by more, and its caches lose."""
SETTINGS = ("label", "layout", "max_tokens", "principle", "reads", "weights")
PREFIX = "model:"
"""Before the checkpoint of a reward model that is to be the reward (`rewards/model.py`)."""
Answered = tuple[Sequence[Message], str] | tuple[Sequence[Message], str, str | None]
"""A conversation up to the reply, and the reply; and a reference, for a model that reads one."""


class RewardModel:
    """A trained model that scores replies. In a run it stays what it was when it was loaded."""

    def __init__(
        self,
        found: Checkpoint,
        device: str = "auto",
        dtype: str = "auto",
        *,
        label: str = "",
        layout: str = "",
        max_tokens: int = 0,
        weights: str = "",
        principles: Sequence[str] = (),
    ):
        """label: of several, the one that is the score, by name or number.  layout: "template", the whole conversation as the chat
        template writes it, or "ours".  max_tokens: of a conversation; without it, the model's context.  weights: of its labels,
        NAME=WEIGHT with commas between them, in the place of those that it was trained with.  principles: that it is told at the
        end of each prompt, or the one that it is asked about after each reply."""
        # the lean decoder, which alone knows surprise, scores on processors in float32
        device, dtype = ("cpu", "float32") if reads_surprise(found) else (device, dtype)
        self.found, self.device, self.principles = found, device_of(device), tuple(principles)
        self.dtype = dtype_of(dtype, self.device)
        with loading(found.folder):
            config = config_of(found)
            self.tokenizer: Any = tokenizer_of(found, config)
            self.lean = LeanScorer.of(found, self.device, self.dtype, config.num_labels)
            self.model = None if self.lean else classifier(found, self.dtype).to(self.device).eval()
        self.energy = load_energy(found.folder, self.device)
        self.reads_pairs = self.lean is None and not isinstance(getattr(self.model, "score", None), nn.Linear)
        self.layout = layout or ("ours" if _is_ours(found) else "template")
        if self.layout not in ("ours", "template"):
            raise unknown("layout of a reward model", self.layout, ("ours", "template"))
        self.beside, self.reads = layout_of(found), reads_of(found)
        self.weights = _weights(config, label, weights)
        self.label = None if self.weights else _label(config, label)
        context = context_of(SimpleNamespace(config=config), self.tokenizer)
        self.most_tokens = CPU_TOKENS if self.device.type == "cpu" else GPU_TOKENS
        self.reading_bytes = partial(reading_bytes, config, self.dtype)
        self.longest = max_tokens or min(context, self.tokenizer.model_max_length)
        self.token_count, self.name = TokenCount(), "reward-model"
        self.writer: Writer | None = None

    def score(self, rows: Sequence[Answered], about: Sequence[str] = ()) -> list[float]:
        """The score of each reply; higher is better. The beginning of what is longer than the model's context is cut off.

        about: as of `read`.
        """
        return [score for score, _, _ in self.read(rows, about)]

    def read(self, rows: Sequence[Answered], about: Sequence[str] = ()) -> list[tuple[float, bool, int]]:
        """For each reply its score, whether the conversation was too long, and how many tokens of it were read.

        about: the principle of each row, for a model that is asked about it after the reply and was loaded without one.
        """
        if self.writer is not None:
            return self._read_written(self.writer.about([row[:2] for row in rows]))
        alike = numbered(tuple((m.role, m.text) for m in row[0]) for row in rows)
        known = about or [next(iter(self.principles), "")] * len(rows)
        return self._read([self._encoded(*row, about=said) for row, said in zip(rows, known, strict=True)], alike)

    def _read_written(self, groups: Sequence[Group]) -> list[tuple[float, bool, int]]:
        """For each reply the mean score over what is written about it, whether any of that was too long, and the tokens of all."""
        written = [t for group in groups for t in group]
        ids = [t.ids.tolist() for t in written]
        encoded = [{"input_ids": row[-self.longest :], "cut": len(row) > self.longest} for row in ids]
        read = iter(self._read(encoded, numbered(t.turns[0].text for t in written)))
        found = [[next(read) for _ in group] for group in groups]
        return [(sum(s for s, _, _ in of) / len(of), any(cut for _, cut, _ in of), sum(n for *_, n in of)) for of in found]

    def _read(self, encoded: Sequence[dict[str, Any]], alike: Sequence[int]) -> list[tuple[float, bool, int]]:
        """The same of conversations as tokens.  alike: equal numbers for those that begin with the same prompt."""
        lengths = [len(row["input_ids"]) for row in encoded]
        scores = [0.0] * len(encoded)

        def work(part: list[int]) -> None:
            with torch.inference_mode():
                found = self._scores([encoded[i] for i in part], [alike[i] for i in part]).tolist()
            for i, score in zip(part, found, strict=True):
                scores[i] = score

        groups = alike if self.lean else ()
        self.most_tokens = in_passes(lengths, self.most_tokens, self.reading_bytes, self.device, work, groups)
        self.token_count.scored += sum(lengths)
        return [(score, row["cut"], n) for score, row, n in zip(scores, encoded, lengths, strict=True)]

    def parameters(self) -> list[nn.Parameter]:
        """None that train."""
        return []

    def state(self) -> dict[str, Tensor]:
        """None that a checkpoint must hold."""
        return {}

    # ---- texts to tokens ------------------------------------------------------------------------------------------

    def _encoded(self, prompt: Sequence[Message], reply: str, reference: str | None = None, *, about: str = "") -> dict[str, Any]:
        if self.beside:
            if reference is None:
                raise RewardlabError(
                    f"the reward model {self.found.folder} scores replies beside a reference, and there is none: rows need a text "
                    "in the column 'reference', or an answer"
                )
            prompt = against(prompt, reference, self.beside)
        after = question_after(self.found, about) if self.reads == AFTER else []
        before = prompt if after else told(prompt, self.principles)
        prompt, after, reply = [_readable(before), _readable(after), readable(reply)]
        if self.reads_pairs:
            whole, cut = pair(self.tokenizer, asked(prompt), reply, self.longest)
            return {**whole, "cut": cut}
        ids = self._conversation(prompt, reply, after)
        return {"input_ids": ids[-self.longest :], "cut": len(ids) > self.longest}

    def _conversation(self, prompt: Sequence[Message], reply: str, after: Sequence[Message] = ()) -> list[int]:
        return (as_trained if self.layout == "ours" else by_template)(self.tokenizer, prompt, reply, after)

    # ---- tokens to scores -----------------------------------------------------------------------------------------

    def _scores(self, rows: Sequence[dict[str, Any]], alike: Sequence[int]) -> Tensor:
        if self.lean:
            ends = self.lean.ends([row["input_ids"] for row in rows], alike)
            return self._refined(ends, self.lean.scores(ends))
        names = [name for name in rows[0] if name != "cut"]
        batch = {name: _padded([row[name] for row in rows]).to(self.device) for name in names}
        length = torch.tensor([len(row["input_ids"]) for row in rows], device=self.device)
        batch["attention_mask"] = (torch.arange(batch["input_ids"].shape[1], device=self.device) < length[:, None]).long()
        model: Any = self.model
        if self.reads_pairs:
            return self._one(model(**batch).logits.float())
        hidden = model.base_model(**batch, use_cache=False).last_hidden_state
        ends = hidden[torch.arange(len(rows)), length - 1].float()
        return self._refined(ends, model.score(ends))

    def _refined(self, ends: Tensor, logits: Tensor) -> Tensor:
        own = self._one(logits.float())
        return own if self.energy is None else self.energy.refined(ends, own)

    def _one(self, logits: Tensor) -> Tensor:
        if self.weights:
            return mixed(logits, self.weights)
        if logits.shape[1] == 2 and self.label is None:
            return logits[:, 1] - logits[:, 0]
        return logits[:, self.label or 0]


def load_reward_model(name: str, device: str = "auto", dtype: str = "auto", *, written: bool = False) -> RewardModel:
    """The reward model of a name: a folder, a run or a model of the hub; PATH?label=NAME&layout=ours&max_tokens=N says more, and
    PATH?principle=TEXT what one judges by that was taught to read principles.

    written: the caller writes prompts and replies as the model was taught to read them.
    Raises RewardlabError for a checkpoint that is none, for an unknown setting, and for a model that reads more than it is shown.
    """
    found, settings = reward_settings_of(name, written=written)
    model = RewardModel(found, device, dtype, **settings)
    if is_writing(found) and not written and ("reads", PLAIN) not in parse_qsl(name.partition("?")[2]):
        model.writer = Writer(found.folder, device, dtype)
    return model


def reward_settings_of(name: str, *, written: bool = False) -> tuple[Checkpoint, dict[str, Any]]:
    """Where a reward model's checkpoint is, and what is said of it. No weights are read."""
    place, _, query = name.removeprefix(PREFIX).partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    settings: dict[str, Any] = {key: value for key, value in pairs if key != "principle"}
    principles = tuple(value for key, value in pairs if key == "principle")
    for key in settings:
        if key not in SETTINGS:
            raise unknown(f"setting of the reward model {place}", key, SETTINGS)
    if "max_tokens" in settings:
        if not settings["max_tokens"].isdecimal() or not int(settings["max_tokens"]):
            raise RewardlabError(f"{name}: max_tokens is a number of tokens, and not {settings['max_tokens']!r}")
        settings["max_tokens"] = int(settings["max_tokens"])
    found = find(place)
    if not _classifies(found):
        kind = _kind(found)
        raise RewardlabError(
            f"{place} is no reward model: it is a {kind or 'model of unknown kind'}, and not a sequence classifier{beside(found)}"
        )
    stated = settings.pop("reads", "")
    said = stated or (PLAIN if written else "")
    # what it reads besides is written by the model beside it
    reads = "" if is_writing(found) and not said and not principles else reads_of(found)
    # whoever writes says of each row which principle is asked about
    if not (written and reads == AFTER and not stated and not principles):
        check_reads(place, reads, said, principles)
    return found, {**settings, **({"principles": principles} if principles else {})}


def is_reward_model(name: str) -> bool:
    """Whether a name stands for a checkpoint that scores replies: model:PATH, or a folder, with or without ?settings.

    Raises RewardlabError for model:PATH of no checkpoint; any other name of none is simply no reward model.
    """
    place = name.removeprefix(PREFIX).partition("?")[0]
    if name.startswith(PREFIX):
        return _classifies(find(place))
    with suppress(RewardlabError):
        return Path(place).expanduser().is_dir() and _classifies(find(place))
    return False


def _kind(found: Checkpoint) -> str:
    return str((found.config.get("architectures") or [""])[0])


def _classifies(found: Checkpoint) -> bool:
    return _kind(found).endswith("ForSequenceClassification")


def readable(text: str) -> str:
    """The text as a tokenizer can take it: half of a surrogate pair, which models sometimes write, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _readable(messages: Sequence[Message]) -> list[Message]:
    return [Message(m.role, readable(m.text)) for m in messages]


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """(B, T), padded on the right with 0, which no attention sees."""
    table = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    for i, row in enumerate(rows):
        table[i, : len(row)] = torch.tensor(row)
    return table


def _is_ours(found: Checkpoint) -> bool:
    """Whether rewardlab trained it: its layout is then known."""
    return "rewardlab" in found.config or (found.folder.parent / "metrics.jsonl").is_file()


def _weights(config: Any, label: str, said: str) -> Attributes:
    """The weight of each label, in their order, where the score is their sum; {} where it is one label, or named by one."""
    if label and said:
        raise RewardlabError("the score is one label, or a sum of labels by weights: leave out label= or weights=")
    if label or not said:
        return {} if label else attributes_in(config.to_dict())
    names, weights = [config.id2label[i] for i in range(config.num_labels)], read_attributes(said)
    for name in weights:
        if name not in names:
            raise unknown("label of the classifier", name, names)
    return {name: weights.get(name, 0.0) for name in names}


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
