"""The user's own problems: a file, a folder, or a dataset, whose rows become prompts, answers and replies to imitate."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rewardlab.core import Message, Problem, Task
from rewardlab.core.domain import Share
from rewardlab.errors import RewardlabError

from .rows import HUB, Row, splits
from .sources import Shuffled, held_out

ANSWER = "answer"
"""The column of the answers, if no other is named. It may be missing: then the problems have none."""
TEACHES = ({"chosen", "rejected"}, {"solution"})
"""Columns that preference and supervised methods learn from: rows that have them need no answer column."""
OTHER_NAMES = {
    "prompt": ("question", "problem", "instruction", "query", "input", "text"),
    "answer": ("ground_truth", "gold", "label", "target", "final_answer", "expected", "output", "solution"),
    "completion": ("response", "output", "reply", "solution"),
}
"""What else people call a column: suggested where it is missing."""


def records(
    *,
    path: str,
    test: str | None = None,
    prompt_column: str = "prompt",
    answer_column: str = ANSWER,
    completion_column: str | None = None,
    system: str | None = None,
    test_share: Share = 0.1,
    verifier: str = "final_answer",
    seed: int = 0,
) -> Task:
    """Problems from a file (.jsonl, .json, .csv, .tsv, .parquet), a folder with train.* (and test.*), or a dataset.

    A dataset is a folder that `datasets` saved, or hub:OWNER/NAME,config=C,split=S. A prompt is a text or a list of {"role",
    "content"}; `system` goes first, in place of one that the data has. Replies to imitate (`completion_column`, or what follows
    the prompt in a conversation) become `meta["solution"]`; all other columns go to `meta`. A column may lie within another:
    reward_model.ground_truth.

    Held out are: the problems of `test`, another file or dataset; else those of the data's own test or validation split; else
    `test_share` of the problems, chosen by a hash of their prompts, so that equal prompts stay together. They are never trained on.
    Raises RewardlabError, with file and line, for whatever cannot be read.
    """
    if not 0 < test_share < 1:
        raise RewardlabError(f"records: test_share must lie between 0 and 1, not {test_share}")
    columns = Columns(prompt_column, answer_column, completion_column, system)
    rows = splits(path) | ({} if test is None else {"test": _held_out(splits(test))})
    if "train" not in rows:
        raise RewardlabError(f"{path} has a test split only, and no problems to train on")
    train, held = _parted({name: _problems(of, columns) for name, of in rows.items()}, test_share, path)
    extra = dict.fromkeys(k for p in train for k in p.meta)
    return Task(
        name=_name(path),
        train=Shuffled(train, seed),
        test=held,
        verifier=verifier,
        about=f"{len(train)} problems to train on and {len(held)} to test, from {path}",
        columns=("prompt", *(["answer"] if any(p.answer is not None for p in train) else []), *extra),
    )


def _name(path: str) -> str:
    """hub:openai/gsm8k,config=main is gsm8k; a file goes by its name without the suffix."""
    last = path.removeprefix(HUB).rstrip("/").rpartition("/")[2]
    return last.partition(",")[0] if path.startswith(HUB) else last.rpartition(".")[0] or last


@dataclass(frozen=True)
class Columns:
    """Which columns to read, and the system message to put first."""

    prompt: str
    answer: str
    completion: str | None
    system: str | None

    def in_row(self, row: Mapping[str, Any]) -> Columns:
        """With the names of TRL's and verl's formats, where the row has those instead of the default names."""
        messages = self.prompt == "prompt" and "prompt" not in row and "messages" in row
        verl = self.answer == "answer" and "answer" not in row and _has(row, "reward_model.ground_truth")
        trl = self.completion is None and "completion" in row and "solution" not in row
        return replace(
            self,
            prompt="messages" if messages else self.prompt,
            answer="reward_model.ground_truth" if verl else self.answer,
            completion="completion" if trl else self.completion,
        )


def _problems(rows: Iterator[Row], columns: Columns) -> list[Problem]:
    problems: list[Problem] = []
    has_answers = True
    for place, row in rows:
        if not problems:
            columns = columns.in_row(row)
        prompt, solution = _prompt_and_solution(row, columns, place)
        if not problems:
            # data of prompts alone is welcome too: whether the answers are needed depends on the reward
            teaching = row.keys() | ({"solution"} if solution else set())
            named = columns.answer != ANSWER and not any(names <= teaching for names in TEACHES)
            has_answers = _has(row, columns.answer) or named
        answer = _answer(_column(row, columns.answer, "answer", place), columns.answer, place) if has_answers else None
        meta = {k: _last_text(v) if k in ("chosen", "rejected", "solution") else v for k, v in row.items()}
        used = (columns.prompt, columns.answer, columns.completion)
        meta = {k: v for k, v in meta.items() if k not in used} | ({"solution": solution} if solution else {})
        problems.append(Problem(prompt, answer, meta))
    return problems


def _lookup(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column, or of a.b within the column a; None if there is none."""
    value: Any = row
    for part in [name] if name in row else name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _has(row: Mapping[str, Any], name: str) -> bool:
    # a column whose value is missing in this row is still a column
    return name in row or _lookup(row, name) is not None


