"""Recorded episodes of observations and actions, as Minari names them, in a folder of files.

    observations (T+1, o)   actions (T, a)   rewards (T,)   terminations (T,)   truncations (T,)

A folder holds one `episode_N.npz` per episode with these arrays, or is a Minari dataset (`data/main_data.hdf5`, which needs h5py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.errors import RewardlabError
from rewardlab.util.files import new_folder

HDF5 = Path("data") / "main_data.hdf5"


@dataclass(frozen=True, eq=False)
class Episode:
    """Observations, actions and rewards; one observation more than actions. A slice of an episode is an episode too."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminations: np.ndarray
    truncations: np.ndarray

    def __len__(self) -> int:
        return len(self.actions)

    def cut(self, start: int, length: int) -> Episode:
        """The steps from `start` on."""
        steps = slice(start, start + length)
        observations = self.observations[start : start + length + 1]
        return Episode(observations, self.actions[steps], self.rewards[steps], self.terminations[steps], self.truncations[steps])


def save_episodes(folder: Path | str, episodes: Sequence[Episode]) -> None:
    """Write a folder that `load_episodes` reads; it appears whole or not at all."""
    with new_folder(Path(folder)) as new:
        for i, episode in enumerate(episodes):
            np.savez(new / f"episode_{i}.npz", **asdict(episode))


def load_episodes(folder: Path | str) -> list[Episode]:
    """All episodes of a folder, in the order of their numbers. Raises RewardlabError, naming the episode that is not whole."""
    folder = Path(folder)
    episodes = list(_from_hdf5(folder / HDF5) if (folder / HDF5).is_file() else _from_arrays(folder))
    if not episodes:
        raise RewardlabError(f"{folder} holds no episodes: neither episode_0.npz nor {HDF5}")
    return episodes


def _from_arrays(folder: Path) -> Iterator[Episode]:
    for path in sorted(folder.glob("episode_*.npz"), key=lambda p: int(p.stem.rpartition("_")[2])):
        with np.load(path) as arrays:
            yield _checked(arrays, str(path))


def _from_hdf5(path: Path) -> Iterator[Episode]:
    try:
        import h5py
    except ImportError as e:
        raise RewardlabError(f"{path} is read by h5py, which is not installed: pip install h5py") from e
    with h5py.File(path) as file:
        for name in sorted(file, key=lambda n: int(n.rpartition("_")[2])):
            yield _checked(file[name], f"{path}, {name}")


def _checked(arrays: Any, where: str) -> Episode:
    names = [f.name for f in fields(Episode)]
    missing = [n for n in names if n not in arrays]
    if missing:
        raise RewardlabError(f"{where} has no {', '.join(missing)}; an episode holds {', '.join(names)}")
    if not all(hasattr(arrays[n], "shape") for n in names):
        raise RewardlabError(f"{where} has observations or actions made of several arrays; only plain arrays are read")
    episode = Episode(*(np.asarray(arrays[n]) for n in names))
    actions = len(episode)
    lengths = [len(episode.observations) - 1, len(episode.rewards), len(episode.terminations), len(episode.truncations)]
    if any(n != actions for n in lengths):
        raise RewardlabError(f"{where} has {actions} actions, and not fitting {lengths[0] + 1} observations, {lengths[1]} rewards")
    return episode
