"""The configuration of a run: all its settings except the recipe.

One dataclass. The flags of the command line, the keyword arguments of `rewardlab.train`, the checks of their values and the
contents of config.json all follow from its fields. This module imports no torch, so that `--help` answers at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError, unknown
from rewardlab.util.literals import parse_value

STEPS = 100
"""Training steps where neither steps nor a budget are given."""
UNLIMITED = 10**6
"""Training steps of a run that ends at its budget."""
MICRO_TOKENS = 16384
"""The most tokens that a micro-batch holds unless `micro_tokens` is given."""
IN_PYTHON = "given"
"""The model's name in the config.json of a run that was started in Python with a model object."""

COLUMNS = ("prompt_column", "answer_column", "system")
"""Settings that say how a file of the user's own problems is read."""
ENGINES = ("embedded", "trl")
DTYPES = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Domain:
    """The values that a setting may have.

    says: completes the sentence "NAME must be ...".  holds: whether a value is in the domain.  read: converts the text on the
    command line to a value (the list of texts, for a flag that may be repeated).
    """

    says: str
    holds: Callable[[Any], bool]
    read: Callable[[Any], Any] = str

    def check(self, name: str, value: Any) -> Any:
        """The value, or RewardlabError if it is not in the domain."""
        if not self.holds(value):
            raise RewardlabError(f"{name} must be {self.says}, not {value!r}")
        return value


def one_of(*names: str) -> Domain:
    return Domain(f"{', '.join(names[:-1])} or {names[-1]}", lambda value: value in names)


def _integer(value: Any) -> bool:
    # bool is a subclass of int in Python, but `steps=True` is a mistake
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _integer(value) or isinstance(value, float)


def _device(value: Any) -> bool:
    return value in ("auto", "cpu", "cuda") or (isinstance(value, str) and value[:5] == "cuda:" and value[5:].isdigit())


def _names(value: Any) -> bool:
    return isinstance(value, str | list | tuple) and all(isinstance(name, str) for name in value)


def _options(words: Sequence[str]) -> dict[str, Any]:
    """FIELD=VALUE words as a dict; FIELD alone means true."""
    pairs = (word.partition("=") for word in words)
    return {name: parse_value(value) if equals else True for name, equals, value in pairs}


POSITIVE = Domain("a whole number above 0", lambda value: _integer(value) and value > 0, parse_value)
COUNT = Domain("a whole number from 0 up", lambda value: _integer(value) and value >= 0, parse_value)
WHOLE = Domain("a whole number", _integer, parse_value)
SHARE = Domain("a number from 0 to 1", lambda value: _number(value) and 0 <= value <= 1, parse_value)
TEMPERATURE = Domain("a number from 0 up", lambda value: _number(value) and 0 <= value < float("inf"), parse_value)
TEXT = Domain("text", lambda value: isinstance(value, str))
PATH = Domain("the path of a folder", lambda value: isinstance(value, str | Path), Path)
DEVICE = Domain("auto, cpu, cuda or cuda:N", _device)
NAMES = Domain("names, or one text with commas between them", _names, tuple)
OPTIONS = Domain("a dict of names and values", lambda value: isinstance(value, Mapping), _options)

PROBLEMS, ENGINE, AMOUNTS = "problems of your own", "another engine", "how often and how much"
"""Groups of flags in --help."""


