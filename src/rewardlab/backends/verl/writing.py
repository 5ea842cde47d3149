"""The files of an exported recipe: configuration, module, data, and start script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

from rewardlab.backends.verl.refusals import cannot_carry
from rewardlab.backends.verl.rewards import COLUMN
from rewardlab.backends.verl.settings import differences, overrides
from rewardlab.core import Problem, Recipe, Task
from rewardlab.errors import RewardlabError
from rewardlab.util.files import new_folder, write_json, write_text

MODULE = '''"""{name} in verl: its reward, its credit and its loss. Written by `rewardlab export-recipe`."""

import json
import os
from pathlib import Path

saved = json.loads(Path(__file__).with_name("recipe.json").read_text("utf-8"))
# folders of methods that do not come with rewardlab
known = os.environ.get("REWARDLAB_METHODS", "").split(os.pathsep)
os.environ["REWARDLAB_METHODS"] = os.pathsep.join(filter(None, dict.fromkeys([*saved["methods"], *known])))

from rewardlab import registry
from rewardlab.backends.verl import install

verify = registry.part("reward", saved["verifier"]) if saved["verifier"] else None
RecipeRewards = install(registry.load_recipe(saved["recipe"]), verify, saved["max_new"])
'''
RUN = """#!/bin/sh
# {name} in verl 0.9.1, in an environment with rewardlab and verl. Further settings of verl follow as arguments:
#   sh run.sh actor_rollout_ref.model.path=MODEL trainer.n_gpus_per_node=8 actor_rollout_ref.rollout.name=vllm
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# every process of verl imports the recipe, which registers its estimator and its loss
export PYTHONPATH="$here${{PYTHONPATH:+:$PYTHONPATH}}" VERL_USE_EXTERNAL_MODULES=rewardlab_recipe
exec "${{PYTHON:-python3}}" -m verl.trainer.main_ppo --config-path "$here" --config-name verl \\
  "+ray_kwargs.ray_init.runtime_env.env_vars.PYTHONPATH='$PYTHONPATH'" \\
  {data}"$@"
"""
DATA = 'data.train_files="$here/train.parquet" data.val_files="$here/test.parquet" '


def write(
    recipe: Recipe, out: Path, *, task: Task | None, steps: int, max_new: int, rows: int, methods: Sequence[Path] = (),
    told: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Write the folder `out`: recipe.json, rewardlab_recipe.py, verl.yaml, run.sh and, with a task, train and test.parquet.

    rows: training problems of a task that has no end.  methods: the user's files of methods whose parts the recipe has.
    told: keyword arguments of the chat template.
    Returns what was written, which files it reads besides, and what verl does otherwise.  Raises RewardlabError, with the reason,
    for a recipe that verl cannot carry, and for problems that JSON cannot hold.
    """
    if why := cannot_carry(recipe):
        raise RewardlabError(f"verl cannot carry {recipe.name or 'this recipe'}: {why}; train it with rewardlab train, or on TRL")
    if out.exists() and any(out.iterdir()):
        raise RewardlabError(f"{out} exists and is not empty; choose a new folder")
    verifier = task.verifier if task else None
    counts = {}
    with new_folder(out) as new:
        roots = sorted({str(path.parents[1]) for path in methods})
        saved = {"recipe": recipe.to_json(), "verifier": verifier, "max_new": max_new, "methods": roots}
        write_json(new / "recipe.json", saved)
        write_text(new / "rewardlab_recipe.py", MODULE.format(name=recipe.name))
        write_text(new / "verl.yaml", configuration(recipe, steps=steps, max_new=max_new, told=told))
        write_text(new / "run.sh", RUN.format(name=recipe.name, data=DATA if task else ""))
        if task is not None:
            counts = write_data(task, new, rows)
    return {
        "method": recipe.name,
        "engine": "verl",
        "out": str(out),
        "verifier": verifier,
        **counts,
        **({"reads": ", ".join(files)} if (files := sorted({*own_files(recipe), *map(str, methods)})) else {}),
        "differs": differences(recipe),
    }


def own_files(recipe: Recipe) -> list[str]:
    """The user's files that the rewards are read from: wherever verl runs they must lie in the same place."""
    parts = recipe.reward.walk() if recipe.reward is not None else ()
    own = (part.settings["path"] for part in parts if part.name in ("from_file", "from_module"))
    return sorted({str(path) for path in own if path})


def configuration(recipe: Recipe, *, steps: int, max_new: int, told: Mapping[str, Any] | None = None) -> str:
    """The text of verl.yaml: verl's own defaults, and over them what the recipe says.  told: to the model's chat template."""
    import yaml

    # verl's files are found inside its package, wherever that is installed
    head = {"hydra": {"searchpath": ["pkg://verl.trainer.config"]}, "defaults": ["ppo_trainer", "_self_"]}
    # where the recipe lies is added by the script: verl hands these on as they are written, without resolving references
    workers = {"VERL_USE_EXTERNAL_MODULES": "rewardlab_recipe"}
    said = overrides(recipe, steps=steps, max_new=max_new) | {"ray_kwargs": {"ray_init": {"runtime_env": {"env_vars": workers}}}}
    if told:
        said["data"]["apply_chat_template_kwargs"] = dict(told)
    return (
        f"# {recipe.name}, over the defaults of verl 0.9.1\n"
        + yaml.safe_dump(head, sort_keys=False)
        + yaml.safe_dump(said, sort_keys=False)
    )


def write_data(task: Task, folder: Path, rows: int) -> dict[str, int]:
    """Write the task's problems as verl's data; how many there are of each."""
    length = len(task.train) if isinstance(task.train, Sized) else rows
    sides = {"train": (task.train[i] for i in range(length)), "test": iter(task.test)}
    return {side: _parquet(problems, task, folder / f"{side}.parquet") for side, problems in sides.items()}


def _parquet(problems: Iterable[Problem], task: Task, path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [row_of(problem, task.name, i) for i, problem in enumerate(problems)]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return len(rows)


def row_of(problem: Problem, source: str, index: int) -> dict[str, Any]:
    """A problem as a row of verl's data; all of it is JSON in one field, since columns of one type cannot hold every answer."""
    if any(m.images or m.data is not None for m in problem.prompt):
        raise RewardlabError(f"the problems of {source} hold images or arrays, and its export to verl holds text alone")
    prompt = [(m.role, m.text) for m in problem.prompt]
    try:
        whole = json.dumps({"prompt": prompt, "answer": problem.answer, "meta": dict(problem.meta)}, ensure_ascii=False)
    except (TypeError, ValueError) as e:
        raise RewardlabError(f"problem {index} of {source} cannot be written as JSON: {e}") from e
    return {
        "data_source": source, "prompt": [{"role": role, "content": text} for role, text in prompt],
        "reward_model": {"style": "rule", "ground_truth": str(problem.answer)}, "extra_info": {"index": index, COLUMN: whole},
    }  # fmt: skip
