"""MOMAland: agents that share a world with several objectives; a set of policies is judged by the front of its vector returns.

    r_i = w . r_i (vector),   w over the simplex, a policy for each w;   V(pi) = E sum_t gamma^t sum_i r_i (vector, of the team)
    hypervolume of the V above a reference point, cardinality of their Pareto front, expected utility E_w max_pi w . V(pi)

Felten et al. 2024, arXiv:2407.16312, and the released code (Farama-Foundation/momaland, learning/cooperative_momappo: one actor
for all agents, a critic of the global state, the sum of all agents' scalarised rewards, normalised by objective; evaluated by the
discounted vector return of sampled actions). Any environment of the package with the parallel API and discrete actions is taken by
its name, and its agents' observations as numbers: integers one by one of what they can be.

Compared: a policy for each weight, paid as a team (each agent for what all earn) and as individuals (each for its own); as many
policies at equal weights; and chance. (inferred): one value head for all agents, which is told whose value it is. The package's
wrapper NormalizeReward changes a reward that agents share once for each of them: normalisation is ours.

A trainer of one's own is a function of (make, weights, seed) that returns act(observations) -> actions, both dicts by agent; make()
makes the environment, whose rewards are vectors:

    rewardlab study momaland --id mobeach_v0 --own mine.py:train
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.errors import RewardlabError, unknown
from rewardlab.rewards.user.functions import find
from rewardlab.settings.domain import PositiveInt
from rewardlab.util.extras import require
from rewardlab.util.intervals import with_bounds
from rewardlab.util.pareto import expected_utility, front, hypervolume, simplex

kind = "benchmark"
COPIES, STEPS, EPOCHS, EPISODES = 16, 8, 4, 64
"""Environments that are played side by side, steps of each between updates, passes over these, episodes of an evaluation."""
GAMMA, LAMBDA, CLIP, ENTROPY, RATE, WIDTH = 0.99, 0.95, 0.2, 0.01, 6e-3, 64
SMALL = [[1, 0, 2, 0, 2], [0, 4, 0, 0, 0], [3, 0, 4, 0, 2], [0, 0, 0, 0, 0], [3, 0, 3, 0, 1]]
"""Two agents (1) and three sorts of items, of which they can gather six of eight in six steps."""
as_tensor = partial(torch.tensor, dtype=torch.float32)
Paid = Literal["team", "individual"]


# ---- environments of the package ----------------------------------------------------------------------------------------


def maker(id: str) -> Callable[[], Any]:
    """What makes the environment of this name. Raises RewardlabError for an unknown one, and without the package."""
    require("momaland", "momaland", "pettingzoo", "gymnasium", what="MOMAland")
    if id == "small":
        item_gathering: Any = maker("moitem_gathering_v0")
        return partial(item_gathering, initial_map=np.array(SMALL), num_timesteps=6)
    root = Path(importlib.import_module("momaland").__path__[0])
    known = {path.stem: path.relative_to(root).with_suffix("") for path in root.glob("envs/**/*_v[0-9].py")}
    if id not in known:
        raise unknown("environment of MOMAland", id, sorted(known))
    module = importlib.import_module(".".join(("momaland", *known[id].parts)))
    if not hasattr(module, "parallel_env"):
        raise RewardlabError(f"the agents of {id} move in turns; needed is an environment with the parallel API")
    return module.parallel_env


def numbers(space: Any, value: Any) -> np.ndarray:
    """An observation as a vector. An integer is as many places as it has values, of which one is 1."""
    if hasattr(space, "spaces"):
        return np.concatenate([numbers(s, v) for s, v in zip(space.spaces, value, strict=True)])
    if hasattr(space, "n"):
        return np.eye(int(space.n))[int(value) - int(space.start)]
    if np.issubdtype(space.dtype, np.integer):
        low, high = int(space.low.min()), int(space.high.max())
        return np.eye(high - low + 1)[np.ravel(value).astype(int) - low].ravel()
    return np.ravel(value).astype(float)


class Copies:
    """Several environments side by side, each of which begins again where it ends. Observations: (copies, agents, numbers)."""

    def __init__(self, make: Callable[[], Any], n: int, seed: int):
        self.envs = [make() for _ in range(n)]
        self.agents = list(self.envs[0].possible_agents)
        first = self.agents[0]
        spaces = [self.envs[0].action_space(agent) for agent in self.agents]
        if not all(hasattr(space, "n") for space in spaces) or len({int(space.n) for space in spaces}) > 1:
            raise RewardlabError(f"all agents need the same number of discrete actions; here they have {spaces}")
        self.actions, self.begin = int(spaces[0].n), [int(space.start) for space in spaces]
        self.objectives = int(self.envs[0].reward_space(first).shape[0])
        self.space = self.envs[0].observation_space(first)
        self.raw = [env.reset(seed=seed + i)[0] for i, env in enumerate(self.envs)]
        self.seen = np.stack([self._seen(observations) for observations in self.raw])

    def _seen(self, observations: dict[str, Any]) -> np.ndarray:
        # agents are told apart by a place of their own
        own = np.eye(len(self.agents))
        return np.stack([np.concatenate((own[i], numbers(self.space, observations[a]))) for i, a in enumerate(self.agents)])

    def step(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Actions (copies, agents) -> vector rewards (copies, agents, objectives), and which copies ended (copies,)."""
        rewards, ended = np.zeros((*chosen.shape, self.objectives)), np.zeros(len(self.envs))
        for i, env in enumerate(self.envs):
            actions = {a: int(c) + start for a, c, start in zip(self.agents, chosen[i], self.begin, strict=True)}
            observations, earned, *_ = env.step(actions)
            rewards[i] = [earned[a] for a in self.agents]
            if not env.agents:
                ended[i], (observations, _) = 1.0, env.reset()
            self.raw[i], self.seen[i] = observations, self._seen(observations)
        return rewards, ended


