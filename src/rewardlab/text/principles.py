"""What a reply is judged by, in words: principles in the prompt, or one in a question after the reply, as a reward model learns to
read them and reads them later."""

from __future__ import annotations

from collections.abc import Sequence

HEADING = "A good reply is judged by this:"
AFTER = "a question about one principle after the reply"
"""What a learner reads (`Learner.reads`) that is asked after each reply whether it satisfies a principle."""
QUESTION = (
    "Evaluate the response to the previous prompt in terms of whether it satisfies this principle: {principle}. "
    "Only answer Yes or No."
)
"""The words of nvidia/Llama-3.3-Nemotron-70B-Reward-Principle, by its card."""
ASKED_AT = (
    "the prompt through the chat template, the reply, the end token of its turn, and a turn of the user with the question "
    f"'{QUESTION}', up to where the next reply would begin, where the score is read"
)
"""In the config.json of an exported reward model that is asked so: how its input is written."""


def with_principles(question: str, principles: Sequence[str]) -> str:
    """The question with these principles after it, one a line; without any, the question alone."""
    return "\n".join([question, "", HEADING, *(f"- {text}" for text in principles)]) if principles else question


def question_about(principle: str) -> str:
    """What the user asks after a reply."""
    # a principle that is a sentence brings the full stop that the question has already
    return QUESTION.format(principle=principle.strip().removesuffix("."))
