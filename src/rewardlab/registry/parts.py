"""Find parts by slot and name, and load parts saved as plain data.

    {"part": "credit:center", "with": {}}                     a shared part, or one that a single method defines: slot and name
    {"part": "credit:dapo/drop_outliers", "with": {...}}      a part of one method's own file
    {"part": "credit:my.module:mine", "with": {...}}          a part outside rewardlab, in a module that can be imported
    {"expression": "reward:Sum", "of": [...]}                 parts joined by an operator

A saved part does not say which file it is in, so files can move. What older versions saved is read through RENAMED here, and
through `settings/old_names.py` for names of settings.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.find import PACKAGE, methods, module_of
from rewardlab.registry.index import Definition, parts_in, read_each
from rewardlab.settings.hyperparameters import hyperparameters
from rewardlab.settings.old_names import present_name

# ----------------------------------------------------------------------------------------------------------------------
#
# Old names of saved parts and their present ones, by which run folders and results of older versions are read.
#
# A part that is renamed, or that changes its slot, gets a line in RENAMED. A part that only moves to another file needs none.

RENAMED = {
    "rollout:with_room": "rollout:with_max_new",
    "credit:less_mean_of_others": "credit:subtract_mean_of_others",
    "credit:reinforce_plus_plus/less_kl": "credit:less_kl",
    "reward:prlcoder/line_labels": "reward:line_labels",
    "objective:Chain": "credit:Chain",
    "rollout:doubted": "rollout:adaptive_resampling",
    "rollout:trusted_path": "rollout:lookahead_search",
    "rollout:trusted_pairs": "rollout:lookahead_pairs",
    "rollout:divided_tree": "rollout:error_bisection_tree",
    "rollout:apart": "rollout:contrastive_texts",
    "rollout:beside_recorded": "rollout:with_demonstrations",
    "rollout:guided": "rollout:hint_on_failure",
    "rollout:steered": "rollout:activation_steering",
    "rollout:drafted": "rollout:speculative_steps",
    "rollout:planned": "rollout:world_model_mcts",
    "rollout:noised": "rollout:parameter_noise",
    "rollout:one_of_each": "rollout:right_wrong_pair",
    "rollout:inside_nucleus": "rollout:restricted_vocabulary",
    "rollout:joined": "rollout:logit_ensemble",
    "rollout:gold_answer_after": "rollout:append_answer",
    "rollout:survivors": "rollout:filter_pairs",
    "rollout:explorable": "rollout:explorability_sampling",
    "reward:right_verdict": "reward:judged_rightly",
    "reward:listeners_agree": "reward:reasoning_transfer",
    "reward:salient_cited": "reward:feature_match",
    "reward:harder_pays_more": "reward:difficulty_weighting",
    "reward:unbroken": "reward:correct_so_far",
    "reward:covered": "reward:rationale_coverage",
    "measure:told": "measure:with_system_prompt",
    "measure:earned": "measure:term_means",
    "measure:blame": "measure:outcome_critic_auc",
    "measure:known_start": "measure:cached_start",
    "measure:solving": "measure:core_metrics",
    "credit:across_halves_by_length": "credit:half_group_baseline_by_length",
    "credit:across_halves_by_entropy": "credit:half_group_baseline_by_entropy",
    "credit:by_sign": "credit:sign_credit",
    "rollout:branching": "rollout:one_step_branches",
    "environment:kernels": "environment:cost_feedback",
    "objective:each_step_end_once": "weighting:each_step_end_once",
    "objective:best_right_once": "weighting:best_right_once",
    "loop:ctrl_critic/hinted_first": "loop:trained_judge/imitated_first",
    "loop:mix_grm/styles_first": "loop:trained_judge/imitated_first",
    "loop:rl_tango/verifier_alone": "loop:trained_judge/learner_alone",
}
"""Old name to present name, both as `slot:name`."""

MODULE_PATH = re.compile(r"rewardlab\.([\w.]+):([\w.]+)")
SLOT_OF_MODULE = {
    "rewards": "reward", "rollouts": "rollout", "credit": "credit", "objectives": "objective", "objectives.weighting": "weighting",
    "select": "select", "evals": "measure", "envs": "environment", "core.score": "reward", "core.objective": "objective",
}  # fmt: skip
"""The slot of the parts that a module, or every module of a folder, held while parts were saved by module path."""
SLOTS = {*SLOT_OF_MODULE.values(), "loop", "study"}
MOVED_FOLDERS = {"engines": "backends"}
"""Folders outside the slots whose parts were saved by module path, and their present names."""


def current_name(saved: str) -> str:
    """The present name of a saved part: `slot:name`, `slot:method/name` or `slot:module:name`.

    The first versions saved the module path, without the slot: "rewardlab.credit.group:center" is credit:center now,
    "rewardlab.methods.baselines.dapo:overlong" is part:dapo/overlong, and "my.module:mine" is part:my.module:mine ("part" says
    that the slot is not known).
    """
    name = saved if saved.partition(":")[0] in {*SLOTS, "part"} else _from_module_path(saved)
    return RENAMED.get(name, name)


def _from_module_path(saved: str) -> str:
    match = MODULE_PATH.fullmatch(saved)
    if not match:
        return f"part:{saved}"
    module, name = match.groups()
    folder, _, submodule = module.partition(".")
    if folder == "methods":
        return f"part:{submodule.rpartition('.')[2]}/{name}"
    slot = SLOT_OF_MODULE.get(module) or SLOT_OF_MODULE.get(folder)
    if slot:
        return f"{slot}:{name}"
    present = MOVED_FOLDERS.get(folder, folder)
    return f"part:rewardlab.{present}.{submodule}:{name}" if submodule else f"part:{saved}"


SLOT_OF_FOLDER = {
    "rewards": "reward", "verifiers": "reward", "tasks": "reward", "worlds": "reward", "envs": "environment", "rollouts": "rollout",
    "credit": "credit", "objectives": "objective", "evals": "measure",
}  # fmt: skip
"""The folders that hold shared parts, and the slot that most parts of a folder fill."""


@functools.cache
def _read() -> dict[tuple[str, str], tuple[Path, Definition]]:
    """Every shared part by slot and name. Read once per process, from the cache where files have not changed."""
    files = [path for folder in SLOT_OF_FOLDER for path in sorted((PACKAGE / folder).rglob("*.py"))]
    shared: dict[tuple[str, str], tuple[Path, Definition]] = {}
    for path, parts in read_each("parts", files, parts_in).items():
        for part in (Definition(*values) for values in parts):
            key = (part.slot, part.name)
            if key in shared:
                raise RewardlabError(f"two {part.slot} parts are named {part.name}: {shared[key][0]} and {path}; rename one")
            shared[key] = (path, part)
    return shared


def shared_parts() -> dict[tuple[str, str], Path]:
    """(slot, name) to file, of every part in the folders of parts."""
    return {key: path for key, (path, _) in _read().items()}


def verifiers() -> dict[str, str]:
    """Names of the verifiers, with the first paragraphs of their docstrings. Imports none."""
    return dict(sorted((part.name, part.about) for _, part in shared_definitions() if part.kind == "verifier"))


def shared_definitions() -> list[tuple[Path, Definition]]:
    """File and definition of every part in the folders of parts."""
    return list(_read().values())


def part(slot: str, name: str = "", *of: Any, **settings: Any) -> Any:
    """The part of this name in a slot (`part("reward", "correct")`), with its hyperparameters bound; of: operands.

    One of a method's own file is named `METHOD/PART`, or by its name alone where no other method has such a part.

    Raises RewardlabError for a slot, name or hyperparameter that does not exist, with the nearest that do.
    """
    for word in (slot, name):
        if not isinstance(word, str) or not word:
            raise RewardlabError(f'part takes a slot and a name, part("reward", "correct"), not {slot!r} and {name!r}')
    make = _maker(f"{slot}:{name}") if "/" in name else shared_part(slot, name)
    return make(*of, **settings)


def shared_part(slot: str, name: str) -> Any:
    """The factory of the part of this name: a shared one, else the one that a single method's file defines."""
    if path := shared_parts().get((slot, name)):
        place = path.relative_to(PACKAGE).with_suffix("")
        return getattr(importlib.import_module(".".join(("rewardlab", *place.parts)).removesuffix(".__init__")), name)
    own = parts_of_methods().get((slot, name), [])
    if len(own) == 1:
        return getattr(module_of(own[0].stem), name)
    if own:
        several = ", ".join(f"{path.stem}/{name}" for path in own)
        raise RewardlabError(f"several methods define a {slot} part {name}: name the one that is meant, {several}")
    known = {*shared_parts(), *parts_of_methods()}
    slots = {slot for slot, _ in known}
    if slot in slots:
        raise unknown(f"{slot} part", name, [n for s, n in known if s == slot])
    if slot in SLOT_OF_FOLDER:
        raise RewardlabError(f"{slot!r} is a folder; the slot of its parts is {SLOT_OF_FOLDER[slot]!r}")
    raise unknown("slot", slot, slots)


