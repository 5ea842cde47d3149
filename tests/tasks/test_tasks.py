"""Every task keeps its contract: gold gets full marks, a perturbed gold none, training never sees a test problem."""

from __future__ import annotations

import itertools
import json
import random
import re
import statistics
from pathlib import Path

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Problem, Task, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.countdown.problems import countdown
from rewardlab.tasks.gsm8k import gsm8k
from rewardlab.tasks.pairs import Paired
from rewardlab.tasks.positions import chosen, distinct_positions
from rewardlab.tasks.records import records
from rewardlab.tasks.sources import Listed, Shuffled
from rewardlab.util.serialize import pack
from rewardlab.verifiers.pages import browser
from rewardlab.worlds.preferences import preferences

NAMES = sorted(registry.task_files())
NEED_OPTIONS = {"records", "reasoning_gym", "strictprm", "verifiers", "textworld", "babyai", "rooms", "gym_text", "openenv"}
WHOLE_EPISODES = {"screens", "inspections", "errands", "terminals"}
"""Tasks in which the last turn alone is not the answer."""
NO_BEST = {
    "packings",
    "graded",
    "duels",
    "taught_duels",
    "second_looks",
    "criticised_duels",
    "mirrors",
    "occasions",
    "documented",
    "crossings",
    "polyglot",
}
"""Tasks of which nobody knows the best answer, and those whose replies are judgements of what a rollout chooses to show."""
BY_FORM = {"smelly_tests"}
"""Tasks whose verifier reads the form of a reply alone: other numbers in it change nothing."""
SHARES = {"boxes", "module", "exemplar"}
"""Columns of problems whose replies are paid for what they have in common with the gold answer."""


SOLUTIONS = {"gsm8k_solutions", "labelled_solutions", "labelled_domains"}
"""Tasks whose held-out rows are several solutions to each question."""


@pytest.fixture(scope="module", params=[name for name in NAMES if name not in NEED_OPTIONS])
def task(request) -> Task:
    try:
        return registry.task(request.param)
    except RewardlabError as e:
        if "REWARDLAB_DATA" in str(e):
            pytest.skip(str(e))
        raise


def verifier(name: str):
    return registry.part("reward", name)


def judged(task: Task, problem: Problem, reply: str) -> float | None:
    ids = np.zeros(len(reply), np.int64)
    return verifier(task.verifier)([[Trajectory(problem, (Turn("policy", ids, text=reply),))]])[0][0].value


def gold(problem: Problem) -> str:
    """What the last reply of a perfect policy says."""
    said = problem.meta.get("solution") or (problem.answer if str(problem.answer)[:1] == "<" else f"Answer: {problem.answer}")
    return said if isinstance(said, str) else said[-1]


def perturbed(problem: Problem) -> str:
    """A reply of the right form that is wrong."""
    if "boxes" in problem.meta:
        return "<answer>[0,0,1,1]</answer>"
    if "tier" in problem.meta:
        # one more digit may be within what a share is off by
        return "Answer: 777"
    # where what is judged stands between tags, what follows them is not read
    for tag in ("<answer>\n", "<answer>", "<stdout>", "<code>"):
        if tag in gold(problem):
            return gold(problem).replace(tag, f"{tag}7")
    if "masks" in problem.meta:
        # one span more than there are masks; a single wrong one would leave the share of the others
        return gold(problem) + "; Bob"
    if gold(problem).startswith("<body"):
        return gold(problem).replace("</h1>", "")
    if "hurry" in problem.meta:
        return "Bring it."
    # what follows a record is not read: its name, action or type is another
    if (changed := re.sub(r'("(?:name|action|type)": ?")', r"\1x", gold(problem), count=1)) != gold(problem):
        return changed
    # nor is what follows a box, or a module
    if "beam" in problem.meta:
        return gold(problem).replace("{", "{1")
    if gold(problem).startswith("module"):
        return gold(problem).replace(" & ", " | ")
    # a program may end in any way that changes nothing
    return "Program: * 0; + 77" if gold(problem).startswith("Program") else gold(problem) + "1"


def source(task: Task):
    return Shuffled(task.train) if isinstance(task.train, list) else task.train


