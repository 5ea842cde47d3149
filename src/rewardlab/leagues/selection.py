"""Which of many samples to take: votes, and best-of-n by the step scores of real process reward models on a real model's solutions.

Replies and scores are recorded: nothing is sampled, every member sees the same replies, the first n of 32, and members are compared
problem by problem.
"""

from typing import Any

from rewardlab.comparisons.league import Guard, League, Member, Outcome, World
from rewardlab.evals.passk import accuracy
from rewardlab.rewards.recorded import step_scores_in_data

N = {"n": 32}
KNOB: dict[str, Any] = {"knob": "n", "values": (2, 4, 8, 16)}
FORMS = ("last", "min", "product", "geometric", "mean")
"""How step scores are made one score."""
SCORED = [(method, form) for method in ("best_of_n", "weighted_vote") for form in FORMS]
SCORERS = {
    "qwen_prm": "Qwen2.5-Math-PRM", "skywork_prm": "Skywork-o1-Open-PRM", "skywork_prm_1_5b": "Skywork-o1-Open-PRM of 1.5B",
    "math_shepherd": "Math-Shepherd", "rlhflow_prm": "RLHFlow's PRM", "internlm2_7b_reward": "InternLM2-7B-Reward",
    "internlm2_1_8b_reward": "InternLM2-1.8B-Reward",
}  # fmt: skip


def world(name: str, scorer: str) -> World:
    problems = "word problems of GSM8K" if name == "gsm8k" else "problems of MATH-500"
    return World(
        f"{name} {scorer}", f"strictprm:{name}",
        f"{problems}, 32 recorded solutions each, with the step scores of {SCORERS[scorer]}",
        new=True, model="recorded", reward=step_scores_in_data(column=scorer), sampled=False, problems=500,
    )  # fmt: skip


league = League(
    question="Which of 32 sampled solutions should be taken, by the step scores of a real process reward model?",
    want="to choose among samples with a process reward model",
    baseline="majority_vote",
    members=(
        Member("majority_vote", settings=N, **KNOB),
        Member("one sample", "best_of_n", settings={"n": 1}, by="last"),
        *(Member(f"{method} {form}", method, settings=N, by=form, **(KNOB if form == "min" else {})) for method, form in SCORED),
    ),
    worlds=(*(world("gsm8k", scorer) for scorer in SCORERS), world("math500", "qwen_prm")),
    outcome=Outcome("accuracy", "higher", "right answers", margin=0.02),
    guard=Guard("tokens_per_answer", at_most=1.0, says="tokens per answer", scale="plain", unit="tokens"),
    measure=accuracy(),
    learns=None,
    problems=500,
    needs="Your rows need the columns prompt and answer, and a scorer of steps (`--reward`). If you have sampled and scored "
    "replies already, put them in your rows as lists, in columns replies and scores: `--model recorded --reward "
    "step_scores_in_data` compares by them, and samples nothing.",
    first="`weighted_vote` by the product of step scores (below the vote in none of eight)",
    advice="**Replies and scores are real**: 32 solutions of one model to each problem, and the step scores of five process "
    "reward models, and of two general ones (InternLM2). The seven worlds of GSM8K are the same replies under seven scorers, so "
    "that \"2 of 8\" worlds are two scorers on GSM8K.\n\n"
    "- On GSM8K one sample is right in {gsm8k qwen_prm/one sample}, a vote of 32 in {gsm8k qwen_prm/majority_vote}, and "
    "best-of-32 by the mean of step scores in {gsm8k qwen_prm/best_of_n mean} with qwen_prm and {gsm8k skywork_prm/best_of_n "
    "mean} with skywork_prm. Of the ten ways to use step scores (five aggregations, for best-of-n and for a weighted vote) "
    "six are better than the vote with qwen_prm, and five with skywork_prm.\n"
    "- With the other five scorers none is shown to be better, and none to be worse. A weighted vote was right in at least "
    "{gsm8k math_shepherd/weighted_vote mean} on GSM8K with every scorer; best-of-n fell to {gsm8k "
    "internlm2_7b_reward/best_of_n min}, undecided.\n"
    "- On MATH-500 qwen_prm takes the vote's {math500 qwen_prm/majority_vote} to {math500 qwen_prm/best_of_n product} by the "
    "product of step scores, undecided on 477 problems.\n"
    "- Which aggregation is best differs between scorers and is not decided. `weighted_vote` by the product is the choice that "
    "cannot hurt much: it was below the vote in none of the eight worlds, while best-of-n by the mean, as high or higher where a "
    "scorer is good, was below it with both InternLM2 models ({gsm8k internlm2_1_8b_reward/best_of_n "
    "mean}). Tokens are those of the replies alone: what the scorer reads comes on top.",
)  # fmt: skip
