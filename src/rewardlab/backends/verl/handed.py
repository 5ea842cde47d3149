"""The inputs of verl's hooks: reading anything else is an error, not a wrong number."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rewardlab.core import Batch
from rewardlab.errors import RewardlabError


class NotHanded(RewardlabError):
    """A part reads what verl does not hand over at this place."""


class Handed(Batch):
    """A batch of some columns alone. place: the hook of verl that is given them, for messages.

    All are (B, T) over the tokens of the replies: verl's hooks see no prompt.
    """

    def __init__(self, place: str, **given: Tensor):
        # fields without a value stay unset, so that reading one ends in __getattr__
        self.__dict__.update(given, place=place)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotHanded(f"it reads {name!r} of the batch, which verl does not hand to {self.place}")

    def __len__(self) -> int:
        return self.mask.shape[0]

    @property
    def width(self) -> int:
        return self.mask.shape[1]


class HandedRun:
    """A run of which parts may ask the task's verifier, the longest reply, and where to log.

    max_new: the most tokens of a reply.  verify: the task's verifier.
    """

    held_out = False

    def __init__(self, place: str, max_new: int = 0, verify: Any = None, reward_timeout: float = 0.0):
        self.place, self.max_new, self.verify, self.reward_timeout = place, max_new, verify, reward_timeout
        self.metrics: dict[str, float] = {}
        self._known: tuple[Any, Any] = (None, None)

    def log(self, name: str, value: float) -> None:
        self.metrics[name] = float(value)

    def verdicts(self, groups: list[Any]) -> Any:
        if self.verify is None:
            raise RewardlabError("the task's verifier is needed: export the recipe with its --task")
        # the reward and the filter of groups ask about the same reply, and a program need not run twice
        if self._known[0] is not groups:
            self._known = (groups, self.verify(groups, self))
        return self._known[1]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotHanded(f"it reads run.{name}, which verl does not hand to {self.place}")
