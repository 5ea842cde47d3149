"""The small vision-language policy for a task of pictures: a Llava of 200,000 parameters, trained on an error-prone teacher."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import torch

from rewardlab import registry
from rewardlab.core import Problem, Run, Task, seed_of
from rewardlab.engine.distributed import alone
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.models.fingerprint import fingerprint
from rewardlab.policies.hf.vision import VisionPolicy
from rewardlab.runs.config import RunConfig
from rewardlab.util.files import cached
from rewardlab.util.progress import Bar

STEPS, ROWS, LR, CONTEXT = 900, 32, 3e-3, 256
WORDS = ("<pad>", "<end>", "<image>", "<answer>", "</answer>", "[", "]", ",", " ", "\n", *map(str, range(10)))
TEMPLATE = "{% for m in messages %}{{ m['content'] }}<end>{% endfor %}{% if add_generation_prompt %}\n{% endif %}"
MAKERS = ("models/vision.py", "policies/hf/vision.py")


def warmed(task: Task) -> VisionPolicy:
    """The policy for a task. The first call on a machine trains it, which takes about a minute."""
    name = f"vision-{task.name}-{fingerprint([task.name], MAKERS, task.source)}"
    return VisionPolicy.load(cached(name, lambda folder: _warm_up(task).save(folder)), "cpu", "float32")


def untrained(task: Task) -> VisionPolicy:
    """A tiny policy with random weights, for tests."""
    return _new(task, hidden=32, layers=1)


# ---- model -----------------------------------------------------------------------------------------------------------


def _new(task: Task, hidden: int, layers: int) -> VisionPolicy:
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    words = _tokenizer(task)
    size = task.train[0].prompt[-1].images[0].shape[0]
    shape: dict[str, Any] = {
        "hidden_size": hidden,
        "num_attention_heads": 4,
        "intermediate_size": 3 * hidden,
        "num_hidden_layers": layers,
    }
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**shape, image_size=size, patch_size=6, projection_dim=hidden),
        text_config=LlamaConfig(
            **shape, vocab_size=len(words), max_position_embeddings=CONTEXT, tie_word_embeddings=True, bos_token_id=None,
            eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id, initializer_range=0.05,
        ),
        image_token_index=words.convert_tokens_to_ids("<image>"), vision_feature_layer=-1, image_seq_length=(size // 6) ** 2,
    )  # fmt: skip
    with torch.random.fork_rng():
        # transformers initialises from the global generator: fork it, so that no other stream changes
        torch.manual_seed(0)
        model = _initialised(LlavaForConditionalGeneration(config))
    return VisionPolicy(model, words, torch.device("cpu"), torch.float32)


@torch.no_grad()
def _initialised(model: Any) -> Any:
    """Weights of standard deviation 1/sqrt(inputs): with the usual 0.02, attention logits of a narrow model are close to 0."""
    for p in (p for p in model.parameters() if p.dim() > 1):
        p.normal_(0.0, p[0].numel() ** -0.5)
    return model


def _tokenizer(task: Task) -> Any:
    """A tokenizer of whole words, signs and digits; the words are those of the task's questions."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    # 300 questions show every word of a task whose questions follow templates
    question_words = sorted({w for i in range(300) for w in task.train[i].question.split()})
    vocabulary = {w: i for i, w in enumerate(dict.fromkeys((*WORDS, *question_words)))}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    # a tag, a digit, a word, or any single character
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"</?\w+>|\d|[^\W\d]+|."), "isolated")
    core.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", pad_token="<pad>", model_max_length=CONTEXT)
    fast.chat_template = TEMPLATE
    return fast


# ---- warm-up ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Demonstrations:
    """The task's training problems with the answers of its careless teacher, in a fixed random order."""

    task: Task

    def __getitem__(self, i: int) -> Problem:
        if self.task.demonstrate is None:
            raise RewardlabError(f"the task {self.task.name} has no teacher to train a policy on; give a checkpoint with --model")
        problem = self.task.train[seed_of("warm-up", i) % (1 << 40)]
        solution = self.task.demonstrate(problem, random.Random(seed_of("teacher", self.task.name, i)))
        return replace(problem, meta={"solution": solution})


@alone()
def _warm_up(task: Task, steps: int = STEPS) -> VisionPolicy:
    """Train the policy by SFT on the careless teacher's answers."""
    policy = _new(task, hidden=64, layers=2)
    recipe = registry.build("sft", {"lr": LR, "problems": ROWS}).but(warmup=20, lr_end=0.05, measure=None)
    run = Run(policy, steps=steps, seed=0)
    ops = Ops(recipe, run, Task("lessons", _Demonstrations(task), (), "exact_match"), RunConfig())
    with Bar(f"training the small vision policy for {task.name} (once)", steps) as bar:
        while run.step < steps:
            standard_loop(recipe, run, ops)
            run.step += 1
            bar.advance(f"loss {run.metrics['loss']:.3f}")
    return policy
