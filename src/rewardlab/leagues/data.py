"""Which problems to train on: the same rows and as many tokens for all, of which methods leave some out, or come back to others.

Rows come again: 96 problems, sixteen a step. A method that samples more to choose from, or rates rows first, makes fewer updates.
"""

from rewardlab.comparisons.league import Guard, League, Member, Outcome, World
from rewardlab.evals.passk import pass_curve

league = League(
    question="Which choice of problems makes a policy right most often for the tokens that are spent?",
    want="to choose the problems to train on",
    baseline="grpo",
    members=(
        Member("grpo"),
        Member("dapo"),
        Member("depo", small={"start": 0.8, "decay": 0.1}),
        Member("limr"),
        Member("prs_vspo", settings={"beta": 0.0}),
        # of its own 3,000 questions it keeps 1,200
        Member("alphamed", small={"questions": 48, "pool": 96}),
    ),
    worlds=(
        World(
            "mixed difficulty", "arithmetic:biased=0.8,error=0.05,difficulty=[2,5],size=96",
            "chains of two to five steps, of which some are always right and some never; several members' checks were made there",
            tokens=500_000,
        ),
        World(
            "several ways", "countdown:largest=30,habit=0.9,size=96",
            "numbers to be combined to a target in several ways, one of which the policy takes by habit", new=True,
            tokens=400_000,
        ),
    ),
    outcome=Outcome("pass@1", "higher", "right replies", margin=0.03),
    guard=Guard("pass@16", at_least=-0.05, says="problems that sixteen replies solve"),
    measure=pass_curve(n=16),
    # one update a step: what is compared is what it is made of
    settings={"n": 8, "problems": 16, "epochs": 1, "minibatches": 1},
    # the rows of a step are chosen, so that how many replies are right in training says nothing
    chosen_by="pass@1",
    problems=100,
    needs="Your rows need the columns prompt and answer. LIMR and DEPO learn from rows that come again, so give few enough "
    "for several passes.",
    left_out={
        "rip": "it chooses pairs of replies for DPO, by a reward model",
        "v0_5": "it reads what a value model says of each problem (a column pass_rate); to sample that would cost four times "
        "what it trains on",
        "bleuberi": "it chooses, and is paid, by likeness to reference replies, of which a number has none",
        "guru, nemotron_crossthink": "they choose among domains, and these worlds are of one",
        "guide_grpo": "it reads a column of hints",
        "coig_p, ultramedical": "they choose pairs of preferences",
    },
)  # fmt: skip
