"""The configuration of a run: all its settings except the recipe.

One dataclass. The flags of the command line, the keyword arguments of `rewardlab.train`, the checks of their values and the
contents of config.json all follow from its fields. This module imports no torch, so that `--help` answers at once.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError, unknown
from rewardlab.settings.domain import COUNT, KWARGS, NAME, PATH, POSITIVE, SHARE, SWITCH, WHOLE, Domain, number, one_of, parse_value
from rewardlab.settings.sampling import MISMATCH, SAMPLER

STEPS = 100
"""Training steps where neither steps nor a budget are given."""
UNLIMITED = 10**6
"""Training steps of a run that ends at its budget."""
MICRO_TOKENS = 16384
"""The most tokens that a micro-batch holds unless `micro_tokens` is given."""
IN_PYTHON = "given"
"""The model's name in the config.json of a run that was started in Python with a model object."""

COLUMNS = (
    "test", "prompt_column", "answer_column", "completion_column", "image_column", "image_folder", "system",
    "system_column", "order", "verifier",
)  # fmt: skip
"""Settings that say how the user's own problems are read: the options of the task `records`."""
PLACES = ("task", "test", "image_folder", "model")
"""Settings whose name may be a path, also as an object such as pathlib's."""
ORDERS = ("shuffled", "file")
OVERLONG = ("error", "drop", "truncate-left")
ENGINES = ("embedded", "trl")
DTYPES = ("auto", "float32", "bfloat16")
ON_RESUME = (
    "steps",
    "budget",
    "device",
    "sampler",
    "gradient_checkpointing",
    "micro_tokens",
    "checkpoint_every",
    "save_every",
    "track",
)
"""The settings that may be given anew when a run is resumed: how long, where and how it runs, not what it computes."""


def _device(value: Any) -> bool:
    return value in ("auto", "cpu", "cuda") or (isinstance(value, str) and value[:5] == "cuda:" and value[5:].isdigit())


def _names(value: Any) -> bool:
    return isinstance(value, str | list | tuple) and all(isinstance(name, str) for name in value)


def _options(words: Sequence[str]) -> dict[str, Any]:
    """FIELD=VALUE words as a dict; FIELD alone means true."""
    pairs = (word.partition("=") for word in words)
    return {name: parse_value(value) if equals else True for name, equals, value in pairs}


