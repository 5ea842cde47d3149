"""A model behind an OpenAI-compatible address, as a policy: it answers, searches and annotates, and cannot be trained."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from rewardlab.clients.client import Call, Client, client_of
from rewardlab.clients.messages import Failure, Reply, Request
from rewardlab.clients.retries import Trouble, checked
from rewardlab.core import Message, Sampling, TokenCount, Trajectory, Turn
from rewardlab.data.pictures import addresses
from rewardlab.errors import RewardlabError, TooLong
from rewardlab.policies.chat import in_words, rendered
from rewardlab.policies.replies import seeds_of
from rewardlab.policies.template_kwargs import with_kwargs
from rewardlab.policies.text import pay_of

UNLIMITED = 1 << 40
"""The context, where the server alone knows how much fits."""
CANNOT_TRAIN = (
    "a served model cannot be trained, since its weights are with its server: train one of your own, and let the served one "
    "answer, be evaluated, or judge: judge(model='openai:URL#NAME')"
)


WITHOUT_WEIGHTS: dict[str, Callable[..., Any]] = {"parameters": list, "state": dict, "load_state": lambda state: None}
"""What a second model of a run that is served says of its weights, which are nothing of the run's."""


@dataclass(frozen=True, eq=False)
class ReadTurn(Turn):
    """Text that was read, with the messages that it was: a chat endpoint is sent all of them again."""

    messages: tuple[Message, ...] = ()


class NotServed(RewardlabError, AttributeError):
    """Something that only a model whose weights are here can do. An AttributeError too, so that `hasattr` says no."""