def parts_of_methods() -> dict[tuple[str, str], list[Path]]:
    """(slot, name) to the files of the methods that define such a part."""
    found: dict[tuple[str, str], list[Path]] = {}
    for path, parts in read_each("parts", methods().values(), parts_in).items():
        for part in (Definition(*values) for values in parts):
            found.setdefault((part.slot, part.name), []).append(path)
    return found


def is_part(slot: str, name: str) -> bool:
    """Whether a part is found by this slot and name."""
    return (slot, name) in shared_parts() or (slot, name) in parts_of_methods()


def load_part(data: Any) -> Any:
    """The inverse of `Part.to_json`: rebuild parts from plain data."""
    if isinstance(data, list):
        return [load_part(x) for x in data]
    if not isinstance(data, dict):
        return data
    if "part" in data:
        make = _maker(data["part"])
        known = hyperparameters(make.function)
        return make(*map(load_part, data.get("of", ())), **{present_name(k, known): load_part(v) for k, v in data["with"].items()})
    if "expression" in data:
        return _expression(current_name(data["expression"]))(*(load_part(x) for x in data["of"]))
    return {k: load_part(v) for k, v in data.items()}


def _maker(saved: str) -> Any:
    """The factory that makes a saved part again: the decorated function of that name."""
    from rewardlab.core.part import PartFactory

    make = _resolved(saved)
    # a saved name could point at any function that can be imported, and a file must not decide what is called
    if not isinstance(make, PartFactory):
        raise RewardlabError(f"{saved} is not a part: no decorator of a slot made it")
    return make


