"""Rollouts before which a graph network learns from problems whose modules are known."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.core.domain import PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.rewards.subgraphs import AUC, MEMORY, Graph, learnt, remember


@rollout(inner="of")
def with_graph_network(
    problems: list[Problem], run: Run, *, of: Rollout, graphs: PositiveInt = 64, steps: PositiveInt = 300
) -> list[Group]:
    """What `of` samples. Once, before the first step, a graph network learns from `graphs` problems with the column `module`.

    It stays as it is from then on, in the run's memory. Where no further problems can be asked for, it learns from those of the
    step.  steps: of its learning, one graph each.  Logged: graph_auc, on graphs that it has not seen.
    """
    if MEMORY not in run.memory:
        seen = run.more_problems(graphs) if run.more_problems else problems
        known = [g for p in (*seen, *problems) if (g := Graph.of(p)) is not None and g.module]
        if not known:
            raise RewardlabError("no problem has a graph (nodes, edges, seed) with a known module to learn from")
        weights, auc = learnt(known, run.seed, steps)
        remember(run, weights, auc)
    run.log("graph_auc", run.memory[AUC])
    return of(problems, run)
