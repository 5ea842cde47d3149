"""CodeRM-8B: choose programs by the number of model-written tests they pass, with more tests for hard problems.

    P_ij = 1 if program i passes generated test j;     chosen: argmax over i of sum_j P_ij, of equals one of the largest set of rows
    that are alike;     tests are given one by one to the problem where the next adds most to 1 - (1 - rate)^tests

Test writers are confident and often wrong, but right programs agree on most tests and wrong ones fail in ways of their own: many
poor tests select better than few. Easy problems need few. How hard a problem is, a probe says from the prompt alone.

Ma et al. 2025, arXiv:2501.01054; the choice is that of the released code (RUCKBReasoning/CodeRM, 3be634c, evaluation/
calculate_result.py), which shares the verdict among the rows that are still equal; here the first is taken. As there
(preprocess/extract_unit_test.py), a writer reads the problem and a program that may be wrong, and each of its replies is one test:
a class of unittest, without copies of the program. The probe's loss and the greedy allocation are those of the paper's section
3.2, rate the share of right programs that the probe predicts. There 100 programs and as many tests are made; the counts here are
ours.

The tests of a row's answer, which the verifier runs in the sandbox, are read by the probe's training alone, which is what
`rewardlab train coderm_8b` trains; an untrained probe gives all problems as many generated tests.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import Batch, Learner, Outputs, Recipe, Run, Update, objective
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.reranked import reranked
from rewardlab.objectives.pairs import row_sum
from rewardlab.rewards.generated_tests import passed_generated
from rewardlab.rollouts.best import best
from rewardlab.rollouts.independent import independent


@objective(unit="row", wants=("value",))
def prompt_cross_entropy(out: Outputs, batch: Batch, run: Run, *, term: str = "correct") -> Tensor:
    """-[o log sigmoid(V) + (1 - o) log(1 - sigmoid(V))], V the value at the prompt's end, o whether a reply is right by `term`."""
    if term not in batch.terms:
        raise RewardlabError(f"the probe learns from the reward term {term!r}, which this reward does not have")
    outcome = batch.terms[term]
    first = batch.mask.float().argmax(1)
    value = out.value.gather(1, (first - 1).clamp(min=0)[:, None]).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(value, (row_sum(outcome.reward, batch) > 0).float(), reduction="none")
    # replies without a verdict, and rows that nobody wrote, teach nothing
    return torch.where(outcome.rewarded.any(1) & batch.mask.any(1), loss, 0.0)


WRITER = "writer"


def coderm_8b(
    base: Recipe | None = None, *, n: int = 8, each: int = 16, writer: str = "copy:policy", column: str = "generated",
    probe: str = "value-head", train_probe: bool = True, probe_lr: float | None = None, temperature: float = 1.0,
) -> Recipe:  # fmt: skip
    """n: programs per problem.  each: tests per problem, on average.  writer: the model that writes them, a checkpoint, a run
    folder or openai:URL#NAME; "": only those in `column` are run, which comes first where it holds any.  probe: what the model that
    predicts pass rates starts from, value-head or the folder of a trained one; "": every problem is given `each` tests.
    train_probe: on the policy's programs and their verdicts.  temperature: of programs and tests."""
    base = base or Recipe(name="coderm_8b", update=Update(lr=probe_lr))
    trained = bool(probe) and train_probe
    scored = passed_generated(
        column=column, each=each, writer=WRITER if writer else "", probe="probe" if probe else "", temperature=temperature,
        labels=trained,
    )  # fmt: skip
    learner = Recipe(objective=prompt_cross_entropy(), update=Update(lr=probe_lr)) if trained else Recipe()
    probes = (Learner("probe", probe, learner, every=1 if trained else 0),) if probe else ()
    writers = (Learner(WRITER, writer, Recipe(), every=0),) if writer else ()
    return base.but(
        rollout=independent(n=n, temperature=temperature), reward=scored, select=best(), also=(*base.also, *probes, *writers),
        measure=reranked(by=scored, n=n, temperature=temperature),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "training the test writer (8B, on filtered synthetic tests), which sft does on such data; a probe of frozen hidden states: "
    "here it is a value head on a copy of the policy, which is trained as well"
)
data = Data(
    answer='tests that are never read in answering, {"tests": "assert ..."} or {"io": [["input", "output"], ...]}',
    generated=Column(
        "tests that a model wrote, [input, output] or an assert each (`rewardlab data tests` writes it); without any, `writer` "
        "does",
        optional=True,
    ),
    rows=[
        {
            "prompt": "Write a function add(a, b) that returns their sum.",
            "answer": {"tests": "assert add(2, 3) == 5\nassert add(0, 0) == 0"},
            "generated": ["assert add(1, 1) == 2"],
        },
        {
            "prompt": "Write a function twice(text) that returns the text two times.",
            "answer": {"tests": "assert twice('ab') == 'abab'\nassert twice('') == ''"},
            "generated": ["assert twice('a') == 'aa'"],
        },
        {
            "prompt": "Read two numbers, one a line, and print the larger one.",
            "answer": {"io": [["3\n5\n", "5\n"], ["-1\n-4\n", "-1\n"]]},
        },
    ],
    verified_by="code",
)

# by construction: the same programs and the same tests, of which the baseline is given the first
check = Check(
    says="of the same programs, sixteen generated tests, a third of them wrong, choose a right one more often than two do",
    versus="coderm_8b", task="poor_tests", measure="accuracy", direction="higher", margin=0.053,
    settings={"each": 16, "writer": "", "probe": ""}, versus_settings={"each": 2, "writer": "", "probe": ""}, problems=500,
    learns=None, sanity=True,
    tried="one seed, 80 problems: one program .56, chosen by 2 tests .71, by 4 .81, by 16 .86",
    finding="58% of single programs are right; of eight, the one that passes most of 2 tests is right 78% of the time, and of 16 "
    "tests 88%. Who writes the tests, and which problem is given how many, is not tested",
)  # fmt: skip
baseline = "best_of_n"
kind = "answer"
