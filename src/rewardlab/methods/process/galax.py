"""GALAX: a subgraph is grown node by node, and each node is paid by what a pretrained graph network says of the subgraph with it.

    R_t = [p(G_t) - 1/C] + ahead mean over u [p(G_t + u) - 1/C] - invalid 1[the node is not joined to G];    kept if R_t > 0
    p: chance of the sample's class, of C, by a graph network that learnt, before, to tell samples of all classes from subgraphs
    policy: the tokens of node t get GRPO's advantage of the answer + weight (R_t + R_(t+1) + ..)

An answer at the end does not say which node led astray, and nobody labels the growth of subgraphs. A network that learnt from the
classes of samples, case or control, knows which part of a graph makes a case of it, and no answers are needed for that.

Zhang et al. 2025, arXiv:2509.20935, and the released code (FuhaiLiAiLab/GALAX, b2472fd, motasg_explainer.py, RLGenExplainer): both
weights 1, validity 0 or -1, p less 1 / classes, and a node that earns no more than 0 is not kept. There a graph network of its own
grows the subgraph, by REINFORCE for each question, from nodes that a language model names, which then answers with the subgraph in
its prompt; here the language model grows it itself. As there, R_t needs no other baseline than 1/C: normalised in one with the
answers, R_t of good nodes would lie below the mean, and growing be charged. There a walk has so many steps, each paid its own R_t;
here the reply ends where the policy ends it, and what follows is what going on is worth. There 5 samples of one more step stand
for what may become of G; here all neighbours do, each once. (inferred): the answer's weight. Left out: omics; features are any
numbers.

Data: prompts that show a graph, with the columns `nodes` (name to a list of numbers), `edges` (pairs of names), `seed` and `label`
(the class of the sample); `samples`, a list of {"label", "nodes"} on the same graph, if all prompts are of one class. Replies name
a node a line, or list them.
"""

from rewardlab.core import Recipe
from rewardlab.core.domain import NonNegativeFloat
from rewardlab.credit.terms import by_term
from rewardlab.credit.value import to_go
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.subgraphs import grown_subgraph
from rewardlab.rewards.task import correct
from rewardlab.rollouts.examples import with_examples
from rewardlab.rollouts.independent import independent


def galax(
    base: Recipe | None = None, *, weight: NonNegativeFloat = 0.5, ahead: float = 1.0, invalid: float = 1.0, graphs: int = 64,
    graph_steps: int = 300, n: int = 8,
) -> Recipe:  # fmt: skip
    """weight: of the steps beside the answer; 0 pays the answer alone.  ahead, invalid: as above.  graphs, graph_steps: that the
    network learns from, and for how long.  n: replies per problem."""
    base = base or grpo(n=n)
    answer, grown = base.reward or correct(), independent(n=n, steps="newline")
    grown = with_examples(of=grown, n=graphs, columns=("nodes", "edges", "seed", "label", "samples"))
    if not weight:
        return base.but(rollout=grown, reward=answer)
    return base.but(
        rollout=grown, reward=answer + weight * grown_subgraph(ahead=ahead, invalid=invalid, learning=graph_steps),
        credit=by_term(chains={"grown_subgraph": to_go()}, others=base.required("credit")),
    )  # fmt: skip


claim = Claim(
    says="paid for each node by the graph network as well, a policy finds more of planted modules than by the answer alone",
    versus="galax", task="modules:careful=0.8", measure="reward", direction="higher", margin=0.01, settings={"problems": 32},
    versus_settings={"weight": 0.0, "problems": 32}, by=mean_reward(), problems=500, steps=60,
    fault=Within("reward", high=0.9, says="F1 by the answer alone"),
    judge=Within("train.graph_auc", low=0.7, says="the network on graphs that it has not seen"), learns="reward", start=None,
    tried="2 seeds each: careful=.45, at 1e-3 in 80 steps with R of each node alone: from .36, F1 by chance, to .45, the answer "
    "alone stays there; nodes=6,members=3,careful=.8, at 1e-3 in 60 steps: from .47 to .49, the answer alone to .42, but the "
    "network's AUC is .64. The answer alone has learnt in no world so far; in this one +.016, the effect +.008 (3 seeds)",
)  # fmt: skip
baseline = "grpo"
