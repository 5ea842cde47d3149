"""The worker process of a reward server: it loads the reward, and scores rows of text."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rewardlab import registry
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Message, Problem, Run, Score, Trajectory, Turn
from rewardlab.core.score import check_finite
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import read_reward
from rewardlab.registry.names import ASK_VERIFIER, JUDGES, OF_RUNS, READ_LOGPROBS
from rewardlab.rewards.model import CUT_OFF, load_named
from rewardlab.rewards.model import PREFIX as TRAINED
from rewardlab.rewards.process import PREFIX, scorer_of
from rewardlab.rewards.user.external import call_of
from rewardlab.text.splitters import mark
from rewardlab.util.progress import console
from rewardlab.verifiers.contract import GOLD

Row = Mapping[str, Any]
"""prompt: a text, or messages {"role", "content"}.  response.  answer.  meta: columns.  ids: tokens of the response, or None."""

TRIAL: Row = {"prompt": "1 + 1 =", "response": "2", "answer": "2", "meta": {}}
"""A made-up reply, by which it is seen before anything is served whether a reward asks the policy."""
NOTES = ("note: ", "warning: ")
"""How lines begin that are for the user."""
TOGETHER = ("group", "groups", "weights")
"""What a reward may be `over` that compares rollouts, or takes all of them in one call."""


class MoreThanText(RewardlabError):
    """A reward reads something that a server does not get."""


def of_policy(what: str) -> MoreThanText:
    return MoreThanText(f"this reward asks the policy itself ({what}), and a reward server has only its text: score it in training")


class Scorer:
    """The rewards of these names, added up, or the verifier of a task; called with the rows of one group.

    rewards: as `--reward` has them.  task: its verifier is the reward where no other is named, and is what `correct()` asks.
    tokenizer: a name or folder; responses then consist of its tokens, else of characters, unless the row brings ids.
    splitter: where the steps of a response end.  about: name, whether rows are scored alone, and what tokens are.
    """

    def __init__(
        self, rewards: Sequence[str] = (), task: str | None = None, tokenizer: str | None = None, splitter: str = "newline"
    ):
        # a module of the user's project is found from the folder that the command runs in
        sys.path.insert(0, str(Path.cwd()))
        verify: Any = registry.part("reward", registry.task(task).verifier) if task else None
        self.reward: Any = functools.reduce(operator.add, map(read_reward, rewards)) if rewards else verify
        for part in (*self.reward.walk(), *(verify.walk() if verify is not None else ())):
            # a verifier whose packages are not installed says so before it is asked
            if hasattr(part, "require"):
                part.require()
        self.reader = Reader(tokenizer)
        self.splitter = splitter
        self.run = Run(self.reader, verify=verify)
        self._check_asked(verify)
        # loaded here, models are in memory once, and no fork has to load them again
        load_named(self.reward, self.run)
        for part in self.reward.walk():
            if (named := str(part.settings.get("model", ""))).startswith(PREFIX):
                scorer_of(self.run, named)
            elif not named.startswith(TRAINED) and part.name in JUDGES and not is_served(named):
                self.run.models.setdefault(named, _judge(named))
        self._check_text_is_enough()
        self.about = {"reward": str(self.reward), "alone": scores_alone(self.reward), "tokens": self.reader.tokens}

    def _check_asked(self, verify: Any) -> None:
        """Refuse a reward that asks for a task's verifier where no task is named."""
        if verify is None and (part := next((x for x in self.reward.walk() if x.name in ASK_VERIFIER), None)):
            raise RewardlabError(
                f"{part} asks the verifier of a task, and none is named: give --task TASK, or a verifier by name (--reward math)"
            )

    def _check_text_is_enough(self) -> None:
        """Refuse a reward that reads more than a server gets, before training meets it: ours are tried on a made-up reply."""
        for part in self.reward.walk():
            if part.name in READ_LOGPROBS:
                raise of_policy("its log-probs")
            # a user's function, a judge or another model is not called for nothing
            named = str(part.settings.get("model", "policy"))
            if list(part.walk()) == [part] and call_of(part) is None and named == "policy":
                try:
                    part([[self._trajectory(TRIAL)]], self.run)
                except MoreThanText:
                    raise
                except Exception:  # the made-up row lacks what the reward reads of real ones
                    continue

    def __call__(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """A document for each row. Raises RewardlabError where the reward does, and for NaN and infinity."""
        group = [self._trajectory(row) for row in rows]
        self.run.memory.clear()
        # a step of its own, so that verdicts of rows before are forgotten
        self.run.step += 1
        scores = self.reward([group], self.run)
        check_finite([group], scores, str(self.reward))
        return [document(score, t) for score, t in zip(scores[0], group, strict=True)]

    def _trajectory(self, row: Row) -> Trajectory:
        prompt, given = row["prompt"], row.get("ids")
        messages = (
            (Message("user", prompt),) if isinstance(prompt, str) else tuple(Message(m["role"], m["content"]) for m in prompt)
        )
        # verifiers and functions of others find the gold answer by its many names
        problem = Problem(messages, row["answer"], {**dict.fromkeys(GOLD, row["answer"]), **row["meta"]})
        ids = self.reader.encode(row["response"]) if given is None else np.asarray(given, np.int64)
        # an empty prompt would leave position 0 to the response, which no model predicts
        before = Turn(None, np.zeros(1, np.int64), text=problem.question)
        reply = Trajectory(problem, (before, Turn("policy", ids, text=row["response"])), stop="end")
        return reply if given is not None else mark(reply, self.splitter, self.reader.pieces)


class Served(Scorer):
    """A scorer in a worker process, whose streams nobody reads: what it noted while it was loaded is in `about`, under "notes"."""

    def __init__(self, *args: Any, **settings: Any):
        with console.capture() as said:
            super().__init__(*args, **settings)
        if notes := [line for line in said.get().splitlines() if line.startswith(NOTES)]:
            self.about["notes"] = notes


def _judge(name: str) -> Any:
    """A judge that is named by a checkpoint. Raises RewardlabError for one that only a run has."""
    from rewardlab.models.load import load_policy

    if name in OF_RUNS:
        raise RewardlabError(
            f"the judge {name!r} is a model of the run that trains, and a reward server has none: name a checkpoint, a run, or a "
            "model that is served (openai:URL#NAME)"
        )
    model: Any = load_policy(name)
    model.name = name
    return model


def scores_alone(reward: Any) -> bool:
    """Whether a row's score depends on that row alone, so that rows may be scored one by one, in any process."""

    def alone(part: Any) -> bool:
        call = call_of(part)
        return getattr(part.options, "over", None) not in TOGETHER if call is None else not call.batched

    return all(map(alone, reward.walk()))


class Reader:
    """In place of a policy: it turns text to tokens and back, and knows nothing else.  tokens: what they are, for people."""

    name, step, device, context = "policy", 0, torch.device("cpu"), 1 << 40

    def __init__(self, tokenizer: str | None):
        self.tokens = f"tokens of {tokenizer}" if tokenizer else "characters"
        if tokenizer:
            from transformers import AutoTokenizer

            try:
                self.tokenizer = AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False)
            except (OSError, ValueError) as problem:
                raise RewardlabError(f"--tokenizer {tokenizer}: {problem}") from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "tokenizer":
            raise MoreThanText("this reward reads tokens: name the tokenizer of the policy that is trained, --tokenizer NAME")
        raise of_policy(name)

    @property
    def _characters(self) -> bool:
        return "tokenizer" not in vars(self)

    def encode(self, text: str) -> np.ndarray:
        ids = [*map(ord, text)] if self._characters else self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return np.asarray(ids, np.int64)

    def decode(self, ids: np.ndarray) -> str:
        return "".join(map(chr, ids.tolist())) if self._characters else str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def pieces(self, ids: np.ndarray) -> list[str]:
        return [*map(chr, ids.tolist())] if self._characters else self.tokenizer.batch_decode([[i] for i in ids.tolist()])


def document(score: Score, t: Trajectory) -> dict[str, Any]:
    """A score as plain data. Positions of steps count from the first token of the response.

    "cut_off" is there where a reward model has read less than the whole conversation; "why" says what it has not read.
    """
    before = len(t.turns[0].ids)
    terms = {
        name: {"value": term.value, "weight": term.weight, "steps": [[at - before, r] for at, r in term.steps]}
        for name, term in score.terms.items()
    }
    steps = [[at - before, r] for at, r in score.steps]
    cut_off = {"cut_off": True} if CUT_OFF in score.why else {}
    return {"score": score.total, "steps": steps, "terms": terms, "why": score.why, "extracted": score.extracted, **cut_off}
