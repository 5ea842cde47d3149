"""A reward of rewardlab as a reward function of another framework.

    from rewardlab import part
    from rewardlab.backends.reward_functions import as_trl_reward, as_verl_reward, as_openrlhf_reward, as_verifiers_reward

    reward = part("reward", "correct") + 0.1 * part("reward", "length_penalty")
    GRPOTrainer(reward_funcs=as_trl_reward(reward, verify=part("reward", "math")), ...)

A reply without a verdict is never a 0: TRL takes None for it; to verl and OpenRLHF, which know no such thing, it is an error, or
NaN with missing="nan"; to verifiers, whose rubrics turn errors into 0, it is NaN, and so is an error, which is logged. Errors
name the reward, its file and line where it is a function of yours, and the prompt and the reply.
Signatures: TRL 1.16 (GRPOTrainer), verl 0.9.1 (reward_manager/naive.py), OpenRLHF 0.11.2 (utils/agent.py), verifiers 0.1.14
(rubrics/rubric.py).
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import numpy as np
import torch

from rewardlab.backends.verl.refusals import together
from rewardlab.core import Message, Problem, Run, Score, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import one_of
from rewardlab.util.messages import text_of
from rewardlab.util.nulls import gold_of, unpadded
from rewardlab.verifiers.contract import Verifier, check_length, gold_column, no_gold, per_reply

MISSING = one_of("raise", "nan")
Missing = Literal["raise", "nan"]


def as_trl_reward(reward: Reward, verify: Reward | None = None, answer: str | None = None) -> Callable[..., list[float | None]]:
    """f(prompts, completions, completion_ids=None, trainer_state=None, **columns) -> a number or None for each completion.

    verify: the task's verifier, which `correct()` asks.  answer: the column of the gold answers; None: the first of answer,
    solution, ground_truth, gold, label. The function raises RewardlabError, which lists the columns, where there is none and a
    verifier could judge no reply. Equal prompts side by side are a group, as TRL lays them out, so that rewards which compare
    replies work too; those that follow the progress of the run follow `trainer_state`. Where it is never given, each call is a
    step of a run without end, so that what a reward remembers goes on, and its schedules stay at their start.
    """
    scorer = _Scorer(reward, verify)

    def function(
        prompts: Any, completions: Any, completion_ids: Any = None, trainer_state: Any = None, **columns: Any
    ) -> list[float | None]:
        if trainer_state is not None:
            scorer.counts = False
            scorer.run.step, scorer.run.steps = trainer_state.global_step, max(1, trainer_state.max_steps)
        rows = per_reply(columns, len(completions))
        gold = gold_column(rows, answer)
        if gold is None:
            check_length(scorer.name, columns, answer, len(completions))
        if answer is not None and gold is None:
            raise no_gold(scorer.name, rows, answer)
        made = []
        for i, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            ids = None if completion_ids is None else completion_ids[i]
            meta = {name: column[i] for name, column in rows.items()}
            made.append(trajectory(prompt, completion, None if gold is None else rows[gold][i], meta, ids))
        groups = [list(group) for _, group in groupby(made, key=lambda t: t.problem.key)]
        paid = [score.total for row in scorer(groups) for score in row]
        if gold is None and scorer.verifies and paid and all(number is None for number in paid):
            raise no_gold(scorer.name, rows)
        return paid

    return named(function, scorer)


def as_verl_reward(reward: Reward, verify: Reward | None = None, missing: Missing = "raise") -> Callable[..., dict[str, float]]:
    """compute_score(data_source, solution_str, ground_truth, extra_info=None) -> {"score": number}, for custom_reward_function.

    extra_info: the columns. Raises RewardlabError for a reward that compares replies, since verl scores each alone.
    """
    scorer = _Scorer(reward, verify).alone()
    MISSING.check("missing", missing)

    def function(data_source: Any, solution_str: str, ground_truth: Any, extra_info: Any = None, **_: Any) -> dict[str, float]:
        info = dict(extra_info) if isinstance(extra_info, Mapping) else {}
        made = trajectory(info.get("prompt", info.get("question", "")), solution_str, ground_truth, info)
        return {"score": scorer.number(made, missing)}

    return named(function, scorer, "compute_score")


def as_openrlhf_reward(
    reward: Reward, verify: Reward | None = None, end: Sequence[str] = (), missing: Missing = "raise"
) -> Callable[..., dict[str, Any]]:
    """reward_func(queries, prompts, labels) -> {"rewards": (n,), "scores": (n,), "extra_logs": {}}, in the file of remote_url.

    end: texts that end a reply there, such as "<|im_end|>", and are no part of it: OpenRLHF decodes special tokens too. Raises
    RewardlabError for a reward that compares replies, since OpenRLHF scores each alone.
    """
    scorer = _Scorer(reward, verify).alone()
    MISSING.check("missing", missing)

    def function(queries: Any, prompts: Any, labels: Any, **_: Any) -> dict[str, Any]:
        numbers = []
        for i, (query, prompt, label) in enumerate(zip(queries, prompts, labels, strict=True)):
            if not query.startswith(prompt):
                raise RewardlabError(
                    f"{scorer.name}: query {i} does not begin with its prompt {prompt[-60:]!r}, so its reply is not known"
                )
            reply = query.removeprefix(prompt)
            for text in end:
                reply = reply.removesuffix(text)
            numbers.append(scorer.number(trajectory(prompt, reply, label, {}), missing))
        rewards = torch.tensor(numbers, dtype=torch.float32)
        return {"rewards": rewards, "scores": rewards.clone(), "extra_logs": {}}

    return named(function, scorer, "reward_func")


def as_verifiers_reward(reward: Reward, verify: Reward | None = None) -> Callable[..., Any]:
    """f(prompt, completion, answer, info) -> number, for `Rubric(funcs=[...])`; a reward that compares replies takes them in the
    plural, and returns a list. What it remembers, as a running mean, moves with every group.

    No verdict is NaN. So is an error, which goes to the log: a rubric would make a 0 of it.
    """
    scorer = _Scorer(reward, verify)
    # a group is the most that is seen together; a single reply is no step
    scorer.counts = bool(scorer.compares)

    def function(prompt: Any, completion: Any, answer: Any = None, info: Any = None) -> float:
        return logged([trajectory(prompt, completion, answer, _columns(info))])[0]

    def of_group(prompts: Any, completions: Any, answers: Any, infos: Any) -> list[float]:
        rows = zip(prompts, completions, answers, infos, strict=True)
        return logged([trajectory(p, c, a, _columns(i)) for p, c, a, i in rows])

    def logged(group: list[Trajectory]) -> list[float]:
        try:
            return [math.nan if s.total is None else s.total for s in scorer([group])[0]]
        except RewardlabError as e:
            logging.getLogger(__name__).error("%s: NaN in place of a reward", e)
            return [math.nan] * len(group)

    return named(of_group if scorer.compares else function, scorer)


OF_TOKENS = ("prm_steps", "doubted_steps", "step_score", "implicit_steps", "counted_steps")
"""Rewards that ask the policy's tokenizer where the steps of a reply end."""
INSTEAD = (
    'One number a reply is prm_score(model="prm:PATH", form="min"); with TRL, rewardlab train --engine trl hands step rewards over'
)


