"""A judge of the reasoning of a reply whose answer is right: whether the answer follows, or was guessed."""

from __future__ import annotations

from rewardlab.core import Group, Run, Scores
from rewardlab.rewards.judge import judge
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeInt, PositiveInt

ASK = (
    "A problem, its right answer, and a solution that ends in this answer. Check the reasoning of the solution step by step: "
    "whether every step follows from what stands before it, nothing that is needed is left out, and the answer is what the steps "
    "lead to, rather than a guess. An error that is found and corrected in the solution does not count.\n\n"
    "Problem:\n{prompt}\n\nRight answer: {answer}\n\nSolution:\n{reply}\n\n"
    "Say what you find, and end with [[yes]] if the reasoning is right as a whole, else with [[no]]."
)


@reward(over="groups")
def judged_reasoning(
    groups: list[Group], run: Run, *, model: str, samples: PositiveInt = 3, max_new: NonNegativeInt = 1024
) -> Scores:  # fmt: skip
    """The share of `samples` verdicts of a model that accept the reasoning of a reply, thinking included; no verdict where none can
    be read.

    model: openai:URL#NAME, a model of the run, or in training the name of one.  max_new: tokens of a verdict; 0: as many as the
    policy may write. Wen et al. 2025, arXiv:2506.14245, ask several times too; the words are ours.
    """
    by = judge(
        model=model, kind="verdict", template=ASK, samples=samples, temperature=1.0 if samples > 1 else 0.0, max_new=max_new,
        thoughts=True,
    )  # fmt: skip
    return by(groups, run)
