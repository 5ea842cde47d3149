"""Scorers of steps from labelled solutions: which form, loss and labels make the one that picks right solutions.

All learn from the same solutions, as many of them, and choose among the same held-out ones.
"""

from rewardlab.comparisons.league import League, Member, Outcome, World

SURPRISE = {"init": "value-head:surprise"}
"""A head that also reads how surprised the model was at each token: a plain one stays at chance for hundreds of solutions."""
SMALL = {"plain head": "it stays at chance with so few solutions", "generative": "the small policy has no chat template"}

league = League(
    question="You have solutions with labelled steps: which scorer learns most from them?",
    want="to learn from solutions with labelled steps",
    baseline="steps",
    members=(
        Member("steps", "step_scorer"),
        Member("first error", "step_scorer", settings={"taught": "first-error"}),
        Member("outcome", "step_scorer", settings={"taught": "outcome", "by": "last"}),
        Member("rank", "step_scorer", settings={"loss": "rank"}),
        # beta is for solutions of hundreds of tokens
        Member("implicit", "step_scorer", settings={"form": "implicit"}, small={"beta": 0.5}),
        Member(
            "implicit outcome", "step_scorer", settings={"form": "implicit", "taught": "outcome", "by": "last"}, small={"beta": 0.5}
        ),
        Member("generative", "step_scorer", settings={"form": "generative"}),
        Member("plain head", "step_scorer", settings={"init": "value-head"}),
    ),
    worlds=(
        World(
            "habits", "labelled_solutions:biased=0.5,size=300",
            "three hundred chains of three steps by writers with a habit, so that wrong steps look likely; labels are true",
            settings=SURPRISE, starts=3, new=True, absent=SMALL,
        ),
        World(
            "noisy labels", "labelled_solutions:biased=0.5,noise=0.2,size=300",
            "the same, where one label of a step in five is turned round; whether a solution is right is known", settings=SURPRISE,
            starts=3, new=True, absent=SMALL,
        ),
        World(
            "on SmolLM2", "labelled_solutions", "chains of three steps by writers who err at random, read by a pretrained model",
            settings={**SURPRISE, "problems": 16}, model="smollm2", lora_rank=16, steps=30, problems=160, rates=(1e-3,), pairs=5,
            varied=False,
            absent=dict.fromkeys(("first error", "outcome", "rank", "implicit outcome", "generative"), "a run takes minutes"),
        ),
    ),
    outcome=Outcome("by_auc", "higher", "right solutions worth more than wrong ones to the same question", margin=0.03),
    measure=None,
    learns="by_auc",
    settings={"problems": 32},
    steps=60,
    rates=(3e-4, 1e-3, 3e-3),
    chosen_by="by_auc",
    problems=800,
    answers=False,
    costs={
        "chosen": "questions whose chosen solution is right",
        "step_auc": "right steps above wrong ones", "first_error_f1": "F1 of first errors, as ProcessBench has it",
    },
    needs="Your rows need the columns prompt, steps and labels, and right, which says whether the solution's answer is right; what "
    "decides is how often a right solution is worth more than a wrong one to the same held-out question, so give several to each.",
    advice="- **A plain head learns slowly.** On SmolLM2 it tells right solutions from wrong ones no better than chance after 30 "
    "updates of 16 solutions ({on SmolLM2/plain head}). A head that also reads how surprised the model was at each token gets to "
    "{on SmolLM2/steps}, and `--as implicit`, the model's likelihood relative to what it was, to {on SmolLM2/implicit}. So with "
    "few labels begin with `--as implicit`, which can be saved, as a head that reads surprise cannot. Its `--beta` was 0.5 here, "
    "for solutions of thirty to fifty tokens; 0.05, the default, is for hundreds.\n"
    "- **Labels of steps or verdicts on the whole**: read by the implicit scorer, verdicts alone end where labels of every step do "
    "({habits/implicit outcome} and {habits/implicit}, by a head {habits/steps}), and where one label of a step in five is wrong "
    "they have the highest mean ({noisy labels/implicit outcome}; {noisy labels/steps}), which is undecided. On a head verdicts "
    "teach less ({habits/outcome}), undecided too: it varies by tens of points from one initial policy to another, and in the "
    "check of `multi_rm`, at the rate 1e-3, it ends at 76%, and a head of labels up to the first error, one in five "
    "wrong, at 80%.\n"
    "- **Labels up to the first error** are as good as all of them: {habits/first error} and {noisy labels/first error}.\n"
    "- **rank**, which compares steps, has a lower mean in both ({habits/rank}, {noisy labels/rank}), undecided.\n"
    "- **How a solution is made one number** matters as much: by `prm eval` on solutions with verdicts you see which of least "
    "step, last step, product and mean chooses best for your scorer.",
    first="`prm train --as implicit`",
    left_out={
        "soft, mse, quantile": "labels of these worlds are right or wrong, from which these losses learn what the others do",
        "scorers that write what they think": "genprm, thinkprm and fover need a model that can verify in words",
    },
)  # fmt: skip
