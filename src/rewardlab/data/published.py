"""Rows of solutions with labelled steps as others publish them, to and from ours. See `step_formats`.

Each pair of functions raises ValueError, with the reason, for a row that is not of the format, and for a solution that the format
cannot hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .conversations import decoded, is_conversation, text_in
from .files import Row
from .solutions import Solution, prompt_of

MARK = "ки"
"""Math-Shepherd's sign for the end of a step."""
_FIRST_STEP = re.compile(r"\bstep 1:", re.IGNORECASE)
_NUMBERED = re.compile(r"\s*step [0-9]{1,4}:", re.IGNORECASE)


# ---- PRM800K ---------------------------------------------------------------------------------------------------------


def from_prm800k(row: Row) -> list[Solution]:
    """A line of PRM800K (Lightman et al. 2023, arXiv:2305.20050): the labelled solution, and each alternative to one of its steps.

    A rating of 1 is right, and so is 0: neither wrong nor of use, which the paper counts as right; -1 is wrong. The ratings
    themselves are kept in meta. Where nobody chose how to go on, the first completion is the solution's own step. In phase 2 the
    solution was given as a whole: steps after the first error have no label. It is right where it ended in the right answer, as
    labeller or text say; else that is not known.
    """
    question, label = _of(row, "question", dict), _of(row, "label", dict)
    prompt = _of(question, "problem", str)
    texts: list[str] = []
    ratings: list[float | None] = []
    others: list[Solution] = []
    for step in _of(label, "steps", list):
        completions, chosen, human = step.get("completions") or [], step.get("chosen_completion"), step.get("human_completion")
        if not completions and human is None:
            break
        own = chosen if chosen is not None else 0 if human is None else None
        if own is not None and not 0 <= own < len(completions):
            raise ValueError(f"chosen_completion is {own}, of {len(completions)} completions")
        for other in (one for i, one in enumerate(completions) if i != own):
            rated = (*map(_rated, ratings), _rated(other.get("rating")))
            others.append(Solution(prompt, (*texts, _of(other, "text", str)), rated, meta={"alternative": len(texts)}))
        # a step that the labeller wrote is one that they found right
        taken = completions[own] if own is not None else human if isinstance(human, dict) else {"text": human}
        texts.append(_of(taken, "text", str))
        ratings.append(taken.get("rating") if own is not None else 1)
        if chosen is None and human is None:
            break
    return [_prm800k(row, question, label, prompt, texts, ratings), *others]


def _prm800k(row: Row, question: Row, label: Row, prompt: str, texts: list[str], ratings: list[float | None]) -> Solution:
    if not texts:
        raise ValueError("no step of it is labelled")
    whole = question.get("pre_generated_steps") or []
    steps = whole if texts == whole[: len(texts)] else texts
    labels = (*map(_rated, ratings), *[None] * (len(steps) - len(texts)))
    answer, given = question.get("ground_truth_answer"), question.get("pre_generated_answer")
    right = True if label.get("finish_reason") == "solution" or (answer is not None and answer == given) else None
    meta = {name: value for name, value in row.items() if name not in ("question", "label")}
    meta |= {name: question[name] for name in _QUESTION if name in question}
    meta |= {name: label[name] for name in ("total_time", "finish_reason") if name in label} | {"ratings": ratings}
    return Solution(prompt, tuple(steps), labels, right, answer, meta)


_QUESTION = ("ground_truth_solution", "pre_generated_answer", "pre_generated_verifier_score")


def _rated(rating: Any) -> float | None:
    if rating is None:
        return None
    if rating not in (-1, 0, 1):
        raise ValueError(f"a rating is -1, 0, 1 or null, and not {rating!r}")
    return float(rating >= 0)


