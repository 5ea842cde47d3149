"""The base of text policies: the tokenizer, the chat template, and converting trajectories to tokens and back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Message, Policy, Sampling, TokenCount, Trajectory, Turn
from rewardlab.errors import RewardlabError, TooLong
from rewardlab.policies.adapter import Base
from rewardlab.policies.chat import after_opened, dialogue, since_reply
from rewardlab.policies.ends import end_ids, generation_ends, generation_of, turn_end, write_generation
from rewardlab.policies.head import at_temperature, divergences, gradient_products, likeliest, nucleus_logprobs
from rewardlab.policies.joint import Joins
from rewardlab.policies.kept import Kept, most_bytes
from rewardlab.policies.layers import HasLayers
from rewardlab.policies.template_kwargs import with_kwargs
from rewardlab.policies.tokenizer import encoded
from rewardlab.policies.vectors import NO_TOKEN
from rewardlab.policies.weights import shown

REMEMBERED = 256
"""Messages that follow a reply whose tokens are kept: those of some turns, which a group reads together."""


class TextPolicy(HasLayers, Joins):
    """Base of the text policies. Subclasses add `extend` and `_forward`."""

    name = "policy"
    step = 0
    """The training step of the current weights; recorded in every sampled turn."""
    context: int
    base: Base | None = None
    """What the weights below adapters were loaded from; None where nothing on disk holds them."""
    loaded_dtype = "float32"
    """Number format of the checkpoint that the policy was loaded from: an exported one has it too."""
    generation: Mapping[str, Any] = MappingProxyType({})
    """The checkpoint's own generation_config.json, for whoever samples from it elsewhere; here it decides nothing but `ends`."""
    packed = False
    """Whether the matrices of the layers are kept in 4 bits."""
    own_template = False
    """Whether the chat template is another than that of the checkpoint below adapters."""
    shares_prompts = False
    """Whether a prompt of neighbouring rows is computed once."""
    recomputes = False
    """Whether a pass with gradient keeps of each layer only what it read, and computes the rest again going backward (gradient
    checkpointing, Chen et al. 2016, arXiv:1604.06174). A copy does as the policy does."""
    cuts = False
    """Whether it shortens by itself what is longer than its context."""
    most_rows = 1 << 30
    """Rows sampled together at most: fewer after memory has run out."""
    sampler: Any = None
    """What samples in this policy's place (`vllm/sampler.py`); a copy has none."""

    _kept: Kept | None = None
    """What earlier calls of `extend` have computed, within `keeping`."""

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self.ends = frozenset(end_ids(tokenizer))
        self._end = turn_end(tokenizer)
        if not self.ends:
            raise RewardlabError("the tokenizer names no end-of-sequence token; set eos_token in tokenizer_config.json")
        self.token_count = TokenCount()
        # tokens of messages that follow a reply, by what they say
        self._between: OrderedDict[tuple[Any, ...], list[int]] = OrderedDict()

    def parameters(self) -> list[torch.nn.Parameter]:
        """All weights, also those that are frozen."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return shown(self)

    def use_template_kwargs(self, kwargs: Mapping[str, Any]) -> None:
        """Render messages with these keyword arguments of the chat template, over those that it has (`template_kwargs.py`).

        Raises RewardlabError for a name that the template does not read, and without a template.
        """
        self.use_tokenizer(with_kwargs(self.tokenizer, kwargs))

    def use_tokenizer(self, tokenizer: Any) -> None:
        """Render messages by the template of this copy of the tokenizer, which saved adapters have then, too."""
        self.tokenizer, self._end, self.own_template = tokenizer, turn_end(tokenizer), True
        self._between.clear()
        # what reads pictures has made its own of the old one
        self.__dict__.pop("_speaker", None)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """A context in which the weights stay, so that what `extend` has computed of a text can serve where the text goes on.

        Episodes of several turns and trees of steps ask for replies to ever longer texts.
        """
        if self._kept is not None or not self._keeps():
            yield
            return
        self._kept = Kept(most_bytes(self.device))
        try:
            yield
        finally:
            self._kept = None

    def _keeps(self) -> bool:
        """Whether what it has computed of a text can serve where the text goes on."""
        return False

    # ---- text to tokens ----------------------------------------------------------------------------------------------

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        """Append messages through the chat template.

        Earlier turns keep their tokens: tokenising a sampled reply again may give others than those that were sampled.
        """
        return [
            t.plus(Turn(None, self._ids_of(t, tuple(new)), text="\n".join(m.text for m in new), reward=pay_of(new)))
            for t, new in zip(trajectories, messages, strict=True)
        ]

    def prompt_lengths(self, prompts: Sequence[tuple[Message, ...]]) -> list[int]:
        """The tokens of each prompt through the chat template, in one call of the tokenizer."""
        return [len(ids) for ids in encoded(self.tokenizer, [self._render(p) for p in prompts])]

    def text_lengths(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text alone."""
        if not texts:
            return []
        return [len(ids) for ids in self.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]]

    def write(self, trajectories: Sequence[Trajectory], replies: Sequence[str | list[str]]) -> list[Trajectory]:
        """Append recorded replies, each closed by the end token of the chat template, as decisions of this policy; where
        that opens the thoughts of a reply, without a second <think>.

        A list holds several replies of a conversation, and between them what the user says.
        """
        rows, turns = list(trajectories), [text if isinstance(text, list) else [text] for text in replies]
        for turn in range(max(map(len, turns), default=0)):
            active = [i for i, texts in enumerate(turns) if len(texts) > turn]
            before, said = [rows[i] for i in active], [turns[i][turn] for i in active]
            after = self.read(before, [(Message("user", text),) for text in said]) if turn % 2 else self._write(before, said)
            for i, t in zip(active, after, strict=True):
                rows[i] = t
        return rows

    def _write(self, trajectories: Sequence[Trajectory], replies: Sequence[str]) -> list[Trajectory]:
        end = [self._end]
        replies = [
            after_opened(self.tokenizer, text) if t.turns and t.turns[-1].author is None else text
            for t, text in zip(trajectories, replies, strict=True)
        ]
        # a batched call: the tokenizer is several times faster than row by row
        rows = self.tokenizer(list(replies), add_special_tokens=False, verbose=False)["input_ids"]
        return [
            t.plus(Turn(self.name, np.asarray(ids + end, np.int64), text=text), "end")
            for t, ids, text in zip(trajectories, rows, replies, strict=True)
        ]

    def _ids_of(self, trajectory: Trajectory, new: tuple[Message, ...]) -> np.ndarray:
        if any(m.images for m in new):
            raise RewardlabError("this policy is text-only and the prompt holds images; use a vision-language model")
        if not trajectory.turns:
            return np.asarray(encoded(self.tokenizer, [self._render(new)])[0], np.int64)
        ids = trajectory.turns[-1].ids
        last = int(ids[-1]) if len(ids) and int(ids[-1]) in self.ends else None
        # the same messages follow many replies (a group, a tool's prompt): they are rendered and tokenised once
        # the end token that the reply wrote itself changes what follows, and what it is paid does not
        key = (*((m.role, m.text, m.tools, m.results) for m in new), last)
        if key not in self._between:
            words = self.tokenizer
            end, own = words.convert_ids_to_tokens(self._end), "" if last is None else words.convert_ids_to_tokens(last)
            (self._between[key],) = encoded(words, [since_reply(words, new, end, last is not None, own)], begins=False)
            # what a search finds or a game shows differs from turn to turn: a long run would keep all of it
            if len(self._between) > REMEMBERED:
                self._between.popitem(last=False)
        return np.asarray(self._between[key], np.int64)

    def _render(self, messages: tuple[Message, ...]) -> str:
        return dialogue(self.tokenizer, messages)

    def sampling_bytes(self, rows: int, prompt: int, reply: int) -> dict[str, int]:
        """The bytes that sampling so many rows at a time takes, of at most so many tokens, by what they are for."""
        raise NotImplementedError

    def vocabulary_head(self) -> Tensor:
        """(V, hidden): the matrix that turns hidden states into logits; with a last column for the bias, if there is one."""
        raise NotImplementedError

    def divergences(self, hidden: Tensor, teacher: TextPolicy, of_teacher: Tensor) -> Tensor:
        """(n,) KL(teacher || policy) of the next token, from the hidden states (n, d) of both, with gradient."""
        (h, own), (t, others) = self._for_head(hidden), teacher._for_head(of_teacher)
        return divergences(t, others, h, own)

    def nucleus_logprobs(
        self, hidden: Tensor, ids: Tensor, mask: TextPolicy, of_mask: Tensor, top_p: float
    ) -> tuple[Tensor, Tensor]:
        """(n,) log-probs of `ids` under this policy when only the top-p tokens of the model `mask`, and those that end a reply, may
        be sampled, with gradient, and whether they are among them; from the hidden states (n, d) of both that predict the ids.
        The temperature is of this policy: the mask is read as it is."""
        (h, own), (o, others) = self._for_head(hidden), mask._for_head(of_mask)
        return nucleus_logprobs(at_temperature(h, self.temperature), own, o, others.detach(), ids, top_p, sorted(self.ends))

    def likeliest(self, hidden: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """(ids, log-probs), each (n, k), of the k likeliest next tokens after hidden states (n, d)."""
        padded, head = self._for_head(hidden)
        return likeliest(padded, head, k)

    def _for_head(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states, and the matrix that they are multiplied by."""
        head = self.vocabulary_head()
        # a frozen head may be kept in 16 bits
        wide = torch.promote_types(hidden.dtype, head.dtype)
        # a bias is a column of the matrix for an input that is always 1
        return F.pad(hidden.to(wide), (0, head.shape[1] - hidden.shape[1]), value=1.0), head.to(wide)

    def gradient_products(self, hidden: Tensor, ids: Tensor, sources: Tensor) -> Tensor:
        """(n,) how fast a step of the head along the gradient of log p(ids[i]) raises the sum of those of the `sources` (n,) bool.

        hidden: (n, d), the states that predict `ids` (n,).
        """
        padded, head = self._for_head(hidden)
        return gradient_products(padded, head.float(), ids, sources)

    # ---- sampling elsewhere ------------------------------------------------------------------------------------------

    def _sampled_elsewhere(
        self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator
    ) -> list[Trajectory] | None:
        """The rows with replies, where something else samples them in this policy's place; None where it samples itself."""
        return None if self.sampler is None else self.sampler.extend(self, trajectories, sampling, rng)

    @property
    def adapter_rank(self) -> int | None:
        """The rank of the adapters that train; None where weights do."""
        raise NotImplementedError

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The weights, without adapters, by their names in a Hugging Face checkpoint."""
        raise NotImplementedError

    def config_document(self) -> dict[str, Any]:
        """The contents of config.json in a Hugging Face checkpoint."""
        raise NotImplementedError

    def save_adapter(self, folder: Path) -> None:
        """Write the adapters as peft does."""
        raise NotImplementedError

    # ---- tokens to text ----------------------------------------------------------------------------------------------

    def decode(self, ids: np.ndarray) -> str:
        return self.tokenizer.decode(ids[ids != NO_TOKEN], skip_special_tokens=True)

    def decode_all(self, rows: Sequence[np.ndarray]) -> list[str]:
        return self.tokenizer.batch_decode([r[r != NO_TOKEN].tolist() for r in rows], skip_special_tokens=True)

    def pieces(self, ids: np.ndarray) -> list[str]:
        """The text of each token, decoded alone; none where a vector is in place of a token."""
        return self.tokenizer.batch_decode([[] if i == NO_TOKEN else [i] for i in ids.tolist()])

    def all_pieces(self) -> list[str]:
        """The text of every entry of the vocabulary, by id."""
        return self.tokenizer.batch_decode([[i] for i in range(len(self.tokenizer))])

    def stop_as_in(self, folder: Path | str) -> None:
        """End replies also where the checkpoint in a folder says that they end, and keep what it says of generation."""
        self.ends |= set(generation_ends(folder))
        self.generation = generation_of(folder)

    def _as_loaded(self, other: Any) -> None:
        """Take over what the policy that this one is a copy of was loaded with."""
        self.base, self.loaded_dtype = other.base, other.loaded_dtype
        self.ends, self.generation = other.ends, other.generation
        self.own_template = other.own_template

    def save_tokenizer(self, folder: Path) -> None:
        """Write the tokenizer, and how replies are generated, with the tokens that end one."""
        self.tokenizer.save_pretrained(folder)
        # what scores generates nothing: there the file tells where replies end, if the tokenizer does not
        if not self.has_value_head or self.ends > set(end_ids(self.tokenizer)):
            write_generation(folder, self.generation, self.tokenizer, self.ends)

    def check_fits(self, trajectory: Trajectory, max_new: int) -> None:
        """Refuse a prompt that leaves no room for the reply."""
        if len(trajectory) + max_new > self.context:
            raise TooLong(
                f"a prompt of {len(trajectory)} tokens and {max_new} new ones exceed the model's context of {self.context}: "
                f"{trajectory.problem.question[:80]!r}; shorten it, or lower --max-new"
            )


def pay_of(messages: Sequence[Message]) -> float | None:
    """The sum of the rewards that messages carry for the decisions before them; None if none carries one, which is not 0."""
    rewards = [m.reward for m in messages if m.reward is not None]
    return sum(rewards) if rewards else None


__all__ = ["Policy", "TextPolicy"]