def _resolved(saved: str) -> Any:
    slot, _, name = current_name(saved).partition(":")
    module, colon, function = name.rpartition(":")
    method, slash, own = name.partition("/")
    if colon:
        return _imported(module, function)
    return _of_method(slot, method, own) if slash else shared_part(slot, name)


def _imported(module: str, name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as e:
        raise RewardlabError(f"cannot find the part {module}:{name}: {e}") from e


def _of_method(slot: str, method: str, name: str) -> Any:
    """A part of a method's own file, or the shared part that it has become."""
    known = methods()
    if method in known and (make := getattr(module_of(method), name, None)) is not None:
        return make
    # a part that a second method needs moves from the first one's file to its slot's folder, under the same name
    moved = [key for key in shared_parts() if key[1] == name and slot in (key[0], "part")]
    # with two candidates a guess could load another part than the one saved
    if len(moved) == 1:
        return shared_part(*moved[0])
    if method not in known:
        raise unknown("method", method, known)
    raise unknown(f"part of {method}", name, [own.name for own in parts_in(known[method])])


def _expression(name: str) -> Any:
    """The class of an expression, `reward:Sum`."""
    import rewardlab.core.slots
    import rewardlab.rewards.reward  # noqa: F401  these two modules define all expressions
    from rewardlab.core.part import Expression

    def below(kind: Any) -> Iterator[Any]:
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    known = {f"{kind.slot}:{kind.__name__}": kind for kind in below(Expression)}
    if name not in known:
        raise unknown("expression", name, known)
    return known[name]


def load_recipe(data: dict[str, Any]) -> Any:
    """The inverse of `Recipe.to_json`."""
    from rewardlab.core import Learner, Recipe, Update

    def learner(saved: dict[str, Any]) -> Learner:
        return Learner(**saved | {"recipe": load_recipe(saved["recipe"]), "problems": load_part(saved["problems"])})

    slots = {k: load_part(v) for k, v in data.items() if k not in ("also", "update", "name")}
    return Recipe(**slots, also=tuple(map(learner, data["also"])), update=Update(**data["update"]), name=data["name"])