def to_prm800k(solution: Solution, threshold: float, number: int) -> Row:
    """The steps up to the last with a label are the labelled ones; a label is written as 1 or -1, and 0 only where it was read."""
    last = max((k for k, label in enumerate(solution.labels) if label is not None), default=-1) + 1
    if not last:
        raise ValueError("none of its steps has a label")
    meta, labels = solution.meta, solution.labels[:last]
    ratings = meta.get("ratings")
    # as they were read, unless the labels are others by now
    if ratings is None or [_rated(rating) for rating in ratings] != list(labels):
        ratings = [None if label is None else 1 if label >= threshold else -1 for label in labels]
    failed = ratings[-1] == -1
    steps = [
        {"completions": [{"text": text, "rating": rating, "flagged": None}], "human_completion": None, "chosen_completion": 0}
        for text, rating in zip(solution.steps, ratings, strict=False)
    ]
    if failed:
        steps[-1]["chosen_completion"] = None
    ended = meta.get("finish_reason") or ("found_error" if failed else "solution" if solution.right else "give_up")
    question = {"problem": solution.prompt, "ground_truth_answer": solution.answer, "pre_generated_steps": list(solution.steps)}
    return {
        "labeler": meta.get("labeler"), "timestamp": meta.get("timestamp"), "generation": meta.get("generation"),
        "is_quality_control_question": meta.get("is_quality_control_question", False),
        "is_initial_screening_question": meta.get("is_initial_screening_question", False),
        "question": question | {name: meta.get(name) for name in _QUESTION},
        "label": {"steps": steps, "total_time": meta.get("total_time"), "finish_reason": ended},
    }  # fmt: skip


# ---- Math-Shepherd ---------------------------------------------------------------------------------------------------


def from_math_shepherd(row: Row) -> list[Solution]:
    """A row of Math-Shepherd (Wang et al. 2024, arXiv:2312.08935): `input` is the problem and the steps, each of which ends with
    ки, `label` the same text with + or - in its place (in older versions behind it). A + says that some continuation was right.

    The steps keep their "Step 1: ". The problem ends where the first of them begins, or, where they are not numbered, at its last
    question mark. A ки within a problem, which a few rows have, is passed over.
    """
    text, label = _of(row, "input", str), _of(row, "label", str)
    *parts, rest = re.split(rf"{MARK}(?: \?)?", text)
    if not parts or rest.strip():
        raise ValueError(f"`input` does not end with {MARK}" if parts else f"`input` has no {MARK}")
    signs: list[float] = []
    at = 0
    for part in parts:
        sign = re.compile(rf"(?:{MARK} ?)?([+-])").match(label, at + len(part)) if label.startswith(part, at) else None
        if sign is None:
            raise ValueError(f"`label` is not the text of `input` with a sign after step {len(signs) + 1}")
        signs.append(float(sign[1] == "+"))
        at = sign.end()
    if not _FIRST_STEP.search(parts[0]) and len(parts) > 1 and _FIRST_STEP.match(parts[1].strip()):
        parts[:2], signs = ["".join(parts[:2])], signs[1:]
    starts = [match.start() for match in _FIRST_STEP.finditer(parts[0])]
    start = starts[-1] if starts else parts[0].rfind("?") + 1
    prompt, first = parts[0][:start].strip(), parts[0][start:].strip()
    if not prompt or not first:
        raise ValueError("where the problem ends cannot be told: no step begins with 'Step 1:'")
    steps = (first, *(part.strip() for part in parts[1:]))
    return [
        Solution(prompt, steps, tuple(signs), meta={name: value for name, value in row.items() if name not in ("input", "label")})
    ]


