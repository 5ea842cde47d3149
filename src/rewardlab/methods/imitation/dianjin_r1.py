"""DianJin-R1: SFT on a teacher's verified traces, then GRPO on the questions without a verified trace in three tries.

    a teacher answers;   passed: the answer is right AND the reasoning holds;   what fails is tried again, T = 3 times in all
    SFT:  <think> reasoning </think><answer> answer </answer>  of the questions that passed
    GRPO: r = 1[each tag once, and the answer is right],   on the questions that never passed

A right answer may follow from wrong reasoning, which SFT would copy: so both are checked. What the teacher cannot solve has no
trace to copy, and is what is left to learn by trying; what it solves at once would teach GRPO little.

Zhu et al. 2025, arXiv:2504.15716. The reward is that of the released code (DianJin-R1/README.md, src/rl/reward_score_cflue.py
in a copy of aliyun/qwen-dianjin, Xianchao-Wu/qwen-dianjin c4aca50): 1 for form and answer together, where the paper speaks of two
rewards; there the answer stands in a box as well. n = 8 and a KL of .001 are its grpo.sh's, and SFT at ten times the rate that of
qwen2.5_sft.yaml. What makes the traces is not public: T = 3, the two checks, and that the 4,096 questions of GRPO are those that
failed, are as a public reproduction tells it (distill_cot.py, "rebuilt by the paper"). (inferred): how the steps are divided.
Choices are put as open questions by rewardlab data template.

A teacher is a setting (teacher=PATH; by default the policy as it is), and so is what checks reasoning: consistent=judge or a
rule. Without it the answer alone is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Learner, Loop, Recipe, Run, loop
from rewardlab.data.columns import Column, Data
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.algebra import threshold
from rewardlab.rewards.format import answer_given, tagged
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.tasks.positions import chosen, distinct_positions
from rewardlab.text.rationale import rationale
from rewardlab.util.progress import in_batches

# ---- Reasoning and answer between tags -------------------------------------------------------------------------------


def in_tags(reply: str) -> str | None:
    """A reply as <think>rationale</think><answer>the rest</answer>; None where one of the two is empty.

    Reasoning models close <think> and answer without a tag, and templates open <think> for them, in the prompt: both are mended.
    """
    thought, (_, closed, rest) = rationale(reply), reply.rpartition("</think>")
    answer = rest if closed else reply.strip().removeprefix(thought)
    if "<answer>" in answer:
        answer = answer.partition("<answer>")[2].partition("</answer>")[0]
    return f"<think>{thought}</think><answer>{answer.strip()}</answer>" if thought and answer.strip() else None


# ---- the recipe ---------------------------------------------------------------------------------------------------------

TEACHER, TRACES, HARD, TRACE = "teacher", "dianjin_r1.traces", "dianjin_r1.hard", "trace"
AT_ONCE = 128


def passed(ops: Any, positions: Sequence[int], attempts: int, tags: bool) -> dict[int, str]:
    """The first trace of the teacher, to the question at each position, that its check passes. Who failed is asked again."""
    source, teacher, left, traces = ops.task.train, ops.learners[TEACHER], list(positions), {}
    for attempt in range(1, attempts + 1):
        for some in in_batches(f"traces of the teacher (once), attempt {attempt}", left, AT_ONCE):
            groups = ops.rollout([source[i] for i in some], teacher)
            for i, (t,), (score,) in zip(some, groups, ops.score(groups, teacher), strict=True):
                # without a verdict a trace has not passed
                if score.total is not None and score.total >= 1.0 and (trace := in_tags(t.reply)):
                    traces[i] = trace if tags else t.reply
        left = [i for i in left if i not in traces]
    return traces


@loop(wraps="inner", first=("steps",))
def traces_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: NonNegativeInt, attempts: PositiveInt = 3, pool: PositiveInt = 1000,
    sft_lr_scale: PositiveFloat = 10.0, tags: bool = True, inner: Loop | None = None,
) -> None:  # fmt: skip
    """`steps` of SFT on the traces that passed, of the next `pool` questions of the data; then the recipe, on the questions that
    never passed, with a fresh optimiser. Where none passed, or all did, both stages have all questions that there are.

    run.memory holds the traces and the others, by position. Logged: passed, the share of the questions.  inner: how a step is
    taken.
    """
    if HARD not in run.memory:
        asked = distinct_positions(ops.task.train, ops.position, pool)
        traces = passed(ops, asked, attempts, tags)
        run.memory |= {TRACES: [list(row) for row in traces.items()], HARD: [i for i in asked if i not in traces] or asked}
    kept: Mapping[int, str] = dict(run.memory[TRACES])
    if kept and 0 < run.step == steps:
        ops.new_stage()
    learns_traces, step = run.step < steps and bool(kept), recipe
    if learns_traces:
        source = chosen(ops.task.train, list(kept), TRACES, run.seed, {i: {TRACE: text} for i, text in kept.items()})
        step = sft(field=TRACE, lr=min(1.0, sft_lr_scale * recipe.update.rate), problems=recipe.update.problems)
    else:
        source = chosen(ops.task.train, run.memory[HARD], HARD, run.seed)
    if source is not ops.task.train:
        ops.task = replace(ops.task, train=source)
    inner(step, run, ops) if inner else ops.standard_step(step)
    run.log("passed", len(kept) / len({*kept, *run.memory[HARD]}))


def dianjin_r1(
    base: Recipe | None = None, *, teacher: str = "copy:policy", consistent: Reward | None = None, attempts: int = 3,
    pool: int = 1000, sft_steps: int = 20, sft_lr_scale: float = 10.0, tags: bool = True, n: int = 8,
    beta: float = 0.001,
) -> Recipe:  # fmt: skip
    """teacher: the model that writes traces.  consistent: a reward that is at least 1 where reasoning holds.  attempts: T.  pool:
    questions that the teacher is asked.  sft_steps: of SFT; GRPO has the rest.  sft_lr_scale: the learning rate of SFT, as a
    multiple of GRPO's.  tags: false for a policy that does not know them: traces stay as they are, and the form is that an answer
    is stated. n, beta: of GRPO.
    """
    base = base or grpo(n=n, beta=beta)
    right = base.reward or correct()
    check = threshold(correct(), at=1.0)
    if consistent is not None:
        check = check * threshold(consistent, at=1.0)
    asked = Recipe(rollout=independent(n=1), reward=check)
    return base.but(
        reward=right * (threshold(tagged(), at=1.0) if tags else answer_given()),
        loop=traces_first(steps=sft_steps, attempts=attempts, pool=pool, sft_lr_scale=sft_lr_scale, tags=tags, inner=base.loop),
        also=(*base.also, Learner(TEACHER, teacher, asked, every=0)),
    )


fidelity = "core"
left_out = (
    "what makes the traces is not public, and follows a reproduction; SFT on the bare answers of the questions that "
    "failed, temperature .6 and top-p .95 of GRPO's rollouts and its four updates a batch (--minibatches 4), and agents whose talk "
    "becomes traces (CCC)"
)
data = Data(
    answer="the gold answer",
    options=Column(
        "the choices, a list of texts, for a check of reasoning that reads them (consistent=rationale_agrees)", optional=True
    ),
    rows=[
        {"prompt": "A bond of 1000 pays 4% a year. How much does it pay in 3 years?", "answer": "120"},
        {"prompt": "A share costs 80 and pays a dividend of 2. What is the dividend yield in percent?", "answer": "2.5"},
        {
            "prompt": "Which rises when interest rates fall? A: bond prices B: bond yields. Answer with a letter.",
            "answer": "A",
            "options": ["bond prices", "bond yields"],
        },
    ],
)

GIVEN = {"problems": 16, "pool": 256, "lr": 3e-4, "sft_lr_scale": 3.0, "tags": False}
claim = Claim(
    says="GRPO on the questions that no trace was found for, after SFT, gets more right than going on with SFT for as many updates",
    versus="dianjin_r1", task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.055,
    settings={**GIVEN, "sft_steps": 15}, versus_settings={**GIVEN, "sft_steps": 45}, steps=45,
    fault=Within("pass@1", high=0.7, says="right after SFT on the traces alone"),
    tried="with tags, which the small policy has to learn to spell: after 45 steps of SFT 1 reply in 100 was right (3 seeds)",
    finding="36% right before; SFT alone ends at 60%, SFT and then GRPO on the questions without a trace at 70%, for ten times "
    "the tokens. Whether these questions teach more than any others is not tested",
)  # fmt: skip
baseline = "grpo"
