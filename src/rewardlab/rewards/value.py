"""What a model with a value head, such as a reward model, says of a reply."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Scores, last_values
from rewardlab.errors import RewardlabError

from .reward import reward


@reward(over="groups")
def model_value(groups: list[Group], run: Run, *, model: str = "reward") -> Scores:
    """The value at the end of each reply, by the model of the run that is named `model`: the score of a reward model."""
    judge = run.model(model)
    # replies are scored by token id, and an id must be the same text to both models
    if judge.tokenizer.get_vocab() != run.policy.tokenizer.get_vocab():
        raise RewardlabError(f"the model {model!r} cannot score the policy's replies: their tokenizers differ")
    # one flat batch, for speed; the values come back in the order of the groups
    values = iter(last_values(judge, [t for group in groups for t in group]))
    return [[Score(next(values)) for _ in group] for group in groups]
