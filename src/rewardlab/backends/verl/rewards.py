"""A recipe's reward as verl's reward manager: one reply at a time, with the tokens that verl sampled.

verl 0.9.1, verl/experimental/reward_loop/reward_manager/base.py (RewardManagerBase.run_single)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rewardlab.backends.verl.handed import HandedRun
from rewardlab.backends.verl.settings import by_verl
from rewardlab.core import Message, Problem, Recipe, Score, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.policies.ends import end_ids
from rewardlab.rewards.reward import Reward
from rewardlab.util.nulls import gold_of, unpadded

COLUMN = "rewardlab"
"""The field of `extra_info` that holds a problem's prompt, answer and columns as JSON, in data that rewardlab wrote."""
MANAGER = "a reward manager"


def scored(recipe: Recipe, trajectory: Trajectory, verify: Reward | None, max_new: int = 0) -> dict[str, float]:
    """{"score", "acc"} of one reply: its reward, and what the task's verifier says (without one, the reward). NaN: no verdict.

    Raises RewardlabError, with the prompt and the reply, for an error in the reward, for rewards of single steps, which verl has
    no place for, and for a reply without a verdict where verl's own estimator could not leave it out.
    """
    groups, run = [[trajectory]], HandedRun(MANAGER, max_new, verify)
    place = f"prompt {trajectory.problem.question[:60]!r}, reply {trajectory.reply[:60]!r}"
    assert recipe.reward is not None
    try:
        score = recipe.reward(groups, run)[0][0]
        verdict = run.verdicts(groups)[0][0] if verify is not None else score
    except RewardlabError as e:
        raise RewardlabError(f"the reward of {recipe.name or 'the recipe'}: {e} ({place})") from e
    if score.steps:
        raise RewardlabError(f"the reward of {recipe.name} pays single steps, and verl keeps one number for a reply ({place})")
    if score.total is None and by_verl(recipe):
        raise RewardlabError(f"no verdict: {score.why or 'no reason given'}; verl's gae cannot leave a reply out ({place})")
    return {"score": _number(score), "acc": _number(verdict)}


def _number(score: Score) -> float:
    # NaN, not 0: the advantage estimator takes it for a reply that nobody judged
    return math.nan if score.total is None else float(score.total)


def trajectory_of(problem: Problem, reply: str, prompt_ids: np.ndarray, ids: np.ndarray, ended: bool) -> Trajectory:
    """A reply that verl sampled. ended: whether it has an end, and was not cut off."""
    turns = (Turn(None, prompt_ids, text=problem.question), Turn("policy", ids, text=reply))
    return Trajectory(problem, turns, stop="end" if ended else "length")


def problem_of(row: Mapping[str, Any]) -> Problem:
    """The problem in a row of verl's data: as rewardlab wrote it, or of the columns that verl prescribes."""
    info = unpadded(row.get("extra_info") or {})
    if COLUMN in info:
        saved = json.loads(info[COLUMN])
        return Problem(tuple(Message(*message) for message in saved["prompt"]), saved["answer"], saved["meta"])
    messages = [Message(str(m["role"]), str(m["content"])) for m in row.get("raw_prompt") or []]
    return Problem(tuple(messages), gold_of((row.get("reward_model") or {}).get("ground_truth")), info)


def manager(recipe: Recipe, verify: Reward | None, max_new: int = 0) -> type:
    """The class that verl is to make its reward managers of: `reward.reward_manager` with source importlib."""
    from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

    class RecipeRewards(RewardManagerBase):  # type: ignore[misc]
        """Scores replies by the recipe's reward."""

        def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_: Any):
            super().__init__(config, tokenizer, compute_score)
            self.ends = frozenset(end_ids(tokenizer))

        async def run_single(self, data: Any) -> dict[str, Any]:
            # rewards may run programs or ask servers: not on the event loop
            return await self.loop.run_in_executor(None, self.reward_of, data[-1:][0])

        def reward_of(self, item: Any) -> dict[str, Any]:
            prompt_ids, ids = _ids(item.batch)
            reply = self.tokenizer.decode(ids, skip_special_tokens=True)
            ended = len(ids) < (max_new or len(ids) + 1) or (len(ids) > 0 and int(ids[-1]) in self.ends)
            trajectory = trajectory_of(problem_of(item.non_tensor_batch), reply, prompt_ids, ids, ended)
            # the same keys for every reply: verl reads those of the first from all
            numbers = scored(recipe, trajectory, verify, max_new)
            return {"reward_score": numbers["score"], "reward_extra_info": numbers}

    return RecipeRewards


def _ids(batch: Any) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of prompt and reply, without padding."""
    prompt, reply, mask = (batch[name].cpu().numpy() for name in ("prompts", "responses", "attention_mask"))
    return prompt[mask[: len(prompt)].astype(bool)], reply[mask[len(prompt) :].astype(bool)]
