"""Rewards without labels: from reference answers that nobody verifies, from agreement among replies, from the policy's confidence.

GRPO with labels is the mark. Rates are chosen by labels, on development seeds, for all: who has no labels cannot do that, so that
these are the best cases. Where reward and right replies part is shown beside.
"""

from rewardlab import registry
from rewardlab.comparisons.league import Guard, League, Member, Outcome, World
from rewardlab.evals.passk import pass_curve

MAJORITY = registry.part("reward", "co_reward/with_majority", voters="own")

league = League(
    question="How much of what labels teach is learnt without a verifier, or without any answers?",
    want="to train without labels",
    baseline="grpo",
    members=(
        Member("grpo"),
        # they read the reference answer, and no verdict
        Member("rlpr"),
        Member("dro_r3"),
        # these read no answer; a problem in two wordings counts as two
        Member("co_reward", settings={"problems": 4}, columns=("rewrite",)),
        Member("majority", "grpo", reward=MAJORITY),
        Member("answer_confidence", "grpo", reward=registry.part("reward", "answer_confidence")),
        # minus the entropy of a reply's tokens, and the other KL, Intuitor's
        Member("negentropy", "grpo", reward=registry.part("reward", "negentropy")),
        Member("self_certainty", "grpo", reward=registry.part("reward", "self_certainty")),
    ),
    worlds=(
        World(
            "errors by habit", "wordings",
            "chains of four steps in one of two wordings, in each of which the policy errs by a habit, so that the most frequent "
            "of eight answers is right in half of the problems; co_reward's check was made there",
        ),
        World(
            "errors by chance", "wordings:difficulty=3,biased=0.1,error=0.12",
            "chains of three steps in which the policy mostly slips by chance, so that the most frequent of eight "
            "answers is right in two thirds of the problems",
            new=True,
        ),
    ),
    outcome=Outcome("pass@1", "higher", "right replies", margin=0.03),
    guard=Guard("pass@16", at_least=-0.05, says="problems that sixteen replies solve"),
    measure=pass_curve(n=16),
    settings={"n": 8, "problems": 8, "epochs": 1, "minibatches": 1},
    steps=60,
    problems=100,
    needs="Your rows need the column prompt and, to train and to hold out, answer: rlpr and dro_r3 read it as a reference, "
    "grpo is paid by it, and all are measured by it. rewrite, if you have it, is the question in other words.",
    advice="- **You have reference answers**: begin with `rlpr`, counted as equal to GRPO with labels in both worlds ({errors by "
    "habit/rlpr}, labels {errors by habit/grpo}; {errors by chance/rlpr}, labels {errors by chance/grpo}), for {errors by "
    "chance/rlpr.tokens} the tokens.\n"
    "- **You have no answers**: label a hundred rows, and see how often the answer that most of eight replies give is right "
    "(`rewardlab answer majority_vote --n 8 --test labelled.jsonl --model path/to/model`). Where it was right in two thirds of the "
    "problems, `grpo` with the majority as reward taught half of what labels teach ({errors by chance/majority}, labels {errors by "
    "chance/grpo}, 47.2% at the start); where in half of them, since errors were a habit, nothing ({errors by habit/majority}, "
    "35.8% at the start). Take a third of the usual rate, and watch those hundred rows.\n"
    "- **Confidence as a reward** taught nothing in either world, be it the likelihood of the answer (`answer_confidence`) or "
    "minus the entropy of all tokens (`negentropy`). Intuitor's reward, `self_certainty`, is the other KL, of the uniform "
    "distribution to the policy's, and was not run.",
    first="`rlpr` where rows have reference answers; else see how often majorities are right",
    left_out={
        "crew_confidence_as_reward": "it pairs right with wrong replies, for which it needs labels; its confidence alone is in it",
        "flr_followup_likelihood": "it asks what a user would say next, which the small policies of these worlds never read",
        "absolute_zero": "it learns from programs that it makes up, and never sees these problems",
        "sar_self_aligned_reward, rlfr, igpo": "they add to a verdict, and need labels for it",
        "cream": "it learns from pairs; it is in the league preferences",
    },
)  # fmt: skip
