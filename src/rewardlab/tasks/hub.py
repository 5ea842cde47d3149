"""Datasets of the Hugging Face hub, by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rewardlab.errors import RewardlabError, unknown
from rewardlab.util.extras import require

OPTIONS = ("config", "split", "revision")
SECONDS = 5.0
"""How long to wait for the hub before it counts as out of reach."""


def load(written: str) -> Any:
    """The dataset `OWNER/NAME,config=C,split=S,revision=R`: one split where it is named, else a dict of all.

    It is downloaded once into the cache of `datasets`, and read from there where the hub is out of reach. Raises RewardlabError,
    within seconds, where it is neither there nor to be had.
    """
    require("data", "datasets")
    name, options = _parsed(written)
    import datasets

    reachable = _reachable(name)
    try:
        with contextlib.nullcontext() if reachable else _offline():
            return datasets.load_dataset(name, options.get("config"), **{k: options[k] for k in OPTIONS[1:] if k in options})
    except Exception as e:
        if reachable:
            raise RewardlabError(f"cannot load the dataset {name} of the hub: {' '.join(str(e).split())}") from e
        raise RewardlabError(
            f"no Hugging Face hub can be reached from here, and {written} is not in its cache. Download it where there is one "
            f"(hf download --repo-type dataset {name} --local-dir DIR), copy the folder, and give its path in place of the name"
        ) from e


def _parsed(written: str) -> tuple[str, dict[str, str]]:
    name, *words = written.split(",")
    options = dict(word.partition("=")[::2] for word in words)
    for key, value in options.items():
        if key not in OPTIONS:
            raise unknown("option of a hub dataset", key, OPTIONS)
        if not value:
            raise RewardlabError(f"the option {key!r} of hub:{written} has no value; write {key}=VALUE")
    if name.count("/") != 1:
        raise RewardlabError(f"a dataset of the hub is named hub:OWNER/NAME (then ,config=C,split=S), not hub:{written}")
    return name, options


def _reachable(name: str) -> bool:
    """Whether the hub answers. Raises RewardlabError if it knows no such dataset."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        # one short request: `datasets` itself would try again and again for half a minute
        HfApi().dataset_info(name, timeout=SECONDS)
    except RepositoryNotFoundError as e:
        raise RewardlabError(f"the hub has no dataset {name}, or you may not read it (log in with: hf auth login)") from e
    except HfHubHTTPError:
        # an answer, though an error: `datasets` says what it means
        return True
    except Exception:
        return False
    return True


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """In this context libraries of the hub use their cache alone."""
    from huggingface_hub import constants

    # the variable HF_HUB_OFFLINE is read when the library is imported, which has long happened
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
