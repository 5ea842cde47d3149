"""A league on a user's own problems and model, or on some of its members and worlds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rewardlab import registry
from rewardlab.comparisons.league import OWN, League, Member, World
from rewardlab.core import Environment, Part
from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.playing import TURNS, in_episodes
from rewardlab.rewards.reward import Reward
from rewardlab.runs.config import RunConfig


def only(league: League, members: Sequence[str], worlds: Sequence[str]) -> League:
    """The league with these members, its baseline among them, and these worlds; all, where none is named."""
    if not members and not worlds:
        return league
    for kind, names, known in (
        ("member of the league", members, [member.name for member in league.members]),
        ("world of the league", worlds, [world.name for world in league.worlds]),
    ):
        if missing := [name for name in names if name not in known]:
            raise unknown(kind, missing[0], known)
    kept = tuple(m for m in league.members if not members or m.name in members or m.name == league.baseline)
    if len(kept) < 2:
        raise RewardlabError(f"nothing is left to compare with {league.baseline}: name a member beside it")
    there = {member.name for member in kept}
    places = (replace(w, absent={name: why for name, why in w.absent.items() if name in there}) for w in league.worlds)
    return replace(league, members=kept, worlds=tuple(w for w in places if not worlds or w.name in worlds))


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
