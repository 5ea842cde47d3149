"""A scalar head on a trunk, saved as what TRL's trainer of process reward models writes: a token classifier with two labels."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from rewardlab.errors import RewardlabError
from rewardlab.policies.hf.loading import quiet

LABELS = {0: "wrong", 1: "right"}


@torch.no_grad()
def token_classifier(source: Path, out: Path) -> None:
    """Write the sequence classifier with one number in `source` as a token classifier: softmax[right] is that number's sigmoid."""
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

    scalar = AutoModelForSequenceClassification.from_pretrained(str(source), dtype=torch.float32, trust_remote_code=False)
    with quiet():
        # its head has other shapes, and is filled in below
        model = AutoModelForTokenClassification.from_pretrained(
            str(source), dtype=torch.float32, trust_remote_code=False, ignore_mismatched_sizes=True,
            id2label=LABELS, label2id={name: i for i, name in LABELS.items()},
        )  # fmt: skip
    head = getattr(model, "score", None) or getattr(model, "classifier", None)
    if not isinstance(head, nn.Linear):
        raise RewardlabError(f"{type(model).__name__} has no linear head: a value head cannot be saved as a token classifier")
    # the logit of `wrong` is always 0
    head.weight.copy_(torch.cat((torch.zeros_like(scalar.score.weight), scalar.score.weight)))
    if head.bias is not None:
        head.bias.zero_()
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(str(source), trust_remote_code=False).save_pretrained(out)
