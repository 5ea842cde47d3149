"""Trackers: send a run's configuration and metrics to experiment-tracking services.

    rewardlab train grpo --task arithmetic --track tensorboard,wandb

Each tracker sends from its own thread, so that a slow network never delays a step. A line that cannot be sent is kept
and sent with a later one; only the first failure is reported. track.json in the run folder holds each tracker's run and
the last step sent: a resumed run continues there and first sends what is missing. A line is sent twice only if the process dies
between sending it and recording that in track.json.

Where runs are stored is set by the trackers' own variables: WANDB_MODE, WANDB_PROJECT, MLFLOW_TRACKING_URI,
MLFLOW_EXPERIMENT_NAME, TRACKIO_DIR ... TensorBoard writes into the run folder.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from rewardlab.errors import RewardlabError, unknown
from rewardlab.runs.record import Line
from rewardlab.util.files import write_json
from rewardlab.util.progress import console

PROJECT = "rewardlab"
PATIENCE = 60.0
"""Seconds that a finished run waits for its last lines to be sent."""

Metrics = dict[str, float]


class Tracker(Protocol):
    """Constructed with (run folder, configuration, id of the tracker's run to continue or None); raises if it cannot be opened."""

    run: str

    def send(self, step: int, metrics: Metrics) -> None: ...

    def close(self, error: bool) -> None: ...


class TensorBoard:
    """Event files in the folder `tensorboard` of the run."""

    def __init__(self, folder: Path, config: dict[str, Any], run: str | None):
        from torch.utils.tensorboard import SummaryWriter

        self.run = "tensorboard"
        self.writer = SummaryWriter(str(folder / self.run))
        if run is None:
            self.writer.add_text("config", f"```json\n{json.dumps(config, indent=2)}\n```", 0)

    def send(self, step: int, metrics: Metrics) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self, error: bool) -> None:
        self.writer.close()


class Wandb:
    def __init__(self, folder: Path, config: dict[str, Any], run: str | None):
        import wandb

        self.run = run or uuid.uuid4().hex[:8]
        self.opened = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT), name=folder.name, dir=str(folder), id=self.run, resume="allow",
            config=config, reinit="create_new", settings=wandb.Settings(silent=True, console="off"),
        )  # fmt: skip

    def send(self, step: int, metrics: Metrics) -> None:
        self.opened.log(metrics, step=step)

    def close(self, error: bool) -> None:
        self.opened.finish(exit_code=int(error))


class Mlflow:
    def __init__(self, folder: Path, config: dict[str, Any], run: str | None):
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        # `_Sender` retries; mlflow's own retries would block for minutes when a server does not answer
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        self.client, self.metric = MlflowClient(), Metric
        if run is not None:
            self.client.update_run(run, status="RUNNING")
            self.run = run
            return
        experiment = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        existing = self.client.get_experiment_by_name(experiment)
        number = existing.experiment_id if existing else self.client.create_experiment(experiment)
        self.run = self.client.create_run(number, run_name=folder.name).info.run_id
        # MLflow accepts values of 6,000 characters, and 100 parameters in a batch
        params = [Param(name, value[:6000]) for name, value in _flat(config)]
        for i in range(0, len(params), 100):
            self.client.log_batch(self.run, params=params[i : i + 100])

    def send(self, step: int, metrics: Metrics) -> None:
        now = int(1000 * time.time())
        named = [self.metric(_mlflow_name(name), value, now, step) for name, value in metrics.items()]
        self.client.log_batch(self.run, metrics=named)

    def close(self, error: bool) -> None:
        self.client.set_terminated(self.run, "FAILED" if error else "FINISHED")


class Trackio:
    def __init__(self, folder: Path, config: dict[str, Any], run: str | None):
        import trackio

        # trackio identifies runs by name, so two folders of one name must not share it
        self.run = run or f"{folder.name}-{uuid.uuid4().hex[:8]}"
        quiet = {"embed": False, "auto_log_gpu": False, "auto_log_cpu": False}
        self.opened = trackio.init(PROJECT, self.run, config=config, resume="allow", **quiet)

    def send(self, step: int, metrics: Metrics) -> None:
        self.opened.log(metrics, step=step)

    def close(self, error: bool) -> None:
        self.opened.finish()


TRACKERS: dict[str, type] = {"tensorboard": TensorBoard, "wandb": Wandb, "mlflow": Mlflow, "trackio": Trackio}
"""By name, which is also the package's. The extra `track` installs tensorboard; each other tracker has an extra of its own name."""


def trackers(names: str | Iterable[str]) -> list[str]:
    """Names of trackers, once each, also from "a,b". Raises RewardlabError for one that is unknown or not installed."""
    texts = [names] if isinstance(names, str) else list(names)
    listed = list(dict.fromkeys(name.strip() for text in texts for name in text.split(",") if name.strip()))
    for name in listed:
        if name not in TRACKERS:
            raise unknown("tracker", name, TRACKERS)
        if importlib.util.find_spec(name) is None:
            extra = "track" if name == "tensorboard" else name
            raise RewardlabError(f"the tracker {name} is not installed: pip install 'rewardlab[{extra}]'")
    return listed


