"""Guru: one policy on problems of many domains, with a verifier and a measure for each domain.

    r = the verdict of the verifier that the row names: rules for mathematics, programs run for code, a model for science, ...
    trained on all domains, or on one alone;    measured by domain: pass@1 and pass@k

RL is mostly tried on mathematics and code, which pretraining is full of: there it may only bring out what is known. By domain one
sees where what is learnt elsewhere carries over, and where only problems of the domain itself help: those rarely seen before.

Cheng et al. 2025, arXiv:2506.14965; code LLM360/Reasoning360: six domains, GRPO on as many problems of one as of the mixture. How
the data are made is left to the tools on files: rewardlab data dedupe for each domain, data pass-rate by a weak model and by a
strong one, data filter --pass-rate (too easy for the first, never solved by the second), data mix. (inferred): that domains count
alike in the mean. A model that compares answers, as theirs does in science, is the verifier judged_answer of a served model, which
named_verifier's `judge` names. Their 7B script (3fd0e18, 7b_4node_guru_full_main_job_start_m1.sh) has GRPO with 16 replies, a mean
over tokens, no KL, and two updates per batch.
"""

from __future__ import annotations

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import domain_of
from rewardlab.errors import NothingKept
from rewardlab.evals.domains import by_domain
from rewardlab.evals.passk import accuracy, coverage
from rewardlab.methods.baselines.grpo import grpo

# ---- Rollouts of the problems of some domains alone ------------------------------------------------------------------

TIMES = 50


@rollout(wraps="inner")
def of_domains(
    problems: list[Problem], run: Run, *, inner: Rollout, domains: tuple[str, ...] = (), column: str = "domain"
) -> list[Group]:
    """The groups of `inner` for problems with one of these domains in `column`; for all problems where none is named.

    Problems without the column are of the domain "other". In place of those of other domains, further ones of the training data
    are taken, so that a step has as many as without it. Problems that `inner` asks for itself are of these domains too.
    """
    if not domains:
        return inner(problems, run)
    further = run.more_problems
    kept, seen = [p for p in problems if domain_of(p.meta, column) in domains], list(problems)

    def more(n: int) -> list[Problem]:
        found: list[Problem] = []
        for _ in range(TIMES):
            if len(found) >= n or further is None:
                break
            new = further(n - len(found))
            found += [p for p in new if domain_of(p.meta, column) in domains]
            seen.extend(new)
        return found

    kept += more(len(problems) - len(kept))
    if not kept:
        names = ", ".join(sorted({domain_of(p.meta, column) for p in seen}))[:200]
        raise NothingKept(f"no problem is of the domains {', '.join(domains)}: the column {column!r} says {names}")
    run.more_problems = further and more
    try:
        return inner(kept, run)
    finally:
        run.more_problems = further


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def guru(
    base: Recipe | None = None, *, domains: str | tuple[str, ...] = (), column: str = "domain", k: int = 1
) -> Recipe:  # fmt: skip
    """domains: to train on, one or some (a,b); all where none is named. All are measured.  column: which says the domain.  k: also
    measure pass@k, from 2 k samples; 1: pass@1 alone.
    """
    base = base or grpo()
    named = domains.split(",") if isinstance(domains, str) else domains
    chosen = tuple(filter(None, (name.strip() for name in named)))
    rollout = base.required("rollout")
    measured = coverage(n=2 * k, k=k) if k > 1 else accuracy()
    return base.but(
        rollout=of_domains(inner=rollout, domains=chosen, column=column) if chosen else rollout,
        measure=by_domain(inner=measured, column=column),
    )


fidelity = "core"
left_out = "their 92,000 problems, and in training 16 replies, the loss as a mean over tokens, and two updates per batch"
data = Data(
    answer="the gold answer",
    verifier=Column("the name of the verifier of the row (math, code, choice, ...), or an object with settings", optional=True),
    domain=Column("the domain of the row, by which results are told apart", optional=True, setting="column"),
    verified_by="named_verifier",
    rows=[
        {
            "prompt": "What is $7^2 - 3^2$? Put the answer in \\boxed{}.",
            "answer": "40",
            "verifier": "math",
            "domain": "mathematics",
        },
        {
            "prompt": "Which gas do plants take up?\nA. oxygen\nB. carbon dioxide",
            "answer": "B",
            "verifier": "choice",
            "domain": "science",
        },
    ],
)
claim = Claim(
    says="a domain that was rarely seen before gains more from mixed training than from training on another that was often seen",
    versus="guru", task="domains", measure="pass@1.countdown", direction="higher", margin=0.049, settings={"problems": 8},
    versus_settings={"problems": 8, "domains": "arithmetic"}, steps=40, guard=Within("pass@1.arithmetic", low=-0.05),
    fault=Within("pass@1.countdown", high=0.6, says="of the rare domain, after training on the other"), learns=None, start=None,
    finding="the rare domain is 31% right at the start and 33% at the end, trained on both domains or on the frequent one alone; "
    "the frequent one goes from 50% to 69% mixed, to 78% alone. Nothing helps the rare one here, so that the two cannot be told "
    "apart",
)  # fmt: skip
baseline = "grpo"
