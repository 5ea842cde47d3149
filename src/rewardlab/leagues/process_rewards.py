"""Process reward models: whose labels, and which loss, make a model that picks a right one of eight replies.

The policy samples, continues, and stays as it is. All spend as many tokens, those of continuations among them: whoever labels a
step by more tries labels fewer steps. Each is measured as its paper chooses: by a reply's worst step, its last, or their product.
"""

from rewardlab.comparisons.league import League, Member, Outcome, World

TAUGHT = {"init": "embedded:arithmetic:judge"}
"""A trunk that was taught to judge: on a small policy's own, heads hardly learn from so few labels."""
TOKENS = 150_000

league = League(
    question="Which labels of steps, and which loss, make a process reward model that picks right replies?",
    want="to train a process reward model",
    baseline="hard labels",
    members=(
        # Math-Shepherd's: a step is right if one of its continuations is
        Member("hard labels", "pqm", settings={"loss": "bce"}, small=TAUGHT),
        Member("soft labels", "er_prm", settings={"eta": 0.0}, small=TAUGHT),
        Member("er_prm", small=TAUGHT),
        Member("pqm", small=TAUGHT),
        Member("omegaprm", small=TAUGHT),
        Member("scan", small=TAUGHT),
        # a model of the policy's kind, taught by outcomes alone; beta is for replies of hundreds of tokens
        Member("implicit_prm", small={"beta": 0.5}),
    ),
    worlds=(
        World(
            "biased", "arithmetic:biased=0.75,error=0.1",
            "chains of three steps by a policy that errs by a habit; several members' checks were made there",
            tokens=TOKENS, starts=3,
        ),
        World(
            "long", "arithmetic:biased=0.8,error=0.05,difficulty=[2,5]",
            "chains of two to five steps; two members' labels were checked there",
            tokens=TOKENS, starts=3,
        ),
        World(
            "redundant", "arithmetic:biased=0.75,error=0.1,redundant=0.4",
            "solutions with lines that only check, of which continuations tell nothing new",
            tokens=TOKENS, starts=3, new=True,
        ),
        World(
            "another habit", "arithmetic:biased=0.85,error=0.05,rules=+-",
            "chains of three steps by a policy that forgets to carry and to borrow, and multiplies rightly",
            tokens=TOKENS, starts=3, new=True,
        ),
    ),
    outcome=Outcome("reranked", "higher", "best-of-8 accuracy", margin=0.03),
    measure=None,
    learns="reranked",
    settings={"choose": 8},
    rates=(1e-4, 3e-4, 1e-3),
    chosen_by="reranked",
    problems=200,
    needs="Your rows need the columns prompt and answer; replies are in steps, one a line. What decides is how often the best of "
    "eight replies to held-out problems is right.",
    advice="- **Label every step by continuations.** With 150,000 tokens such a model picks a right one of eight replies in "
    "{biased/hard labels} and {another habit/hard labels} of the problems of two worlds; before it learnt, in 36% and 43%. "
    "Whether a label is 0 or 1, a share, or soft-best (er_prm) makes no difference that matters, or none that eight runs from "
    "three initial policies tell.\n"
    "- **scan** labels wrong replies to problems that are mostly solved, and ends where labels of every step do "
    "({another habit/scan}) in the one world that it was run in as it is now. In `biased` it ended at 23.1% before its labels were "
    "mended.\n"
    "- **implicit_prm** needs no labels of steps, spends the same tokens on more replies, and ends at {biased/implicit_prm} and "
    "{another habit/implicit_prm}: in the first about what a majority vote gives for nothing, in the second about where it began.\n"
    "- **pqm**, which compares steps, ends no higher than a random choice ({biased/pqm}, {another habit/pqm}): so few labels are "
    "not enough for it.\n"
    "- **omegaprm** ends below it ({biased/omegaprm}, {another habit/omegaprm}). It spends its tokens on finding first errors in "
    "wrong replies, so that most of its labels are of wrong steps, and all that it knows of last lines is that they are wrong. In "
    "some 25 updates a model learns from that how common errors are, and little of where. Eight passes over the same labels "
    "(`--epochs 8 --init embedded:arithmetic:judge`, one seed each, beside the league) took it to 24% at 3e-4 and 17% at 1e-3 in "
    "`biased`. It is made for long solutions and a large file of labels, which these are not.\n"
    "- **Rates**: in `another habit` hard and soft labels, er_prm and scan did best at 9e-6, the lowest rate that was tried: their "
    "trunk had been taught to judge, and higher rates undid that (hard labels: 62% at 9e-6, 60% at 1e-4, 36% at 1e-3 on the seeds "
    "of this choice). implicit_prm, which has no such trunk, chose it too, and so learnt next to nothing there.\n"
    "- **With lines that only check** (`redundant`) even labels of every step hardly teach with 150,000 tokens: 34%, where a"
    " random choice is right in 28% of the problems. With two to five steps (`long`) they teach nothing: 37.8%, 37.5% at the"
    " start. That is too little to compare anything with: what is said above was seen in chains of three steps, and long "
    "solutions need more labels than these.",
    first="labels by `prm label --by monte-carlo`",
    left_out={
        "genprm, thinkprm": "they write what they think of a step, and cost many times the tokens; small policies cannot",
        "groundedprm, rest_mcts_star": "their models guide a search step by step, and are measured there",
        "meds3, prime, rl_tango": "they train the policy too",
        "aurora_universal_prm": "its labels are written by a judge, which the small policies of these worlds are not",
        "hierarchical_reward_model, glore, fover": "what they are for is not to pick replies: steps after an error, where to begin "
        "anew, formal proofs",
    },
)  # fmt: skip