# ---- a policy for one weight --------------------------------------------------------------------------------------------


class Scale:
    """Divides the rewards of each objective by the standard deviation of its discounted sum so far, of all agents and copies."""

    def __init__(self, objectives: int):
        self.sums, self.n, self.total, self.squares = np.zeros(1), 0, np.zeros(objectives), np.zeros(objectives)

    def __call__(self, rewards: np.ndarray, ended: np.ndarray) -> np.ndarray:
        self.sums = GAMMA * self.sums + rewards
        each = self.sums.reshape(-1, rewards.shape[-1])
        self.n, self.total, self.squares = self.n + len(each), self.total + each.sum(0), self.squares + (each**2).sum(0)
        self.sums = self.sums * (1 - ended)[:, None, None]
        deviation = np.sqrt(np.maximum(self.squares / self.n - (self.total / self.n) ** 2, 0.0))
        return rewards / np.where(deviation > 1e-6, deviation, 1.0)


def advantages(rewards: Tensor, values: Tensor, ended: Tensor) -> Tensor:
    """Generalised advantage estimates (T, ...).  values: (T + 1, ...).  ended: 1 where nothing follows."""
    found, last = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        error = rewards[t] + GAMMA * (1 - ended[t]) * values[t + 1] - values[t]
        last = error + GAMMA * LAMBDA * (1 - ended[t]) * last
        found[t] = last
    return found


def network(inputs: int, outputs: int, last: float = 1.0) -> nn.Sequential:
    end = nn.Linear(WIDTH, outputs)
    end.weight.data.mul_(last)
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), end)


def policy(make: Callable[[], Any], weights: np.ndarray, seed: int, *, updates: int, paid: Paid) -> nn.Sequential:
    """MAPPO on w . r: the logits (..., actions) of an agent's observation (..., numbers), its own place among them."""
    copies, rng = Copies(make, COPIES, seed), torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        inputs = copies.seen.shape[-1]
        actor, critic = network(inputs, copies.actions, last=0.01), network((inputs + 1) * len(copies.agents), 1)
    adam, scale = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=RATE, eps=1e-5), Scale(copies.objectives)
    for update in range(updates):
        adam.param_groups[0]["lr"] = RATE * (1 - update / updates)
        seen, chosen, rewards, ended = played(copies, actor, rng, scale, weights)
        earned = rewards.sum(-1, keepdim=True).expand_as(rewards) if paid == "team" else rewards
        improve(actor, critic, adam, seen, chosen, earned, ended)
    return actor