def to_math_shepherd(solution: Solution, threshold: float, number: int) -> Row:
    """Steps get "Step 1: " where they lack it. Those after the last label are left out."""
    steps, labels = _labelled(solution, threshold)
    numbered = [step.strip() if _NUMBERED.match(step) else f"Step {k}: {step.strip()}" for k, step in enumerate(steps, 1)]

    def text(signs: Sequence[str]) -> str:
        ends = (f"{step} {sign}" for step, sign in zip(numbered, signs, strict=True))
        return f"{solution.prompt.strip()} " + "\n".join(ends)

    row = {"input": text([MARK] * len(steps)), "label": text(["+" if right else "-" for right in labels])}
    meta = {name: value for name, value in solution.meta.items() if name not in row}
    read = from_math_shepherd(row)[0]
    # a text that holds the marks itself would be read as another solution
    if (read.prompt, list(read.steps), list(read.labels)) != (solution.prompt.strip(), numbered, [float(x) for x in labels]):
        raise ValueError(f"its text holds {MARK} or 'Step 1:' in places where they would be misread")
    return {**row, "task": None, **meta}


# ---- ProcessBench, PRMBench, TRL -------------------------------------------------------------------------------------


def index_in(label: Any) -> int | None:
    """A label as the index of a step or -1, also as the text or the whole float of a table; None where it is none."""
    if isinstance(label, str) and re.fullmatch(r"-1|[0-9]{1,6}", label):
        return int(label)
    if isinstance(label, float) and label.is_integer():
        return int(label)
    return label if isinstance(label, int) and not isinstance(label, bool) else None


def from_processbench(row: Row) -> list[Solution]:
    """A row of ProcessBench (Zheng et al. 2024, arXiv:2412.06559): `label` is the index of the first wrong step, from 0; -1 if none
    is. Steps after it have no label: nobody said what they are."""
    steps = _texts(row, "steps")
    label = index_in(row.get("label"))
    if label is None or not -1 <= label < len(steps):
        raise ValueError(f"`label` is the index of one of {len(steps)} steps or -1, and not {row.get('label')!r}")
    right = row.get("final_answer_correct")
    labels = [1.0] * len(steps) if label < 0 else [*[1.0] * label, 0.0, *[None] * (len(steps) - label - 1)]
    asked = "problem" if "problem" in row else "prompt"
    meta = {name: x for name, x in row.items() if name not in (asked, "steps", "label", "final_answer_correct")}
    known = right if isinstance(right, bool) else None
    prompt = _of(row, asked, str) if asked == "problem" else prompt_of(row.get(asked))
    return [Solution(prompt, tuple(steps), tuple(labels), known, meta=meta)]


def to_processbench(solution: Solution, threshold: float, number: int) -> Row:
    """Steps before the first wrong one need labels, and all of them where none is wrong; null is written where nobody knows whether
    the answer is right."""
    labels = solution.labels
    error = next((k for k, label in enumerate(labels) if label is None or label < threshold), -1)
    if error >= 0 and labels[error] is None:
        raise ValueError(f"step {error + 1} has no label, so that the first error is not known")
    about = {"id": f"rewardlab-{number}", "generator": None} | solution.meta
    return {
        "id": about.pop("id"), "generator": about.pop("generator"), "problem": solution.prompt, "steps": list(solution.steps),
        "final_answer_correct": solution.right, "label": error, **about,
    }  # fmt: skip


def from_prmbench(row: Row) -> list[Solution]:
    """A row of PRMBench (Song et al. 2025, arXiv:2501.03124): the modified process, whose `error_steps` are wrong, counted from 1,
    all others right; and the original one, which is right.

    About 20 published rows also list steps that they do not have. Nothing is marked by them; meta keeps the list as `listed`.
    """
    steps, wrong = _texts(row, "modified_process"), _of(row, "error_steps", list)
    if not all(isinstance(k, int) and k >= 1 for k in wrong):
        raise ValueError(f"`error_steps` are numbers from 1 up, and not {wrong!r}")
    meta = {name: value for name, value in row.items() if name not in ("modified_question", "modified_process", "error_steps")}
    if any(k > len(steps) for k in wrong):
        meta["listed"] = wrong
    labels = tuple(float(k not in wrong) for k in range(1, len(steps) + 1))
    found = [Solution(_of(row, "modified_question", str), tuple(steps), labels, meta=meta)]
    if row.get("original_process"):
        before = _texts(row, "original_process")
        about = {"idx": row.get("idx"), "classification": "original"}
        found.append(Solution(_of(row, "original_question", str), tuple(before), (1.0,) * len(before), meta=about))
    return found