class _Scorer:
    """A reward outside of a run of rewardlab. What it remembers between calls lasts as long as this object.

    compares: which of its parts compares replies; "" without one.  verifies: whether a verifier is among its parts.
    counts: whether each call is a training step, since the framework says none and hands over many replies at a time.
    """

    def __init__(self, reward: Reward, verify: Reward | None):
        if not isinstance(reward, Reward):
            raise RewardlabError(f"{reward!r} is no reward of rewardlab: give a part, such as part('reward', 'correct')")
        self.reward, self.name = reward, str(reward)
        if steps := next((part.name for part in reward.walk() if part.name in OF_TOKENS), ""):
            raise RewardlabError(
                f"{self.name}: {steps} pays the tokens at which steps end, which this framework does not tell. {INSTEAD}"
            )
        self.compares = next(filter(None, map(together, reward.walk())), "")
        self.verifies = any(isinstance(part, Verifier) or part.name == "correct" for part in reward.walk())
        # nobody says how many steps there will be: schedules stay at their start
        self.run = Run(_Nobody(), verify=verify, steps=sys.maxsize)
        self.one_at_a_time, self.counts = False, True

    def alone(self) -> _Scorer:
        """This scorer for a framework that scores each reply by itself, from several threads."""
        if self.compares:
            raise RewardlabError(f"{self.name}: {self.compares}, and this framework scores each reply alone")
        self.one_at_a_time, self.counts = True, False
        return self

    def __call__(self, groups: list[list[Trajectory]]) -> list[list[Score]]:
        # verdicts are remembered for one call, and not for ever
        run = self.run.detached()
        if self.one_at_a_time:
            # threads must not share what a reward remembers
            run.memory = {}
        try:
            scores = self.reward(groups, run)
        except RewardlabError as e:
            first = groups[0][0] if groups else None
            at = f" (the first of {sum(map(len, groups))}: {_place(first)})" if first else ""
            raise RewardlabError(f"{self.name}: {e}{at}") from e
        for score, t in (
            (score, t) for row, group in zip(scores, groups, strict=True) for score, t in zip(row, group, strict=True)
        ):
            if score.total is not None and not math.isfinite(score.total):
                raise RewardlabError(f"{self.name} is {score.total} ({_place(t)})")
        # what a reward remembers changes once in a step (`rewards/operator.py`)
        self.run.step += self.counts
        return scores

    def number(self, one: Trajectory, missing: Missing) -> float:
        score = self([[one]])[0][0]
        if score.total is None and missing == "raise":
            raise RewardlabError(f"{self.name}: no verdict, {score.why or 'for no given reason'} ({_place(one)})")
        return math.nan if score.total is None else score.total