def played(copies: Copies, actor: nn.Module, rng: torch.Generator, scale: Scale, weights: np.ndarray) -> tuple[Tensor, ...]:
    """Observations (T + 1, C, A, numbers), actions, scalarised rewards and ends, each (T, C, A)."""
    seen, chosen, rewards, ended = [as_tensor(copies.seen)], [], [], []
    for _ in range(STEPS):
        chosen.append(sampled(actor, seen[-1], rng))
        earned, end = copies.step(chosen[-1].numpy())
        rewards.append(as_tensor(scale(earned, end) @ weights))
        ended.append(as_tensor(end)[:, None].expand(chosen[-1].shape))
        seen.append(as_tensor(copies.seen))
    return torch.stack(seen), torch.stack(chosen), torch.stack(rewards), torch.stack(ended)


@torch.no_grad()
def sampled(actor: nn.Module, seen: Tensor, rng: torch.Generator) -> Tensor:
    """An action of each agent, by the Gumbel trick: (...,) for observations (..., numbers)."""
    logits = actor(seen)
    noise = torch.rand(logits.shape, generator=rng).clamp(1e-9, 1 - 1e-7)
    return (logits - torch.log(-torch.log(noise))).argmax(-1)


def improve(actor, critic, adam, seen: Tensor, chosen: Tensor, earned: Tensor, ended: Tensor) -> None:
    """The clipped objective and squared errors of values, EPOCHS times."""
    state = seen.flatten(-2)[..., None, :].expand(*seen.shape[:-1], -1)  # (T + 1, C, A, A numbers)
    whose = torch.eye(seen.shape[-2]).expand(*seen.shape[:-1], -1)
    told = torch.cat((state, whose), -1)
    with torch.no_grad():
        values = critic(told).squeeze(-1)
        before = actor(seen[:-1]).log_softmax(-1).gather(-1, chosen[..., None]).squeeze(-1)
    gain = advantages(earned, values, ended)
    target, gain = gain + values[:-1], (gain - gain.mean()) / (gain.std() + 1e-8)
    for _ in range(EPOCHS):
        logs = actor(seen[:-1]).log_softmax(-1)
        ratio = (logs.gather(-1, chosen[..., None]).squeeze(-1) - before).exp()
        clipped = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
        entropy = -(logs.exp() * logs).sum(-1).mean()
        loss = -clipped - ENTROPY * entropy + 0.5 * (critic(told[:-1]).squeeze(-1) - target).square().mean()
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for group in adam.param_groups for p in group["params"]], 0.5)
        adam.step()


# ---- a set of policies, and its front -----------------------------------------------------------------------------------


def value(make: Callable[[], Any], choose: Callable[[Copies], np.ndarray], seed: int) -> np.ndarray:
    """(objectives,) the mean discounted vector return of the team, over EPISODES episodes.  choose: actions, counted from 0."""
    copies = Copies(make, EPISODES, seed)
    alive, discount, total = np.ones(EPISODES), 1.0, np.zeros((EPISODES, copies.objectives))
    while alive.any():
        rewards, ended = copies.step(choose(copies))
        total += discount * alive[:, None] * rewards.sum(1)
        alive, discount = alive * (1 - ended), discount * GAMMA
    return total.mean(0)


def by_own(act: Callable[[dict[str, Any]], dict[str, Any]], copies: Copies) -> np.ndarray:
    acted = [act(observations) for observations in copies.raw]
    return np.array([[a[agent] - begin for agent, begin in zip(copies.agents, copies.begin, strict=True)] for a in acted])


def sets(make: Callable[[], Any], weights: np.ndarray, seed: int, updates: int, own: Any) -> dict[str, np.ndarray]:
    """By name, the values (n, objectives) of as many policies as there are weights (n, objectives)."""
    equal, seeds, rng = np.full_like(weights, 1 / weights.shape[1]), range(seed, seed + len(weights)), np.random.default_rng(seed)

    def trained(w: np.ndarray, s: int, paid: Paid) -> np.ndarray:
        actor, chance = policy(make, w, s, updates=updates, paid=paid), torch.Generator().manual_seed(s)
        return value(make, lambda copies: sampled(actor, as_tensor(copies.seen), chance).numpy(), s)

    found = {
        "weights": [trained(w, s, "team") for w, s in zip(weights, seeds, strict=True)],
        "individual": [trained(w, s, "individual") for w, s in zip(weights, seeds, strict=True)],
        "equal": [trained(w, s, "team") for w, s in zip(equal, seeds, strict=True)],
        "chance": [value(make, lambda copies: rng.integers(copies.actions, size=copies.seen.shape[:2]), s) for s in seeds],
    }
    if own is not None:
        found["own"] = [value(make, partial(by_own, own(make, w, s)), s) for w, s in zip(weights, seeds, strict=True)]
    return {name: np.array(values) for name, values in found.items()}


