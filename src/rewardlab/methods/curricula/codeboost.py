"""CodeBoost: learn from code without instructions: predict its output, its errors, and masked lines.

    training set: a maximum clique of the graph of unlike pieces;    forward: code -> stdout, stderr;    backward: those -> a line
    r = 0.1 form + 0.9 (stdout right + 1/2 IoU(stderr lines)) / 2;    0 where a reply has nothing of the form
    a line that is put in is run, and its outputs are judged in the same way

Instructions for code are written by people; code is there in plenty, but most of it alike. Any of it that can be run is a task with
a sure answer. Failures are learnt from too: numbers and signs are changed at random, and the error is paid line by line.

Wang et al. 2025, arXiv:2508.05242; reward, 3/4 forward, one masked line, a tenth of the numbers changed and a threshold of .5
follow the released code (sijieaaa/CodeBoost, ed8f6f2, EasyR1/examples: main.sh, reward_function/syntax.py). Its clique is searched
in chunks of 400, by differences of texts; here at once, by their words (`data.cliques`). Every line of a
traceback counts, files without their folders, without marks below lines. GRPO with 5 replies and a KL term of weight .01 is
config.yaml's.

From code alone: --task snippets:code=FILE, rows with `code` (Python) and perhaps `input`, which are run, broken and masked there;
beforehand rewardlab data clique FILE.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Loop, Problem, Recipe, Run, loop, measure, seed_of
from rewardlab.data.cliques import unlike
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct, detail
from rewardlab.settings.domain import PositiveShare, Share
from rewardlab.tasks.sources import Shuffled

# ---- How much of a corpus a choice of it covers ----------------------------------------------------------------------

_WORD = re.compile(r"[^\W\d]+|[^\w\s]")


@measure
def clique_coverage(
    problems: Sequence[Problem], run: Run, *, threshold: PositiveShare = 0.5, column: str = "code"
) -> dict[str, float]:
    """Of the pairs of neighbouring words, numbers left out, of all texts of a column: how many are in those that a maximum clique
    keeps (`data.cliques`), and in as many texts that are sampled at random.

    covered.clique, covered.random: shares of the pairs.  kept: share of the texts. No text is generated.
    """
    texts = [p.meta.get(column) for p in problems]
    if not all(isinstance(text, str) for text in texts):
        raise RewardlabError(f"clique_coverage: problems without a text in the column {column!r}")
    known = [str(text) for text in texts]
    chosen = unlike(known, threshold)
    sampled = random.Random(seed_of("coverage", run.seed)).sample(range(len(known)), len(chosen))
    everything = _pairs(known)
    covered = {name: len(_pairs([known[i] for i in of])) for name, of in (("clique", chosen), ("random", sampled))}
    shares = {f"covered.{name}": count / max(1, len(everything)) for name, count in covered.items()}
    return {**shares, "kept": len(chosen) / len(known), "n": float(len(known))}


def _pairs(texts: Sequence[str]) -> set[tuple[str, str]]:
    words = [_WORD.findall(text) for text in texts]
    return {pair for row in words for pair in pairwise(row)}


# ---- the recipe ---------------------------------------------------------------------------------------------------------

KEPT = "codeboost.kept"


@operator
def predicted(form: float, stdout: float, stderr: float, *, form_weight: float = 0.1, error: float = 0.5) -> float:
    """The reward of a prediction."""
    return form_weight * form + (1 - form_weight) * (stdout + error * stderr) / 2 if form else 0.0


@loop(wraps="inner")
def on_unlike(recipe: Recipe, run: Run, ops: Any, *, threshold: Share = 0.5, inner: Loop | None = None) -> None:
    """Training steps on a maximum clique of the problems, by their column `code`; run.memory holds its keys. Endless problems, and
    those without the column, cannot be compared."""
    if KEPT not in run.memory:
        if not hasattr(ops.task.train, "__len__"):
            raise RewardlabError("codeboost compares all problems: use a file, give the task a size, or set clique=0")
        problems = [ops.task.train[i] for i in range(len(ops.task.train))]
        if not all(isinstance(p.meta.get("code"), str) for p in problems):
            raise RewardlabError("codeboost compares problems by their column `code`: bring it, or set clique=0")
        run.memory[KEPT] = sorted({problems[i].key for i in unlike([p.meta["code"] for p in problems], threshold)})
    keys = set(run.memory[KEPT])
    if len(ops.task.train) != len(keys):
        problems = [ops.task.train[i] for i in range(len(ops.task.train))]
        ops.task = replace(ops.task, train=Shuffled([p for p in problems if p.key in keys]))
    run.log("kept", len(keys))
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def prediction(form: float = 0.1, error: float = 0.5) -> Reward:
    numbers = (detail(name=name).named(name) for name in ("form", "stdout", "stderr"))
    return predicted(*numbers, form_weight=form, error=error)


def codeboost(
    base: Recipe | None = None, *, clique: float = 0.5, form: float = 0.1, error: float = 0.5, n: int = 5, beta: float = 0.01
) -> Recipe:  # fmt: skip
    """clique: the similarity from which two pieces are alike; 0: all are trained on.  form: weight of the form.  error: of the
    error, beside 1 for the output.  n: replies per prompt.  beta: weight of the KL. A base's reward beside the task's
    verifier is kept."""
    base = base or grpo(n=n, beta=beta).but(weighting=token_mean())
    paid = prediction(form, error)
    recipe = base.but(reward=paid if base.reward in (None, correct()) else base.reward + paid)
    return recipe.but(loop=on_unlike(threshold=clique, inner=base.loop)) if clique else recipe


fidelity = "core"
left_out = (
    "swapped comparisons and conditions in the code that is broken, four updates per batch, and a judge for code that is not "
    "deterministic, which the released script has switched off"
)
data = Data(
    answer="an object: language (python), stdout (what the code prints) and stderr (how it fails)",
    code="a text of Python, by which rows that are alike are found",
    verified_by="snippet_run",
    rows=[
        {
            "prompt": "What does this print, and how does it fail, if it does? Write <stdout>...</stdout> and <stderr>...</stderr>."
            "\n\nprint(sum(range(5)))",
            "code": "print(sum(range(5)))",
            "answer": {"language": "python", "stdout": "10\n", "stderr": ""},
        },
        {
            "prompt": "What does this print, and how does it fail, if it does? Write <stdout>...</stdout> and <stderr>...</stderr>."
            "\n\nword = 'level'\nprint(word == word[::-1])",
            "answer": {"language": "python", "stdout": "True\n", "stderr": ""},
            "code": "word = 'level'\nprint(word == word[::-1])",
        },
    ],
)
# by construction: the clique is chosen by the neighbours that are counted
check = Check(
    says="the pieces of a maximum clique hold more of what neighbours what in the corpus than as many pieces at random",
    versus=None, task="snippets:test_size=4000,size=200", measure="covered.clique", direction="higher", margin=0.1,
    against="covered.random", model="untrained", by=own_share(inner=clique_coverage()), problems=4000, steps=1,
    fault=Within("covered.random", high=0.85, says="pairs of neighbours in as many pieces at random"),
    learns=None, start=None, sanity=True,
    finding="of the pairs of neighbouring words in a corpus of code, those of a clique hold 87%, as many pieces at random 66%: the "
    "choice is as diverse as it is made to be. What is learnt from it is not tested",
)  # fmt: skip
baseline = "grpo"
