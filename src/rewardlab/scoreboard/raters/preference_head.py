"""A linear head on an encoder's vectors, fitted to pairs of one's own: a reward model that is trained in seconds.

    reward(x, y) = w . phi(x, y),   phi(x, y) = [v(y), v(x) * v(y)]        v: the encoder's vector of a text, of length 1
    P(a preferred to b) = sigmoid(reward(x, a) - reward(x, b))             Bradley and Terry 1952

The first half of w is for what a good reply is by itself, the second for how it belongs to its prompt. Features are scaled to a
standard deviation of 1; the weight decay is that which leaves the smallest loss on prompts left out, in five folds. A head is kept
in the cache, under all that it depends on.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rewardlab.errors import RewardlabError
from rewardlab.scoreboard.items import Item
from rewardlab.util.files import cached
from rewardlab.util.progress import Bar

Vectors = Callable[[Sequence[str]], np.ndarray]
FOLDS, ROUNDS, BATCH = 5, 8, 64
DECAYS = (1.0, 10.0, 100.0, 1000.0, 10000.0)


class PreferenceHead(NamedTuple):
    """weights: (2d,).  decay: the weight decay that was chosen.  held_out: the share of pairs ranked right on prompts left out.
    pairs: how many it was fitted to."""

    weights: np.ndarray
    decay: float
    held_out: float
    pairs: int

    def rewards(self, prompt: np.ndarray, replies: np.ndarray) -> np.ndarray:
        """(n,) of a prompt (d,) and its replies (n, d)."""
        return features(prompt, replies) @ self.weights


def fitted(items: Sequence[Item], vectors: Vectors, encoder: str) -> PreferenceHead:
    """The head that fits the pairs of these items.  encoder: what tells its weights from others.  Raises RewardlabError where
    there are fewer prompts than folds."""
    read = [encoder, inspect.getsource(inspect.getmodule(fitted) or fitted), *(item.key("replies") for item in items)]
    name = f"preference-head-{hashlib.sha256(json.dumps(read).encode()).hexdigest()[:16]}"
    kept = np.load(cached(name, lambda folder: np.savez(folder / "head.npz", **fit(items, vectors)._asdict())) / "head.npz")
    return PreferenceHead(kept["weights"], float(kept["decay"]), float(kept["held_out"]), int(kept["pairs"]))


def features(prompt: np.ndarray, replies: np.ndarray) -> np.ndarray:
    """(n, 2d) of a prompt (d,) and its replies (n, d)."""
    return np.concatenate([replies, replies * prompt], axis=1)


def fit(items: Sequence[Item], vectors: Vectors) -> PreferenceHead:
    """The same, not kept."""
    prompts = {question: k for k, question in enumerate(sorted({item.question for item in items}))}
    if len(prompts) < FOLDS:
        raise RewardlabError(f"a head is fitted to pairs of {FOLDS} prompts at least, and the file has {len(prompts)}")
    x = np.concatenate(list(_differences(items, vectors)))
    of = np.array([prompts[item.question] % FOLDS for item in items for _ in item.pairs])
    # the order of a pair says nothing, so that the mean of the differences is 0
    scale = np.sqrt((x**2).mean(0)) + 1e-9
    # fewer pairs than features: the weights lie in the span of the pairs, and the decay is the same in any basis of it
    basis, turned = np.linalg.qr((x / scale).T)
    z = turned.T
    left_out = {decay: _left_out(z, of, decay) for decay in DECAYS}
    decay = min(DECAYS, key=lambda d: float(np.logaddexp(0, -left_out[d]).mean()))
    right = (np.sign(left_out[decay]) + 1) / 2
    return PreferenceHead(basis @ _weights(z, decay) / scale, decay, float(right.mean()), len(x))


def _differences(items: Sequence[Item], vectors: Vectors) -> Iterator[np.ndarray]:
    """(pairs, 2d) for each item: the features of the better reply less those of the worse one."""
    with Bar("vectors of the pairs", len(items)) as bar:
        for start in range(0, len(items), BATCH):
            part = items[start : start + BATCH]
            known = vectors([text for item in part for text in (item.question, *item.replies)])
            for item in part:
                own, known = known[: 1 + len(item.replies)], known[1 + len(item.replies) :]
                phi = features(own[0], own[1:]).astype(float)
                yield np.stack([phi[i] - phi[j] for i, j in item.pairs])
            bar.advance(n=len(part))


def _left_out(z: np.ndarray, fold: np.ndarray, decay: float) -> np.ndarray:
    """(n,) margins of pairs by weights that did not see their prompts."""
    found = np.zeros(len(z))
    for k in range(FOLDS):
        found[fold == k] = z[fold == k] @ _weights(z[fold != k], decay)
    return found


def _weights(z: np.ndarray, decay: float) -> np.ndarray:
    """argmin_w  sum log(1 + exp(-z w)) + decay/2 |w|^2, by Newton's method."""
    w = np.zeros(z.shape[1])
    for _ in range(ROUNDS):
        wrong = 1 / (1 + np.exp(np.clip(z @ w, -30, 30)))
        hessian = (z * (wrong * (1 - wrong))[:, None]).T @ z + decay * np.eye(len(w))
        w = w + np.linalg.solve(hessian, z.T @ wrong - decay * w)
    return w
