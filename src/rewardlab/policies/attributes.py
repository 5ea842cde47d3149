"""Attributes of a reward model whose head has an output for each, such as helpfulness and verbosity: the score is a weighted sum.

    outputs (k) = W h at the end of a reply;    score = sum over attributes of weight * output

The weights are of whoever uses the model, and are not trained. Saved as a sequence classifier with k labels, whose config.json
names the attributes (`id2label`) and the weights that were chosen in training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from rewardlab.errors import RewardlabError
from rewardlab.policies.ends import SCORED_AT

KEY, WEIGHTS = "rewardlab", "weights"

Attributes = dict[str, float]
"""Name to weight, in the order of the outputs; {}: a head of one output, which is the score."""


def read_attributes(text: str) -> Attributes:
    """NAME=WEIGHT, with commas between them; a name alone weighs 1. Raises RewardlabError for what is none."""
    found: Attributes = {}
    for part in text.split(","):
        name, said, number = (x.strip() for x in part.partition("="))
        try:
            weight = float(number) if said else 1.0
        except ValueError:
            weight = math.nan
        if not name or name in found or not math.isfinite(weight):
            raise RewardlabError(f"attributes are names with weights, such as helpfulness=0.65,verbosity=-0.4, and not {text!r}")
        found[name] = weight
    return found


def written(attributes: Attributes) -> str:
    """As `read_attributes` reads them."""
    return ",".join(f"{name}={weight:g}" for name, weight in attributes.items())


def mixed(outputs: Tensor, attributes: Attributes) -> Tensor:
    """(...,) the scores of outputs (..., k), in float32."""
    if not attributes:
        return outputs.squeeze(-1).float()
    return outputs.float() @ outputs.new_tensor(list(attributes.values())).float()


def labels_of(attributes: Attributes, scored_at: str = SCORED_AT) -> dict[str, Any]:
    """What config.json says of the head."""
    if not attributes:
        return {"num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}, KEY: scored_at}
    names = list(attributes)
    return {
        "num_labels": len(names), "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)}, KEY: {WEIGHTS: dict(attributes), "scored_at": scored_at},
    }  # fmt: skip


def attributes_in(config: Mapping[str, Any]) -> Attributes:
    """The attributes that a config.json names; {} of a head without."""
    told = config.get(KEY)
    weights = told.get(WEIGHTS) if isinstance(told, Mapping) else None
    if not isinstance(weights, Mapping):
        return {}
    # in the order of the outputs: transformers sorts what it saves by name
    names = sorted(config["id2label"].items(), key=lambda label: int(label[0]))
    return {str(name): float(weights[name]) for _, name in names}


def check_outputs(where: Any, outputs: int, attributes: Attributes) -> None:
    """Raise RewardlabError for a head of several outputs that are no attributes: nothing says which of them is the value."""
    if outputs != max(1, len(attributes)):
        raise RewardlabError(
            f"{where} is a classifier with {outputs} outputs that are no attributes with weights: a reward model here has one "
            "output, or was trained by attribute_regression; as a reward it is model:PATH?label=NAME, and a process reward model "
            "is prm:PATH"
        )
