"""A preference score, plus form and facts verified by a served model where the prompt asks for them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from rewardlab.clients.client import client_of
from rewardlab.clients.endpoint import PREFIX, endpoint_of, is_served
from rewardlab.clients.messages import Failure, Request
from rewardlab.core import Group, Run, Score, Scores, Term
from rewardlab.errors import RewardlabError
from rewardlab.judges.forms import conversation
from rewardlab.rewards.judge import judge
from rewardlab.rewards.reward import Reward, reward
from rewardlab.sandbox import Limits, ProgramRun, Sandbox
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.blocks import last_block
from rewardlab.text.bm25 import index_of
from rewardlab.text.filled import filled

ROUTE = """Which checks does a reply to this instruction need?

[Instruction]
{prompt}

[Checks]
[[A]] constraints: the instruction limits the reply's form: its length, keywords, format, number of parts, order and the like.
[[B]] facts: a reply may claim facts of the world.

Say the marks of the checks that are needed, such as [[A]] or [[A]] [[B]], or [[none]]."""
CONSTRAINTS = """List the constraints on the form of a reply that this instruction states, such as its length, its format, or words
that it must or must not contain. Only what it says, and what a program can check; not the task itself, nor quality.

[Instruction]
{prompt}

Say a JSON list of texts, one constraint each; [] if there is none."""
CODE = """Write a Python function check_following(response) that says, True or False, whether a reply keeps a constraint. It reads
the text alone: no input or output. Say only the code, in a ```python block.

[Instruction]
{prompt}

[Constraint]
{constraint}
{problem}"""
REPAIR = "\n[What was wrong with your last function]\n{code}\n\n{error}"
DIFFER = """[Reply A]
{first}

[Reply B]
{second}

In which claims of fact do the replies contradict each other? Say a JSON list of texts, the most important one
first; [] if in none."""
QUERY = """[Question]
{prompt}

[Contradictions]
{differences}

What should be looked up to settle the first of them? Say one query, and nothing else."""
KNOWN = "Answer briefly, with what is known to be true:\n{query}"
FACTS = """Which of two replies is more factual, by what is known?

[Known]
{support}

[Instruction]
{prompt}

[Reply A]
{first}

[Reply B]
{second}

Give each a score for facts from 1 to 10 (best); 10 to both if they mean the same. Say them as A: [[score]] B: <<score>>"""
TRY, REPAIRS, MOST = "This is for a test.", 2, 8
"""A reply on which a function must run; how often it is put right; constraints of a prompt that are checked, at most."""
RUN = "\nimport sys\nprint('[[yes]]' if check_following(sys.stdin.read()) else '[[no]]')\n"

Ask = Callable[[Sequence[str]], list[str]]
"""Replies of the served model; "" where none came."""


def _check(model: str, **_: Any) -> None:
    if not is_served(model):
        raise RewardlabError(
            f"verified_preference asks a served model, {PREFIX}URL#NAME, and not {model!r}; programs do it by `routed`"
        )
    endpoint_of(model)


@reward(over="groups", check=_check)
def verified_preference(
    groups: list[Group], run: Run, *, model: str, preference: Reward | None = None, form: NonNegativeFloat = 1.0,
    facts: NonNegativeFloat = 1.0, passages: str = "passages", max_new: PositiveInt = 512,
) -> Scores:  # fmt: skip
    """preference + form v_form + facts v_facts: a preference score and verified form and facts, each v from 0 to 1.

    A served model says which checks a prompt needs; where it needs none, v = 1/2. Form: it lists the constraints and writes a
    function for each, which runs in the sandbox, and v is the share that holds. Facts: each reply is compared with the next of its
    group; the model says where the two contradict each other and what to look up, evidence is taken from the problem's column
    `passages` (BM25), or is what the model knows, and it scores both. Nothing is lost where a request fails: v = 1/2 there.

    model: openai:URL#NAME.  preference: the human-preference reward; None: the model's score as a judge.  form, facts: weights.
    Peng et al. 2025, arXiv:2502.19328, as in the released code (THU-KEG/Agentic-Reward-Modeling, e8781e2).
    """
    client = client_of(model)

    def ask(prompts: Sequence[str]) -> list[str]:
        replies = client.chat([Request((("user", prompt),), max_new) for prompt in prompts]) if prompts else []
        return ["" if isinstance(reply, Failure) else reply.text for reply in replies]

    liked = (preference or judge(model=model, max_new=max_new))(groups, run)
    routes = ask([filled(ROUTE, prompt=conversation(group[0].problem)) for group in groups])
    formed = [_form(group, ask) if "[[A]]" in route else None for group, route in zip(groups, routes, strict=True)]
    known = [_facts(group, ask, passages) if "[[B]]" in route else None for group, route in zip(groups, routes, strict=True)]
    if run is not None and groups:
        run.log("routed/form", sum(x is not None for x in formed) / len(groups))
        run.log("routed/facts", sum(x is not None for x in known) / len(groups))
    return [
        [
            _sum(score, (v or [0.5] * len(group))[i], (w or [0.5] * len(group))[i], form, facts)
            for i, score in enumerate(row)
        ]
        for group, row, v, w in zip(groups, liked, formed, known, strict=True)
    ]  # fmt: skip


def _sum(liked: Score, formed: float, known: float, form: float, facts: float) -> Score:
    # no preference, no reward: the verifiers alone are on another scale
    if liked.total is None:
        return Score(None, why=f"no preference: {liked.why}")
    terms = {"preference": Term(liked.total), "form": Term(formed, weight=form), "facts": Term(known, weight=facts)}
    return Score(terms=terms, why=liked.why)


# ---- form ------------------------------------------------------------------------------------------------------------


def _form(group: Group, ask: Ask) -> list[float] | None:
    """Of the constraints of the prompt, the share that each reply keeps; None where no function could be written."""
    prompt = conversation(group[0].problem)
    constraints = _texts(ask([filled(CONSTRAINTS, prompt=prompt)])[0])[:MOST]
    functions = _functions(prompt, constraints, ask)
    if not functions:
        return None
    results = Sandbox(Limits(seconds=5.0)).run_programs([ProgramRun(f + RUN, t.reply) for t in group for f in functions])
    kept = ["[[yes]]" in result.stdout for result in results]
    n = len(functions)
    return [sum(kept[i * n : (i + 1) * n]) / n for i in range(len(group))]


def _functions(prompt: str, constraints: Sequence[str], ask: Ask) -> list[str]:
    """Functions that run, one a constraint, put right where they do not; without those that still do not."""
    done: dict[str, str] = {}
    problems = dict.fromkeys(constraints, "")
    for _ in range(1 + REPAIRS):
        waiting = [c for c in constraints if c not in done]
        said = ask([filled(CODE, prompt=prompt, constraint=c, problem=problems[c]) for c in waiting])
        codes = [last_block(text, "python", "") or text for text in said]
        for c, code, ran in zip(
            waiting, codes, Sandbox(Limits(seconds=5.0)).run_programs([ProgramRun(code + RUN, TRY) for code in codes]), strict=True
        ):
            if ran.ended and "[[" in ran.stdout:
                done[c] = code
            problems[c] = filled(REPAIR, code=code, error=(ran.stderr or ran.why)[-500:])
    return [done[c] for c in constraints if c in done]


def _texts(said: str) -> list[str]:
    """The texts of the JSON list in a reply; [] if there is none."""
    start, end = said.find("["), said.rfind("]")
    try:
        found = json.loads(said[start : end + 1])
    except (ValueError, RecursionError):
        return []
    return list(dict.fromkeys(x.strip() for x in found if isinstance(x, str) and x.strip())) if isinstance(found, list) else []


# ---- facts -----------------------------------------------------------------------------------------------------------


def _facts(group: Group, ask: Ask, column: str) -> list[float] | None:
    """The mean score for facts of each reply in its comparisons with its neighbours; 1/2 without one. None: nothing compared."""
    n, prompt = len(group), conversation(group[0].problem)
    near = sorted({(min(i, (i + 1) % n), max(i, (i + 1) % n)) for i in range(n) if n > 1})
    pairs = [(a, b) for a, b in near if group[a].reply != group[b].reply]
    texts = [{"first": group[a].reply, "second": group[b].reply} for a, b in pairs]
    differences = [_texts(said) for said in ask([filled(DIFFER, **both) for both in texts])]
    # replies that do not contradict each other are equally true
    open_ = [i for i, found in enumerate(differences) if found]
    queries = ask([filled(QUERY, prompt=prompt, differences="\n".join(differences[i])) for i in open_])
    support = _support(queries, group[0].problem.meta.get(column), ask)
    asked = [filled(FACTS, support=s, prompt=prompt, **texts[i]) for i, s in zip(open_, support, strict=True)]
    scores: list[list[float]] = [[] for _ in group]
    for i, said in zip(open_, ask(asked), strict=True):
        for reply, value in zip(pairs[i], _both(said), strict=True):
            scores[reply].append(value)
    return [sum(own) / len(own) if own else 0.5 for own in scores] if any(scores) else None


def _support(queries: Sequence[str], passages: Any, ask: Ask) -> list[str]:
    """Evidence for each query: of the problem's passages, or what the model knows."""
    if isinstance(passages, list) and passages and all(isinstance(text, str) for text in passages):
        index = index_of(tuple(passages))
        return ["\n\n".join(index.best(query, min(5, len(passages)))) for query in queries]
    return ask([filled(KNOWN, query=query) for query in queries])


def _both(said: str) -> tuple[float, float]:
    """The scores of both replies, from 0 to 1; 1/2 where one cannot be read."""
    found = [re.search(rf"{opened}\s*(\d{{1,2}})\s*{closed}", said) for opened, closed in ((r"\[\[", r"\]\]"), ("<<", ">>"))]
    first, second = (min(10, int(match[1])) / 10 if match else 0.5 for match in found)
    return first, second