LATER = (
    "chat_template_kwargs", "image_column", "image_folder", "shard", "sampler", "mismatch", "gradient_checkpointing", "save_every",
    "system_column",
)  # fmt: skip
"""Settings that config.json holds only where they are set: what is keyed by a configuration keeps the key it had before them."""
SECONDS = number("a number of seconds from 0 up", lambda value: value >= 0)
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
        None, NAME, "name of the method in records and tables (default: the recipe's)", no_flag="it is the argument METHOD"
    )
    task: str = setting(
        "arithmetic", NAME,
        "a task (arithmetic, arithmetic:difficulty=4), or problems of your own: a .jsonl, .json, .csv, .tsv or .parquet file, "
        "a dataset folder, or a dataset of the hub (hub:OWNER/NAME,config=C,split=S)", metavar="TASK",
    )  # fmt: skip
    test: str | None = setting(
        None, NAME, "the held-out problems, in the same forms (default: the data's own test split, else a tenth of the problems)",
        metavar="FILE", group=PROBLEMS,
    )  # fmt: skip
    prompt_column: str | None = setting(None, NAME, "column of the prompts (default: prompt)", metavar="NAME", group=PROBLEMS)
    answer_column: str | None = setting(None, NAME, "column of the answers (default: answer)", metavar="NAME", group=PROBLEMS)
    completion_column: str | None = setting(
        None, NAME, "column of replies to imitate, for sft (default: completion, or the replies in messages)", metavar="NAME",
        group=PROBLEMS,
    )  # fmt: skip
    image_column: str | None = setting(
        None, NAME, "column of the pictures in the prompts, for models that see (default: image or images; none: read no pictures)",
        metavar="NAME", group=PROBLEMS,
    )  # fmt: skip
    image_folder: str | None = setting(
        None, NAME, "folder from which paths of pictures go (default: the one that the rows are in)", metavar="DIR", group=PROBLEMS
    )
    system: str | None = setting(None, NAME, "a system message put before each prompt", metavar="TEXT", group=PROBLEMS)
    system_column: str | None = setting(
        None, NAME, "column of system messages (default: system or system_prompt, where the prompt has none; none: read no column)",
        metavar="NAME", group=PROBLEMS,
    )  # fmt: skip
    verifier: str | None = setting(
        None, NAME, "verifier of these problems (default: final_answer; `rewardlab parts reward` lists verifiers)",
        metavar="NAME", group=PROBLEMS,
    )  # fmt: skip
    order: str | None = setting(
        None, one_of(*ORDERS),
        "order of the training problems: shuffled (default; by the seed, anew in each epoch), or file (as they stand there)",
        metavar="ORDER", group=PROBLEMS,
    )  # fmt: skip
    overlong: str = setting(
        "error", one_of(*OVERLONG),
        "prompts that leave no room for a reply in the model's context: error (default), drop, or truncate-left (cut the oldest "
        "text; system message and chat template stay whole)", metavar="WHAT", group=PROBLEMS,
    )  # fmt: skip
    model: str | None = setting(
        None, NAME, "smollm2, a folder (checkpoint, PEFT adapter or run), or ORG/NAME of the Hugging Face hub; with hf: before it, "
        "transformers runs it even where the lean policy could; with nf4: in 4 bits, below adapters; "
        "with int8: weights in 8 bits, which answer faster and cannot be trained "
        "(default: the task's own small policy)", metavar="MODEL",
    )  # fmt: skip
    chat_template_kwargs: Mapping[str, Any] = setting(
        {}, KWARGS, "what the model's chat template is told beside the messages, as JSON: '{\"enable_thinking\": false}' of Qwen3; "
        "the run's models and exports keep it", metavar="JSON",
    )  # fmt: skip
    device: str = setting("auto", DEVICE, "auto (a GPU if there is one), cpu or cuda", metavar="DEVICE")
    dtype: str = setting("auto", one_of(*DTYPES), "number format of computation: auto, float32 or bfloat16", metavar="DTYPE")
    sampler: str | None = setting(
        None, SAMPLER, "what samples the replies: vllm (in this process, rewardlab[vllm]), or vllm:URL (a server that `vllm serve` "
        "started); the policy's weights are handed over whenever they change. Options follow: vllm,memory=0.5 (default: the policy "
        "itself)", metavar="NAME",
    )  # fmt: skip
    lora_rank: int | None = setting(
        None, POSITIVE, "train LoRA adapters of this rank instead of all weights; a model that is such an adapter trains on",
        metavar="R",
    )  # fmt: skip
    shard: bool = setting(
        False, SWITCH, "divide the weights of a transformers model (hf:) among the processes that train together (FSDP2), for one "
        "too large for a device",
    )  # fmt: skip
    gradient_checkpointing: bool = setting(
        False, SWITCH, "keep of each layer only what it read, and compute the rest again in the backward pass: far less memory, "
        "about a third more time",
    )  # fmt: skip
    max_new: int | None = setting(None, POSITIVE, "longest reply in tokens (default: the task's)", metavar="N")
    seed: int = setting(0, WHOLE, "seed of all random numbers (default 0)", metavar="S")
    steps: int = setting(None, POSITIVE, f"training steps (default {STEPS}, or until the budget is used up)", metavar="N")
    budget: int | None = setting(None, POSITIVE, "stop at this many tokens, generated and scored by all models", metavar="TOKENS")
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
    save_every: int = setting(
        0, COUNT, "steps between models that are all kept, in models/ of the run's folder, each one to evaluate, serve or train on "
        "from (default 0: the best and the last alone)", metavar="N", group=AMOUNTS,
    )  # fmt: skip
    record_every: int = setting(
        None, COUNT, "steps between recorded rollouts (default: as evaluations; 0: only first and last)", metavar="N", group=AMOUNTS
    )
    micro_tokens: int = setting(
        None, POSITIVE, "tokens per micro-batch (default: by memory; does not change gradients)", metavar="N", group=AMOUNTS
    )
    max_missing: float = setting(
        0.5, SHARE, "stop if more than this share of a step's rollouts get no verdict (default 0.5)", metavar="SHARE", group=AMOUNTS
    )
    reward_timeout: float = setting(
        3600.0,
        SECONDS,
        "timeout of one call of your reward (default 3600; 0: no limit)",
        metavar="SECONDS",
        group=AMOUNTS,
    )
    mismatch: str | None = setting(
        None, MISMATCH, "weigh advantages by the ratio of the trainer's probabilities to the sampler's: truncate (of a token, at "
        "most 2), mask (0 above 2), truncate-rows or mask-rows (of a reply), with another limit after a colon (truncate:3) "
        "(default: it is measured alone)", metavar="HOW", group=AMOUNTS,
    )  # fmt: skip
    patience: int = setting(
        30, COUNT, "stop if the reward is constant over the first N steps (default 30; 0: never)", metavar="N", group=AMOUNTS
    )

    def __post_init__(self) -> None:
        for name in PLACES:
            if isinstance(value := getattr(self, name), os.PathLike):
                object.__setattr__(self, name, os.fspath(value))
        for f in fields(self):
            # None is allowed only where it is the default
            if (value := getattr(self, f.name)) is not None or f.default is not None:
                f.metadata["domain"].check(f.name, value)
        # JSON has lists only; a tuple cannot change, and equals the tuple of a configuration made in Python
        object.__setattr__(self, "track", (self.track,) if isinstance(self.track, str) else tuple(self.track))
        object.__setattr__(self, "engine_options", dict(self.engine_options))
        object.__setattr__(self, "chat_template_kwargs", dict(self.chat_template_kwargs))
        if self.engine == "embedded" and self.engine_options:
            raise RewardlabError("engine_options (--trl) are for TRL; give engine trl too (--engine trl)")
        if self.shard and self.engine == "trl":
            raise RewardlabError("shard is not for engine trl: accelerate divides its weights (accelerate launch --use_fsdp)")
        if self.shard and self.lora_rank:
            raise RewardlabError("shard divides weights that all train; it is not for adapters (lora_rank)")
        if self.engine == "trl" and self.gradient_checkpointing:
            raise RewardlabError("gradient_checkpointing is not for engine trl: it has its own (--trl gradient_checkpointing=true)")
        if self.engine == "trl" and self.sampler:
            raise RewardlabError("sampler is not for engine trl, which has vLLM by itself: --trl use_vllm=true")
        if self.shard and self.sampler:
            raise RewardlabError("sampler is not for divided weights (shard): train them through TRL with its own vLLM")
        if self.engine == "trl" and self.track:
            raise RewardlabError("track is not for engine trl, which tracks by itself: set its report_to (--trl report_to=NAME)")
        if self.engine == "trl" and self.save_every:
            raise RewardlabError("save_every is not for engine trl, which saves by itself: set its save_steps (--trl save_steps=N)")
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
        for name in LATER:
            if not values[name]:
                del values[name]
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


# for `help(RunConfig)`: what --help says of each flag
RunConfig.__doc__ = "\n\n".join(
    [inspect.cleandoc(RunConfig.__doc__ or ""), *(f"{f.name}: {f.metadata['help']}" for f in fields(RunConfig))]
)
