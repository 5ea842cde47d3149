"""What would fail every run on a user's own problems, said before the first of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from rewardlab.api.checking import check_accepted, check_columns, check_decides, check_engine, check_some
from rewardlab.api.first_rows import check_episodes
from rewardlab.api.idle import tell_idle
from rewardlab.api.inputs import policy_of, task_of
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.comparisons.league import League, Member, World
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
    # the baseline first: what fails it fails all
    members = sorted(league.members_of(world), key=lambda one: one.name != league.baseline)
    recipes = [(member, as_task(season.recipe(member, world), task)) for member in members]
    for member, recipe in recipes:
        with naming(league, world, member):
            check_engine(recipe, config)
            # the columns are those of the method, whatever its name in the league
            check_columns(recipe.but(name=member.stack), task)
            check_some(recipe.but(name=member.stack), task)
            check_accepted(recipe, task)
            tell_idle(recipe.but(name=member.stack), task, config)
    policy = policy_of(None, config, task)
    for member, recipe in recipes:
        with naming(league, world, member):
            check_episodes(recipe, task, policy, config)
            fit_prompts(task, policy, config, recipe)


@contextmanager
def naming(league: League, world: World, member: Member) -> Iterator[None]:
    """Errors within name the member, and say how to leave it out."""
    try:
        yield
    except RewardlabError as e:
        others = ",".join(one.name for one in league.rivals_of(world) if one is not member)
        leave = f"; to leave it out: --members {shlex.quote(others)}" if others and member.name != league.baseline else ""
        raise RewardlabError(f"{member.name}: {e}{leave}") from e
