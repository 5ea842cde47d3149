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
            "chains of arithmetic whose policy errs by habit; right beginnings are scored above wrong ones 90 times in 100",
            reward=imperfect(auc=0.9, inner=correct_so_far()),
        ),
        World(
            "poor scorer", "arithmetic:biased=0.8,error=0.05,difficulty=[2,5]",
            "chains of two to five steps; right beginnings are scored above wrong ones 70 times in 100", new=True,
            reward=imperfect(auc=0.7, inner=correct_so_far()),
        ),
    ),
    outcome=Outcome("accuracy", "higher", "right answers", margin=0.02),
    guard=Guard("tokens_per_answer", at_most=100.0, says="tokens per answer", scale="plain", unit="tokens"),
    measure=accuracy(),
    learns=None,
    problems=150,
    advice="If you have a scorer of steps, search step by step: with the tokens of sixteen whole replies, of which the best by the"
    " same scorer is right in {good scorer/best_of_n}, REBASE gets {good scorer/rebase}, and beams, particles and DVTS "
    "nearly as much. With a poor scorer REBASE and PRISM still lead ({poor scorer/rebase} and {poor scorer/prism} against "
    "{poor scorer/best_of_n}). A vote without a scorer did not help where the policy errs by a habit ({good "
    "scorer/majority_vote}); nor did MCTS, which stopped at {good scorer/mcts.tokens} the tokens, or rejecting steps early."
    " The scorers here know the truth through errors that stay along a reply; how good yours is, `rewardlab prm eval` says.",
)  # fmt: skip
