r"""RLCF: replies are scored by a checklist of their instruction, item by item; pairs that differ most in one item are learnt from.

    s_k(x, y) = mean of m sampled scores, 0 to 100, of "does y fulfil item k?", as a share;  (s_k + v_k(y)) / 2 where a program v_k
                checks item k exactly
    r(x, y)   = sum_k w_k s_k / sum_k w_k
    pairs: two samples for x, y the better one by r;   kept: the 40% with the largest max_k s_k(y) - s_k(y');   DPO

One score of a whole reply hides which demand was missed; a question about one demand is easy to judge, and a pair that differs
clearly in one is likely to be labelled right. Items are yes/no questions with weights: the row's `checklist`, or written, once for
each instruction, from it and from candidate replies, whose ways of failing show what to ask. One universal item is added.

Viswanathan et al. 2025, arXiv:2507.18624, and viswavi/RLCF, 643ebee and its README: prompt.py (weights of 0 to 100),
write_code_batch.py (what a program cannot check exactly is left to the judge), two replies at temperature 1.3 and top-p .95,
construct_offline_preference_data.py (25 scores of 10 tokens at 1.3 and top-p .9, above 100 being 100, their mean; the universal
item of weight 100),
generate_wildchat_openrlhf_dataset.py (the mean with a program's verdict; the filter, by how far the better reply leads in an item;
40% are the paper's) and train_rlcf.sh (beta = .1, lr 3e-6). As released, that script catches a wrong name wherever a program has
run, so that no verdict of one counts: here they do. (inferred): the wording of prompts; the filter acts on the pairs of a training
step; a program runs in the sandbox, on all replies at once, and one that fails leaves its item to the judge. `overall` asks one
question in place of a checklist.
"""

import math
import re
from collections.abc import Sequence

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Score, Scores, Term, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.judges.forms import asking
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.rewards.checklists import Item, items_of, program_verdicts
from rewardlab.rewards.critiques import answers
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.ranked import recorded_pairs, written
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, PositiveShare
from rewardlab.text.answers import after_thinking
from rewardlab.text.blocks import last_block
from rewardlab.worlds.wishes import ASK, WHOLE

JUDGE = (
    "An instruction and a reply follow, and one question about the reply. Say how well the reply does by this question alone, "
    "as a number from 0 to 100:\n100: perfectly; 75: very well, with room for small improvements; 50: acceptably, with one clear "
    "flaw; 25: it tries, but hardly succeeds; 0: not at all, or with an error that defeats the purpose. Where the question is "
    "objective, the smallest deviation is no 100.\nSay only the number.\n\nInstruction:\n{prompt}\n\nReply:\n{reply}\n\n"
    "Question:\n{item}\n\nScore:"
)
WRITE = (
    "Write a checklist by which any reply to an instruction can be judged. Look at the instruction, and at how the replies below "
    "depart from it. Each item is a yes/no question about one demand, short, objective, put positively; 1 to 7 items, fewer if "
    "these are enough. After each stands its weight: 100 for what no reply may miss, 75 for what a good reply needs although the "
    "instruction does not say so, 50 for what it should have, 25 for a preference.\n\nInstruction:\n{prompt}\n\n{replies}\n"
    "Write one item a line, in this form:\n- Is the reply about cats? (100)\n- Does it have exactly 280 characters? (95)\n"
)
PROGRAM = (
    "Can a short Python program decide exactly, without any approximation, whether a reply meets this demand? That is so only for "
    "demands on form, such as punctuation, a word that must occur, or a number of lines. If it can, write verify_requirement(text) "
    "in a ```python block, which returns True or False. In any doubt say only NONE.\n\n"
    "Instruction:\n{prompt}\n\nDemand:\n{item}\n"
)
UNIVERSAL = (
    "Does the reply address the instruction directly, without excess or matters beside the point, and in a tone that suits it?"
)
SCORER, TRY = "judge", "This is for a test."
"""The model that scores items; a reply on which a program must run."""
_SCORE = re.compile(r"(?<![\d.-])(\d{1,300})(?!\d)")


def score_of(judgement: str) -> float | None:
    """The first number of a judgement, after its thinking, 100 at most, as a share; None without one, and for -1 (confused)."""
    found = _SCORE.search(after_thinking(judgement))
    return min(float(found[1]), 100.0) / 100 if found else None


# ---- checklists, written once for each instruction -----------------------------------------------------------------------


def checklists(groups: list[Group], run: Run, writer: str, column: str, programs: bool, universal: bool) -> list[list[Item]]:
    """The items for each group: the row's own, or those that `writer` wrote when the instruction came for the first time."""
    known = run.memory.setdefault("rlcf_checklists.items", {})
    problems = {group[0].problem.key: group for group in groups if group and not items_of(group[0].problem.meta.get(column))}
    new = [group for key, group in problems.items() if key not in known]
    shown = ["\n\n".join(f"Reply {i}:\n{after_thinking(t.reply)}" for i, t in enumerate(group, 1)) for group in new]
    asked = [asking(g[0].problem, WRITE, replies=s) for g, s in zip(new, shown, strict=True)]
    for group, said in zip(new, answers(run, writer, asked, 1, Sampling(run.max_new * 4, 0.0))[0], strict=True):
        known[group[0].problem.key] = [[*item] for text in said for item in items_of(text)]
    own = [items_of(g[0].problem.meta.get(column)) or [Item(*x) for x in known.get(g[0].problem.key, [])] for g in groups]
    if programs:
        own = _with_programs(groups, own, run, writer)
    return [[*items, Item(UNIVERSAL)] if universal or not items else items for items in own]