def setting(
    default: Any, domain: Domain, help: str, *, metavar: str = "", flag: str = "", no_flag: str = "", group: str = "",
    repeats: bool = False, saved: bool = True,
) -> Any:  # fmt: skip
    """A field of RunConfig. A default of None means that the field may be left open.

    flag: its command-line flag if that is not its name.  no_flag: why it has none.  repeats: the flag may be given several times.
    saved: whether config.json holds it.
    """
    metadata = {
        "domain": domain, "help": help, "metavar": metavar, "flag": flag, "no_flag": no_flag, "group": group, "repeats": repeats,
        "saved": saved,
    }  # fmt: skip
    # dataclasses refuse a mutable default
    return field(default_factory=dict, metadata=metadata) if default == {} else field(default=default, metadata=metadata)


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run except its recipe. Raises RewardlabError, naming the field, for a value outside its domain.

    steps, record_every and micro_tokens may be None until the run begins (see `settled`); their annotated types hold from then on.
    """

    method: str | None = setting(
        None, TEXT, "name of the method in records and tables (default: the recipe's)", no_flag="it is the argument METHOD"
    )
    task: str = setting(
        "arithmetic", TEXT, "a task (arithmetic, arithmetic:difficulty=4), or your own .jsonl or .parquet file or dataset folder",
        metavar="TASK",
    )  # fmt: skip
    prompt_column: str | None = setting(None, TEXT, "column of the prompts", metavar="NAME", group=PROBLEMS)
    answer_column: str | None = setting(None, TEXT, "column of the answers", metavar="NAME", group=PROBLEMS)
    system: str | None = setting(None, TEXT, "a system message put before each prompt", metavar="TEXT", group=PROBLEMS)
    model: str | None = setting(
        None, TEXT, "smollm2, a checkpoint folder, a run, or hf:FOLDER for transformers (default: the task's own small policy)",
        metavar="MODEL",
    )  # fmt: skip
    device: str = setting("auto", DEVICE, "auto (a GPU if there is one), cpu or cuda", metavar="DEVICE")
    dtype: str = setting("auto", one_of(*DTYPES), "number format of computation: auto, float32 or bfloat16", metavar="DTYPE")
    lora_rank: int | None = setting(None, POSITIVE, "train LoRA adapters of this rank", metavar="R")
    max_new: int | None = setting(None, POSITIVE, "longest reply in tokens (default: the task's)", metavar="N")
    seed: int = setting(0, WHOLE, "seed of all random numbers (default 0)", metavar="S")
    steps: int = setting(None, POSITIVE, f"training steps (default {STEPS}, or until the budget is used up)", metavar="N")
    budget: int | None = setting(
        None, POSITIVE, "stop once all models together have generated and scored so many tokens", metavar="TOKENS"
    )
    # a flag --start would hide the setting of the same name that rl_tango has
    start: int = setting(0, COUNT, "position in the training data to begin at (default 0)", metavar="N", flag="--data-start")
    out: Path | str | None = setting(  # noqa: RUF009
        None, PATH, "folder of the run (default: a new one in runs/)", metavar="DIR", saved=False
    )
    track: tuple[str, ...] = setting(
        (), NAMES, "tensorboard, wandb, mlflow or trackio: send configuration and metrics there too; several, or a,b",
        metavar="NAME", repeats=True,
    )  # fmt: skip
    engine: str = setting("embedded", one_of(*ENGINES), "what trains: embedded (default) or trl", metavar="NAME", group=ENGINE)
    engine_options: Mapping[str, Any] = setting(
        {}, OPTIONS, "a field of TRL's GRPOConfig that the recipe does not decide, such as bf16=true",
        metavar="FIELD=VALUE", flag="--trl", group=ENGINE, repeats=True,
    )  # fmt: skip
    eval_every: int = setting(
        10, COUNT, "steps between evaluations (default 10; 0: only first and last)", metavar="N", group=AMOUNTS
    )
    eval_problems: int = setting(
        200, COUNT, "held-out problems per evaluation (default 200; 0: no evaluation)", metavar="N", group=AMOUNTS
    )
    checkpoint_every: int = setting(
        10, COUNT, "steps between checkpoints (default 10; 0: only first and last)", metavar="N", group=AMOUNTS
    )
    record_every: int = setting(
        None, COUNT, "steps between recorded rollouts (default: as evaluations; 0: only first and last)", metavar="N", group=AMOUNTS
    )
    micro_tokens: int = setting(
        None, POSITIVE, "tokens per micro-batch (default: what memory holds; changes no gradient)", metavar="N", group=AMOUNTS
    )
    max_missing: float = setting(
        0.5, SHARE, "stop if more than this share of a step's rollouts get no verdict (default 0.5)", metavar="SHARE", group=AMOUNTS
    )
    patience: int = setting(
        30, COUNT, "stop if the reward has not varied in the first N steps (default 30; 0: never)", metavar="N", group=AMOUNTS
    )

    def __post_init__(self) -> None:
        for f in fields(self):
            # None is allowed only where it is the default
            if (value := getattr(self, f.name)) is not None or f.default is not None:
                f.metadata["domain"].check(f.name, value)
        # JSON has lists only; a tuple cannot change, and equals the tuple of a configuration made in Python
        object.__setattr__(self, "track", (self.track,) if isinstance(self.track, str) else tuple(self.track))
        object.__setattr__(self, "engine_options", dict(self.engine_options))
        if self.engine == "embedded" and self.engine_options:
            raise RewardlabError("engine_options (--trl) are for TRL; give engine trl too (--engine trl)")
        if self.engine == "trl" and self.track:
            raise RewardlabError("track is not for engine trl, which tracks by itself: set its report_to (--trl report_to=NAME)")
        if self.engine == "trl" and self.budget:
            raise RewardlabError("budget is not for engine trl, which ends after a number of steps; give steps")

    def but(self, **changes: Any) -> RunConfig:
        """The same configuration with some fields changed. Raises RewardlabError for a name that is not a field."""
        known = {f.name for f in fields(self)}
        for name in changes:
            if name not in known:
                raise unknown("setting of a run", name, known)
        return replace(self, **changes)

    def settled(self) -> RunConfig:
        """The configuration with steps, record_every and micro_tokens filled in where they are None."""
        return replace(
            self,
            # with a budget alone the number of steps is unknown: the budget ends the run
            steps=self.steps or (UNLIMITED if self.budget else STEPS),
            record_every=self.eval_every if self.record_every is None else self.record_every,
            micro_tokens=self.micro_tokens or MICRO_TOKENS,
        )

    def to_json(self) -> dict[str, Any]:
        """The settings that config.json holds."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.metadata["saved"]}
        return values | {"track": list(self.track), "engine_options": dict(self.engine_options)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunConfig:
        """The configuration in a config.json, of this version or an older one; entries that are not fields are ignored.

        Older files have some of the fields under "settings", and call the options of TRL "grpo_config". In every file "task" is
        the short name of the task, and "source" says how to load it.
        """
        flat = {"engine_options": document.get("grpo_config", {}), **document.get("settings", {}), **document}
        if source := document.get("source"):
            columns = {name: source["options"].get(name) for name in COLUMNS}
            flat |= {"task": source["name"], **columns}
        return cls(**{f.name: flat[f.name] for f in fields(cls) if f.name in flat and f.metadata["saved"]})


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a run folder. Raises RewardlabError where there is none, and for a model checkpoint."""
    try:
        document = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, json.JSONDecodeError) as e:
        raise RewardlabError(f"{folder} is not a run folder: {e}") from e
    if "recipe" not in document:
        raise RewardlabError(f"{folder} is a model checkpoint, not a run folder")
    return document