@contextlib.contextmanager
def tracking(names: Sequence[str], folder: Path, config: dict[str, Any], resumed: bool) -> Iterator[Line]:
    """A function that sends a line of metrics to all trackers.

    A tracker that cannot be opened stops a new run; a resumed run continues without it.
    """
    log = _SentLog(folder / "track.json")
    senders: list[_Sender] = []

    def line(step: int, metrics: dict[str, float | None]) -> None:
        for sender in senders:
            sender.put(step, {k: v for k, v in metrics.items() if v is not None})

    error = True
    try:
        for name in names:
            senders += filter(None, [_open(name, folder, config, log, resumed)])
        yield line
        error = False
    finally:
        for sender in senders:
            sender.close(error)


def _open(name: str, folder: Path, config: dict[str, Any], log: _SentLog, resumed: bool) -> _Sender | None:
    previous = log.known.get(name, {})
    try:
        tracker = TRACKERS[name](folder, config, previous.get("run"))
    except Exception as e:
        # a new run has lost nothing yet, so the error can be mended first; a resumed one must not lose hours of work
        if not resumed:
            raise RewardlabError(f"the tracker {name} cannot be opened: {_first_line(e)}") from e
        _warn(f"the tracker {name} cannot be opened, and the run continues without it: {_first_line(e)}")
        return None
    sent = previous.get("sent", -1)
    log.note(name, tracker.run, sent)
    return _Sender(name, tracker, sent, lambda step: log.note(name, tracker.run, step))


class _SentLog:
    """track.json: for each tracker, its run and the last step sent to it."""

    def __init__(self, path: Path):
        self.path, self.lock = path, threading.Lock()
        try:
            self.known: dict[str, dict[str, Any]] = json.loads(path.read_text())
        except (OSError, ValueError):
            self.known = {}

    def note(self, name: str, run: str, sent: int) -> None:
        # senders of several trackers write the same file from their threads
        with self.lock:
            self.known[name] = {"run": run, "sent": sent}
            write_json(self.path, self.known)


class _Sender:
    """One tracker's thread. Lines that could not be sent are tried again with the 1st, 2nd, 4th, 8th ... line after them."""

    def __init__(self, name: str, tracker: Tracker, sent: int, note: Callable[[int], None]):
        self.name, self.tracker, self.last, self.note = name, tracker, sent, note
        self.waiting: list[tuple[int, Metrics]] = []
        self.pause = self.rest = 0
        self.warned = False
        self.lines: queue.SimpleQueue[tuple[int, Metrics] | bool] = queue.SimpleQueue()
        # a daemon thread, since a tracker that hangs must not keep a finished run from ending
        self.thread = threading.Thread(target=self._run, name=f"tracker {name}", daemon=True)
        self.thread.start()

    def put(self, step: int, metrics: Metrics) -> None:
        """Send a line, unless it was sent before the run was resumed."""
        # counted when put, not when sent: a resumed run offers all its lines again
        if step > self.last:
            self.last = step
            self.lines.put((step, metrics))

    def close(self, error: bool) -> None:
        self.lines.put(error)
        # bounded: a tracker that hangs must not keep the results of a finished run waiting
        self.thread.join(PATIENCE)
        if self.thread.is_alive():
            self._failed(f"still sending after {PATIENCE:g} seconds")

    def _run(self) -> None:
        # the bool that `close` puts ends the loop, and says whether the run failed
        while not isinstance(line := self.lines.get(), bool):
            self.waiting.append(line)
            self.rest -= 1
            if self.rest < 0:
                self._attempt(self._send)
        self._attempt(self._send)
        self._attempt(lambda: self.tracker.close(line))

    def _send(self) -> None:
        while self.waiting:
            step, metrics = self.waiting[0]
            self.tracker.send(step, metrics)
            self.note(step)
            # removed only now: if `send` or `note` raises, the line stays first in the queue
            del self.waiting[0]

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
            self.pause = 0
        except Exception as e:
            # wait for 0, 1, 3, 7 ... lines: a server that is down is asked less and less often
            self.pause = 2 * self.pause or 1
            self.rest = self.pause - 1
            self._failed(_first_line(e))

    def _failed(self, why: str) -> None:
        if not self.warned:
            _warn(f"the tracker {self.name} failed, and the run continues; metrics.jsonl has every line: {why}")
        self.warned = True


def _warn(text: str) -> None:
    console.print(f"warning: {text}", style="yellow", highlight=False, markup=False)


def _first_line(e: Exception) -> str:
    return f"{type(e).__name__}: {str(e).strip()}".splitlines()[0][:300]


def _flat(config: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """(dotted name, value as text) of every setting."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value if isinstance(value, str) else json.dumps(value)


def _mlflow_name(name: str) -> str:
    # MLflow refuses any other character in the name of a metric
    return re.sub(r"[^\w\-. :/]", "_", name)
