"""Keeping what a policy could find: how many problems sixteen replies solve, where one reply is right as often."""

from rewardlab.comparisons.league import Guard, League, Member, Outcome, World
from rewardlab.evals.passk import pass_curve

league = League(
    question="Which method keeps finding different right answers while single replies improve?",
    want="more diverse samples",
    baseline="grpo",
    members=(
        Member("grpo"),
        Member("rover"),
        Member("dra_grpo"),
        Member("flowrl"),
        Member("nsr", "nsr_w_reinforce"),
        Member("lp_reg"),
        Member("riskpo"),
        Member("steer", "steer_entropy_change"),
        Member("prorl", settings={"n": 8}),
        Member("b_star", settings={"n": 8, "wanted": 4}),
    ),
    worlds=(
        World(
            "ways", "countdown:largest=30,habit=0.9",
            "numbers to be combined to a target in several ways, one of which the policy takes by habit",
        ),
        World(
            "hard", "arithmetic:biased=0.85,rules=+-*,error=0.4,difficulty=[4,8]",
            "long chains that single replies rarely get right", new=True,
        ),
    ),
    outcome=Outcome("pass@16", "higher", "problems that sixteen replies solve", margin=0.03),
    guard=Guard("pass@1", at_least=-0.03, says="right replies"),
    measure=pass_curve(n=16),
    settings={"n": 8, "problems": 8, "epochs": 1, "minibatches": 4},
    problems=100,
    needs="Your rows need the columns prompt and answer.",
    first="`grpo`, and measure pass@16",
    earlier="Fourteen losses, six of them in this section, were compared in `countdown` with five seeds from one initial "
    "policy: with sixteen replies all ended below their start ([tables](../results/objectives/README.md)).",
    left_out={"spear": "it plays with tools", "guide_grpo": "it reads a column of hints, which these worlds have not"},
)  # fmt: skip
