"""The embedded policy: a small Llama with tokenizer and chat template, warmed up by SFT on solutions with mistakes.

It is trained once and cached as an ordinary Hugging Face checkpoint. Its teacher is careless, so the policy knows the format
and the method of its tasks but still fails many of them; this leaves something for reinforcement learning to improve.

One policy is shared by arithmetic and countdown. With another teacher these tasks get a policy of their own that begins as the
shared one; any other task with a teacher (`Task.demonstrate`) gets one from random weights, with a tokenizer trained on its text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from rewardlab import registry
from rewardlab.core import Problem, Task, seed_of
from rewardlab.models.fingerprint import fingerprint as code_fingerprint
from rewardlab.models.start import Start, keep, kept, measured_start
from rewardlab.models.warmup import SEED, teach
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.util.device import device_of, dtype_of
from rewardlab.util.files import cached

TASKS = ("arithmetic", "countdown")
"""The tasks that share a policy."""
MIXTURE = (0, 0, 0, 1)
"""Indices into TASKS, in rotation: one problem in four is countdown."""
STEPS, RELATIVE_STEPS = 1200, 150
"""Batches of the shared policy, and those by which a policy for another teacher of the same tasks is made of it."""
VOCABULARY, CONTEXT = 512, 512
MAKERS = ("models/embedded.py", "models/warmup.py", "models/start.py")

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

CONFIG: dict[str, Any] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": VOCABULARY, "hidden_size": 128,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 384,
    "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "attention_bias": False, "mlp_bias": False,
    "bos_token_id": None,
}  # fmt: skip


def embedded(device: str = "auto", dtype: str = "auto", task: Task | None = None) -> LlamaPolicy:
    """The warmed-up policy for a task. The first call on a machine trains it, which takes about a minute on two cores."""
    return LlamaPolicy.load(checkpoint(task), device, dtype)


def checkpoint(task: Task | None = None) -> Path:
    """The folder of the cached checkpoint; trains the policy if it is not there."""
    own = with_own_policy(task)
    name = "embedded" if own is None else f"embedded-{own.name}"
    return cached(f"{name}-{fingerprint(own)}", lambda folder: _make(folder, own))


def _make(folder: Path, task: Task | None) -> None:
    policy, start = warm_up(task=task)
    policy.save(folder)
    if task is not None and start is not None:
        keep(folder, task, start)


def start_of(task: Task) -> Start | None:
    """Where the small policy starts on a task, measured once; None for a task that cannot be measured without a method."""
    folder = checkpoint(task)
    start = kept(folder, task)
    if start is None and (start := measured_start(LlamaPolicy.load(folder, "cpu", "auto"), task)):
        keep(folder, task, start)
    return start


def with_own_policy(task: Task | None) -> Task | None:
    """The task, if it needs a policy of its own; None if the shared one serves it, or there is no teacher to train another."""
    if task is not None and task.warmed_as is not None:
        task = registry.task(task.warmed_as)
    return None if task is None or task.demonstrate is None or task.shared else task


def untrained(seed: int = 0, hidden: int = 32, layers: int = 1, task: Task | None = None) -> LlamaPolicy:
    """A policy of this kind with random weights, for tests: on the CPU, in float32."""
    words = tokenizer(with_own_policy(task))
    # a few thousand parameters: a test builds one in milliseconds
    small = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "intermediate_size": 2 * hidden,
        "head_dim": hidden // 4,
    }
    model = Llama(_config(words, **small)).initialise(torch.Generator().manual_seed(seed))
    return LlamaPolicy(model, words, torch.device("cpu"), torch.float32)


def fingerprint(task: Task | None = None) -> str:
    """A hash that changes whenever the trained policy would."""
    # a relative of the shared policy begins as that one
    names = TASKS if task is None or task.name in TASKS else (task.name,)
    return code_fingerprint(names, MAKERS, None if task is None else (task.warmup_steps, task.source))


# ---- tokenizer -------------------------------------------------------------------------------------------------------


def tokenizer(task: Task | None = None) -> Any:
    """The tokenizer of the policy for a task, trained once per process."""
    if task is not None and task.name in TASKS:
        return tokenizer()
    key = fingerprint(task)
    if key not in _TOKENIZERS:
        _TOKENIZERS[key] = _tokenizer(_demonstrations(task))
    return _TOKENIZERS[key]


_TOKENIZERS: dict[str, Any] = {}


def _tokenizer(sources: Sequence[Demonstrations]) -> Any:
    """Byte-level BPE trained on the tasks' own text. Digits and signs are single tokens, so that the digits of a sum line up."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence([
        # a digit, a sign, a line break, a word with the space before it, or other space
        pre_tokenizers.Split(Regex(r"\d|[^\w\s]|\n| ?[^\W\d]+|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<|im_end|>", "<|im_start|>", "<|pad|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    core.train_from_iterator(_corpus(sources, 400), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|pad|>", model_max_length=CONTEXT)
    fast.chat_template = TEMPLATE
    return fast


def _corpus(sources: Sequence[Demonstrations], n: int) -> Iterator[str]:
    # seen often, so that BPE merges the chat template's role names into single tokens
    yield from ["system\n", "user\n", "assistant\n"] * 50
    for demonstrations in sources:
        for i in range(n):
            problem = demonstrations[i]
            solution = problem.meta["solution"]
            yield "\n".join([problem.question, *([solution] if isinstance(solution, str) else solution)])


# ---- warm-up ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Demonstrations:
    """A task's training problems with the solutions of its careless teacher, in a fixed random order."""

    task: Task

    def __getitem__(self, i: int) -> Problem:
        # a fixed hash of i as the index spreads the problems over the endless task
        problem = self.task.train[seed_of("warm-up", i) % (1 << 40)]
        assert self.task.demonstrate is not None
        solution = self.task.demonstrate(problem, random.Random(seed_of("teacher", self.task.name, i)))
        return replace(problem, meta={"solution": solution})


@dataclass(frozen=True)
class Mixture:
    """Several sources in rotation; a source that is listed twice is used twice as often."""

    sources: tuple[Any, ...]

    def __getitem__(self, i: int) -> Problem:
        return self.sources[i % len(self.sources)][i]


def _demonstrations(task: Task | None) -> tuple[Demonstrations, ...]:
    return tuple(Demonstrations(registry.task(t)) for t in TASKS) if task is None else (Demonstrations(task),)


def warm_up(
    steps: int | None = None, config: dict[str, Any] | None = None, task: Task | None = None
) -> tuple[LlamaPolicy, Start | None]:  # fmt: skip
    """Train the policy by SFT on the careless solutions, and measure where it starts.

    steps: so many batches; None: as many as its task says, and on until its start is right (`warmup.teach`).
    On the CPU, with or without a GPU: the policy is the same.
    """
    sources = _demonstrations(task)
    problems = Mixture(tuple(sources[i] for i in MIXTURE) if task is None else sources)
    if task is not None and task.name in TASKS and config is None:
        # it knows the format and the method already, and has only to take on another teacher's ways
        policy, planned = LlamaPolicy.load(checkpoint(), "cpu", "auto"), RELATIVE_STEPS
    else:
        policy, planned = _new(tokenizer(task), config or {}), STEPS if task is None else task.warmup_steps
    return policy, teach(policy, problems, steps or planned, task, once=steps is not None)


def _new(words: Any, config: dict[str, Any]) -> LlamaPolicy:
    model = Llama(_config(words, **config)).initialise(torch.Generator().manual_seed(SEED))
    device = device_of("cpu")
    return LlamaPolicy(model, words, device, dtype_of("auto", device))


def _config(words: Any, **changes: Any) -> dict[str, Any]:
    return CONFIG | {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id} | changes
