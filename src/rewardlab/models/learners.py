"""The models of second learners: what each starts from, by the words of its `Learner.init`.

A copy of the policy, a value head on it, the heads that methods name, a scorer of steps, or a model by name (`load.py`).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewardlab.clients.endpoint import is_served
from rewardlab.core import Learner
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import NAMES, find, parted
from rewardlab.models.load import Policy, load_policy, served
from rewardlab.models.reads import reads_of, words
from rewardlab.policies.attributes import read_attributes
from rewardlab.policies.llama.int8 import CANNOT_TRAIN, in_int8

HEADS = "heads:"
"""A learner's init, and names that commas part: a vocabulary head for each on the policy's trunk (`policies/heads.py`)."""
PREFIX = "prefix:"
"""A learner's init, and settings NAME=VALUE that commas part, or the folder of a trained one: an assistant that writes latents
before the policy's replies (`policies/assistant.py`)."""
SURPRISED = "value-head:surprise"
"""A learner's init: a value head whose trunk also reads how surprised the first policy was (`policies/llama/surprise.py`)."""
ENERGY = "energy:"
"""A learner's init, and one that gives a reward model: the same with an energy head on it (`policies/energy.py`)."""
RATED = "attributes:"
"""A learner's init, NAME=WEIGHT that commas part, a colon, and an init that gives a reward model: the same with an output for each
of these attributes (`policies/attributes.py`)."""
WORDS = "value-head:words="
"""Before two words that a comma parts: a learner's init, a value head that starts as log P(first) - log P(second)."""
MADE = ("copy:", "value-head", HEADS, PREFIX, "prm:", "model:")
"""Beginnings of a learner's init that is no model's name: what is made from the policy, and scorers of steps."""


def learner_model(learner: Learner, policy: Policy) -> Policy:
    """The model that a learner starts from (`Learner.init`). Raises RewardlabError where this policy cannot make it."""
    _check_reads(learner)
    if learner.every and in_int8(learner.init):
        raise RewardlabError(f"the learner {learner.name!r} starts from {learner.init}: {CANNOT_TRAIN}")
    if is_served(learner.init):
        return _served_beside(learner)
    model = _initial(learner, policy)
    # turns and checkpoints carry the learner's name, whatever checkpoint it was loaded from
    model.name, model.reads = learner.name, learner.reads
    if hasattr(model, "recomputes"):
        model.recomputes = getattr(policy, "recomputes", False)
    return model


def named_start(init: str) -> str | None:
    """The checkpoint, run or small policy that a learner's init names, behind an energy head or attributes too; None for others."""
    name = init.removeprefix(RATED).partition(":")[2] if init.startswith(RATED) else init.removeprefix(ENERGY)
    return None if name.startswith(MADE) else name


def _served_beside(learner: Learner) -> Policy:
    """A second model that is served: it is asked, and does not learn."""
    from rewardlab.policies.served import CANNOT_TRAIN

    if learner.every:
        raise RewardlabError(f"the learner {learner.name!r} starts from {learner.init}, and learns: {CANNOT_TRAIN}")
    model: Any = served(learner.init, None)
    model.name, model.beside = learner.name, True
    return model


def _check_reads(learner: Learner) -> None:
    """Refuse a reward model that was taught to read more than this learner is shown."""
    place = learner.init.removeprefix(ENERGY)
    if not Path(parted(place)[1]).expanduser().is_dir() or place.startswith((*NAMES, "prm:", PREFIX)):
        return
    if (reads := reads_of(find(place))) and reads != learner.reads:
        raise RewardlabError(
            f"the learner {learner.name!r} starts from {place}, a reward model that reads {words(reads)}, and it would be shown "
            f"{words(learner.reads) or 'prompt and reply alone'}: start from one that was taught to read that"
        )


