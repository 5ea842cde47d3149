"""Compute at test time: many ways to spend as many tokens on an answer, by a scorer that errs as trained ones do.

The scorer sees whether all steps so far are right, through noise that it keeps along a reply: what it misjudges once it goes on
misjudging. Settings were chosen by tokens alone, so that all spend about as many as sixteen samples.
"""

from rewardlab.comparisons.league import Guard, League, Member, Outcome, World
from rewardlab.evals.passk import accuracy
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.imperfect import imperfect

league = League(
    question="How should the tokens of sixteen samples be spent on an answer?",
    want="to spend compute at test time",
    baseline="best_of_n",
    members=(
        Member("best_of_n", settings={"n": 16}),
        Member("one sample", "best_of_n", settings={"n": 1}),
        Member("majority_vote", settings={"n": 16}),
        Member("weighted_vote", settings={"n": 16}),
        Member("beam_search", settings={"width": 4, "branch": 4}),
        Member("dvts", settings={"trees": 4, "branch": 4}),
        Member("rebase", settings={"n": 16}),
        Member("mcts", settings={"iterations": 32, "branch": 4}),
        Member("particle_filtering", settings={"n": 16}),
        Member("speculative_rejection", settings={"n": 31, "every": 8}),
        Member("prism", "prism_deepthink", settings={"n": 6, "rounds": 3, "temperature": 1.0}),
        Member("early_rejection", settings={"width": 5, "branch": 4, "tokens": 5, "temperature": 1.0}),
    ),
    worlds=(
        World(
            "good scorer", "arithmetic:biased=0.75,error=0.1",
            "chains of arithmetic whose policy errs by habit; the scorer ranks right prefixes above wrong ones with AUC .90",
            reward=imperfect(auc=0.9, inner=correct_so_far()),
        ),
        World(
            "poor scorer, longer chains", "arithmetic:biased=0.8,error=0.05,difficulty=[2,5]",
            "chains of two to five steps; the scorer ranks right prefixes above wrong ones with AUC .70", new=True,
            reward=imperfect(auc=0.7, inner=correct_so_far()),
        ),
    ),
    outcome=Outcome("accuracy", "higher", "right answers", margin=0.02),
    guard=Guard("tokens_per_answer", at_most=100.0, says="tokens per answer", scale="plain", unit="tokens"),
    measure=accuracy(),
    learns=None,
    needs="Your rows need the columns prompt and answer, and a scorer of steps (`--reward`): without one, searches go by the "
    "policy's own likelihood.",
    problems=150,
    first="`rebase`, with a scorer of steps",
    advice="**The scorers are simulated, not trained**: the truth about the steps so far, through noise that stays the same "
    "along a reply. Real scorers have systematic errors, which a search finds and exploits; these have none.\n\n"
    "- With a scorer of steps, try `rebase` first: it is better than best-of-n in both worlds ({good scorer/rebase} against "
    "{good scorer/best_of_n}, and {poor scorer, longer chains/rebase} against {poor scorer, longer chains/best_of_n}), at "
    "the tokens of sixteen whole replies. So is `prism` ({poor scorer, longer chains/prism.effect} with the poor scorer).\n"
    "- Beams, DVTS, particles and speculative rejection are better with the good scorer and undecided with the poor one, "
    "where differences of up to {poor scorer, longer chains/beam_search.effect} were not decided.\n"
    "- A vote without the scorer ({good scorer/majority_vote}), early_rejection and MCTS are worse than best-of-n with the "
    "good scorer. MCTS stopped at {good scorer/mcts.tokens} of the tokens, so that it was not tested at the full budget.",
)  # fmt: skip
