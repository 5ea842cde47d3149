"""Dense rewards in training: what a learnt process reward model adds to the outcome, by the ways in which it is used.

All read one scorer, which learnt from 2,048 solutions with labelled steps of the policy of the first world, and errs (AUC of steps
about .83 there, .65 on chains longer than it learnt from); PRIME learns its own from outcomes, while it trains. Nobody reads gold
steps. The outcome is held-out accuracy at the end: members that drop replies or problems leave no comparable curve in training.
"""

from rewardlab.comparisons.league import Guard, League, Member, Outcome, World
from rewardlab.evals.passk import pass_curve
from rewardlab.rewards.algebra import aggregate, signed
from rewardlab.rewards.process import doubted_steps, prm_steps
from rewardlab.rewards.task import correct

SCORER = "prm:embedded:arithmetic:biased=0.75,error=0.1"
STEPS = prm_steps(model=SCORER)

league = League(
    question="Which use of a learnt process reward model teaches a policy more than outcomes alone?",
    want="dense rewards",
    baseline="grpo",
    members=(
        Member("grpo"),
        Member("sum of steps", "grpo", reward=correct() + STEPS),
        Member("clip", "grpo", reward=correct() + prm_steps(model=SCORER, clip=0.5)),
        Member("delta", "grpo", reward=correct() + prm_steps(model=SCORER, delta=True)),
        Member("pure_min_form", settings={"share": 1.0}, reward=signed(STEPS).named("correct_steps") + correct()),
        Member("prime"),
        Member("prof", settings={"process": STEPS}),
        Member("capo", "capo_genprm", settings={"critiques": doubted_steps(model=SCORER)}),
        Member("posterior_grpo", settings={"thinking": aggregate(STEPS, by="mean")}),
    ),
    worlds=(
        World(
            "as it learnt", "arithmetic:biased=0.75,error=0.1",
            "chains of three steps by a teacher who errs by a habit, from which the scorer learnt; several members' checks were "
            "made there, with other judges",
        ),
        World(
            "longer than it learnt", "arithmetic:biased=0.8,error=0.05,difficulty=[2,5]",
            "chains of two to five steps, on which the scorer is worse", new=True,
        ),
        World(
            "padding", "arithmetic:biased=0.75,error=0.1,redundant=0.4",
            "solutions with lines that only check, each of which a sum of steps pays",
        ),
    ),
    outcome=Outcome("pass@1", "higher", "right replies", margin=0.03),
    guard=Guard("pass@16", at_least=-0.05, says="problems that sixteen replies solve"),
    measure=pass_curve(n=16),
    settings={"n": 8, "problems": 8, "epochs": 1, "minibatches": 1},
    chosen_by="pass@1",
    problems=100,
    scorer=SCORER,
    needs="Your rows need the columns prompt and answer; members read your process reward model (`--reward prm:path/to/scorer`), "
    "and replies are in steps, one a line.",
    left_out={
        "vsrm_stepwise, spae": "they need no scorer: they probe the policy's own answers; vsrm_stepwise is in the league length",
        "implicit_prm, pqm, omegaprm, er_prm": "they train a scorer, and no policy by it",
        "stepsearch, groundedprm": "their steps are calls of tools",
        "rl_tango": "its judge is trained by a reward of its own, beside the policy; the scorer of the others has no place in it",
    },
)  # fmt: skip
