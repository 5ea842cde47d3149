"""The embedded policy: a small Llama with a real tokenizer and chat template, warmed up on careless worked solutions.

It is made once, by supervised learning, and cached as an ordinary Hugging Face checkpoint. Its teacher makes mistakes, so it
knows how the tasks are done and still gets a good part of them wrong: what reinforcement can mend.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from . import index
from .core import Problem, Run, Task, seed_of
from .engine.ops import Ops, Settings, standard_loop
from .kit.files import new_folder
from .kit.machine import device_of, dtype_of
from .kit.progress import Bar
from .policies.llama import LlamaPolicy
from .policies.llama_model import Llama

TASKS = ("arithmetic", "countdown")
MIXTURE = ("arithmetic", "arithmetic", "arithmetic", "countdown")
STEPS, ROWS, LR, SEED = 1200, 32, 3e-3, 0
VOCABULARY, CONTEXT = 512, 512

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


def embedded(device: str = "auto", dtype: str = "auto") -> LlamaPolicy:
    """The warmed-up policy; the first call on a machine makes it, which takes about a minute on two cores."""
    return LlamaPolicy.load(checkpoint(), device, dtype)


def checkpoint() -> Path:
    """The folder of the cached checkpoint, made if need be."""
    folder = cache() / f"embedded-{fingerprint()}"
    with _locked(cache() / "embedded.lock"):
        if not (folder / "model.safetensors").exists():
            with new_folder(folder) as new:
                warm_up().save(new)
    return folder


def untrained(seed: int = 0, hidden: int = 32, layers: int = 1) -> LlamaPolicy:
    """A policy of this kind with random weights, for tests: on the CPU, in float32."""
    small = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "intermediate_size": 2 * hidden,
        "head_dim": hidden // 4,
    }
    model = Llama(_config(tokenizer(), **small)).initialise(torch.Generator().manual_seed(seed))
    return LlamaPolicy(model, tokenizer(), torch.device("cpu"), torch.float32)


def cache() -> Path:
    """$REWARDLAB_CACHE, or rewardlab in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("REWARDLAB_CACHE") or Path(home) / "rewardlab")


def fingerprint() -> str:
    """Changes whenever the policy would come out different: with this file and with the tasks it is warmed up on."""
    here = Path(__file__).parent
    sources = [here / "embedded.py", here / "kit" / "sources.py", *(here / "tasks" / f"{t}.py" for t in TASKS)]
    return hashlib.blake2b(b"".join(f.read_bytes() for f in sources), digest_size=6).hexdigest()


# ---- tokenizer -------------------------------------------------------------------------------------------------------


@functools.cache
def tokenizer() -> Any:
    """Byte-level BPE learned from the tasks' own text; digits and signs are always single tokens."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\d|[^\w\s]|\n| ?[^\W\d]+|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<|im_end|>", "<|im_start|>", "<|pad|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    core.train_from_iterator(_corpus(400), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|pad|>", model_max_length=CONTEXT)
    fast.chat_template = TEMPLATE
    return fast


def _corpus(n: int) -> Iterator[str]:
    yield from ["system\n", "user\n", "assistant\n"] * 50
    for name in TASKS:
        lessons = Lessons(index.task(name))
        for i in range(n):
            problem = lessons[i]
            yield f"{problem.question}\n{problem.meta['solution']}"


# ---- warm-up ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lessons:
    """A task's training problems with the solutions of its careless teacher, in an order of their own."""

    task: Task

    def __getitem__(self, i: int) -> Problem:
        problem = self.task.train[seed_of("warm-up", i) % (1 << 40)]
        assert self.task.demonstrate is not None
        solution = self.task.demonstrate(problem, random.Random(seed_of("teacher", self.task.name, i)))
        return replace(problem, meta={"solution": solution})


@dataclass(frozen=True)
class Mixture:
    """Several sources by turns; one that is named twice is taken twice as often."""

    sources: tuple[Any, ...]

    def __getitem__(self, i: int) -> Problem:
        return self.sources[i % len(self.sources)][i]


def warm_up(steps: int = STEPS, config: dict[str, Any] | None = None) -> LlamaPolicy:
    """Supervised learning of the careless solutions, on the CPU."""
    words = tokenizer()
    model = Llama(_config(words, **(config or {}))).initialise(torch.Generator().manual_seed(SEED))
    where = device_of("cpu")
    policy = LlamaPolicy(model, words, where, dtype_of("auto", where))
    recipe = index.build("sft", {"lr": LR, "problems": ROWS}).but(warmup=20, lr_end=0.05, measure=None)
    by_task = {t: Lessons(index.task(t)) for t in TASKS}
    lessons = Mixture(tuple(by_task[t] for t in MIXTURE))
    run = Run(policy, steps=steps, seed=SEED)
    ops = Ops(recipe, run, Task("lessons", lessons, (), "final_number"), Settings())
    with Bar("making the embedded policy (once)", steps) as bar:
        while run.step < steps:
            standard_loop(recipe, run, ops)
            run.step += 1
            bar.advance(f"loss {run.metrics['loss']:.3f}")
    return policy


def _config(words: Any, **changes: Any) -> dict[str, Any]:
    return CONFIG | {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id} | changes


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield
