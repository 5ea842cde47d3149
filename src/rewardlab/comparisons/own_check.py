"""What would fail every run on a user's own problems, said before the first of them."""

from __future__ import annotations

import shlex

from rewardlab.api.checking import check_accepted, check_columns, check_decides, check_engine
from rewardlab.api.first_rows import check_episodes
from rewardlab.api.inputs import policy_of, task_of
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.comparisons.season import FIRST, Season
from rewardlab.errors import RewardlabError
from rewardlab.registry.playing import as_task


def check(season: Season) -> None:
    """Raise RewardlabError for problems that cannot be read or lack what a member reads or what decides, for a model that cannot be
    loaded, and for prompts that are too long for it.
    """
    league = season.league
    (world,) = league.worlds
    config = season.job(league.member(league.baseline), world, FIRST).config.but(device="cpu")
    task = task_of(None, config)
    if league.answers:
        check_decides(f"what decides, {league.outcome.says},", task)
    policy = policy_of(None, config, task)
    # the baseline first: what fails it fails all
    for member in sorted(league.members_of(world), key=lambda one: one.name != league.baseline):
        try:
            recipe = as_task(season.recipe(member, world), task)
            check_engine(recipe, config)
            # the columns are those of the method, whatever its name in the league
            check_columns(recipe.but(name=member.stack), task)
            check_accepted(recipe, task)
            check_episodes(recipe, task, policy, config)
            fit_prompts(task, policy, config, recipe)
        except RewardlabError as e:
            others = [one.name for one in league.rivals_of(world) if one is not member]
            out = (
                f"; to leave it out: --members {shlex.quote(','.join(others))}" if member.name != league.baseline and others else ""
            )
            raise RewardlabError(f"{member.name}: {e}{out}") from e