class ServedPolicy:
    """`openai:URL#NAME` as a policy: `read`, `write` and `extend`; `score` where the server gives log-probs of prompts.

    Trajectories hold the ids of a tokenizer if one is named (`tokenizer=FOLDER`), else characters (code points): text is what goes
    over the line, and what is sampled comes without ids and log-probs (`logprobs` of its turns is None; with `ids=true`
    it has them, see `ServedIds`). Lengths, step positions
    and `context` count ids; `max_new` and `token_count` are the server's tokens. Each reply gets a seed of its own from the run's
    random stream, so that a run repeated asks the same, and reads from disk what it was told before.
    """

    name = "policy"
    sees = True
    step = 0
    device = torch.device("cpu")
    beside = False
    """Whether it is a second model of a run, which is asked, does not learn, and has no weights to be counted or saved."""

    def __init__(self, client: Client):
        self.client, self.token_count = client, TokenCount()
        self.context = client.settings.context or UNLIMITED
        self._told: Mapping[str, Any] = {}
        if client.settings.tokenizer:
            self.tokenizer = _tokenizer(client.settings.tokenizer)
        if client.settings.chat_template_kwargs:
            self.use_template_kwargs(client.settings.chat_template_kwargs)
        self._characters = not client.settings.tokenizer
        # until a server is seen not to say which stop string ended a reply
        self._tells = True

    @classmethod
    def load(cls, name: str) -> ServedPolicy:
        return cls(client_of(name))

    def __repr__(self) -> str:
        return f"ServedPolicy({self.name!r}, {self.client.endpoint})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "tokenizer":
            raise NotServed("a served model has no tokenizer here; name one: openai:URL#NAME,tokenizer=FOLDER or ORG/NAME")
        if self.beside and name in WITHOUT_WEIGHTS:
            return WITHOUT_WEIGHTS[name]
        if name in ("evaluate", "parameters", "copy", "save", "state", "load_state"):
            raise NotServed(CANNOT_TRAIN)
        raise NotServed(f"a served model has no {name!r}: its weights are with its server")

    def use_template_kwargs(self, kwargs: Mapping[str, Any]) -> None:
        """Have the server's chat template told these, over what it is told already; and that of the tokenizer, if one is named."""
        if self.client.settings.tokenizer:
            self.tokenizer = with_kwargs(self.tokenizer, kwargs)
        self._told = {**self._told, **kwargs}

    # ---- text and ids ------------------------------------------------------------------------------------------------

    def encode(self, text: str) -> np.ndarray:
        ids = [*map(ord, text)] if self._characters else self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return np.asarray(ids, np.int64)

    def decode(self, ids: np.ndarray) -> str:
        return "".join(map(chr, ids.tolist())) if self._characters else self.tokenizer.decode(ids, skip_special_tokens=True)

    def decode_all(self, rows: Sequence[np.ndarray]) -> list[str]:
        return [self.decode(ids) for ids in rows]

    def pieces(self, ids: np.ndarray) -> list[str]:
        """The text of each id, alone."""
        return [*map(chr, ids.tolist())] if self._characters else self.tokenizer.batch_decode([[i] for i in ids.tolist()])

    def prompt_lengths(self, prompts: Sequence[tuple[Message, ...]]) -> list[int]:
        return [len(self._prompt_ids(prompt)) for prompt in prompts]

    def text_lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(self.encode(text)) for text in texts]

    def check_fits(self, trajectory: Trajectory, max_new: int) -> None:
        if len(trajectory) + max_new > self.context:
            raise TooLong(
                f"a prompt of {len(trajectory)} ids and a reply of {max_new} exceed context={self.context} of the served model: "
                f"{trajectory.problem.question[:80]!r}; shorten it, or lower --max-new"
            )

    def _read_ids(self, trajectory: Trajectory, messages: Sequence[Message]) -> np.ndarray:
        return self._prompt_ids(messages)

    def _prompt_ids(self, messages: Sequence[Message]) -> np.ndarray:
        if self._characters or not self.tokenizer.chat_template:
            return self.encode("".join(f"{m.text}\n" for m in messages))
        return self.encode(rendered(self.tokenizer, messages))

    # ---- the calls of a policy ---------------------------------------------------------------------------------------

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        # a server may take tools, too, but then it reads the calls from replies, which are to be read here
        said = [tuple(in_words(new)) for new in messages]
        return [
            t.plus(ReadTurn(None, self._read_ids(t, new), text="\n".join(m.text for m in new), reward=pay_of(new), messages=new))
            for t, new in zip(trajectories, said, strict=True)
        ]

    def write(self, trajectories: Sequence[Trajectory], replies: Sequence[str]) -> list[Trajectory]:
        rows = zip(trajectories, replies, strict=True)
        return [t.plus(Turn(self.name, self.encode(text), text=text), "end") for t, text in rows]

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """One reply for each trajectory. A trajectory that ends with a reply needs `prefill=true` (see `Settings`).

        A stop string stays in the reply, though servers leave it out. Where a server does not say which one ended a reply, they
        are not sent: the reply is cut here, and tokens beyond the cut count too. Raises RewardlabError if a reply does not come.
        """
        seeds = self._seeds(trajectories, sampling, rng)
        requests = [self._request(t, sampling, seed) for t, seed in zip(trajectories, seeds, strict=True)]
        replies = self._replies(requests, sampling.stop)
        return [self._extended(t, reply, sampling) for t, reply in zip(trajectories, replies, strict=True)]

    def _seeds(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[int | None]:
        """A seed for each reply. Raises RewardlabError for one that does not fit, and for what no server can do."""
        for t in trajectories:
            self.check_fits(t, sampling.max_new)
        if not math.isinf(sampling.max_entropy):
            raise NotServed(
                "a served model does not say how unsure it is before each token, where this method ends a segment of a reply: "
                "--max-entropy inf ends segments by their length alone"
            )
        # greedy replies have none: the same prompt is sent once
        return seeds_of(len(trajectories), sampling, rng)

    def _request(self, trajectory: Trajectory, sampling: Sampling, seed: int | None) -> Request:
        messages = messages_of(trajectory)
        prefill = bool(messages) and messages[-1][0] == "assistant"
        if prefill and not self.client.settings.prefill:
            raise RewardlabError(
                "a served model begins a new reply, and this rollout continues one: use one of whole replies (independent), or "
                "write openai:URL#NAME,prefill=true if the server continues a last message of the assistant, as vLLM does"
            )
        drawn = sampling.max_new, sampling.temperature, sampling.top_p, sampling.top_k, seed
        told = json.dumps(self._told, sort_keys=True) if self._told else ""
        return Request(messages, *drawn, prefill=prefill, images=addresses(_said(trajectory)), template=told)

    def _replies(self, requests: list[Request], stop: tuple[str, ...]) -> list[Reply]:
        if not stop or not self._tells:
            return self._asked(requests)
        replies = self._asked([replace(r, stop=stop) for r in requests])
        unclear = [i for i, reply in enumerate(replies) if reply.ended and not reply.tells]
        self._tells = not unclear
        for i, reply in zip(unclear, self._asked([requests[i] for i in unclear]), strict=True):
            replies[i] = reply
        return replies

    def _asked(self, requests: list[Request]) -> list[Reply]:
        replies = []
        for found in self.client.chat(requests):
            if isinstance(found, Failure):
                raise RewardlabError(
                    f"{self.client.endpoint} gave no reply: {found.why}. Replies so far are kept: run the same again to resume"
                )
            self.token_count.generated += len(self.encode(found.text)) if found.tokens is None else found.tokens
            replies.append(found)
        return replies

    def _extended(self, trajectory: Trajectory, reply: Reply, sampling: Sampling) -> Trajectory:
        text, stop = cut(reply.text + (reply.stopped_by or ""), sampling)
        tokens: int | None = None
        if self._characters and reply.tokens is not None:
            # of a reply that is cut here, its share
            tokens = math.ceil(reply.tokens * min(1.0, len(text) / max(1, len(reply.text))))
        turn = Turn(self.name, self.encode(text), text=text, step=self.step, tokens=tokens)
        return trajectory.plus(turn, stop or ("end" if reply.ended else "length"))

    def score(self, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        """Log-prob of every position, (len,); 0 for the first. By `echo` of the server's completions, for ids of a tokenizer.

        Raises RewardlabError without `tokenizer=`, and where the server does not score prompts.
        """
        if any(m.images for t in trajectories for m in _said(t)):
            raise NotServed("the log-probs of a served model are those of text, and these prompts show pictures")
        if self._characters:
            raise NotServed("the log-probs of a served model need its tokenizer: openai:URL#NAME,tokenizer=FOLDER or ORG/NAME")
        calls = [self._echo(t.ids) for t in trajectories]
        found = self.client.ask(calls, lambda document: checked(document, "choices", 0))
        return [self._scored(choice, len(t)) for choice, t in zip(found, trajectories, strict=True)]

    def _echo(self, ids: np.ndarray) -> Call:
        # a server that counts 0 new tokens as no limit would write on: what it writes is left out
        body = {"model": self.client.endpoint.model, "prompt": ids.tolist(), "max_tokens": 0, "echo": True, "logprobs": 1}
        return Call("/completions", body | {"temperature": 0.0}, most_read=len(ids), most_written=1)

    def _scored(self, choice: Any, length: int) -> np.ndarray:
        try:
            if isinstance(choice, Failure):
                raise Trouble(choice.why)
            found = checked(choice, "logprobs", "token_logprobs")[:length]
            logprobs = np.asarray([0.0, *found[1:]], np.float32)
            if len(found) != length or not np.isfinite(logprobs).all():
                raise Trouble(f"{len(found)} log-probs for {length} tokens")
        except (Trouble, TypeError, ValueError) as problem:
            raise NotServed(
                f"{self.client.endpoint} does not score prompts (completions of ids with echo and logprobs, as of vLLM): {problem}"
            ) from None
        self.token_count.scored += length
        return logprobs


def messages_of(trajectory: Trajectory) -> tuple[tuple[str, str], ...]:
    """A trajectory as (role, text) pairs; replies in a row are one."""
    return tuple((m.role, m.text) for m in _said(trajectory))


def _said(trajectory: Trajectory) -> list[Message]:
    said: list[Message] = []
    for i, turn in enumerate(trajectory.turns):
        if turn.author is not None:
            before = said.pop().text if said and said[-1].role == "assistant" else ""
            said.append(Message("assistant", before + turn.text))
        else:
            # text that another policy read: its first turn is the prompt
            prompt = trajectory.problem.prompt if i == 0 else (Message("user", turn.text),)
            said += turn.messages if isinstance(turn, ReadTurn) else prompt
    return said


def cut(text: str, sampling: Sampling) -> tuple[str, str | None]:
    """A reply up to the first stop string, or to the first end of a line at which `stop_when` holds, and which it was."""
    ends = {at + len(stop): "stop" for stop in sampling.stop if (at := text.find(stop)) >= 0}
    if sampling.stop_when:
        lines = (i + 1 for i, character in enumerate(text) if character == "\n")
        if (line := next((end for end in lines if sampling.stop_when(text[:end])), None)) is not None:
            ends.setdefault(line, "predicate")
    first = min(ends, default=None)
    return (text, None) if first is None else (text[:first], ends[first])


def _tokenizer(name: str) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError) as problem:
        raise RewardlabError(f"tokenizer={name}: {problem}") from None
