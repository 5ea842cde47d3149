"""What would fail every run on a user's own problems, said before the first of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from rewardlab import registry
from rewardlab.api.checking import check_accepted, check_columns, check_decides, check_engine, check_some
from rewardlab.api.dry_run import policy_before_runs
from rewardlab.api.first_rows import check_episodes
from rewardlab.api.idle import tell_idle
from rewardlab.api.inputs import in_environment, require_weights, task_of
from rewardlab.api.measuring import is_own
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.comparisons.league import League, Member, World
from rewardlab.comparisons.season import FIRST, Season
from rewardlab.core import Recipe, Task
from rewardlab.errors import RewardlabError
from rewardlab.registry.replaced import told_replaced
from rewardlab.util.progress import console


def check(season: Season, dry: bool = False) -> None:
    """Raise RewardlabError for problems that cannot be read or lack what a member reads or what decides, for a search engine that
    does not answer, for a model that is not there or cannot be trained, and for prompts that are too long for it.

    dry: no small policy is made for it.
    """
    league = season.league
    (world,) = league.worlds
    config = season.job(league.member(league.baseline), world, FIRST).config.but(device="cpu")
    task = task_of(None, config)
    _tell_what_decides(season, world, task)
    if league.answers:
        check_decides(f"what decides, {league.outcome.says},", task)
    # the baseline first: what fails it fails all
    members = sorted(league.members_of(world), key=lambda one: one.name != league.baseline)
    if league.learns:
        require_weights(config.model or task.model)
    recipes: dict[str, Recipe] = {}

    def rows_fit(member: Member) -> None:
        _differs(season, member, world)
        recipe = recipes[member.name] = in_environment(season.recipe(member, world), task)
        check_engine(recipe, config)
        # the columns are those of the method, whatever its name in the league
        check_columns(recipe.but(name=member.stack), task)
        check_some(recipe.but(name=member.stack), task)
        check_accepted(recipe, task)
        tell_idle(recipe.but(name=member.stack), task, config)

    each_fits(league, world, members, rows_fit)
    policy = policy_before_runs(config, task, dry)

    def can_be_sampled(member: Member) -> None:
        check_episodes(recipes[member.name], task, policy, config)
        fit_prompts(task, policy, config, recipes[member.name])

    each_fits(league, world, members, can_be_sampled)


def _tell_what_decides(season: Season, world: World, task: Task) -> None:
    """Say that a reward of the user's own pays the members and decides nothing."""
    league = season.league
    if world.reward is None or not is_own(season.recipe(league.member(league.baseline), world), task):
        return
    console.print(
        f"note: the league decides by {league.outcome.says}, and not by your reward, which pays its members; by the reward itself, "
        "each at its own rate, methods are compared with: rewardlab compare METHOD METHOD --task T --reward R --rates A,B,C",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip


def _differs(season: Season, member: Member, world: World) -> None:
    """Raise RewardlabError for a member of which a reward of the user's own leaves nothing but the baseline."""
    base = season.league.member(season.league.baseline)
    if world.reward is None or member is base:
        return
    own, other = (season.recipe(one, world).but(name="", measure=None) for one in (member, base))
    if own == other:
        raise RewardlabError(f"it differs from {base.name} by its reward alone, which --reward replaces")
    # another reward than the baseline's is a part of the member
    if own.reward == other.reward and (told := told_replaced(registry.build(member.stack, dict(member.settings)))):
        console.print(f"note: {told}", markup=False, highlight=False, soft_wrap=True)


def each_fits(league: League, world: World, members: Sequence[Member], check: Callable[[Member], None]) -> None:
    """`check` each member. Raises RewardlabError that names all which are refused, and why, and says how to leave them out."""
    refused: dict[str, str] = {}
    for member in members:
        try:
            check(member)
        except RewardlabError as e:
            # some say who they are themselves
            refused[member.name] = str(e) if str(e).startswith(f"{member.name} ") else f"{member.name}: {e}"
            if member.name == league.baseline:
                break
    if not refused:
        return
    others = ",".join(one.name for one in league.rivals_of(world) if one.name not in refused)
    leave = f"; to leave {'it' if len(refused) == 1 else 'these'} out: --members {shlex.quote(others)}"
    raise RewardlabError(";\n  ".join(refused.values()) + (leave if others and league.baseline not in refused else ""))
