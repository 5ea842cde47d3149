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
        World(
            "longer", "arithmetic:biased=0.8,error=0.05,difficulty=[3,6]",
            "chains of three to six steps by a teacher who errs by a habit", new=True,
        ),
    ),
    outcome=Outcome("pass@16", "higher", "problems that sixteen replies solve", margin=0.03),
    guard=Guard("pass@1", at_least=-0.03, says="right replies"),
    measure=pass_curve(n=16),
    settings={"n": 8, "problems": 8, "epochs": 1, "minibatches": 4},
    problems=100,
    needs="Your rows need the columns prompt and answer.",
    advice="- **Result**: whether sixteen replies come to solve fewer problems depends on where training begins. In `ways` the "
    "start solves 94.5% of them with sixteen, and GRPO ends at {ways/grpo}, while single replies rise from 36% to 55%. In "
    "`longer` the start solves 77.1%, and GRPO ends at {longer/grpo}, with single replies from 31% to 58%. Nothing is shown "
    "to be better in either; rover and lp_reg are equal to it in both. In `longer`, where curves are compared at equal "
    "shares of right single replies, all lie within two points of GRPO.\n"
    "- **steer, b_star and prorl** end two points above GRPO in `longer` ({longer/steer.effect}; {longer/b_star.effect}; "
    "{longer/prorl.effect}). By themselves the first two would be decided; among nine none is (p = .08 at best, corrected). "
    "prorl's single replies are right more often, too ({longer/prorl.guard}, GRPO {longer/grpo.guard}), for 1.72 times the "
    "tokens; cut short at GRPO's tokens it ends at 95.4%. In `ways` steer is equal to GRPO; prorl and b_star, at three "
    "times its rate, end lowest.\n"
    "- **Worse in `longer`**: nsr ({longer/nsr}) and riskpo ({longer/riskpo}) learn least, at a third of GRPO's rate: "
    "{longer/nsr.guard} and {longer/riskpo.guard} of single replies are right. In `ways` riskpo was run without its dual "
    "clip, which it has now, and is not in the table.\n"
    "- **Cost**: rover, flowrl, steer and lp_reg score all replies again, some by second models, and cost 1.6 to 3 times "
    "the tokens. Cut short at GRPO's tokens they end above it in `ways`, where fewer steps lose less (88% to 89%), and 1.3 "
    "to 8.3 points below it in `longer`, where fewer steps gain less.\n"
    "- **So** measure pass@16 while you train. Where it falls, stop earlier, and keep a checkpoint whose fall you can "
    "accept; where it rises there is nothing to repair.",
    first="`grpo`, and measure pass@16",
    spends=("pass@1", "share of right single replies"),
    left_out={"spear": "it plays with tools", "guide_grpo": "it reads a column of hints, which these worlds have not"},
)  # fmt: skip