def _with_programs(groups: list[Group], own: list[list[Item]], run: Run, writer: str) -> list[list[Item]]:
    """Items with a program that the writer wrote and that runs, where it says that one decides them."""
    known = run.memory.setdefault("rlcf_checklists.programs", {})
    at = {
        f"{group[0].problem.key} {item.text}": (group[0].problem, item)
        for group, items in zip(groups, own, strict=True) for item in items if not item.program
    }  # fmt: skip
    new = [key for key in at if key not in known]
    asked = [asking(at[key][0], PROGRAM, item=at[key][1].text) for key in new]
    for key, said in zip(new, answers(run, writer, asked, 1, Sampling(run.max_new * 4, 0.0))[0], strict=True):
        code = last_block(said[0], "python", "") or "" if said else ""
        runs = "verify_requirement" in code and program_verdicts(code, [TRY]) != [None]
        known[key] = code if runs else ""
    return [
        [item._replace(program=item.program or known[f"{group[0].problem.key} {item.text}"]) for item in items]
        for group, items in zip(groups, own, strict=True)
    ]  # fmt: skip


# ---- scores, and the pairs that they choose --------------------------------------------------------------------------------


@reward(over="groups")
def checklist_score(
    groups: list[Group], run: Run, *, model: str = SCORER, writer: str = SCORER, ask: str = JUDGE, samples: PositiveInt = 25,
    temperature: NonNegativeFloat = 1.3, top_p: PositiveShare = 0.9, programs: bool = True, universal: bool = True,
    overall: str = "", max_new: PositiveInt = 10, column: str = "checklist",
) -> Scores:  # fmt: skip
    """The weighted mean over the items of the instruction's checklist, from 0 to 1; a term for each item, named by its text.

    model, writer: models of the run, who judge items, and write checklists and programs.  ask: what the judge reads, with {prompt},
    {reply} and {item}.  samples: scores of an item.  overall: one question in place of a checklist.  max_new: tokens of a
    score. An item without a score, and
    without a program's verdict, does not count; a reply without any item that counts has no verdict.
    """
    own = [[Item(overall)]] * len(groups) if overall else checklists(groups, run, writer, column, programs, universal)
    cells = [(g, i, k) for g, group in enumerate(groups) for i in range(len(group)) for k in range(len(own[g]))]
    asked = [asking(groups[g][i].problem, ask, reply=after_thinking(groups[g][i].reply), item=own[g][k].text) for g, i, k in cells]
    said, _ = answers(run, model, asked, samples, Sampling(max_new, temperature, top_p))
    judged = {cell: _mean([score_of(text) for text in row]) for cell, row in zip(cells, said, strict=True)}
    checked = _checked(groups, own)
    return [
        [_score(own[g], [_mean([judged[g, i, k], checked.get((g, i, k))]) for k in range(len(own[g]))]) for i in range(len(group))]
        for g, group in enumerate(groups)
    ]


def _checked(groups: list[Group], own: list[list[Item]]) -> dict[tuple[int, int, int], float | None]:
    """The verdicts of programs, each of which runs once, on all replies that it is for."""
    places: dict[str, list[tuple[int, int, int]]] = {}
    for g, items in enumerate(own):
        for k, item in enumerate(items):
            if item.program:
                places.setdefault(item.program, []).extend((g, i, k) for i in range(len(groups[g])))
    found = {p: program_verdicts(p, [after_thinking(groups[g][i].reply) for g, i, _ in cells]) for p, cells in places.items()}
    return {cell: verdict for p, cells in places.items() for cell, verdict in zip(cells, found[p], strict=True)}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [x for x in values if x is not None]
    return sum(known) / len(known) if known else None


def _score(items: Sequence[Item], values: Sequence[float | None]) -> Score:
    known = [(item, value) for item, value in zip(items, values, strict=True) if value is not None]
    total = sum(item.weight for item, _ in known)
    if not known:
        return Score(None, why="no item of the checklist could be judged")
    return Score(terms={item.text: Term(value, weight=item.weight / total) for item, value in known})


def largest_gap(better: Score, worse: Score) -> float:
    """How far the better reply leads in the item in which it leads most, of those that both are judged by."""
    both = [(term.value, worse.terms[name].value) for name, term in better.terms.items() if name in worse.terms]
    return max((a - b for a, b in both if a is not None and b is not None), default=0.0)