def to_prmbench(solution: Solution, threshold: float, number: int) -> Row:
    """Every step needs a label, since those that are not listed as wrong are right."""
    steps, labels = _labelled(solution, threshold)
    if len(steps) < len(solution.steps):
        raise ValueError(f"step {len(steps) + 1} has no label")
    about = {"idx": f"rewardlab-{number}", "question": solution.prompt, "original_question": solution.prompt} | solution.meta
    row = {"modified_question": solution.prompt, "modified_process": steps}
    return {**about, **row, "error_steps": [k for k, right in enumerate(labels, 1) if not right]}


def from_trl(row: Row) -> list[Solution]:
    """A row of TRL's stepwise supervision: the steps are `completions`, `labels` true or false."""
    steps, labels = _texts(row, "completions"), _of(row, "labels", list)
    if len(labels) != len(steps) or not all(isinstance(label, bool | int) and label in (0, 1) for label in labels):
        raise ValueError(f"{len(steps)} completions need as many labels true or false")
    meta = {name: value for name, value in row.items() if name not in ("prompt", "completions", "labels")}
    return [Solution(prompt_of(row.get("prompt")), tuple(steps), tuple(map(float, labels)), meta=meta)]


# ---- whole replies ---------------------------------------------------------------------------------------------------


def from_reply(row: Row, column: str, splitter: str = "newline") -> list[Solution]:
    """A row whose reply stands in a column as one text, or as a message of the assistant, cut into steps without labels."""
    # here, since most files need neither
    from rewardlab.text.splitters import cut

    reply = decoded(row.get(column))
    if is_conversation(reply) and len(reply) == 1:
        reply = text_in(reply[0])
    if not isinstance(reply, str) or not reply.strip():
        raise ValueError(f"`{column}` should be a text with a solution, and is {row.get(column)!r:.60}")
    steps, answer = [step for step in cut(reply, splitter) if step], row.get("answer")
    meta = {name: value for name, value in row.items() if name not in ("prompt", column, "answer")}
    known = None if answer is None else str(answer)
    return [Solution(prompt_of(row.get("prompt")), tuple(steps), (None,) * len(steps), answer=known, meta=meta)]


def to_reply(solution: Solution, threshold: float, number: int) -> Row:
    raise ValueError("a whole reply holds no labels of steps")


def to_trl(solution: Solution, threshold: float, number: int) -> Row:
    """Steps after the last label are left out."""
    steps, labels = _labelled(solution, threshold)
    return {"prompt": solution.prompt, "completions": steps, "labels": labels, **solution.meta}


# ---- what they share -------------------------------------------------------------------------------------------------


def _labelled(solution: Solution, threshold: float) -> tuple[list[str], list[bool]]:
    """The steps up to the last with a label, and whether each is right."""
    labels = list(solution.labels)
    while labels and labels[-1] is None:
        labels.pop()
    if not labels:
        raise ValueError("none of its steps has a label")
    if None in labels:
        raise ValueError(f"step {labels.index(None) + 1} has no label, and later ones have")
    return list(solution.steps[: len(labels)]), [label is not None and label >= threshold for label in labels]


def _of(row: Any, name: str, kind: type) -> Any:
    value = row.get(name) if isinstance(row, dict) else None
    if not isinstance(value, kind):
        raise ValueError(f"`{name}` should be a {_KINDS[kind]}, and is {value!r:.60}")
    return value


_KINDS: dict[type, str] = {str: "text", list: "list", dict: "object"}


def _texts(row: Row, name: str) -> list[str]:
    found = _of(row, name, list)
    if not found or not all(isinstance(x, str) for x in found):
        raise ValueError(f"`{name}` should be a list of texts, and is {found!r:.60}")
    return found
