"""A league on a user's own problems and model, or on some of its members and worlds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rewardlab import registry
from rewardlab.checks.runs import kind_of
from rewardlab.comparisons.league import OWN, League, Member, World
from rewardlab.comparisons.season import settings_of
from rewardlab.core import Environment, Part, Recipe
from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.playing import TURNS, in_episodes
from rewardlab.rewards.reward import Reward
from rewardlab.runs.config import RunConfig


def only(league: League, members: Sequence[str], worlds: Sequence[str], own: bool = False) -> League:
    """The league with these members, its baseline among them, and these worlds; all, where none is named.

    own: whether they meet on problems of the user's own, where any other method may join by its name (`_joining`).
    Raises RewardlabError for a name that is not known, and for a method that cannot join.
    """
    if not members and not worlds:
        return league
    known = [member.name for member in league.members]
    others = [name for name in dict.fromkeys(members) if name not in known]
    joining = tuple(_joining(league, name) for name in others) if own else ()
    if others and not own:
        raise _no_member(league, others[0])
    if missing := [name for name in worlds if name not in [world.name for world in league.worlds]]:
        raise unknown("world of the league", missing[0], [world.name for world in league.worlds])
    kept = tuple(m for m in league.members if not members or m.name in members or m.name == league.baseline) + joining
    if len(kept) < 2:
        raise RewardlabError(f"nothing is left to compare with {league.baseline}: name a member beside it")
    there = {member.name for member in kept}
    places = (replace(w, absent={name: why for name, why in w.absent.items() if name in there}) for w in league.worlds)
    return replace(league, members=kept, worlds=tuple(w for w in places if not worlds or w.name in worlds))


def _no_member(league: League, name: str) -> RewardlabError:
    members = [member.name for member in league.members]
    if all(part in registry.methods() for part in map(registry.spell, name.split("+"))):
        joins = "on its own worlds a league has the members of its file, and any method joins on problems of your own: add --task"
        return RewardlabError(f"{name} is no member of the league (they are {', '.join(members)}); {joins}")
    return unknown("member of the league", name, members)


def _joining(league: League, name: str) -> Member:
    """A method that is in no league's file, or in another's, as a member: the league's settings as far as it takes them.

    Raises RewardlabError for a name that is no method's, and for a method that does not do what the members do: train, or select
    answers, and measure the numbers that decide.
    """
    members = [member.name for member in league.members]
    parts = [registry.spell(part) for part in name.split("+")]
    if missing := [part for part in parts if part not in registry.methods()]:
        raise unknown("member of the league", missing[0], {*members, *registry.methods()})
    stack = "+".join(parts)
    recipe, kinds = registry.build(stack), {kind_of(registry.build(member.stack, member.settings)) for member in league.members}
    if (kind := kind_of(recipe)) not in kinds:
        raise RewardlabError(f"{name} {DOES[kind]}, which no member of this league does, so that it cannot join them")
    measures = {_measured_by(registry.build(member.stack, member.settings)) for member in league.members}
    if league.measure is None and _measured_by(recipe) not in measures:
        raise RewardlabError(
            f"{name} does not measure what decides in this league, {league.outcome.says}: its own measure is "
            f"{_measured_by(recipe) or 'none'}, and the members' {' or '.join(sorted(measures))}"
        )
    rates = list(dict.fromkeys((league.rate, *filter(None, (member.rate for member in league.members)))))
    if not (own := [rate for rate in rates if rate in settings_of(stack)]):
        raise RewardlabError(f"{name} trains nothing that this league compares: it has no setting {' or '.join(rates)}")
    return Member(stack, rate="" if own[0] == league.rate else own[0])


DOES = {"study": "is a study and trains nothing", "answer": "selects answers and trains nothing", "train": "trains a model"}
"""What a recipe is for (`kind_of`), in words."""


def _measured_by(recipe: Recipe) -> str:
    return recipe.measure.name if recipe.measure else ""


def _scorer(league: League, reward: Reward | None) -> Reward | None:
    """The reward by which members score replies. `prm:PATH` is read as dense rewards, which are right for training alone: their sum
    would favour long replies. Where members select by one score, and none says how it makes one of steps, it is the last step's.
    """
    if reward is None or reward.name != "prm_steps" or league.learns or any(member.by for member in league.members):
        return reward
    return registry.part("reward", "prm_score", model=reward.settings["model"])  # type: ignore[no-any-return]


def of_task(
    league: League, config: RunConfig, *, reward: Reward | None = None, steps: int | None = None, rates: Sequence[float] = (),
    problems: int | None = None, env: Environment | None = None, turns: int | None = None,
) -> League:  # fmt: skip
    """The league with one world: the problems and the model of this configuration, and what answers the replies of all members.

    Members keep the settings that the league gives them, but those that fit its own small worlds alone (`Member.small`). Where they
    read a process reward model, the reward says which (prm:PATH); RewardlabError without one.
    """
    members = tuple(replace(member, small={}) for member in league.members)
    if league.scorer:
        members = tuple(_reading(member, league.scorer, _named(reward)) for member in members)
        reward = None
    settings: dict[str, Any] = {} if env is None else {"env": env, "turns": turns or league.settings.get("turns", TURNS)}
    world = World(
        OWN, config.task, f"{config.task}, of your own", model=config.model, reward=_scorer(league, reward), steps=steps,
        settings=settings, rates=tuple(rates), lora_rank=config.lora_rank, problems=problems, starts=1,
        sampled=config.model != "recorded", learns=league.own_learns,
    )  # fmt: skip
    measure = league.measure if env is None else _played(league, **settings)
    # where nothing need be learnt, rates that are alike by the outcome are chosen by what is guarded (`played.rate_levels`)
    by = league.chosen_by if league.own_learns or league.guard is None else league.guard.number
    return replace(league, worlds=(world,), members=members, measure=measure, chosen_by=by)


def _played(league: League, env: Environment, turns: int) -> Any:
    """The measure of the league in this environment. Raises RewardlabError for a league that measures no replies of a policy."""
    measure = in_episodes(league.measure, env, turns)
    if measure is None or not any(isinstance(part, Environment) for part in measure.walk()):
        raise RewardlabError(
            "this league measures by replies that it samples itself, or by none, and nothing would answer these: leave out "
            "--corpus, --tools and --env"
        )
    return measure


def _named(reward: Reward | None) -> str:
    """The process reward model that a reward names. Raises RewardlabError for any other reward."""
    if reward is None or reward.name != "prm_steps":
        raise RewardlabError("members of this league read a process reward model: name yours, --reward prm:PATH")
    return str(reward.settings["model"])


def _reading(member: Member, scorer: str, other: str) -> Member:
    """The member with another process reward model wherever it reads that one."""

    def other_in(value: Any) -> Any:
        if not isinstance(value, Part):
            return value
        return registry.load_part(json.loads(json.dumps(value.to_json()).replace(json.dumps(scorer), json.dumps(other))))

    settings = {name: other_in(value) for name, value in member.settings.items()}
    return replace(member, settings=settings, reward=other_in(member.reward))
