"""Models whose log-probs are those of the distribution that was sampled from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def tempered(temperature: float, *models: Any) -> Iterator[None]:
    """A context in which these models `evaluate` softmax(logits / temperature): log-probs, entropy, whatever the head computes.

    What they `score` is of the raw policy everywhere. Models without a temperature, and None, are passed over.
    """
    changed = [(model, model.temperature) for model in models if hasattr(model, "temperature")]
    for model, _ in changed:
        model.temperature = temperature
    try:
        yield
    finally:
        for model, before in changed:
            model.temperature = before
