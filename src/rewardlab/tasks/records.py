"""The user's own problems: a file, a folder, or a dataset, whose rows become prompts, answers and replies to imitate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rewardlab.core import Message, Problem, Task
from rewardlab.data.in_memory import GivenRows
from rewardlab.data.pair_scores import with_scores
from rewardlab.data.picture_rows import folder_of, pictures_of
from rewardlab.data.rated_rows import with_reply
from rewardlab.data.values import is_missing
from rewardlab.data.whole_pairs import Told, parted
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import Share

from .conversations import alternating, decoded, messages_of, preferred, refuse_calls, replies, worked
from .equal_pairs import without_equal_pairs
from .parted_prompts import continued, first_turns, tell_read
from .pictures import check_named, check_replies, seeing, shows_pictures
from .row_columns import Columns, NoAnswer, NoColumn, column, has
from .rows import HELD_OUT, HUB, Row, splits
from .sources import Listed, Shuffled, held_out

ANSWER = "answer"
"""The column of the answers, if no other is named. It may be missing: then the problems have none."""
REPLIES = ("chosen", "rejected", "completion")
TEACHES = ({"chosen", "rejected"}, {"solution"})
"""Columns that preference and supervised methods learn from: rows that have them need no answer column."""
FILTERED = (".jsonl", ".csv", ".parquet", ".jsonl.gz", ".csv.gz")
"""Files that `rewardlab data filter` reads."""
SHOWN = 10
"""Rows without an answer that an error names."""


def records(
    *,
    path: str,
    test: str | None = None,
    prompt_column: str = "prompt",
    answer_column: str = ANSWER,
    completion_column: str | None = None,
    image_column: str | None = None,
    image_folder: str | None = None,
    system: str | None = None,
    system_column: str | None = None,
    test_share: Share = 0.1,
    verifier: str = "final_answer",
    order: Literal["shuffled", "file"] = "shuffled",
    seed: int = 0,
) -> Task:
    """Problems from a file (.jsonl, .json, .csv, .tsv, .parquet), a folder with train.* (and test.*), or a dataset (`rows.py`).

    A prompt is a text or a list of {"role", "content"}, or {"from", "value"} (also as JSON in a text); Alpaca's is `instruction`
    with `input`. `system` goes first, in place of one that the data has, or the text of `system_column` (`row_columns.py`). Replies
    to imitate (`completion_column`, or what follows the prompt in a conversation) become `meta["solution"]`; others go to `meta`.
    A column may lie within another: reward_model.ground_truth. Preferences without a prompt have it in both conversations.

    Held out are: the problems of `test`, another file or dataset; else those of the data's own test or validation split; else
    `test_share` of the problems, chosen by a hash of their prompts. They are never trained on.
    order: of training: "shuffled", anew in each epoch, or "file".  image_column: see `data/picture_rows.py`.
    Raises RewardlabError, with file and line, for whatever cannot be read, and says how many rows are bad.
    """
    if not 0 < test_share < 1:
        raise RewardlabError(f"records: test_share must lie between 0 and 1, not {test_share}")
    columns = Columns(prompt_column, answer_column, completion_column, system, image_column, system_column=system_column)
    train, held = _parted(_read(path, test, columns, image_folder), test_share, path, path if test is None else test)
    return Task(
        name=_name(path),
        train=Listed(train) if order == "file" or not train else Shuffled(train, seed),
        test=held,
        verifier=verifier,
        about=f"{len(train)} problems to train on and {len(held)} to test, from {path}{_seen(train, held)}",
        columns=("prompt", *_beside_prompt(train or held)),
    )


def _splits(source: str) -> dict[str, Iterator[Row]]:
    """The rows of each split, of what is named or of rows given in Python."""
    if not isinstance(source, GivenRows):
        return splits(source)
    found = source.splits()
    if not {"train", *HELD_OUT} & found.keys():
        raise RewardlabError(f"{source} have no split 'train' or 'test'; they have: {', '.join(found)}")
    test = next((name for name in HELD_OUT if name in found), None)
    return {new: found[old] for new, old in (("train", "train"), ("test", test)) if old in found}


def _beside_prompt(problems: Sequence[Problem]) -> list[str]:
    """The columns that problems have beside the prompt; where every one is held out, those of the held-out problems."""
    answered = ["answer"] if any(p.answer is not None for p in problems) else []
    return [*answered, *dict.fromkeys(k for p in problems for k in p.meta)]


def _name(path: str) -> str:
    """hub:openai/gsm8k,config=main is gsm8k; a file goes by its name without the suffix."""
    last = path.removeprefix(HUB).rstrip("/").rpartition("/")[2].removesuffix(".gz")
    return last.partition(",")[0] if path.startswith(HUB) else last.rpartition(".")[0] or last


def problems_of(rows: Iterable[Row], columns: Columns, told: Told | None = None) -> Iterator[Problem | RewardlabError]:
    """The problem of each row, or why it is none. Which columns there are, the first row says.

    told: is given the pairs that hold their prompts.
    Raises NoColumn where the first row lacks a column: then it is a wrong name, and not a bad row.
    """
    reader: Reader | None = None
    for number, (place, row) in enumerate(rows):
        try:
            if isinstance(row, RewardlabError):
                raise row
            # before the prompt is taken out of a pair, as text
            pictures = pictures_of(row, columns.in_row(row).prompt, columns.image, columns.folder, place)
            row = _with_prompt(row, columns, place, told)
            reader = reader or Reader.of(row, columns, place)
            problem: Problem | RewardlabError = reader.problem(row, place, pictures)
        except RewardlabError as e:
            if isinstance(e, NoColumn) and number == 0:
                raise
            problem = reader.without_answer(row, place, e) if reader and isinstance(e, NoColumn) else e
        yield problem


def _read(path: str, test: str | None, columns: Columns, image_folder: str | None) -> dict[str, list[Problem]]:
    """The problems of all splits. What is read of pairs that hold their prompts is printed."""
    splits = _splits(path) | ({} if test is None else {"test": _held_out(_splits(test))})
    if "train" not in splits:
        raise RewardlabError(f"{path} has a test split only, and no problems to train on")
    folders = {name: folder_of(of, image_folder) for name, of in (("train", path), ("test", path if test is None else test))}
    told = Told()
    found = {name: _problems(rows, replace(columns, folder=folders[name]), told) for name, rows in splits.items()}
    told.tell()
    tell_read(columns, [problem for of in found.values() for problem in of])
    check_named(columns.image, [problem for of in found.values() for problem in of])
    return found


def _seen(train: Sequence[Problem], held: Sequence[Problem]) -> str:
    """How many problems show pictures, in words; "" for none."""
    showing = sum(shows_pictures(problem) for problem in (*train, *held))
    return f"; {showing} of them show pictures" if showing else ""


def _problems(rows: Iterator[Row], columns: Columns, told: Told) -> list[Problem]:
    """The problems of all rows. Raises the error of the first bad row, which says how many are bad."""
    found = list(problems_of(rows, columns, told))
    errors = [e for e in found if isinstance(e, RewardlabError)]
    if errors:
        several = f" ({len(errors):,} of {len(found):,} rows are bad; this is the first)" if len(errors) > 1 else ""
        raise RewardlabError(f"{errors[0]}{several}{_to_drop(errors, columns, len(found))}")
    return without_equal_pairs([problem for problem in found if isinstance(problem, Problem)])


def _to_drop(errors: list[RewardlabError], columns: Columns, rows: int) -> str:
    """Which rows have no answer, and how to leave them out."""
    places = [str(e).partition(": ")[0].rpartition(", ") for e in errors if isinstance(e, NoAnswer)]
    if not places or len(places) == rows:
        return ""
    more = f" and {len(places) - SHOWN:,} more" if len(places) > SHOWN else ""
    shown, file = ", ".join(place for _, _, place in places[:SHOWN]) + more, places[0][0]
    named = "" if columns.answer == ANSWER else f" --answer-column {columns.answer}"
    command = f". To leave them out: rewardlab data filter {file}{named} --out kept.jsonl" if file.endswith(FILTERED) else ""
    return f". Without an answer: {shown}{command}"


@dataclass(frozen=True)
class Reader:
    """Reads the rows of a file.  has_answers: whether its problems have them."""

    columns: Columns
    has_answers: bool

    @classmethod
    def of(cls, row: Mapping[str, Any], columns: Columns, place: str) -> Reader:
        """As the first row shows."""
        columns = columns.in_row(row)
        _, solution = _prompt_and_solution(row, columns, place)
        # data of prompts alone is welcome too: whether the answers are needed depends on the reward
        teaching = row.keys() | ({"solution"} if solution else set())
        named = columns.answer != ANSWER and not any(names <= teaching for names in TEACHES)
        return cls(columns, has(row, columns.answer) or named)

    def without_answer(self, row: Mapping[str, Any] | RewardlabError, place: str, error: NoColumn) -> RewardlabError:
        """The error of a row that lacks a column: of the answers, the others have them."""
        columns = self.columns
        if isinstance(row, RewardlabError) or not has(row, columns.prompt) or has(row, columns.answer):
            return error
        return NoAnswer(
            f"{place}: the problem has no answer (it has no column {columns.answer!r}; its columns are: {', '.join(row)})"
        )

    def problem(self, row: Mapping[str, Any], place: str, pictures: Sequence[Any] = ()) -> Problem:
        columns = self.columns
        prompt, solution = _prompt_and_solution(row, columns, place)
        prompt = seeing(prompt, pictures, place)
        answer = _answer(row, columns.answer, place) if self.has_answers else None
        used = columns.read(bool(pictures))
        taught = {k: _taught(k, v, prompt, place) for k, v in with_scores(with_reply(row)).items() if k not in used}
        check_replies(pictures, (solution, *map(taught.get, REPLIES)), place)
        meta = taught | ({"solution": solution} if solution else {})
        return Problem(prompt, answer, meta, place)


def _taught(name: str, value: Any, prompt: tuple[Message, ...], place: str) -> Any:
    """The value of a column; of those that hold replies, the reply."""
    if name in ("chosen", "rejected"):
        return preferred(value, prompt, name, place)
    if name == "completion" and not is_missing(value):
        return replies(value, place)
    return worked(value, place) if name == "solution" else value


def _with_prompt(row: Mapping[str, Any], columns: Columns, place: str, told: Told | None) -> Mapping[str, Any]:
    """A row of preferences with the prompt that lies within both conversations, if it has no other."""
    # another name than the usual one says where the prompt is
    pair = parted(row, place) if columns.prompt == "prompt" else None
    if pair is None:
        return row
    if told is not None:
        told.add(pair)
    return {**row, **pair.whole}


def _prompt_and_solution(row: Mapping[str, Any], columns: Columns, place: str) -> tuple[tuple[Message, ...], Any]:
    """The prompt, and the reply to imitate (a list, where messages answer several); None if the row has none."""
    written = decoded(column(row, columns.prompt, "prompt", place))
    messages, solution = first_turns(row, columns, place) + messages_of(continued(row, columns, written), place), None
    ends = messages[-1].role if messages else ""
    other = columns.completion or next((name for name in ("chosen", "rejected") if row.get(name)), None)
    if ends == "assistant" and other:
        raise RewardlabError(f"{place}: the prompt ends with a reply, and the column {other!r} holds another")
    if columns.completion is not None:
        solution = replies(column(row, columns.completion, "completion", place), place)
    elif ends == "assistant":
        # a whole conversation: every reply of the assistant is learned from, the first of them ends the prompt
        first = next(i for i, m in enumerate(messages) if m.role == "assistant")
        refuse_calls(written[first:], place)
        messages, solution = messages[:first], alternating(messages[first:], place)
    conversation = [m for m in messages if m.role != "system"]
    if not conversation or not conversation[-1].text.strip():
        raise RewardlabError(f"{place}: the prompt is empty")
    system = columns.system or columns.system_of(row, place)
    own = len(conversation) < len(messages) and columns.system is None and columns.system_column is None
    return tuple(messages) if system is None or own else (Message("system", system), *conversation), solution


def _answer(row: Mapping[str, Any], name: str, place: str) -> Any:
    value = column(row, name, "answer", place)
    # value != value: NaN, which is how data frames write a missing value
    if value is None or value != value or (isinstance(value, str | list | dict) and not value) or not str(value).strip():
        tests = "; programs are judged by their tests: --verifier code --answer-column tests" if row.get("tests") else ""
        raise NoAnswer(f"{place}: the problem has no answer (column {name!r} is {value!r}){tests}")
    return value


def _held_out(rows: Mapping[str, Iterator[Row]]) -> Iterator[Row]:
    """The test split, or all rows of data that has none."""
    return rows["test"] if "test" in rows else rows["train"]


def _parted(splits: Mapping[str, list[Problem]], share: float, path: str, test: str) -> tuple[list[Problem], list[Problem]]:
    """Training and held-out problems.  test: where the latter are from."""
    return _apart(splits["train"], splits["test"], path, test) if "test" in splits else _divide(splits["train"], share, path)


def _divide(problems: list[Problem], share: float, path: str) -> tuple[list[Problem], list[Problem]]:
    """Hold a share out by content: at least one problem on either side."""
    keys = {p.key: held_out(p, share) for p in problems}
    if not problems:
        raise RewardlabError(f"{path} holds no problems")
    if len(keys) < 2:
        # rows of an environment may differ in what is played alone
        alike = ": rows with the same prompt are one problem, whatever their columns hold, so let it say which"
        raise RewardlabError(
            f"{path}: at least two different prompts are needed, one of them to test on{alike if problems[1:] else ''}"
        )
    if not any(keys.values()):
        # the share may be too small for any hash to fall below it: move one problem, always the same
        keys[min(keys)] = True
    if all(keys.values()):
        keys[max(keys)] = False
    return [p for p in problems if not keys[p.key]], [p for p in problems if keys[p.key]]


def _apart(train: list[Problem], test: list[Problem], path: str, test_path: str) -> tuple[list[Problem], list[Problem]]:
    if not train:
        raise RewardlabError(f"{path} holds no training problems")
    if not test:
        raise RewardlabError(f"{test_path} holds no test problems")
    # none may be left: that is no fault where nothing is trained (`api.inputs.trainable`)
    held_out_keys = {p.key for p in test}
    return [p for p in train if p.key not in held_out_keys], test
