"""DEPO: problems are sampled only where their last visits showed something to explore; neglected ones are replayed.

    E(x) = mean over the last k visits of  sum_i |A_i| H_i,    A_i = (r_i - mean r) / std r,   H_i: mean entropy of reply i's tokens
    sampled of a step: problems never sampled, the rho_e best by E, and the most neglected of the others;  rho_e falls with epochs

Where all replies were right, or all wrong, E is 0. Wrong replies of an entropy far above that of the right ones are noise, and
count nothing. Problems are skipped before they are sampled, where DAPO samples first and drops then: the saving is in rollouts.

Tang et al. 2025, arXiv:2509.01321. E, the filter of wrong replies, rho_e = max(0.4, start - decay * epoch) and the orders follow
verl/trainer/rollout_purning/rollout_purning.py of the released code (txy77/DEPO, eb99f9a), whose script is not public. (inferred):
start, decay, window, the limit for wrong replies, and the share that is replayed (there as many as fill the devices). H is the mean
of -log p over the sampled tokens, whose expectation is the entropy, since rollouts keep no entropies. The first selection, by
diversity, influence and difficulty, is done on the file: rewardlab data diverse, data pass-rate, data curriculum --order target.

Data: prompts and answers that come again: a file, or a generated task with a size.
"""

from rewardlab.core import Recipe
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rollouts.explorable import explorability_sampling


def depo(
    base: Recipe | None = None, *, start: float = 1.0, least: float = 0.4, decay: float = 0.05, window: int = 5, limit: float = 2.0,
    replay: float = 0.1,
) -> Recipe:  # fmt: skip
    """start, decay, least: the share that is sampled is start - decay * epoch, at least `least`.  window: visits that count.
    limit: of the entropy of wrong replies, in means of the right ones.  replay: share of neglected problems that are sampled too.
    """
    base = base or grpo()
    kept = explorability_sampling(
        of=base.required("rollout"), start=start, least=least, decay=decay, window=window, limit=limit, replay=replay
    )  # fmt: skip
    return base.but(rollout=kept)


claim = Claim(
    says="sampled groups have a signal more often than GRPO's in as many updates, with fewer rollouts, at the same accuracy",
    versus="grpo", task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5],size=96", measure="train.signal", direction="higher",
    margin=0.06, settings={"problems": 16, "start": 0.8, "decay": 0.1}, versus_settings={"problems": 16}, steps=40,
    guard=Within("pass@1", low=-0.03), fault=Within("train.signal", high=0.75, says="share of GRPO's groups with a signal"),
    moved=Within("tokens", high=-20_000, says="tokens generated and scored in all"),
    finding="a third of the tokens is saved, and after as many updates eight problems in a hundred fewer are right",
)  # fmt: skip
system = "depo-data-efficient"
