"""A served model that is sent token ids, and answers with ids and their log-probs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rewardlab.clients.client import Client
from rewardlab.clients.completions import Continuation, Continued, continued_of
from rewardlab.clients.messages import Failure
from rewardlab.core import Message, Sampling, Trajectory, Turn
from rewardlab.policies.chat import after_opened, dialogue, since_reply
from rewardlab.policies.ends import end_ids, turn_end
from rewardlab.policies.served import NotServed, ServedPolicy
from rewardlab.policies.tokenizer import encoded


class ServedIds(ServedPolicy):
    """`openai:URL#NAME,tokenizer=FOLDER,ids=true`: prompts are rendered and tokenised here.

    What is sampled has ids and log-probs of the raw model (vLLM's default, `--logprobs-mode raw_logprobs`), ends with its end
    token, and is continued exactly where it ended. So searches that are guided by the policy's own probabilities work.
    """

    sees = False

    def __init__(self, client: Client):
        super().__init__(client)
        self.ends = frozenset(end_ids(self.tokenizer))
        self._end = turn_end(self.tokenizer)

    def write(self, trajectories: Sequence[Trajectory], replies: Sequence[str]) -> list[Trajectory]:
        end = [] if self._end is None else [self._end]
        rows = [(t, after_opened(self.tokenizer, text)) for t, text in zip(trajectories, replies, strict=True)]
        return [t.plus(Turn(self.name, np.append(self.encode(text), end).astype(np.int64), text=text), "end") for t, text in rows]

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """One reply for each trajectory, whose last reply is continued. A token that completes a stop string stays whole.

        Raises RewardlabError if a reply does not come, or comes without ids and log-probs.
        """
        seeds = self._seeds(trajectories, sampling, rng)
        asked = [
            Continuation(
                tuple(t.ids.tolist()), sampling.max_new, sampling.temperature, sampling.top_p, sampling.top_k, seed, sampling.stop
            )
            for t, seed in zip(trajectories, seeds, strict=True)
        ]  # fmt: skip
        found = self.client.ask([one.call(self.client.endpoint.model) for one in asked], continued_of)
        return [self._continued(t, reply, sampling) for t, reply in zip(trajectories, found, strict=True)]

    def _continued(self, trajectory: Trajectory, found: Continued | Failure, sampling: Sampling) -> Trajectory:
        if isinstance(found, Failure):
            raise NotServed(f"{self.client.endpoint} gave no reply of ids: {found.why}")
        self.token_count.generated += len(found.ids)
        end = self._predicate(found.ids, sampling)
        ids, logprobs = found.ids[:end], found.logprobs[:end]
        # of a distribution with a temperature or a cut the server says nothing
        sampled = logprobs if sampling.raw else np.zeros_like(logprobs) if sampling.temperature == 0 else None
        turn = Turn(self.name, ids, logprobs, sampled, self.decode(ids), step=self.step)
        return trajectory.plus(turn, found.stop if end is None else "predicate")

    def _predicate(self, ids: np.ndarray, sampling: Sampling) -> int | None:
        """After how many tokens `stop_when` holds, which is asked at the ends of lines; None where it never does."""
        if sampling.stop_when is None:
            return None
        lines = (i + 1 for i, piece in enumerate(self.pieces(ids)) if "\n" in piece)
        return next((n for n in lines if sampling.stop_when(self.decode(ids[:n]))), None)

    def _read_ids(self, trajectory: Trajectory, messages: Sequence[Message]) -> np.ndarray:
        if any(m.images for m in messages):
            raise NotServed("a prompt that shows pictures cannot be sent as ids: write openai:URL#NAME without ids=true")
        if not trajectory.turns:
            return self._prompt_ids(messages)
        ids = trajectory.turns[-1].ids
        end: Any = self.tokenizer.convert_ids_to_tokens(self._end) if self._end is not None else ""
        return self.encode(since_reply(self.tokenizer, messages, end, bool(len(ids)) and int(ids[-1]) in self.ends))

    def _prompt_ids(self, messages: Sequence[Message]) -> np.ndarray:
        # without a template the tokenizer puts its own token before it, as in training
        return np.asarray(encoded(self.tokenizer, [dialogue(self.tokenizer, messages)])[0], np.int64)
