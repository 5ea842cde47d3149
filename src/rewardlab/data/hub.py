"""Datasets of the Hugging Face hub, by name, and those that `datasets` saved into a folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError, unknown
from rewardlab.util.extras import require
from rewardlab.util.nulls import unpadded

PREFIXES = ("hf:", "hub:")
"""How a name begins that is of the hub where files may be given too: hf:OWNER/NAME:SPLIT, or hub:OWNER/NAME,split=SPLIT."""
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
            f"(hf download --repo-type dataset {name} --local-dir DIR), copy the folder, and give its path in place of the name "
            f"({' '.join(str(e).split())})"
        ) from e


def is_named(source: object) -> bool:
    """Whether a source is a dataset of the hub by its name, and not a file or a folder."""
    return isinstance(source, str) and source.startswith(PREFIXES)


def splits_named(source: str) -> dict[Path, Any]:
    """The datasets of hf:OWNER/NAME:SPLIT, each under the path that stands for it in messages, hf:OWNER/NAME/SPLIT.

    hf:OWNER/NAME:A+B are two, and without a split it is the only one. Options may follow the name, as of `load`:
    hf:OWNER/NAME,config=C:SPLIT, or hub:OWNER/NAME,config=C,split=S.
    Raises RewardlabError as `load`, and where there are several splits and none is named.
    """
    written, _, splits = source.partition(":")[2].partition(":")
    name, options = _parsed(written)
    splits = splits or options.get("split", "")
    if splits:
        plain = ",".join(part for part in written.split(",") if not part.startswith("split="))
        found = {split: load(f"{plain},split={split}") for split in splits.split("+")}
    elif len(found := dict(load(written))) > 1:
        raise RewardlabError(
            f"{source} has the splits {', '.join(found)}: name one, hf:{written}:{next(iter(found))}, or several, "
            f"hf:{written}:{'+'.join(found)}"
        )
    return {Path(f"hf:{name}") / split: dataset for split, dataset in found.items()}


def is_saved(folder: Path) -> bool:
    """Whether `datasets` saved a dataset, or a dict of its splits, into this folder."""
    return (folder / "dataset_info.json").is_file() or (folder / "dataset_dict.json").is_file()


def saved(folder: Path) -> Any:
    """A dataset, or a dict of its splits, that was saved to disk."""
    try:
        import datasets
    except ImportError as e:
        raise RewardlabError(f"{folder} is a saved dataset; to read it: pip install 'rewardlab[data]'") from e
    try:
        return datasets.load_from_disk(str(folder))
    except Exception as e:
        raise RewardlabError(f"cannot load the dataset in {folder}: {e}") from e


def holds_pictures(rows: Any) -> bool:
    """Whether these are a dataset of `datasets` with pictures in it, which would decode each of them as it is read."""
    return hasattr(rows, "with_format") and "Image(" in repr(getattr(rows, "features", None))


def stored_rows(dataset: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a dataset with their places, as a parquet file holds them: pictures stay encoded."""
    parts = dataset.with_format("arrow").iter(batch_size=256)
    rows = (row for table in parts for row in table.to_pylist())
    yield from ((f"row {number}", unpadded(row)) for number, row in enumerate(rows, 1))


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
