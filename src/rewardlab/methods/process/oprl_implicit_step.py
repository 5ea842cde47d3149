"""OPRL (iStar): an implicit process reward model, trained on episode preferences, adds turn rewards to the outcome.

    model: -log sigmoid(beta log prm/pi_old (better) - beta log prm/pi_old (worse)), pairs within a group, whole episodes
    r_t = beta sum over the tokens of turn t of log(prm / pi_old)
    A = (R - mean(R)) / std(R) + alpha (r_t - mean(r)) / std(r),   mean and std of R over episodes, of r over all turns of the group

Preferences between whole episodes are all it needs: no labels of steps, no further rollouts, no states that recur. Only the tokens
of a turn get its advantage. pi_old is the policy that sampled the batch, so that the model says where it would leave this policy,
not the first one; and turns vary less than tokens, by which PRIME is paid.

Liu et al. 2025, arXiv:2509.19199 (first called OPRL, then iStar). beta, alpha, that all pairs of a group count, and that the model
learns on a batch after it was used there, are those of the released code (Tongyi-ConvAI/Qwen-Character, CharacterRL-iStar; read in
lucaspecina/piar-rl, e75819e, code/istar/rm_utils.py, core_istar.py, code/examples/istar_trainer/run_webshop.sh). Where the code
takes the mean over an episode's turns in the loss, and compares turns with the first ones of other episodes alone, this follows
the paper; the script builds on RLOO, here as in the paper's equations GRPO. `alpha=0` leaves GRPO.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Environment, Learner, Recipe, Update
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.implicit import plus_implicit_turns
from rewardlab.data.columns import Column, Data
from rewardlab.envs.search import tools
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.pairs import group_preferences
from rewardlab.rollouts.interactive import in_place_of_replies, interactive


def oprl_implicit_step(
    base: Recipe | None = None, *, env: Environment | None = None, corpus: str = "", n: int | None = None, turns: int = 5,
    beta: float = 0.05, alpha: float = 1.0, prm_lr: float | None = None, prm_epochs: int = 1,
) -> Recipe:  # fmt: skip
    """corpus: a file of documents to search (`tools`).  env, turns, n: what is played, for how long, and how often per
    problem (None: as the base does, or else 8).  beta: scale of the model's rewards.  alpha: weight of the turns beside the
    episode.  prm_lr, prm_epochs: of the model, which starts as a copy of the policy.
    """
    base = base or grpo(n=n or 8)
    prm = Recipe(objective=group_preferences(beta=beta), update=Update(lr=prm_lr, epochs=prm_epochs))
    steps = plus_implicit_turns(chain=center() >> scale_by_std(), beta=beta, alpha=alpha)
    made = base.but(credit=base.required("credit") >> steps, also=(*base.also, Learner("prm", "copy:policy", prm)))
    # a base that plays in an environment keeps it, and keeps its measure
    if not (env or corpus) and base.sampling_settings.get("env"):
        return made
    env = tools(env, corpus)
    return made.but(
        rollout=in_place_of_replies(base.required("rollout"), env=env, n=n, turns=turns),
        measure=episode_accuracy(rollout=interactive(env=env, n=1, turns=turns)),
    )


fidelity = "core"
left_out = (
    "ratios of whole turns in the policy's loss (they are 1 where a batch is used once, as here; the script takes several updates "
    "a batch), and -.1 for invalid actions"
)
data = Data(
    answer="the gold answer",
    facts=Column("documents to search, a list of texts; a file is given by --corpus", optional=True),
    rows=[
        {
            "prompt": "Who wrote Emma?",
            "answer": "Jane Austen",
            "facts": ["Emma is a novel by Jane Austen.", "Dublin is the capital of Ireland."],
        },
        {
            "prompt": "What is the capital of Ireland?",
            "answer": "Dublin",
            "facts": ["Emma is a novel by Jane Austen.", "Dublin is the capital of Ireland."],
        },
    ],
)

claim = Claim(
    says="turns credited by a model of the group's preferences learn more than the outcome alone after equal updates",
    versus="igpo", task="facts:hops=2,error=0.5,biased=0.75,test_size=1000", measure="auc.truth", direction="higher", margin=0.03,
    settings={"beta": 0.5, "prm_epochs": 4, "lr": 1e-4}, versus_settings={"gain": 0.0, "lr": 1e-4}, problems=500,
    steps=40,
    judge=Within("train.prm_auc", low=0.6, says="right episodes above wrong ones of their group, by the sums of turns' rewards"),
    start=None, tried="at 3e-4 the baseline is right in .95, effect +.016, sd .029 (3 seeds)",
    finding="right over the whole training: 57% with credit for turns and 56% by the outcome alone (38% before), at six times the "
    "tokens. The model ranks right episodes above wrong ones in 94%: it has learnt, but episodes of two searches need it little",
    version=2, replaces="in 30 steps, by 96 problems, the baseline learnt .255, 3 standard deviations are .263 (effect +.003)",
)  # fmt: skip
baseline = "grpo"
