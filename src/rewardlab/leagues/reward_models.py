"""Reward models from pairs: which training makes the most of labels that are wrong, few, near ties, or in love with length.

Worlds say how labels are wrong; held-out pairs are labelled by the truth. A fifth of the training pairs is verified, and known to
be (`gold`), which cheems and skywork_reward_v2 read, and all others learn from without knowing.
"""

from rewardlab.comparisons.league import Guard, League, Member, Outcome, World
from rewardlab.evals.pairs import ranked_pairs

SURPRISE = {"init": "value-head:surprise"}
"""A small model's plain head stays at chance for minutes."""

league = League(
    question="Which way to train a reward model makes the most of pairs whose labels have faults?",
    want="to train a reward model",
    baseline="bradley_terry",
    members=(
        Member("bradley_terry"),
        Member("centered", "bradley_terry", settings={"center": 0.01}),
        Member("eurus", "eurus_ultrainteract"),
        Member("goal_conditioned", "goal_conditioned_rm"),
        # ties are made of the same pairs; without an oracle nothing is rewritten
        Member("crome"),
        Member("secrets", "secrets_rlhf_2", settings={"votes": 3}),
        Member("cheems", knob="prior", values=(0.0,), columns=("gold",)),
        Member("skywork_v2", "skywork_reward_v2", columns=("gold",)),
        # its reward model is taught on as many pairs as the others see, before the head learns
        Member("ebrm", small={
            "reward_model": "value-head:surprise", "pairs": 1280, "negatives": 32, "energy_lr": 1e-3,
        }, rate="rm_lr"),
    ),
    worlds=(
        World(
            "flipped labels", "verified_notes:gold=0.2,flip=0.3,size=1000",
            "orders in one line; of the labels that nobody verified three in ten are turned round", settings=SURPRISE, starts=5,
        ),
        World(
            "taste", "verified_notes:gold=0.2,taste=0.3,size=1000",
            "the same orders, whose annotator likes words of praise, which make replies longer, more than they are worth",
            settings=SURPRISE, starts=5,
        ),
        World(
            "few pairs, near ties", "verified_notes:gold=0.2,noise=0.2,size=200",
            "two hundred pairs of these orders, whose annotator errs where two are nearly as good", settings=SURPRISE, starts=5,
        ),
        World(
            "padded solutions", "verified_solutions:gold=0.2,flip=0.1,longer=0.6,biased=0.75,error=0.1,size=1000",
            "solutions of arithmetic by writers of several skills; one label in ten is turned round, and in six pairs of ten the "
            "better solution is padded with lines that only check", settings=SURPRISE, starts=5, new=True,
        ),
    ),
    outcome=Outcome("pair_accuracy", "higher", "held-out pairs ranked right", margin=0.03),
    guard=Guard("decorrelated", at_least=-0.03, says="pairs ranked right where length tells nothing"),
    measure=ranked_pairs(),
    learns="pair_accuracy",
    settings={"problems": 16},
    steps=80,
    rates=(3e-4, 1e-3, 3e-3),
    chosen_by="pair_accuracy",
    problems=300,
    rate="reward_lr",
    pairs=5,
    answers=False,
    needs="Your rows need the columns prompt, chosen and rejected; gold, if you have it, is true where "
    "people verified the label. The held-out pairs decide, so give some whose labels you trust (`--test`).",
    advice="- Compare what it learnt with the rater `length` on pairs of your own.\n"
    "- Hold out pairs whose labels you trust. In the worlds here held-out labels are the truth, which training labels are "
    "not: a reward model that is right on pairs labelled as it was trained may only share their faults.",
    left_out={
        "acemath, gradesql, toolrm_fc": "they read right and wrong replies to a problem, or calls, and no pairs of an annotator",
        "salmon, rlbff": "they read principles, by which these pairs are not judged",
        "critic_rm, themis_tool_augmented_rm": "they read critiques or traces of tool calls, which these replies have not",
        "dogerm": "it merges two trained models",
        "nemotron_4_340b, pairwise_rl, reward_robust_rlhf_brme, rlsqm": "they train a policy",
        "margins and votes of bradley_terry": "these pairs say their order alone",
    },
)  # fmt: skip
