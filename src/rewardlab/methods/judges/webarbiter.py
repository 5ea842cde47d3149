r"""WebArbiter: a judge of a web agent's next actions writes principles for this goal and page, applies them, and prefers an action.

    y = (principles, justification, verdict) ~ pi(. | goal, state, action A, action B)
    first   -log p(y*) of judgements y* by a teacher, right or wrong
    then    GRPO on r(y) = 1 if the verdict in y is the better action, else -1, with beta KL(pi || pi at the start)
    search  at each state the agent samples N actions; pairs of them are judged, the winners go on, and the last one is taken

Success at the end of many steps tells little about each of them, and a step may not be undone. A bare score of a step says nothing
of its reasons, and a fixed list of what to check breaks where pages change; principles that are written for each state do not.
Imitation teaches this order of thought together with the teacher's biases: verdicts that are paid by what is right mend them.

Zhang et al. 2026, arXiv:2601.21872 (ICLR 2026), by its abstract, its project page (five actions, a knockout of pairs), the card of
its data (o3 taught by 9,642 judgements; GRPO on 18,921 pairs, rewards of +1 and -1), and summaries; its code was not at hand.
(inferred): teacher's judgements with a wrong verdict are imitated too, unless `filtered`; the wording of the prompt; beta = .001;
8 judgements of a pair; 20 steps of imitation. Rows without a teacher's judgement are taught by right ones of the policy's own.
"""

from __future__ import annotations

from rewardlab.checks.claim import Check
from rewardlab.core import Learner, Recipe, Score, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.best_of_n import best_of_n
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import judgements_first, trained_judge
from rewardlab.rewards.judgements import right_judgement
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.knockout import knockout
from rewardlab.settings.domain import NonNegativeInt
from rewardlab.worlds.duels import FORM as SMALL_FORM

PROMPT = (
    "An agent works towards a goal on the web. Below are its goal, the state of the page with what was done so far, and two "
    "actions that it could take next. Say which one brings the goal nearer.\n\n"
    "[Goal and state]\n{prompt}\n\n[Action A]\n{first}\n\n[Action B]\n{second}\n\n[End of the actions]\n"
    "First describe in a sentence how far the task is. Then write the principles by which actions should be judged here: those "
    "that this goal and this page call for, each with its weight. Think of what an action would really do, what could not be "
    "undone, and what was done before. Then judge both actions by each principle, with what the page shows. The order in which "
    "they stand, and how well their reasons sound, say nothing. End with [[A]] or [[B]]."
)
"""What a judge is asked; the wording is ours."""
TAUGHT = ("judgement", "judgement_reversed")


@reward
def imitable(trajectory: Trajectory, *, form: str = PROMPT, filtered: bool = False) -> Score:
    """1 for a judgement to imitate: a teacher's that has a verdict, and any other whose verdict is right; else 0.

    filtered: a teacher's must be right too. The teacher's are known by the columns `judgement` and `judgement_reversed`.
    """
    meta = trajectory.problem.meta
    right = right_judgement(form=form)([[trajectory]])[0][0]
    if right.value is None or filtered or trajectory.reply not in [meta.get(column) for column in TAUGHT]:
        return right if right.value is None else Score(float(right.value > 0), why=right.why)
    reading = form_of(form).read(trajectory.reply, 2)
    return Score(float(reading.values is not None), why=f"a teacher's: {reading.said}")


def webarbiter(
    base: Recipe | None = None, *, form: str = PROMPT, distil: int = 20, sft_lr_scale: float = 5.0, filtered: bool = False,
    beta: float = 1e-3, n: int = 8, problems: int = 16, votes: int = 1, lr: float | None = None, candidates: NonNegativeInt = 0,
    judge: str = "",
) -> Recipe:  # fmt: skip
    """form: what the judge is asked.  distil, sft_lr_scale: first steps, which imitate a teacher, and their learning rate as a
    multiple of the recipe's.  filtered: only its right judgements.  beta: of the KL to the start.  n: judgements of a
    pair.  problems, votes: as in `trained_judge`.  candidates: 0 trains a judge; more: so many actions are sampled in a state,
    and a knockout of pairs takes one (`rewardlab answer`; the paper: 5).  judge: who judges there, such as a run of this
    method, loaded beside the policy; empty: the policy itself."""
    base = base or (best_of_n(n=candidates) if candidates else grpo(n=n, beta=beta))
    if candidates:
        acting = best_of_n(base, n=candidates)
        others = (Learner("judge", judge, Recipe(), every=0),) if judge else ()
        # a knockout reads no scores
        chosen = knockout(model="judge" if judge else "policy", form=form, votes=votes)
        return acting.but(reward=None, select=chosen, also=(*acting.also, *others))
    base = trained_judge(base, form=form, n=n, problems=problems, votes=votes, lr=lr)
    taught = imitable(form=form, filtered=filtered)
    first = judgements_first(first=distil, by=taught, form=form, sft_lr_scale=sft_lr_scale, inner=base.loop)
    return base.but(loop=first if distil else base.loop)


fidelity = "reading"
left_out = (
    "the search in a browser, in which the action that wins is executed and the next state is judged again: one state at a time is "
    "answered here (`candidates`); the benchmark WebPRMBench; the split of the pairs between both stages, which see the same rows"
)
data = Data(
    prompt="the goal, the state of the page, and what was done so far",
    chosen="the better next action, with its reason if there is one", rejected="the worse one",
    judgement=Column("a teacher's judgement to imitate in the first steps, where the better action stands first", optional=True),
    judgement_reversed=Column("the same where the worse action stands first, as in half of the rows it should", optional=True),
    rows=[
        {
            "prompt": "Goal: find the cheapest red kettle.\nPage: results for 'kettle'; [12] sort by, [15] colour, [31] Kettle A "
            "49.00, [38] Kettle B 25.00\nDone: typed 'kettle' into the search box.",
            "chosen": "click [15]: the results show all colours", "rejected": "click [38]: it is the cheapest one",
            "judgement": "The search is done, and nothing is filtered yet. Principles: constraints of the goal before prices (60); "
            "no page is opened that need not be (40). A filters by colour; the colour of B's kettle is not known. [[A]]",
        },
        {
            "prompt": "Goal: cancel order 88.\nPage: order 88; [4] reorder, [7] cancel order, [9] delete account\nDone: opened it.",
            "chosen": "click [7]", "rejected": "click [9]",
        },
    ],
)  # fmt: skip

SMALL = {"form": SMALL_FORM}
check = Check(
    says="after 20 steps of imitation of a biased teacher, 40 of reinforcement make a judge's verdicts on actions right more often "
    "than 40 more of imitation",
    versus="webarbiter", task="crossings", measure="judged", direction="higher", margin=0.05,
    settings={**SMALL, "distil": 20}, versus_settings={**SMALL, "distil": 60}, problems=300, steps=60,
    tried="once, all at 3e-4, on two development seeds: .725 and .745 right with reinforcement, .671 and .683 by imitation alone; "
    "before it, in a world that gave places in coordinates, the small judge stayed at chance",
    finding="from 64% right verdicts on actions, 20 steps of imitation and 40 of reinforcement lead to 75%, and 60 of "
    "imitation of the biased teacher to 68%",
)  # fmt: skip
baseline = "trained_judge"