@study
def fronts(
    run: Run, *, id: str, updates: PositiveInt, repeats: PositiveInt, parts: PositiveInt, reference: Sequence[float], own: str
) -> dict[str, float]:
    """hypervolume.SET, cardinality.SET, utility.SET of weights, individual, equal, chance; hypervolume.single: of one equal policy;
    over_single, over_chance: what weights add to it; individual_gain: what individuals add to a team."""
    make, trainer = maker(id), find(Path(own.rpartition(":")[0]), own.rpartition(":")[2], "trainer") if own else None
    # the package seeds the generators of the process: they are put back
    before, k = (random.getstate(), np.random.get_state()), Copies(make, 1, 0).objectives
    if len(reference) not in (0, k):
        raise RewardlabError(f"the reference point {list(reference)} needs a number for each of {k} objectives")
    lowest, found = np.array(reference or [-1.0] * k), dict[str, list[float]]()
    weights = np.unique(np.concatenate((simplex(k, parts), np.full((1, k), 1 / k))), axis=0)
    for repeat in range(repeats):
        made = sets(make, weights, seed_of("momaland", run.seed, repeat) % 2**31, updates, trainer)
        for name, values in made.items():
            found.setdefault(f"hypervolume.{name}", []).append(hypervolume(values, lowest))
            found.setdefault(f"cardinality.{name}", []).append(float(len(front(values))))
            found.setdefault(f"utility.{name}", []).append(expected_utility(values, simplex(k, 6)))
        found.setdefault("hypervolume.single", []).append(float(np.mean([hypervolume(v[None], lowest) for v in made["equal"]])))
    random.setstate(before[0])
    np.random.set_state(before[1])
    numbers = {name: float(np.mean(values)) for name, values in found.items()}
    volume = {name: np.array(found[f"hypervolume.{name}"]) for name in (*made, "single")}
    numbers |= with_bounds("over_single", volume["weights"] - volume["single"])
    numbers |= with_bounds("over_chance", volume["weights"] - volume["chance"])
    return numbers | with_bounds("individual_gain", volume["individual"] - volume["weights"])


def momaland(
    base: Recipe | None = None, *, id: str = "small", updates: int = 30, repeats: int = 2, parts: int = 2,
    reference: Sequence[float] = (), own: str = "",
) -> Recipe:  # fmt: skip
    """id: of the package; "small": item gathering on 5 by 5 cells.  updates: of a policy.  repeats: seeds.  parts: weights are the
    multiples of 1 / parts, and equal ones.  reference: of the hypervolume; -1 without one.  own: FILE.py:FUNCTION, a trainer."""
    base = base or Recipe(name="momaland")
    settings = {"id": id, "updates": updates, "repeats": repeats, "parts": parts, "reference": tuple(reference), "own": own}
    return base.but(study=fronts(**settings))


fidelity = "core"
left_out = (
    "the trainers of the package (JAX, optimistic linear support), continuous actions, turns, utility lost against a known front"
)

check = Check(
    says="policies trained for several weights have a front of more use than as many at equal weights, and more volume than one",
    versus=None, task="arithmetic", measure="utility.weights", direction="higher", margin=0.07, against="utility.equal",
    settings={"repeats": 1}, fault=Within("over_single", low=2.0, says="hypervolume that several weights add to a single policy"),
    moved=Within("individual_gain", low=1.0, says="hypervolume of agents that are paid each for its own"),
    finding="seven weights: use 1.97, volume 21; seven policies at equal weights: 1.81, 23, and one: 12; chance: .48, 3. Paid each "
    "for its own, agents come to 2.15 and 27",
)  # fmt: skip