def test_gold_gets_full_marks_and_a_perturbed_gold_none(task, thorough):
    if task.model in ("flow", "actor"):
        pytest.skip("its answers are no text: tests of its rewards do this")
    if task.name in WHOLE_EPISODES | NO_BEST:
        pytest.skip("what is judged is every turn, or how good a reply is: tests of its rewards do this")
    if task.verifier == "web_page" and (lacks := browser.missing()):
        pytest.skip(lacks)
    # a page is shown several times
    many = 10 if task.verifier == "web_page" else 100 if thorough else 15
    for problem in [*(task.train[i] for i in range(many)), *task.test[:many]]:
        assert judged(task, problem, gold(problem)) == 1.0, problem
        assert judged(task, problem, "") == 0.0
        if task.name not in BY_FORM:
            assert judged(task, problem, perturbed(problem)) < (1.0 if SHARES & set(problem.meta) else 1e-9), problem


def test_training_never_sees_a_test_problem(task, thorough):
    some, trained = (None, 3000) if thorough else (60, 150)
    # several rows may be solutions to one question
    test = {p.key for p in task.test[: some and (10 * some if task.name in SOLUTIONS else some)]}
    assert len(test) >= (some or 100)
    assert not test & {source(task)[i].key for i in range(trained)}


def test_a_position_always_gives_the_same_problem(task, thorough):
    again = registry.task(task.name)
    for i in (7, 0, 12345, 7):
        assert pack(source(task)[i].meta, {}) == pack(source(again)[i].meta, {})
        assert source(task)[i].key == source(again)[i].key
    some = slice(None if thorough else 50)
    assert [p.key for p in task.test[some]] == [p.key for p in again.test[some]]
    with pytest.raises(IndexError):
        source(task)[-1]


def test_a_task_says_what_it_is(task):
    assert task.about
    assert "\n" not in task.about
    problems = [source(task)[i] for i in range(50)]
    answered = {"answer"} if any(p.answer is not None for p in problems) else set()
    assert set(task.columns) == {"prompt", *answered, *(key for p in problems for key in p.meta)}
    for p in problems:
        pack(dict(p.meta), {})


def test_a_teacher_writes_the_same_text_for_the_same_stream(task):
    if task.demonstrate is None:
        pytest.skip("a task without a teacher")
    problem = task.train[3]
    assert task.demonstrate(problem, random.Random(5)) == task.demonstrate(problem, random.Random(5))


def solve(question: str) -> list[int]:
    """The values of a chain, worked out from the words of its question."""
    words = question.rstrip(".").split(". ")
    values = [int(words[0].rpartition(" ")[2])]
    for word in words[1:]:
        verb, operand = word.split()[0], int(word.rpartition(" ")[2])
        values.append({"Add": values[-1] + operand, "Subtract": values[-1] - operand, "Multiply": values[-1] * operand}[verb])
    return values


def test_arithmetic_steps_are_those_of_the_question_within_two_digits():
    task = arithmetic(difficulty=(2, 5), test_size=10)
    lengths, signs = set(), ""
    for i in range(500):
        problem = task.train[i]
        values = solve(problem.question)
        assert [int(step.partition("=")[2]) for step in problem.meta["steps"]] == values[1:]
        assert problem.answer == str(values[-1])
        assert all(0 <= v <= 99 for v in values)
        lengths.add(len(values) - 1)
        signs += "".join(c for step in problem.meta["steps"] for c in step if c in "+-*")
    assert lengths == {2, 3, 4, 5}
    assert min(signs.count(sign) for sign in "+-*") > 0.15 * len(signs)


def test_a_faultless_teacher_writes_the_gold_solution():
    task = arithmetic(error=0.0, test_size=50)
    assert all(task.demonstrate(p, random.Random(1)) == p.meta["solution"] for p in task.test)


def test_a_careless_teacher_errs_as_often_as_asked_and_carries_on():
    task = arithmetic(error=0.2, test_size=10)
    wrong = total = 0
    for i in range(1000):
        problem = task.train[i]
        *lines, last = task.demonstrate(problem, random.Random(i)).split("\n")
        value = int(lines[0].split("=")[0].replace("*", "+").replace("-", "+").split("+")[0])
        for line in lines:
            left, result = line.split("=")
            assert left.startswith(str(value))
            wrong += eval(left) != int(result)
            total += 1
            value = int(result)
        assert last == f"Answer: {value}"
        assert 0 <= value <= 99
    assert wrong / total == pytest.approx(0.2, abs=0.02)