@rollout(rows=lambda **_: 2, across_problems=True)
def widest_pairs(
    problems: list[Problem], run: Run, *, by: Reward, n: PositiveInt = 2, keep: PositiveShare = 0.4, model: str = "reference",
    temperature: NonNegativeFloat = 1.3, top_p: PositiveShare = 0.95,
) -> list[Group]:  # fmt: skip
    """The best and the worst of n replies to each problem under `by`; of these pairs the share `keep` with the largest gap in one
    of its terms, recorded as the policy's own.

    model: who writes the replies.  Logged: gap, its mean over kept pairs; all_pairs_gap. Where no two replies differ they stand
    beside themselves, which teaches nothing, so that a step always has a batch.
    """
    groups = written(problems, run, n, model, Sampling(run.max_new, temperature, top_p))
    pairs: list[tuple[float, Problem, list[str]]] = []
    for group, row in zip(groups, by(groups, run), strict=True):
        order = sorted((i for i, s in enumerate(row) if s.total is not None), key=lambda i: -(row[i].total or 0.0))
        if order and (row[order[0]].total or 0.0) > (row[order[-1]].total or 0.0):
            first, last = order[0], order[-1]
            pairs.append((largest_gap(row[first], row[last]), group[0].problem, [group[first].reply, group[last].reply]))
    if not pairs:
        return recorded_pairs([(group[0].problem, [group[0].reply] * 2) for group in groups], run)
    # a stable sort: of equal gaps the earlier pair
    kept = sorted(pairs, key=lambda pair: -pair[0])[: math.ceil(keep * len(pairs))]
    run.log("gap", sum(gap for gap, *_ in kept) / len(kept))
    run.log("all_pairs_gap", sum(gap for gap, *_ in pairs) / len(pairs))
    return recorded_pairs([(problem, texts) for _, problem, texts in kept], run)


def rlcf_checklists(
    base: Recipe | None = None, *, judge: str = "copy:policy", writer: str = "", ask: str = JUDGE, samples: int = 25, n: int = 2,
    keep: float = 0.4, programs: bool = True, universal: bool = True, overall: str = "", temperature: float = 1.3,
    score_tokens: int = 10, beta: float = 0.1, lr: float | None = None, problems: int = 32,
) -> Recipe:  # fmt: skip
    """judge: who scores items, openai:URL#NAME or a model (`Learner.init`).  writer: who writes checklists and programs; empty: the
    judge.  ask: what the judge reads, with {prompt}, {reply} and {item}.  samples: scores of an item.  n: replies to a prompt, of
    which the best and the worst are a pair.  keep: share of pairs.  programs, universal: whether programs check items, and the
    universal item is added.  overall: one question in place of checklists.  temperature: of replies and of scores.
    score_tokens: of a score, more of them for a judge that thinks first."""
    base = base or dpo(beta=beta, lr=lr, problems=problems)
    paid = checklist_score(
        writer="writer" if writer else SCORER, ask=ask, samples=samples, programs=programs, universal=universal, overall=overall,
        temperature=temperature, max_new=score_tokens,
    )  # fmt: skip
    others = [Learner(name, init, Recipe(), every=0) for name, init in ((SCORER, judge), ("writer", writer)) if init]
    return base.but(rollout=widest_pairs(by=paid, n=n, keep=keep, temperature=temperature), also=(*base.also, *others))


fidelity = "core"
left_out = (
    "what a checklist is written beside: replies of four smaller models and of an expert, where here it is the pair itself; the "
    "filter over a whole data set, where here each step keeps its own share; six epochs on the same pairs, and their rates"
)
data = Data(
    checklist=Column(
        "yes/no questions with weights: a list of texts, of [text, weight], or of objects with `item`, `weight` and `program`, "
        "Python that defines verify_requirement(text); or lines '- question? (100)'; without it the writer writes one",
        optional=True, setting="column",
    ),
    rows=[
        {
            "prompt": "Write a slogan for a bakery in at most six words.",
            "checklist": [
                {"item": "Is it a slogan for a bakery?", "weight": 100},
                {"item": "Has it six words at most?", "program": "def verify_requirement(text):\n    return len(text.split()) < 7"},
            ],
        },
        {"prompt": "Name three rivers of Europe, one a line.", "checklist": [["Are three rivers of Europe named?", 100]]},
        {"prompt": "Explain in two sentences why the sky is blue."},
    ],
)  # fmt: skip

SMALL = {"judge": "embedded:wishes:judged=true", "ask": ASK, "samples": 4, "programs": False, "universal": False, "lr": 1e-4}
check = Check(
    says="pairs that a small judge labels item by item teach a policy to fulfil all wishes more often than pairs that the same "
    "judge labels by one score of the whole",
    versus="rlcf_checklists", task="wishes", measure="pass@1", direction="higher", margin=0.05,
    settings=SMALL, versus_settings={**SMALL, "overall": WHOLE}, problems=300, steps=40, learns=None,
    finding="pairs labelled item by item teach it to fulfil all wishes in 64%, those labelled by one score of the whole in 70% "
    "(33% at first): a small judge of single wishes is no finer here than its score of the whole, and its pairs need "
    "more judgements",
)  # fmt: skip
baseline = "dpo"
