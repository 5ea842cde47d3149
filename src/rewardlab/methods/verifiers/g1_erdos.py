"""G1: RL on graph questions with a verifier per kind of answer: exact, set overlap, or algorithmic.

    number, yes or no      1 if it is the gold one
    set                    |said & gold| / |said | gold|
    one of several         1 if an algorithm finds that it solves the problem: paths, searches, matchings, covers, trees, ...

What is compared with a single gold answer teaches to guess which of many right paths was written down; and where no reply names
all of a set, none is told from the others. Fifty such tasks, made and judged by programs, are a curriculum without annotators;
what is learnt is said to carry over to tasks and ways of writing a graph that were never trained on.

Guo et al. 2025, arXiv:2505.18499, and the released reward and script (shenyangHuang/G1, a copy of PKU-ML/G1, 3496707:
utils/reward_score/graph.py, run_3B.sh): n = 5, a KL and an entropy bonus of 0.001, four updates of a batch, the mean over tokens,
tiers that scale nothing; as there, all nodes are a dominating set. Unlike there, half a search is wrong, and a set is read as any
list, not as a Python literal in a box.

--task erdos makes rows for all fifty tasks.
"""

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.regularise import negative_entropy
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.verifiers.graphs.values import graph_answer


def g1_erdos(
    base: Recipe | None = None, *, partial: bool = True, entropy: float = 0.001, n: int = 5, beta: float = 0.001
) -> Recipe:  # fmt: skip
    """partial: whether a set that is not quite right earns what it shares; else nothing.  entropy: weight of the entropy bonus.
    n, beta: of grpo. A base's reward beside the task's verifier is kept."""
    base = base or grpo(n=n, beta=beta).but(minibatches=4, weighting=token_mean())
    judged = graph_answer(partial=partial)
    if entropy:
        base = base.but(objective=base.required("objective") + entropy * negative_entropy())
    reward = judged if base.reward in (None, correct()) else base.reward + judged
    return base.but(reward=reward, measure=own_reward(reward=judged, rollout=independent(n=1)))


fidelity = "core"
left_out = (
    "SFT on solutions of a larger model before it (rewardlab data pass-rate --keep-replies, data filter, then sft); and graphs of "
    "the real world, of which its problems are parts: --task erdos draws them at random"
)
data = Data(
    answer='{"value"}, {"items"}, {"pairs", "nodes"} or a graph with the kind of problem, as `graph_answer` reads them',
    rows=[
        {"prompt": "Edges: a-b, b-c. How many edges has the graph?", "answer": {"value": 2}},
        {"prompt": "Edges: a-b, b-c, c-d. How many nodes has it?", "answer": {"value": 4}},
    ],
    verified_by="graph_answer",
)

SEEN = 'erdos:tasks=reading,unseen=["degree","common_neighbor"],nodes=[4,5],test_size=1000'
check = Check(
    says="RL on two tasks on graphs raises accuracy on two others that were never trained on",
    versus=None, task=SEEN, measure="pass@1", direction="higher", margin=0.05, against="before.pass@1",
    settings={"problems": 8, "n": 8}, steps=40,
    fault=Within("before.pass@1", low=0.2, high=0.7, says="on the unseen tasks before RL"), learns=None,
    finding="on two tasks that were never trained on, accuracy falls from 34% to 27%, while the two that are trained on go from "
    "45% to 70%: nothing carries over in a policy of this size",
)  # fmt: skip