def test_redundant_lines_are_true_and_change_no_answer():
    plain, wordy = arithmetic(error=0.3, test_size=10), arithmetic(error=0.3, redundant=1.0, test_size=10)
    for i in range(300):
        lines = wordy.demonstrate(wordy.train[i], random.Random(i)).split("\n")
        assert len(lines) == 2 * 3 + 1
        for check in lines[1:-1:2]:
            left, result = check.split("=")
            assert eval(left) == int(result)
        followed = [*lines[0:-1:2], lines[-1]]
        assert followed[-1] == f"Answer: {followed[-2].partition('=')[2]}"
        assert plain.train[i] == wordy.train[i]


def test_a_small_world_gives_fewer_test_problems_but_never_repeats():
    task = arithmetic(difficulty=1)
    assert 20 < len(task.test) < 1000
    assert len({p.key for p in task.test}) == len(task.test)


def test_countdown_uses_its_numbers_once_and_its_teacher_misses_as_often_as_asked():
    task = countdown(numbers=4, error=0.4, test_size=10)
    right = [judged(task, p, task.demonstrate(p, random.Random(i))) for i, p in enumerate(task.train[i] for i in range(600))]
    assert statistics.mean(right) == pytest.approx(0.6, abs=0.06)
    for i in range(200):
        for step in task.train[i].meta["steps"]:
            left, result = step.split("=")
            assert eval(left) == int(result)
            assert 0 <= int(result) <= 99


@pytest.mark.parametrize("base", ["arithmetic", "countdown"])
def test_of_a_pair_one_is_right_and_length_does_not_tell_which(base):
    task = preferences(base=base)
    longer = []
    for problem in itertools.chain((task.train[i] for i in range(200)), task.test[:200]):
        assert judged(task, problem, problem.meta["chosen"]) == 1.0
        assert judged(task, problem, problem.meta["rejected"]) == 0.0
        longer.append(len(problem.meta["rejected"]) - len(problem.meta["chosen"]))
    assert abs(statistics.mean(x > 0 for x in longer) - statistics.mean(x < 0 for x in longer)) < 0.1
    assert statistics.mean(x == 0 for x in longer) > 0.8


def test_gsm8k_without_its_data_says_how_to_point_to_it(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path))
    with pytest.raises(RewardlabError, match=r"gsm8k/train\.jsonl is missing.*REWARDLAB_DATA"):
        gsm8k()


def test_gsm8k_leaves_out_calculator_marks_and_reads_commas(tmp_path, monkeypatch):
    (tmp_path / "gsm8k").mkdir()
    row = {"question": "How much?", "answer": "It is 2*600=$<<2*600=1200>>1,200.\n#### 1,200"}
    for name in ("train", "test"):
        (tmp_path / "gsm8k" / f"{name}.jsonl").write_text(json.dumps(row))
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path))
    task = gsm8k()
    assert task.test[0].meta["solution"] == "It is 2*600=$1,200.\nAnswer: 1,200"
    assert judged(task, task.test[0], "That makes $1200.00 in all.") == 1.0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: arithmetic(difficulty=0), "difficulty"),
        (lambda: arithmetic(difficulty=(4, 2)), "difficulty"),
        (lambda: arithmetic(difficulty="hard"), "difficulty"),
        (lambda: arithmetic(error=1.5), "error is a probability"),
        (lambda: arithmetic(test_size=0), "test_size"),
        (lambda: countdown(numbers=1), "between 2 and 6"),
        (lambda: preferences(base="arithmetics"), "did you mean arithmetic"),
        (lambda: preferences(base="countdown", difficulty=2), "unknown option of countdown 'difficulty'"),
        (lambda: preferences(error=0.0), "error"),
    ],
)
def test_bad_options_are_refused_by_name(make, says):
    with pytest.raises(RewardlabError, match=says):
        make()


