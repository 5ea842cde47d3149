"""Which loss: what is learnt from the same rollouts and the same rewards, in one pass of four minibatches."""

from rewardlab import registry
from rewardlab.comparisons.league import Guard, League, Member, Outcome, World
from rewardlab.evals.passk import pass_curve

league = League(
    question="Which loss learns most from the same rollouts and rewards?",
    want="a better loss",
    baseline="grpo",
    members=(
        Member("grpo"),
        Member("rloo"),
        Member("ppo"),
        Member("reinforce_plus_plus"),
        Member("dr_grpo"),
        Member("gspo"),
        Member("cispo"),
        Member("rejection_sampling"),
        Member("riskpo"),
        Member("nsr", "nsr_w_reinforce"),
        Member("flowrl"),
        Member("rover"),
        Member("lp_reg"),
        Member("steer", "steer_entropy_change"),
        Member("gtpo", "grpo+gtpo_grpo_s"),
    ),
    worlds=(
        World(
            "biased", "arithmetic:biased=0.75,error=0.1",
            "chains of arithmetic by a teacher who errs by a habit; several members' checks were made there",
        ),
        World(
            "noisy", "arithmetic:biased=0.75,error=0.1",
            "the same, paid by a verifier that accepts a tenth of the wrong answers and rejects three tenths of the right ones",
            reward=registry.part("reward", "noisy_verdict", false_positive=0.1, false_negative=0.3),
        ),
        World("long", "arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", "chains of two to five steps", new=True),
    ),
    outcome=Outcome("pass@1", "higher", "right replies", margin=0.03),
    guard=Guard("pass@16", at_least=-0.05, says="problems that sixteen replies solve"),
    measure=pass_curve(n=16),
    # an objective that clips does nothing in the first minibatch of a pass
    settings={"n": 8, "problems": 8, "epochs": 1, "minibatches": 4},
    problems=100,
    needs="Your rows need the columns prompt and answer.",
    first="`grpo`, and a sweep of `--lr`",
    earlier="Fourteen losses were compared in three small worlds with five seeds from one initial policy: none was shown to be "
    "better than GRPO, one to be worse ([tables](../results/objectives/README.md)).",
)  # fmt: skip
