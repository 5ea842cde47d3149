"""The embedded policy: a small Llama with a real tokenizer and chat template, warmed up on careless worked solutions.

It is made once, by supervised learning, and cached as an ordinary Hugging Face checkpoint. Its teacher makes mistakes, so it
knows how the tasks are done and still gets a good part of them wrong: what reinforcement can mend.

One policy knows arithmetic and countdown. Any other task that has a teacher (`Task.demonstrate`) gets a policy of its own, with
a tokenizer learned from its text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from rewardlab import registry
from rewardlab.core import Problem, Run, Task, seed_of
from rewardlab.engine.step import Ops, Settings, standard_loop
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.util.device import device_of, dtype_of
from rewardlab.util.files import cached
from rewardlab.util.progress import Bar

from .fingerprint import fingerprint as code_fingerprint

TASKS = ("arithmetic", "countdown")
MIXTURE = (0, 0, 0, 1)
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


def embedded(device: str = "auto", dtype: str = "auto", task: Task | None = None) -> LlamaPolicy:
    """The warmed-up policy for a task; the first call on a machine makes it, which takes about a minute on two cores."""
    return LlamaPolicy.load(checkpoint(task), device, dtype)


def checkpoint(task: Task | None = None) -> Path:
    """The folder of the cached checkpoint, made if need be."""
    own = own_lessons(task)
    name = "embedded" if own is None else f"embedded-{own.name}"
    return cached(f"{name}-{fingerprint(own)}", lambda folder: warm_up(task=own).save(folder))


def own_lessons(task: Task | None) -> Task | None:
    """The task, if it has a teacher and is none of those that the one policy knows, or has another teacher than they."""
    if task is None or task.demonstrate is None:
        return None
    same = task.name in TASKS and _habits(task) == _habits(registry.task(task.name))
    return None if same else task


def _habits(task: Task) -> Any:
    return getattr(task.demonstrate, "keywords", None)


def untrained(seed: int = 0, hidden: int = 32, layers: int = 1, task: Task | None = None) -> LlamaPolicy:
    """A policy of this kind with random weights, for tests: on the CPU, in float32."""
    words = tokenizer(own_lessons(task))
    small = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "intermediate_size": 2 * hidden,
        "head_dim": hidden // 4,
    }
    model = Llama(_config(words, **small)).initialise(torch.Generator().manual_seed(seed))
    return LlamaPolicy(model, words, torch.device("cpu"), torch.float32)


def fingerprint(task: Task | None = None) -> str:
    """Changes whenever the policy would come out different."""
    names, told = (TASKS, None) if task is None else ((task.name,), (task.warmup_steps, task.source))
    return code_fingerprint(names, ["models/embedded.py"], told)


# ---- tokenizer -------------------------------------------------------------------------------------------------------


def tokenizer(task: Task | None = None) -> Any:
    """The tokenizer of the policy for a task."""
    found = _TOKENIZERS.get(fingerprint(task))
    if found is None:
        found = _TOKENIZERS[fingerprint(task)] = _tokenizer(_lessons(task))
    return found


_TOKENIZERS: dict[str, Any] = {}


def _tokenizer(lessons: Sequence[Lessons]) -> Any:
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
    core.train_from_iterator(_corpus(lessons, 400), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|pad|>", model_max_length=CONTEXT)
    fast.chat_template = TEMPLATE
    return fast


def _corpus(taught: Sequence[Lessons], n: int) -> Iterator[str]:
    yield from ["system\n", "user\n", "assistant\n"] * 50
    for lessons in taught:
        for i in range(n):
            problem = lessons[i]
            solution = problem.meta["solution"]
            yield "\n".join([problem.question, *([solution] if isinstance(solution, str) else solution)])


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


def _lessons(task: Task | None) -> tuple[Lessons, ...]:
    return tuple(Lessons(registry.task(t)) for t in TASKS) if task is None else (Lessons(task),)


def warm_up(steps: int | None = None, config: dict[str, Any] | None = None, task: Task | None = None) -> LlamaPolicy:
    """Supervised learning of the careless solutions, on the CPU."""
    steps = steps or (STEPS if task is None else task.warmup_steps)
    words, taught = tokenizer(task), _lessons(task)
    model = Llama(_config(words, **(config or {}))).initialise(torch.Generator().manual_seed(SEED))
    where = device_of("cpu")
    policy = LlamaPolicy(model, words, where, dtype_of("auto", where))
    recipe = registry.build("sft", {"lr": LR, "problems": ROWS}).but(warmup=20, lr_end=0.05, measure=None)
    lessons = Mixture(tuple(taught[i] for i in MIXTURE) if task is None else taught)
    run = Run(policy, steps=steps, seed=SEED)
    ops = Ops(recipe, run, Task("lessons", lessons, (), "final_number"), Settings())
    with Bar(f"making the small policy for {task.name if task else 'arithmetic and countdown'} (once)", steps) as bar:
        while run.step < steps:
            standard_loop(recipe, run, ops)
            run.step += 1
            bar.advance(f"loss {run.metrics['loss']:.3f}")
    return policy


def _config(words: Any, **changes: Any) -> dict[str, Any]:
    return CONFIG | {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id} | changes
