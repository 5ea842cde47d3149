"""RAM: merge RL-trained agents of one base model: keep parameter changes unique to one agent, average shared ones.

    tau_k = theta_k - theta_0;    a weight is changed by agent k where |tau_k| > eps
    theta = theta_0 + mean over the agents that changed it of tau_k    where two or more did
    theta = theta_0 + (1 + gain min(1, rho_k)) tau_k                   where k alone did;    rho_k = shared / own changes of agent k

RL changes few weights, and different ones for different tasks. An average divides also those changes by the number of agents that
a single agent made, and so loses what that agent learnt; the factor makes up for what averaging took from its shared changes.

Yuan et al. 2026, arXiv:2601.13572. Threshold, rho_k over all weights and its cap follow the released code (xiangchi-yuan/mrl,
2dbd745, ram-main.py, mode arm-r-v2, called RAM+; gain = 0 is RAM). gain = 0.2 and eps = 1e-5 are the --rescale_factor 1.2 and
--threshold of the command for RAM+ in its README (e2d930d); the program's own default is 1.05. Published agents are in
bfloat16, whose rounding leaves small changes out; in float32 every weight moves a little, and eps must be larger. `how` is also
average, sum (task arithmetic, arXiv:2212.04089) or ties (arXiv:2306.01708). The policy is at every step the merge of the agents
as they are then. Adapters are merged into their models first.

One of the two must be given: `agents`, checkpoints that were trained from the --model (then --steps 1 does it, and `rewardlab
export RUN DIR --last` writes the merge); or `domains`, a regular expression of the questions for each agent, and the agents are
trained here, by the base's recipe, each on problems of its own.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Problem, Recipe, Run, loop, measure
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.policies.merging import average, overlap, reinforced_agents, task_arithmetic, task_vectors, ties
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat

START, AGENT = "start", "agent_"
SEARCHED = 200  # problems looked through for each one of a domain
How = Literal["ram", "average", "sum", "ties"]
OTHERS = {"average": average, "sum": task_arithmetic, "ties": ties}


@loop
def merged_agents(
    recipe: Recipe, run: Run, ops: Any, *, domains: tuple[str, ...] = (), how: How = "ram", eps: PositiveFloat = 1e-5,
    gain: NonNegativeFloat = 0.2,
) -> None:  # fmt: skip
    """A training step of each agent on its own domain; then the policy becomes the merge of all. Without domains they stay as they
    are. Logs `unique`: the share of all changed weights that one agent alone changed."""
    agents = [learner for name, learner in ops.learners.items() if name.startswith(AGENT)]
    if len(agents) < 2:
        raise RewardlabError(
            f"ram merges two or more agents, and has {len(agents)}: give agents=..., checkpoints trained from the --model, or "
            "domains=..., for each agent a regular expression of its questions"
        )
    if not all(p.requires_grad for p in run.policy.parameters()):
        raise RewardlabError(
            "ram merges whole weights: leave out --lora-rank, and merge the agents' adapters first (rewardlab export)"
        )
    # the run's own recipe, with the reward and the rates that it was given
    alone = recipe.but(also=(), loop=None)
    for agent, domain in zip(agents, domains, strict=False):
        agent.recipe = alone
        if run.step == 0:
            agent.reset_optimizer()
        groups = ops.rollout(problems_of(domain, recipe.update.problems, ops), agent)
        scores = ops.score(groups, agent)
        if paid := [s.total for row in scores for s in row if s.total is not None]:
            run.log(f"{agent.name}/reward", float(np.mean(paid)))
        ops.update(ops.collate(groups, scores, agent), agent)
    start, models = ops.learners[START].model.state(), [agent.model.state() for agent in agents]
    run.policy.load_state(reinforced_agents(start, models, eps, gain) if how == "ram" else OTHERS[how](start, models))
    shared, lone = (float(count.sum()) for count in overlap(task_vectors(start, models), eps))
    run.log("unique", lone / max(1.0, lone + shared))


def problems_of(domain: str, n: int, ops: Any) -> list[Problem]:
    """The next n training problems whose question matches the regular expression."""
    found: list[Problem] = []
    for _ in range(SEARCHED * n):
        found += [p for p in ops.problems(1) if re.search(domain, p.question, re.DOTALL)]
        if len(found) == n:
            return found
    raise RewardlabError(f"of {SEARCHED * n} training problems {len(found)} match the domain {domain!r}, and a step needs {n}")


@measure
def beside_other_merges(problems: Sequence[Problem], run: Run) -> dict[str, float]:
    """pass@1 of the policy as it is; of the same agents averaged, summed and merged by TIES; `rival`: the best of these three.

    Held-out problems are sampled with the same random numbers by all of them.
    """
    merged = {name: w.clone() for name, w in run.policy.state().items()}
    start = run.model(START).state()
    models = [model.state() for name, model in run.models.items() if name.startswith(AGENT)]
    found = accuracy()(problems, run)
    try:
        for how, merge in OTHERS.items():
            run.policy.load_state(merge(start, models))
            found[f"pass@1/{how}"] = accuracy()(problems, run)["pass@1"]
    finally:
        run.policy.load_state(merged)
    return {**found, "rival": max(found[f"pass@1/{how}"] for how in OTHERS)}


def ram(
    base: Recipe | None = None, *, agents: tuple[str, ...] = (), domains: tuple[str, ...] = (),
    how: How = "ram", eps: float = 1e-5, gain: float = 0.2,
) -> Recipe:  # fmt: skip
    """agents: checkpoints to merge as they are.  domains: without them, for each agent a regular expression of its problems.
    how: ram, average, sum or ties.  eps: a weight that changed by less did not.  gain: the most that lone changes are enlarged by.
    """
    base = base or grpo()
    if base.loop or base.also:
        raise RewardlabError(f"ram trains agents by rollout, reward and update alone, which {base.name or 'this base'} does not")
    inits = agents or ("copy:policy",) * len(domains)
    frozen = Learner(START, "copy:policy", Recipe(), every=0)
    # every=0: the loop alone trains them
    models = tuple(Learner(f"{AGENT}{i}", init, Recipe(), every=0) for i, init in enumerate(inits, 1))
    merging = merged_agents(domains=() if agents else tuple(domains), how=how, eps=eps, gain=gain)
    return base.but(also=(frozen, *models), loop=merging)


fidelity = "whole"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "Math: what is 12 + 30?", "answer": "42"},
        {"prompt": "Math: what is 9 times 7?", "answer": "63"},
        {"prompt": "Trivia: which planet is the largest of the solar system?", "answer": "Jupiter"},
        {"prompt": "Trivia: what is the chemical symbol of gold?", "answer": "Au"},
    ],
    settings={"domains": ("^Math", "^Trivia")},
)

PRODUCTS, DIFFERENCES = r"^(?!.*Subtract).*Multiply", r"^(?!.*Multiply).*Subtract"
claim = Claim(
    says="merged by RAM, agents of two domains solve more problems of all kinds than averaged, summed or merged by TIES",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.025, against="rival",
    settings={"problems": 8, "eps": 1e-3, "domains": (PRODUCTS, DIFFERENCES)}, by=beside_other_merges(), steps=40,
    fault=Within("train.unique", low=0.2, says="share of changed weights that one agent alone changed"), learns=None,
    finding="RAM's merge is right in 64% (36% before), the average of the same agents in 60%, their sum in 60% and TIES in 62%. "
    "What is decided is the best of the three in each run, known afterwards: 63%, which RAM passes in four runs of five, and "
    "undecided. It is above the average, and above TIES, in all five. Not compared with training one model on all problems",
    version=2, replaces="averaging was its only rival, and not the sum of changes or TIES",
)  # fmt: skip
baseline = "grpo"
system = "ram-agent-merge"
