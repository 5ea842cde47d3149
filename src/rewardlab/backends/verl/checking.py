"""An exported configuration in verl's own hands: composed over its defaults and validated by its code, without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError


def check(folder: Path, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """What verl's trainer would begin with: GPUs, and whether it has a reference and a critic.

    folder: as `writing.write` made it.  arguments: of its run.sh, such as trainer.n_gpus_per_node=8.  verl composes the
    configuration, `validate_config` checks it (batch sizes against GPUs, terms against one another), and the parts that verl keeps
    as dataclasses are built, which refuses unknown names.  Raises RewardlabError with verl's own words for what it refuses.
    """
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    try:
        with initialize_config_dir(str(folder.absolute()), version_base=None):
            config = compose("verl", list(arguments))
        reference, critic = need_reference_policy(config), need_critic(config)
        validate_config(config, reference, critic)
        for part in (config.actor_rollout_ref.rollout, config.algorithm):
            omega_conf_to_dataclass(part)
    except (HydraException, OmegaConfBaseException, AssertionError, ValueError, TypeError) as e:
        raise RewardlabError(f"verl refuses {folder / 'verl.yaml'}: {str(e).strip() or type(e).__name__}") from e
    gpus = config.trainer.n_gpus_per_node * config.trainer.nnodes
    return {"gpus": gpus, "reference": reference, "critic": critic}
