r"""VLM-R1: R1-style RL of a vision-language model on visual tasks with exact checks.

    R_acc = IoU(box, gold)                                             where one object is referred to; 0 without an answer in tags
    R_acc = min(1, n_gold / n_pred) * mAP(boxes, gold)                 where all objects are to be detected (odLength)
    R = R_acc + R_format;   GRPO with a KL to the starting policy

Shen et al. 2025, arXiv:2504.07615, and om-ai-lab/VLM-R1 (grpo_jsonl.py). Without the factor `od_length`, extra boxes after the last
hit cost nothing, and the policy learns to write more and more of them. R_format asks for the answer between its tags, and with
`think` for reasoning before it, as in the paper: the small policy writes none.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Run, Score, Scores, Trajectory
from rewardlab.data.columns import Column, Data
from rewardlab.errors import unknown
from rewardlab.evals.rewards import mean_reward
from rewardlab.evals.term_means import term_means
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.regularise import kl_to_reference
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.reward import reward
from rewardlab.worlds.scenes import BOX, average_precision, first_box_iou, no_more_boxes

FORMAT = rf"<answer>[^<]*({BOX.pattern}|[Nn]one)[^<]*</answer>"
THOUGHT = r"<think>.*?</think>\s*"


@reward(over="groups")
def seen(groups: list[Group], run: Run, *, od_length: bool = True) -> Scores:
    """IoU where the problem refers to one object, average precision where it asks for all: as meta["kind"] says, "refer" or
    "detect", or else as there are one or several boxes in meta["boxes"]. 0 for a reply without <answer> and </answer>."""
    detection = average_precision() * no_more_boxes() if od_length else average_precision()
    rewards = {"refer": first_box_iou(), "detect": detection}
    # group by group, since a batch may mix both kinds of problems
    scores = [rewards[_kind(group[0].problem)]([group], run)[0] for group in groups]
    return [[_paid(t, s) for t, s in zip(*rows, strict=True)] for rows in zip(groups, scores, strict=True)]


def _paid(trajectory: Trajectory, score: Score) -> Score:
    """The score, or 0 without an answer between tags, for which od_reward, odLength_reward and iou_reward of the release ask."""
    answered = "</answer>" in trajectory.reply.rpartition("</think>")[2].partition("<answer>")[2]
    return Score(score.value, why=score.why) if answered else Score(0.0, why="no answer between its tags")


def _kind(problem: Problem) -> str:
    problem.required(
        "boxes", by="vlm_r1", how="They are the gold boxes, a list of [left, top, right, bottom], and the prompt has an image"
    )
    kind = problem.meta.get("kind", "refer" if len(problem.meta["boxes"]) == 1 else "detect")
    if kind not in ("refer", "detect"):
        raise unknown("kind of a problem with boxes", str(kind), ("refer", "detect"))
    return kind


def vlm_r1(base: Recipe | None = None, *, beta: float = 0.04, od_length: bool = True, think: bool = False) -> Recipe:
    """beta: weight of the KL.  od_length: whether surplus boxes are penalised.  think: whether the form demands reasoning, between
    <think> and </think> before the answer; else it may be there.
    """
    base = base or grpo().but(measure=mean_reward())
    return base.but(
        reward=seen(od_length=od_length) + format_ok(pattern=(THOUGHT if think else f"({THOUGHT})?") + FORMAT),
        objective=base.required("objective") + beta * kl_to_reference(),
    )


fidelity = "core"
left_out = (
    "labels of boxes, which COCO's precision compares too: all boxes of a row are of what its prompt asks for; the rewards for "
    "other tasks (choices, yes or no, numbers, a judge); and freezing the vision tower"
)
data = Data(
    prompt="what to find; a mark <image> in it says where the picture stands, else before the text",
    images="pictures: paths, base64, or as datasets hold them; the column may be `image`, or --image-column names it",
    boxes="the gold boxes, [left, top, right, bottom] each",
    answer="any text: boxes are compared",
    kind=Column(
        '"refer" to one object or "detect" all; without it, one gold box is referred to, and several are detected', optional=True
    ),
    rows=[
        {
            "prompt": "<image>Where is the red square?",
            "boxes": [[0, 0, 20, 20]],
            "answer": "box",
            "images": [
                "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACQAAAAkAQMAAADbzgrbAAAABlBMVEX/////AADrWueTAAAAFklEQVR42mP4//8DAwMTAwM"
                "DfUlaAwCLIQMV/QWhDgAAAABJRU5ErkJggg=="
            ],
        },
        {
            "prompt": "<image>Where are the two blue squares?",
            "boxes": [[0, 0, 12, 12], [20, 20, 32, 32]],
            "answer": "boxes",
            "images": [
                "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACQAAAAkAQMAAADbzgrbAAAABlBMVEX///8AAP94wDzzAAAAGklEQVR42mP4/4GBgYGJgYF"
                "CkgzA/5+G9gIAFXYDKpK7jL8AAAAASUVORK5CYII="
            ],
        },
    ],
)

claim = Claim(
    says="the price on boxes too many keeps replies to as many boxes as there are, at the same precision, where mAP alone is gamed",
    versus="vlm_r1", task="scenes:refer=0.0,extra=0.5", measure="no_more_boxes", direction="higher", margin=0.1,
    settings={"lr": 3e-4}, versus_settings={"od_length": False, "lr": 3e-4},
    by=term_means(reward=average_precision() + no_more_boxes()), problems=500, steps=30,
    guard=Within("average_precision", low=-0.03),
    fault=Within("no_more_boxes", high=0.85, says="boxes that there are to boxes written, paid by mAP alone"), learns=None,
    tried="`scenes` with half of its problems about one box: .377 and .377 in reward; this for 60 updates: +.33 on one pair",
    finding="1.2 boxes are written for each that is there, and 1.7 with mAP alone (1.4 before); mAP is 33% and 36% (23% "
    "before): some of the extra boxes hit by luck, and the price of boxes takes those away as well",
    version=2, replaces="tokens were the budget; it compared the reward, of which the form is most",
)  # fmt: skip