def test_shuffled_epochs_hold_each_problem_once_in_a_new_order():
    source = Shuffled([ask(str(i)) for i in range(20)], seed=3)
    epochs = [[source[20 * e + i].question for i in range(20)] for e in range(3)]
    assert all(sorted(epoch, key=int) == [str(i) for i in range(20)] for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert source[5].question == epochs[0][5]
    assert [Shuffled(source.problems, seed=4)[i].question for i in range(20)] != epochs[0]


def test_problems_are_chosen_of_a_source_by_position_once_for_each_choice():
    source = Shuffled([ask(str(i), i) for i in range(6)], seed=3)
    own = chosen(source, [1, 4], "hard", seed=2)
    assert {own[i].question for i in range(8)} == {source[1].question, source[4].question}
    assert chosen(own, [0], "hard") is own
    # another choice is made of the whole, not of the first one
    easy = chosen(own, [5, 0], "easy", columns={0: {"trace": "so"}})
    assert easy.whole is source
    assert {p.question: dict(p.meta) for p in easy.problems} == {source[5].question: {}, source[0].question: {"trace": "so"}}
    assert source[0].meta == {}


def test_where_distinct_problems_are():
    source = Listed([ask(text) for text in "aabca"])
    assert distinct_positions(source, 0, 2) == [0, 2]
    # begun within an epoch, all are found in the next
    assert distinct_positions(source, 3, 9) == [3, 4, 7]
    endless = registry.task("arithmetic", test_size=1).train
    assert len({endless[i].key for i in distinct_positions(endless, 7, 5)}) == 5
    # one that pairs the problems of an endless source has no length either
    pairs = Paired(endless, lambda problem, rng: problem)
    assert len(distinct_positions(pairs, 7, 5)) == 5


def rows(n: int = 40, **more) -> list[dict]:
    return [{"prompt": f"What is {i}+1?", "answer": str(i + 1), **more} for i in range(n)]


def write(path: Path, data: list[dict]) -> str:
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(data), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in data))
    return str(path)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_file_of_ones_own_is_split_by_content(tmp_path, kind):
    path = write(tmp_path / f"mine.{kind}", rows(200, level=2) + rows(50, level=2))
    task = records(path=path)
    train = {task.train[i].key for i in range(len(task.train))}
    test = {p.key for p in task.test}
    assert len(train | test) == 200
    assert not train & test
    assert 5 <= len(test) <= 40
    assert len(task.train) + len(task.test) == 250
    assert task.test[0].meta == {"level": 2}
    assert judged(task, task.test[0], f"Answer: {task.test[0].answer}") == 1.0


def test_adding_rows_moves_no_problem_between_train_and_test(tmp_path):
    few, many = (records(path=write(tmp_path / f"{n}.jsonl", rows(n))) for n in (100, 300))
    assert {p.key for p in few.test} <= {p.key for p in many.test}


def test_two_problems_are_enough_for_one_on_each_side(tmp_path):
    for share in (0.01, 0.99):
        task = records(path=write(tmp_path / "two.jsonl", rows(2)), test_share=share)
        assert (len(task.train), len(task.test)) == (1, 1)


def test_a_folder_brings_its_own_test_file_and_its_problems_are_not_trained_on(tmp_path):
    write(tmp_path / "train.jsonl", rows(30))
    write(tmp_path / "test.parquet", rows(10))
    task = records(path=str(tmp_path))
    assert (len(task.train), len(task.test)) == (20, 10)


def test_a_dataset_saved_to_disk(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the extra 'data'")
    whole = datasets.Dataset.from_list(rows(30))
    whole.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": whole, "test": datasets.Dataset.from_list(rows(5))}).save_to_disk(str(tmp_path / "two"))
    assert len(records(path=str(tmp_path / "one")).test) >= 1
    task = records(path=str(tmp_path / "two"))
    assert (len(task.train), len(task.test)) == (25, 5)


def test_conversations_systems_and_other_columns(tmp_path):
    chat = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "1+1?"}]
    pair = {"chosen": [{"role": "assistant", "content": "2"}], "rejected": "3"}
    path = write(tmp_path / "chat.jsonl", [{"q": chat, **pair}, {"q": "2+2?", **pair}])
    plain, told = (records(path=path, prompt_column="q", system=s) for s in (None, "Be kind."))
    by_question = {p.question: p for p in [plain.train[0], *plain.test]}
    assert [m.text for m in by_question["1+1?"].prompt] == ["Be short.", "1+1?"]
    assert by_question["2+2?"].meta == {"chosen": "2", "rejected": "3"}
    assert by_question["2+2?"].answer is None
    assert all(p.prompt[0].text == "Be kind." and len(p.prompt) == 2 for p in [told.train[0], *told.test])