def _column(row: Mapping[str, Any], name: str, kind: str, place: str) -> Any:
    """The value of a column.  kind: prompt, answer or completion."""
    if _has(row, name):
        return _lookup(row, name)
    near = difflib.get_close_matches(name, row, n=1) or [other for other in OTHER_NAMES[kind] if other in row]
    hint = f"did you mean {near[0]!r} (--{kind}-column {near[0]})? " if near else f"Name yours with --{kind}-column. "
    raise RewardlabError(f"{place}: no column {name!r}; {hint}The columns are: {', '.join(row) or 'none'}")


def _prompt_and_solution(row: Mapping[str, Any], columns: Columns, place: str) -> tuple[tuple[Message, ...], Any]:
    """The prompt, and the reply to imitate (a list, where messages answer several); None if the row has none."""
    messages, solution = _messages(_column(row, columns.prompt, "prompt", place), place), None
    if columns.completion is not None:
        solution = _replies(_column(row, columns.completion, "completion", place), place)
    elif messages and messages[-1].role == "assistant":
        # a whole conversation: every reply of the assistant is learned from, the first of them ends the prompt
        first = next(i for i, m in enumerate(messages) if m.role == "assistant")
        messages, solution = messages[:first], _alternating(messages[first:], place)
    conversation = [m for m in messages if m.role != "system"]
    if not conversation or not conversation[-1].text.strip():
        raise RewardlabError(f"{place}: the prompt is empty")
    return tuple(messages) if columns.system is None else (Message("system", columns.system), *conversation), solution


def _messages(value: Any, place: str) -> list[Message]:
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list) or not all(_is_message(m) for m in value):
        raise RewardlabError(f"{place}: a prompt is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")
    return [Message(m["role"], _text(m["content"])) for m in value]


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and isinstance(_text(value.get("content")), str)


def _text(content: Any) -> Any:
    """The text of a message: of its parts {"type": "text", "text": ...}, where it is written in parts."""
    if isinstance(content, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content):
        return "".join(part["text"] for part in content)
    return content


def _replies(value: Any, place: str) -> str | list[str]:
    """The replies of a completion: a text, or messages that begin with the assistant's."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, list) and value and all(_is_message(m) for m in value):
        return _alternating([Message(m["role"], _text(m["content"])) for m in value], place)
    raise RewardlabError(f"{place}: a completion is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")


def _alternating(messages: list[Message], place: str) -> str | list[str]:
    """Replies, and the user's messages between them, as the rollout `recorded` reads them."""
    roles = [m.role for m in messages]
    if roles != [("assistant", "user")[i % 2] for i in range(len(roles))]:
        raise RewardlabError(
            f"{place}: after the prompt, messages of assistant and user must take turns; they are {', '.join(roles)}"
        )
    return messages[0].text if len(messages) == 1 else [m.text for m in messages]


def _answer(value: Any, column: str, place: str) -> Any:
    # value != value: NaN, which is how data frames write a missing value
    if value is None or value != value or (isinstance(value, str | list | dict) and not value) or not str(value).strip():
        raise RewardlabError(f"{place}: the problem has no answer (column {column!r} is {value!r})")
    return value


def _last_text(value: Any) -> Any:
    """The reply at the end of a conversation, for pairs that are written as whole conversations."""
    return _text(value[-1]["content"]) if isinstance(value, list) and value and _is_message(value[-1]) else value


def _held_out(rows: Mapping[str, Iterator[Row]]) -> Iterator[Row]:
    """The test split, or all rows of data that has none."""
    return rows["test"] if "test" in rows else rows["train"]


def _parted(splits: Mapping[str, list[Problem]], share: float, path: str) -> tuple[list[Problem], list[Problem]]:
    """Training and held-out problems."""
    return _apart(splits["train"], splits["test"], path) if "test" in splits else _divide(splits["train"], share, path)


def _divide(problems: list[Problem], share: float, path: str) -> tuple[list[Problem], list[Problem]]:
    """Hold a share out by content: at least one problem on either side."""
    keys = {p.key: held_out(p, share) for p in problems}
    if not problems:
        raise RewardlabError(f"{path} holds no problems")
    if len(keys) < 2:
        raise RewardlabError(f"{path}: at least two different prompts are needed, one of them to test on")
    if not any(keys.values()):
        # the share may be too small for any hash to fall below it: move one problem, always the same
        keys[min(keys)] = True
    if all(keys.values()):
        keys[max(keys)] = False
    return [p for p in problems if not keys[p.key]], [p for p in problems if keys[p.key]]


def _apart(train: list[Problem], test: list[Problem], path: str) -> tuple[list[Problem], list[Problem]]:
    held_out_keys = {p.key for p in test}
    unseen = [p for p in train if p.key not in held_out_keys]
    if not test or not unseen:
        what = "no test problems" if not test else "no training problem" + (" that is not a test problem too" if train else "s")
        raise RewardlabError(f"{path} holds {what}")
    return unseen, test