class _Nobody:
    """In the place of the policy, which is the other framework's. device: of the models that a reward brings itself."""

    device = "auto"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RewardlabError(f"it asks the policy for {name!r}, and the policy is the other framework's")


def trajectory(prompt: Any, completion: Any, answer: Any, meta: Mapping[str, Any], ids: Any = None) -> Trajectory:
    """A reply, given as text or messages, as a rollout. ids: its tokens; without them its bytes stand for tokens.

    Answer and columns come out of Arrow tables, as all these frameworks keep their data: an answer that is NaN is none.
    """
    messages = _messages(prompt, "user", "prompt")
    problem = Problem(tuple(Message(m["role"], text_of(m)) for m in messages), gold_of(answer), unpadded(meta))
    said = _messages(completion, "assistant", "completion")
    replies = [m for m in said if m["role"].lower() == "assistant"]
    if said and not replies:
        roles = ", ".join(repr(m["role"]) for m in said)
        raise RewardlabError(f"a completion has no message of 'assistant': its roles are {roles}")
    reply = "".join(map(text_of, replies))
    tokens = (
        np.frombuffer(reply.encode("utf-8", "replace"), np.uint8).astype(np.int64) if ids is None else np.asarray(ids, np.int64)
    )
    return Trajectory(
        problem, (Turn(None, np.zeros(1, np.int64), text=problem.question), Turn("policy", tokens, text=reply)), "end"
    )


def _messages(given: Any, role: str, what: str) -> list[Mapping[str, Any]]:
    """A text, or messages, as messages. Raises RewardlabError, with its place, for what is none."""
    if isinstance(given, str):
        return [{"role": role, "content": given}]
    if not isinstance(given, list | tuple | np.ndarray):
        raise RewardlabError(f"a {what} is a text or a list of messages, not {given!r:.60}")
    for number, message in enumerate(given, 1):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise RewardlabError(f"message {number} of a {what} is {message!r:.60}; it must have 'role' and 'content'")
    return [dict(m) for m in given]


def _columns(info: Any) -> dict[str, Any]:
    return dict(info) if isinstance(info, Mapping) else {}


def _place(t: Trajectory) -> str:
    return f"prompt {t.problem.question[:60]!r}, reply {t.reply[:60]!r}"


def named(function: Callable, scorer: _Scorer, name: str = "") -> Callable:
    """The function under the reward's name, by which frameworks log it."""
    function.__name__ = function.__qualname__ = name or scorer.reward.label
    function.__doc__ = f"{scorer.name}, of rewardlab"
    return function