GOOD = '{"prompt": "a", "answer": "1"}\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no problems"),
        ("\n\n", "holds no problems"),
        (GOOD, "at least two different prompts are needed, one of them to test on$"),
        (GOOD + GOOD.replace("}", ', "map": 2}'), "one of them to test on: rows with the same prompt are one problem"),
        (GOOD + "\n" + '{"prompt": "b", \n', "line 3: broken JSON"),
        (GOOD + "[1]\n", "line 2: expected an object"),
        (GOOD + '{"prompt": "b"}\n', "line 2: the problem has no answer .it has no column 'answer'; its columns are: prompt"),
        ('{"promt": "b", "answer": 1}\n', "line 1: no column 'prompt'; did you mean 'promt'.*promt, answer"),
        (GOOD + '{"prompt": "b", "answer": null}\n', "line 2: the problem has no answer"),
        (GOOD + '{"prompt": "b", "answer": "  "}\n', "line 2: the problem has no answer"),
        (GOOD + '{"prompt": "b", "answer": NaN}\n', "line 2: broken JSON: NaN is not JSON"),
        (GOOD + '{"prompt": "b", "answer": "", "tests": ["assert f(1)"]}\n', "tests: --verifier code --answer-column tests"),
        (GOOD + '{"prompt": " ", "answer": "1"}\n', "line 2: the prompt is empty"),
        (GOOD + '{"prompt": [], "answer": "1"}\n', "line 2: the prompt is empty"),
        (GOOD + '{"prompt": [{"role": "system", "content": "x"}], "answer": "1"}\n', "line 2: the prompt is empty"),
        (GOOD + '{"prompt": 7, "answer": "1"}\n', "line 2: a prompt is a text or a list"),
        (GOOD + '{"prompt": [{"role": "user"}], "answer": "1"}\n', "line 2: a prompt is a text or a list"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, text, says):
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    with pytest.raises(RewardlabError, match=rf"mine\.jsonl.*{says}"):
        records(path=str(path))


def test_bytes_that_are_no_text_or_no_parquet_are_named(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(GOOD.encode() + b"\xff\xfe\n")
    with pytest.raises(RewardlabError, match="line 2: not UTF-8"):
        records(path=str(tmp_path / "a.jsonl"))
    (tmp_path / "b.parquet").write_bytes(b"not parquet")
    with pytest.raises(RewardlabError, match=r"b\.parquet is not a parquet file"):
        records(path=str(tmp_path / "b.parquet"))


def test_a_path_that_leads_nowhere_is_named(tmp_path):
    write(tmp_path / "problems.jsonl", rows())
    (tmp_path / "notes.txt").write_text("x")
    for path, says in (
        ("problem.jsonl", "did you mean problems.jsonl"),
        ("notes.txt", r"\.tsv or \.parquet"),
        (".", "neither train.jsonl"),
    ):
        with pytest.raises(RewardlabError, match=says):
            records(path=str(tmp_path / path))


# ---- finite training sets --------------------------------------------------------------------------------------------

GENERATED = [n for n in NAMES if n not in NEED_OPTIONS | {"gsm8k", "pointmass", "critiques", "gsm8k_solutions", "labelled_domains"}]


@pytest.mark.parametrize("name", GENERATED)
def test_a_size_makes_training_finite_and_every_epoch_holds_each_problem_once(name):
    task = registry.task(name, size=32, test_size=20)
    assert len(task.train) == 32
    epochs = [[task.train[32 * epoch + i].key for i in range(32)] for epoch in range(3)]
    assert all(len(set(keys)) == 32 for keys in epochs)
    assert set(epochs[0]) == set(epochs[1]) == set(epochs[2])
    assert epochs[0] != epochs[1] != epochs[2]
    assert not set(epochs[0]) & {p.key for p in task.test}
    # the same problems as without a size, which are the first distinct ones of the endless source
    endless = registry.task(name, test_size=20)
    first = dict.fromkeys(endless.train[i].key for i in range(200))
    assert set(epochs[0]) == set(list(first)[:32])
    with pytest.raises(TypeError):
        len(endless.train)


def test_a_size_that_is_too_large_or_too_small_is_refused():
    with pytest.raises(RewardlabError, match=r"about .* different training problems; size=2000"):
        registry.task("euclid", largest=8, size=2000)
    with pytest.raises(RewardlabError, match="size of arithmetic must be a whole number above 0"):
        registry.task("arithmetic", size=0)


def test_a_size_does_not_change_what_the_small_policy_is_warmed_up_on():
    """Else a policy would be made for every size, and know the answers of just these problems by heart."""
    sized = registry.task("facts:hops=2,size=32", size=16)
    assert len(sized.train) == 16
    assert registry.endless(sized).source == {"name": "facts:hops=2", "options": {}}
    whole = registry.task("facts:hops=2")
    assert registry.endless(whole) is whole
