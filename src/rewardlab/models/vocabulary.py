"""The vocabulary of the small embedded policy, and unknown words in a user's problems."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from rewardlab import registry
from rewardlab.core import Problem
from rewardlab.models.embedded import TASKS, Demonstrations
from rewardlab.util.progress import console

SAMPLE = 300
"""Problems of each task whose words are taken for all that the policy was taught: its tasks use a few dozen."""
WORD = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_")
"""A word, a digit, or a sign, as the policy's tokenizer divides text."""


def warn_of_untaught(problems: Iterable[Problem]) -> None:
    """Say what share of the words in these prompts the embedded policy has never seen, if there are any."""
    words = [word for problem in problems for message in problem.prompt for word in WORD.findall(message.text)]
    new = Counter(word for word in words if word not in taught())
    if not new:
        return
    examples = ", ".join(repr(word) for word, _ in new.most_common(5))
    known = " and ".join(TASKS)
    console.print(
        f"warning: {new.total() / len(words):.0%} of the words in these prompts, such as {examples}, were never taught to the "
        f"small embedded policy, which knows {known} alone: expect nonsense. Give a language model with --model: smollm2, "
        "a checkpoint folder, or hf:FOLDER",
        style="yellow", highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip


@functools.cache
def taught() -> frozenset[str]:
    """The words of the tasks' prompts and worked solutions."""
    return frozenset(word for text in _lessons() for word in WORD.findall(text))


def _lessons() -> Iterator[str]:
    for name in TASKS:
        # a single held-out problem: to make a thousand takes seconds
        demonstrations = Demonstrations(registry.task(name, test_size=1))
        for i in range(SAMPLE):
            problem = demonstrations[i]
            yield from (problem.question, problem.meta["solution"])
