"""The judge trunk of a task: its small policy with more layers, trained to tell right steps from wrong ones.

A small policy knows arithmetic where it chooses its next token. A fresh value head reads elsewhere: it learns to compare so slowly
that reward models stay at chance for minutes. This is learnt once here, with the language kept by its own loss, and cached as an
ordinary checkpoint of a language model. Reward models, process reward models and value models start from it with a new head of
zeros, generative judges with its vocabulary head:  Learner("reward", "embedded:arithmetic:judge", ...).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from rewardlab import registry
from rewardlab.core import Problem, Recipe, Run, Task, Update, seed_of
from rewardlab.engine.distributed import alone
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.models import embedded
from rewardlab.models.fingerprint import fingerprint as code_fingerprint
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.runs.config import RunConfig
from rewardlab.util.files import cached
from rewardlab.util.progress import Bar

MORE_LAYERS = 2
STEPS, ROWS, LR, SEED = 1100, 16, 1e-3, 0
FLAWED = 0.7
"""How often the first of a few solutions that differs from the gold one is taken: a careful teacher's rarely have a wrong step."""
TRIES = 4


def judge_trunk(task: Task, device: str = "auto", dtype: str = "auto") -> LlamaPolicy:
    """The judge trunk of a task, as a language model. The first call on a machine trains it, which takes minutes."""
    return LlamaPolicy.load(checkpoint(task), device, dtype)


def checkpoint(task: Task) -> Path:
    """The folder of the cached checkpoint; trains the trunk if it is not there."""
    _check(task)
    return cached(f"judge-{task.name}-{fingerprint(task)}", lambda folder: train(task).save(folder))


def fingerprint(task: Task) -> str:
    """A hash that changes whenever the trained trunk would."""
    own = embedded.with_own_policy(task)
    makers = ["models/judge.py", "rewards/steps.py", "objectives/labels.py"]
    source = task.source or {"name": task.name, "options": {}}
    # how many problems are held out changes nothing that is learnt
    options = {k: v for k, v in source["options"].items() if k != "test_size"}
    return code_fingerprint([task.name], makers, (embedded.fingerprint(own), source["name"], options))


def _check(task: Task) -> None:
    if task.demonstrate is None or task.step_verifier is None:
        raise RewardlabError(
            f"there is no judge trunk for the task {task.name}: it takes a teacher's solutions whose steps can be checked "
            "(Task.demonstrate, Task.step_verifier), as arithmetic has; start from 'value-head', 'value-head:surprise' or "
            "'copy:policy'"
        )


@alone()
def train(task: Task, steps: int = STEPS) -> LlamaPolicy:
    """Teach a deeper copy of the task's policy the verdicts on its teacher's steps, on the CPU."""
    policy = embedded.embedded("cpu", task=task)
    judge = deeper(policy, MORE_LAYERS)
    judge.model.value_head = torch.nn.Parameter(torch.zeros(1, judge.model.shape.hidden))
    update = Update(problems=ROWS, lr=LR, warmup=20, lr_end=0.05)
    assert task.step_verifier is not None
    labels, language = registry.part("objective", "label_cross_entropy", before=1), registry.part("objective", "language_model")
    recipe = Recipe(
        rollout=registry.part("rollout", "recorded", steps="newline"), reward=registry.part("reward", task.step_verifier),
        objective=labels + language, update=update,
    )  # fmt: skip
    run = Run(judge, steps=steps, seed=SEED)
    ops = Ops(recipe, run, Task("solutions to judge", Solutions(task), (), task.verifier), RunConfig())
    with Bar(f"teaching a judge for {task.name} (once)", steps) as bar:
        while run.step < steps:
            standard_loop(recipe, run, ops)
            run.step += 1
            bar.advance(f"loss {run.metrics['loss']:.3f}")
    # the head was for these verdicts alone: a judge that starts from here gets one of its own
    judge.model.value_head = None
    return judge


@torch.no_grad()
def deeper(policy: LlamaPolicy, more: int) -> LlamaPolicy:
    """A copy of the policy with more layers on top: copies of its lowest ones that add nothing yet, so it computes the same."""
    old, layers = policy.model, policy.model.shape.layers
    new = Llama({**old.config, "num_hidden_layers": layers + more})
    weights = {name: p.detach() for name, p in old.named_parameters()}
    for name, p in new.named_parameters():
        place, _, rest = name.removeprefix("layers.").partition(".")
        if name in weights:
            p.copy_(weights[name])
        elif rest in ("out", "down"):
            # what a layer writes: at 0, the model starts as good at its language as it was
            p.zero_()
        else:
            # what it looks at: heads that look at the tokens before are found again sooner than from random weights
            p.copy_(weights[f"layers.{(int(place) - layers) % layers}.{rest}"])
    return LlamaPolicy(new, policy.tokenizer, policy.device, policy.dtype, policy.name)


@dataclass(frozen=True)
class Solutions:
    """A task's training problems with solutions of its careless teacher, most of them flawed, in a fixed random order."""

    task: Task

    def __getitem__(self, i: int) -> Problem:
        problem = self.task.train[seed_of("judge", i) % (1 << 40)]
        rng = random.Random(seed_of("judged", self.task.name, i))
        return replace(problem, meta={**problem.meta, "solution": self._solution(problem, rng)})

    def _solution(self, problem: Problem, rng: random.Random) -> str:
        assert self.task.demonstrate is not None
        written = [self.task.demonstrate(problem, rng) for _ in range(TRIES if rng.random() < FLAWED else 1)]
        return next((text for text in written if text != problem.meta["solution"]), written[0])
