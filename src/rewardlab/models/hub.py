"""Models by their names on the Hugging Face hub: `ORG/NAME`, or `ORG/NAME@REVISION` for a branch, tag or commit.

The hub's own client keeps them in its cache ($HF_HOME), beside those that transformers has loaded. What is cached is never asked
for again, so a run needs no network once its model is there; another state of a repository has another revision.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.util.progress import console

NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w./-]+)?")
PATIENCE = 6.0
"""Seconds until a hub that does not answer counts as out of reach."""
NEVER_READ = ("*.gguf", "*.onnx", "*.onnx_data", "*.h5", "*.msgpack", "*.ot", "*.pth", "*.tflite", "onnx/*", "original/*")
"""Files of other programs, many of them as large as the weights."""
WEIGHTS = ("*.safetensors", "*.bin", "*.pt")
_FETCHED: dict[str, Path] = {}
"""Folders without weights that this process has asked the hub for: a plan looks at a model many times."""


def is_name(text: str) -> bool:
    """Whether a text has the form of a model's name on the hub."""
    return NAME.fullmatch(text) is not None


def folder_of(name: str, weights: bool = True) -> Path:
    """The folder of a model in the local cache, which is filled from the hub if need be.

    weights: False: configuration and tokenizer are enough, and no more is downloaded.  Raises RewardlabError if the hub is out of
    reach, or has no such model or revision, or does not give it away.
    """
    repository, _, revision = name.partition("@")
    cached = in_cache(repository, revision or None)
    return cached or (_download if weights else _without_weights)(name, repository, revision or None)


def pinned(name: str) -> str:
    """The name with the commit that it stands for now, so that a run resumes from the same weights."""
    # the cache names the folder of a snapshot by its commit
    return f"{name.partition('@')[0]}@{folder_of(name).name}"


def in_cache(repository: str, revision: str | None = None) -> Path | None:
    """The folder in the cache, if the model is there with all its weights."""
    folder = _snapshot(repository, revision)
    return folder if folder is not None and has_weights(folder) else None


def _snapshot(repository: str, revision: str | None) -> Path | None:
    """The folder in the cache, if the model's configuration is there."""
    from huggingface_hub import try_to_load_from_cache

    for file in ("config.json", "adapter_config.json"):
        path = try_to_load_from_cache(repository, file, revision=revision)
        if isinstance(path, str):
            return Path(path).parent
    return None


def has_weights(folder: Path) -> bool:
    """Whether a folder holds weights, and all parts of those that are cut into parts: an interrupted download may lack some."""
    weights = {path.name for pattern in ("*.safetensors", "*.bin") for path in folder.glob(pattern)}
    parts = {match for name in weights if (match := re.search(r"-of-(\d+)\.", name))}
    return bool(weights) and all(len(parts) >= int(match[1]) for match in parts)


def _without_weights(name: str, repository: str, revision: str | None) -> Path:
    """The folder in the cache with all but the weights; where no hub can be reached, with what is there, if that is enough."""
    if name not in _FETCHED or not _FETCHED[name].is_dir():
        try:
            _FETCHED[name] = _download(name, repository, revision, weights=False)
        except RewardlabError:
            if (there := _snapshot(repository, revision)) is None:
                raise
            return there
    return _FETCHED[name]


def _download(name: str, repository: str, revision: str | None, weights: bool = True) -> Path:
    from huggingface_hub import HfApi, snapshot_download

    # asked once, without the client's many attempts: where no hub can be reached, nobody should wait for minutes
    about: Any = _within(PATIENCE, lambda: HfApi().model_info(repository, revision=revision, timeout=PATIENCE), name)
    files = [file.rfilename for file in about.siblings or ()]
    # some repositories hold the same weights twice
    left = WEIGHTS if not weights else WEIGHTS[1:] if any(file.endswith(".safetensors") for file in files) else ()
    console.print(f"downloading {name}{'' if weights else ', all but its weights,'} from the hub", highlight=False)
    try:
        folder = Path(snapshot_download(repository, revision=revision, ignore_patterns=[*NEVER_READ, *left]))
    except Exception as problem:
        raise _explained(name, problem) from problem
    if weights and not has_weights(folder):
        raise RewardlabError(f"{name} holds no weights in a format of transformers (.safetensors, .bin), but {', '.join(files)}")
    return folder


def _within(seconds: float, call: Callable[[], Any], name: str) -> Any:
    """What a call returns. Raises RewardlabError if it fails, or does not return within this time."""
    answers: queue.Queue[tuple[Any, Exception | None]] = queue.Queue()

    def work() -> None:
        try:
            answers.put((call(), None))
        except Exception as problem:
            answers.put((None, problem))

    # the client's own limit is for one address at a time, and none holds for looking the hub's name up
    threading.Thread(target=work, daemon=True).start()
    try:
        answer, problem = answers.get(timeout=seconds + 1)
    except queue.Empty:
        raise _explained(name, TimeoutError(f"no answer within {seconds:.0f} seconds")) from None
    if problem is not None:
        raise _explained(name, problem) from problem
    return answer


def _explained(name: str, problem: Exception) -> RewardlabError:
    """The error for a model that could not be downloaded."""
    from huggingface_hub import constants, errors

    hub = constants.ENDPOINT
    if isinstance(problem, errors.GatedRepoError):
        return RewardlabError(
            f"{name} is gated: accept its terms at {hub}/{name.partition('@')[0]}, then log in with: hf auth login"
        )
    if isinstance(problem, errors.RepositoryNotFoundError):
        return RewardlabError(f"{hub} has no model {name.partition('@')[0]!r}, or it is private (then log in with: hf auth login)")
    if isinstance(problem, errors.RevisionNotFoundError):
        return RewardlabError(f"{name}: the model has no such branch, tag or commit on {hub}")
    if isinstance(problem, errors.HFValidationError):
        return RewardlabError(f"{name} is not a name on the hub: {problem}")
    offline = isinstance(problem, errors.OfflineModeIsEnabled)
    said = " ".join(str(problem).split())[:150] or type(problem).__name__
    why = "HF_HUB_OFFLINE forbids it" if offline else f"{hub} cannot be reached ({said})"
    return RewardlabError(
        f"there is no folder {name}, and as a model of the hub it is not in the local cache ({constants.HF_HUB_CACHE}) and cannot "
        f"be downloaded: {why}. Where there is a network, run `hf download {name.replace('@', ' --revision ')} --local-dir DIR`, "
        "copy that folder here, and give its path"
    )
