"""Scorers of steps from labelled solutions: which form, loss and labels make the one that picks right solutions.

All learn from the same solutions, as many of them, and choose among the same held-out ones.
"""

from rewardlab.comparisons.league import League, Member, Outcome, World

SURPRISE = {"init": "value-head:surprise"}
"""A head that also reads how surprised the model was at each token: a plain one stays at chance for hundreds of solutions."""
SMALL = {"plain head": "it stays at chance with so few solutions", "generative": "the small policy has no chat template"}

league = League(
    question="You have solutions with labelled steps: which scorer learns most from them?",
    want="to train a scorer on labelled steps of your own",
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
            settings={**SURPRISE, "problems": 16}, model="smollm2", lora_rank=16, steps=40, problems=320, rates=(3e-4,), pairs=5,
            new=True, varied=False,
            absent=dict.fromkeys(("first error", "rank", "implicit outcome"), "a run takes minutes"),
        ),
    ),
    outcome=Outcome("chosen", "higher", "right solutions among the chosen of eight", margin=0.05),
    measure=None,
    learns="chosen",
    settings={"problems": 32},
    steps=60,
    rates=(3e-4, 1e-3, 3e-3),
    chosen_by="chosen",
    problems=800,
    answers=False,
    costs={
        "by_auc": "right solutions worth more than wrong ones to the same question",
        "step_auc": "right steps above wrong ones", "first_error_f1": "F1 of first errors, as ProcessBench has it",
    },
    needs="Your rows need the columns prompt, steps and labels, and right, which says whether the solution's answer is right; what "
    "decides is how often the solution that is chosen among those to a held-out question is right, so give several to each.",
    left_out={
        "soft, mse, quantile": "labels of these worlds are right or wrong, from which these losses learn what the others do",
        "scorers that write what they think": "genprm, thinkprm and fover need a model that can verify in words",
    },
)  # fmt: skip
