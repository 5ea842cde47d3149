"""StepSearch: each search of an episode is paid for the evidence that it adds, and charged for what had been found before.

    r_t = G_t - P_t at the end of round t;     at the end: answer + key * (best F1 of a query with each sub-question's)
    G_t = mean over gold documents i of max(c_i - m_i, 0);     P_t = share of the documents found that were found before

c_i is the highest TF-IDF cosine of gold document i with what round t found, m_i the highest of the rounds before. Answers alone say
nothing of the search that led astray, or went round in a circle; here each is told at once. The loss is PPO's.

Wang et al. 2025, arXiv:2505.15107. The end of an answered search as the place of r_t, and F1 as the match of queries, are those of
the released code (Zillwang/StepSearch) as a guide to it describes them (lhz-Jaeger/StepSearch, c38aa58; the files of the code were
not found). (inferred): key = 0.1, that the counts of TF-IDF are over the problem's documents, and equal weights of G and P. Left
out: the penalty of replies without tags; the answer is judged by the task's verifier, where the paper takes the F1 of words.
`weight=0, key=0` leaves PPO in the same environment.

Data: `searches`, the gold queries, and either the gold documents (`gold_documents`) or the documents that the engine searches
(`facts`), in which the gold queries find them; corpus="docs.jsonl" is a file to search, env=... another engine.
"""

from rewardlab.core import Environment, Recipe
from rewardlab.envs.search import tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.searches import search_progress, searched_for
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import interactive


def stepsearch(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", n: int = 1, turns: int = 5,
    weight: float = 1.0, redundancy: float = 1.0, key: float = 0.1,
) -> Recipe:  # fmt: skip
    """corpus: a file of documents to search (`tools`).  env, n, turns: what is played, how often per problem, and for how
    long.  weight: of the searches beside the answer. redundancy: of what had been found before, against what is new.  key: of
    having asked what was needed.
    """
    base = base or ppo(n=n)
    played = tools(env, corpus)
    # gold queries find the gold documents where the policy searches
    searched = {"corpus": played.settings["corpus"]} if corpus else {}
    reward = base.reward or correct()
    # a weight of 0 leaves the term out: it would only be computed to be logged
    reward = reward + weight * search_progress(redundancy=redundancy, **searched) if weight else reward
    made = base.but(reward=reward + key * searched_for() if key else reward)
    # a base that plays in an environment keeps it, and keeps its measure
    if not (env or corpus) and base.rollout is not None and base.rollout.settings.get("env"):
        return made
    return made.but(
        rollout=interactive(env=played, n=n, turns=turns),
        measure=episode_accuracy(rollout=interactive(env=played, n=1, turns=turns)),
    )


SLOW = {"problems": 64, "lr": 1e-4}

claim = Claim(
    says="paying each search for new evidence learns more than the answer alone does with PPO after equal updates",
    versus="stepsearch", task="facts:hops=3,error=0.5,biased=0.75", measure="auc.truth", direction="higher",
    margin=0.0047, settings=SLOW, versus_settings={**SLOW, "weight": 0.0, "key": 0.0}, steps=12,
    fault=Within("train.truth", high=0.8, says="right episodes under the answer alone"), start=None,
    tried="at 3e-4, 3 seeds each: hops=2, 30 steps, PPO on the answer alone is right in .97 of the episodes, effect +.002; hops=3, "
    "15 steps, .91, effect -.05, sd .10",
)  # fmt: skip
baseline = "ppo"