def _initial(learner: Learner, policy: Policy) -> Policy:
    if learner.init == "copy:policy":
        return policy.copy(learner.name)
    if learner.init == "value-head":
        return policy.copy(learner.name, value_head=True)
    if learner.init == SURPRISED:
        if not hasattr(policy, "read_surprise"):
            raise RewardlabError(
                f"the learner {learner.name!r} starts from {SURPRISED!r}, which the lean text policy alone can make "
                f"(this policy is a {type(policy).__name__}): use 'value-head', or a model that the lean policy runs"
            )
        return policy.copy(learner.name, value_head=True).read_surprise(policy)
    if learner.init.startswith(ENERGY):
        return _with_energy(learner, policy)
    if learner.init.startswith(RATED):
        return _rated(learner, policy)
    if learner.init.startswith(WORDS):
        return _by_words(learner, policy)
    if learner.init.startswith("prm:"):
        from rewardlab.prm import load_scorer

        return load_scorer(learner.init, str(policy.device))
    if learner.init.startswith(PREFIX):
        return _assistant(learner, policy)
    if learner.init.startswith(HEADS):
        return _heads(learner, policy)
    # computed in the policy's own format, which the user may have chosen
    dtype = str(getattr(policy, "dtype", "auto")).removeprefix("torch.")
    model = load_policy(learner.init, str(policy.device), dtype)
    objective = learner.recipe.objective
    # a language model that is to learn values gets a new head; one that has a head keeps it
    return model.copy(learner.name, value_head=True) if objective and "value" in objective.wants else model


def _with_energy(learner: Learner, policy: Policy) -> Any:
    from rewardlab.policies.energy import WithEnergy

    scorer = _initial(replace(learner, init=learner.init.removeprefix(ENERGY)), policy)
    if not getattr(scorer, "has_value_head", False):
        raise RewardlabError(f"the learner {learner.name!r} is an energy head on a reward model, and {learner.init!r} names none")
    if not getattr(scorer, "writes", True):
        raise RewardlabError(f"the learner {learner.name!r} is an energy head, which refines a decoder's score: this is an encoder")
    return WithEnergy(scorer)


def _rated(learner: Learner, policy: Policy) -> Any:
    told, _, init = learner.init.removeprefix(RATED).partition(":")
    scorer = _initial(replace(learner, init=init), policy)
    if not getattr(scorer, "has_value_head", False) or not hasattr(scorer, "rate"):
        raise RewardlabError(f"the learner {learner.name!r} rates by attributes, for which {init!r} gives no reward model of text")
    return scorer.rate(read_attributes(told))


def _by_words(learner: Learner, policy: Policy) -> Any:
    """A value head that is the difference of two rows of the vocabulary head, so that the value is that of two log-probs."""
    from rewardlab.policies.text import TextPolicy

    words = learner.init.removeprefix(WORDS).split(",")
    if not isinstance(policy, TextPolicy) or len(words) != 2 or not all(words):
        raise RewardlabError(
            f"the learner {learner.name!r} starts from {learner.init!r}: name two words, {WORDS}Yes,No, and a language model"
        )
    speaker: Any = policy
    first, second = (speaker.tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in words)
    if first == second:
        raise RewardlabError(f"{words[0]!r} and {words[1]!r} begin with the same token, which cannot tell them apart")
    model = speaker.copy(learner.name, value_head=True)
    head = model.model.value_head if hasattr(model.model, "value_head") else model.value_head
    weight = speaker.vocabulary_head().detach()[[first, second]].float()
    # the last column of a head with a bias is that bias, which a value head does not have
    head.data.copy_((weight[0] - weight[1])[None, : head.shape[1]])
    return model


def _heads(learner: Learner, policy: Policy) -> Any:
    from rewardlab.policies.heads import Heads
    from rewardlab.policies.text import TextPolicy

    if not isinstance(policy, TextPolicy):
        raise RewardlabError(f"the learner {learner.name!r} is vocabulary heads, and a {type(policy).__name__} writes no text")
    return Heads(policy, learner.init.removeprefix(HEADS).split(","), learner.name)


def _assistant(learner: Learner, policy: Policy) -> Any:
    from rewardlab.policies.assistant import Assistant

    if not hasattr(policy, "prefixed"):
        raise RewardlabError(
            f"the learner {learner.name!r} writes vectors before replies, which a language model with weights here reads, and a "
            f"{type(policy).__name__} does not"
        )
    told = learner.init.removeprefix(PREFIX)
    if "=" not in told:
        return Assistant.load(told, policy, learner.name)
    settings = {k: json.loads(v) for k, _, v in (part.partition("=") for part in told.split(","))}
    return Assistant(policy, name=learner.name, **settings)
