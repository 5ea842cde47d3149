"""A model's work over a Ray cluster, whose processes load it; this one only reads prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Failed
from rewardlab.util.progress import Bar


def check_named(*models: Any) -> None:
    """Raise RewardlabError for a model that the processes of a cluster could not load by its name."""
    for model in models:
        if not (model is None or isinstance(model, str)):
            raise RewardlabError(f"over a cluster a model is given by its name, which each process loads; not as {model!r}")


def spread(
    what: str, workers: str, function: str, about: Sequence[Any], calls: Sequence[Sequence[Any]], sizes: Sequence[int], device: str,
    hidden: bool = False, crashed: Callable[[str], Any] | None = None,
) -> Iterator[Any]:  # fmt: skip
    """What the function that `function` makes of `about` returns for each call, in their order, with a progress bar.

    sizes: how much of the work each call is.  hidden: the caller shows a bar of its own.
    device: as in the configuration; "cpu" leaves the GPUs of the cluster alone.
    crashed: makes, of the reason, the answer to a call over which processes died again and again; without it that is a failure.
    Raises RewardlabError with the reason where a call fails.
    """
    from rewardlab.processes.ray import RayWorkers

    with RayWorkers(function, workers, about=about, gpu=device != "cpu") as cluster, Bar(what, sum(sizes), hidden=hidden) as bar:
        for size, answer in zip(sizes, cluster.stream(calls), strict=True):
            if not isinstance(answer, Failed):
                yield answer.value
            elif crashed and answer.kind == "crash":
                yield crashed(answer.why)
            else:
                raise RewardlabError(f"{what} over the Ray cluster: {answer.why}")
            bar.advance(n=size)
