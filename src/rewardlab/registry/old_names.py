"""Old names of saved parts and their present ones: run folders and results of older versions are read through this file alone.

A part that is renamed, or that changes its slot, gets a line in RENAMED. A part that only moves to another file needs none.
"""

from __future__ import annotations

import re

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
}
"""Old name to present name, both as `slot:name`."""

RENAMED_SETTINGS = {"loop:cream/self_ranking": {"faster": "sft_lr_scale"}}
"""Old names of settings of a part, by its present name as `slot:name`."""

MODULE_PATH = re.compile(r"rewardlab\.([\w.]+):([\w.]+)")
SLOT_OF_MODULE = {
    "rewards": "reward", "rollouts": "rollout", "credit": "credit", "objectives": "objective", "objectives.weighting": "weighting",
    "select": "select", "evals": "measure", "envs": "environment", "core.score": "reward", "core.objective": "objective",
}  # fmt: skip
"""The slot of the parts that a module, or every module of a folder, held while parts were saved by module path."""
SLOTS = {*SLOT_OF_MODULE.values(), "loop", "study"}


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
    return f"{slot}:{name}" if slot else f"part:{saved}"
