"""Published formats of labelled steps: read as they stand in the data sets, written, and read back."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.data.files import write
from rewardlab.data.solutions import Solution
from rewardlab.data.step_formats import FORMATS, format_of, read_solutions, row_in, write_solutions
from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import data_file

STEPS = ["Buzz and the waiter have 5+8 = <<5+8=13>>13 parts.", "So 78/13 = 6 is a part.", "The answer is: 40"]
PRM800K = {
    "labeler": "340d89bc", "timestamp": "2023-01-22T04:34:27.052924", "generation": 9, "is_quality_control_question": False,
    "is_initial_screening_question": False,
    "question": {
        "problem": "What is 2+3*4?", "ground_truth_solution": "It is 14.", "ground_truth_answer": "14",
        "pre_generated_steps": ["First the product.", "3*4=13", "2+13=15", "# Answer\n\n15"], "pre_generated_answer": "15",
        "pre_generated_verifier_score": 0.01,
    },
    "label": {
        "steps": [
            {"completions": [{"text": "First the product.", "rating": 0, "flagged": None}], "human_completion": None,
             "chosen_completion": 0},
            {"completions": [{"text": "3*4=13", "rating": -1, "flagged": None}, {"text": "3*4=12", "rating": 1, "flagged": False}],
             "human_completion": None, "chosen_completion": None},
        ],
        "total_time": 278270, "finish_reason": "found_error",
    },
}  # fmt: skip
SHEPHERD = {
    "input": "What is 2+3*4? Step 1: 3*4 = <<3*4=12>>12. ки\nStep 2: 2+12 = 15.\nSo it is. ки\nStep 3: The answer is: 15 ки",
    "label": "What is 2+3*4? Step 1: 3*4 = <<3*4=12>>12. +\nStep 2: 2+12 = 15.\nSo it is. -\nStep 3: The answer is: 15 -",
    "task": "GSM8K",
}
PROCESSBENCH = {
    "id": "gsm8k-0", "generator": "Qwen2-7B-Instruct", "problem": "What is 2+3*4?", "steps": ["3*4=12", "2+12=15", "15"],
    "final_answer_correct": False, "label": 1,
}  # fmt: skip
PRMBENCH = {
    "original_question": "What is 2+3*4?", "modified_question": "What is 2+3*4, then?", "original_process": ["3*4=12", "14"],
    "modified_process": ["3*4=12", "2+12=15", "15"], "modified_steps": [2, 3], "error_steps": [2], "reason": "a slip",
    "idx": "prm_test_p1_0", "question": "What is 2+3*4?", "classification": "confidence",
}  # fmt: skip
TRL = {"prompt": "What is 2+3*4?", "completions": ["3*4=12", "15"], "labels": [True, False]}
PUBLISHED = {"prm800k": PRM800K, "math-shepherd": SHEPHERD, "processbench": PROCESSBENCH, "prmbench": PRMBENCH, "trl": TRL}


def saved(path, *rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in rows))
    return path


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_prm800k_is_read_with_the_steps_that_nobody_rated(tmp_path):
    path = saved(tmp_path / "phase2.jsonl", PRM800K)
    (found,) = read_solutions(path)
    assert (found.prompt, found.answer, found.right) == ("What is 2+3*4?", "14", None)
    assert found.steps == ("First the product.", "3*4=13", "2+13=15", "# Answer\n\n15")
    # neutral is not wrong
    assert found.labels == (1.0, 0.0, None, None)
    assert (found.meta["ratings"], found.meta["generation"], found.meta["finish_reason"]) == ([0, -1], 9, "found_error")
    _, other = read_solutions(path, alternatives=True)
    assert (other.steps, other.labels) == (("First the product.", "3*4=12"), (1.0, 1.0))


def test_whole_replies_are_cut_into_steps_that_have_no_labels_yet(tmp_path):
    asked = [{"role": "system", "content": "Be exact."}, {"role": "user", "content": "1+1+2?"}]
    said = {"role": "assistant", "content": "1+1=2. 2+2=4.\n\nAnswer: 4"}
    path = saved(tmp_path / "x.jsonl", {"prompt": asked, "completion": [said], "answer": 4, "id": 7})
    (found,) = read_solutions(path)
    assert (found.prompt, found.steps) == ("Be exact.\n\n1+1+2?", ("1+1=2. 2+2=4.", "Answer: 4"))
    assert (found.labels, found.answer, found.meta) == ((None, None), "4", {"id": 7})
    (found,) = read_solutions(path, splitter="sentence")
    assert found.steps == ("1+1=2.", "2+2=4.", "Answer: 4")
    # messages as others write them, and as JSON in a text
    shared = [{"from": "human", "value": "1+1?"}]
    for prompt in (shared, json.dumps(shared), [{"role": "user", "content": [{"type": "text", "text": "1+1?"}]}]):
        (found,) = read_solutions(saved(tmp_path / "y.jsonl", {"prompt": prompt, "response": "2"}))
        assert found.prompt == "1+1?"
    (found,) = read_solutions(saved(tmp_path / "y.jsonl", {"prompt": "1+1?", "response": "2"}))
    assert found.steps == ("2",)
    with pytest.raises(RewardlabError, match="`response` should be a text"):
        list(read_solutions(saved(tmp_path / "z.jsonl", {"prompt": "1+1?", "response": " "})))
    # they hold no labels, so that nothing is written so
    with pytest.raises(RewardlabError, match="unknown format of solutions 'response'"):
        write_solutions(tmp_path / "out.jsonl", [found], "response")


def test_a_prompt_of_messages_is_read_whole(tmp_path):
    def prompt(*turns):
        row = {"prompt": [{"role": role, "content": text} for role, text in turns], "steps": ["a"]}
        return next(iter(read_solutions(saved(tmp_path / "x.jsonl", row)))).prompt

    assert prompt(("system", "Be brief."), ("user", "1+1?")) == "Be brief.\n\n1+1?"
    turns = (("user", "1+1?"), ("assistant", "2"), ("user", "And 2+2?"))
    assert prompt(*turns) == "User: 1+1?\n\nAssistant: 2\n\nUser: And 2+2?"
    assert prompt(("system", "Be brief."), *turns) == "Be brief.\n\nUser: 1+1?\n\nAssistant: 2\n\nUser: And 2+2?"


def test_a_prompt_that_ends_with_a_reply_is_refused(tmp_path):
    turns = [{"role": r, "content": "x"} for r in ("user", "assistant")]
    with pytest.raises(
        RewardlabError, match=r"line 1: a `prompt` of messages ends with what is to be answered, not as user, assistant"
    ):
        list(read_solutions(saved(tmp_path / "x.jsonl", {"prompt": turns, "steps": ["a"]})))


def test_alternatives_that_nobody_asked_for_are_counted(tmp_path):
    passed_over: list[int] = []
    list(read_solutions(saved(tmp_path / "phase2.jsonl", PRM800K), passed_over=passed_over))
    assert sum(passed_over) == 1


def test_prm800k_of_phase_1_takes_the_steps_that_labellers_chose_or_wrote(tmp_path):
    steps = [
        {
            "completions": [{"text": "a", "rating": -1}, {"text": "b", "rating": 1}],
            "human_completion": None,
            "chosen_completion": 1,
        },
        {
            "completions": [{"text": "c", "rating": -1}],
            "human_completion": {"text": "d", "rating": None},
            "chosen_completion": None,
        },
        {"completions": None, "human_completion": None, "chosen_completion": None},
    ]
    row = {"question": {"problem": "p", "ground_truth_answer": "1"}, "label": {"steps": steps, "finish_reason": "solution"}}
    own, *others = read_solutions(saved(tmp_path / "x.jsonl", row), alternatives=True)
    assert (own.steps, own.labels, own.right) == (("b", "d"), (1.0, 1.0), True)
    assert [(x.steps, x.labels) for x in others] == [(("a",), (0.0,)), (("b", "c"), (1.0, 0.0))]


def test_math_shepherd_is_read_in_both_of_its_versions(tmp_path):
    older = {
        "input": SHEPHERD["input"].replace("ки", "ки ?"),
        "label": SHEPHERD["label"].replace("12. +", "12. ки +").replace("is. -", "is. ки -").replace("15 -", "15 ки -"),
        "task": "GSM8K",
    }
    new, old = read_solutions(saved(tmp_path / "x.jsonl", SHEPHERD, older))
    assert new == old
    assert new.prompt == "What is 2+3*4?"
    assert new.steps == ("Step 1: 3*4 = <<3*4=12>>12.", "Step 2: 2+12 = 15.\nSo it is.", "Step 3: The answer is: 15")
    assert new.labels == (1.0, 0.0, 0.0)
    assert new.meta == {"task": "GSM8K"}


def test_math_shepherd_with_slips_in_its_rows(tmp_path):
    slip = {"input": "Is it ки so? Step 1: yes ки", "label": "Is it + so? Step 1: yes -"}
    in_problem = {"input": "Round 2.6. ки\nStep 1: 3 ки", "label": "Round 2.6. +\nStep 1: 3 -"}
    unnumbered = {"input": "How many? There are 3. ки", "label": "How many? There are 3. +"}
    broken: list[str] = []
    found = list(read_solutions(saved(tmp_path / "x.jsonl", slip, in_problem, unnumbered), broken=broken))
    # without a number at the second part, the sign within the problem cannot be told from that of a step
    assert [line.partition(":")[0] for line in broken] == ["line 1"]
    assert [(x.prompt, x.steps, x.labels) for x in found] == [
        ("Round 2.6.", ("Step 1: 3",), (0.0,)), ("How many?", ("There are 3.",), (1.0,))
    ]  # fmt: skip


def test_processbench_knows_nothing_of_the_steps_after_the_first_error(tmp_path):
    wrong, right = read_solutions(
        saved(tmp_path / "x.jsonl", PROCESSBENCH, {**PROCESSBENCH, "label": -1, "final_answer_correct": True})
    )
    assert (wrong.labels, wrong.right, wrong.first_error) == ((1.0, 0.0, None), False, 1)
    assert (right.labels, right.right, right.first_error) == ((1.0, 1.0, 1.0), True, None)
    assert wrong.meta == {"id": "gsm8k-0", "generator": "Qwen2-7B-Instruct"}


def test_a_json_file_is_a_list_of_rows_as_on_the_hub(tmp_path):
    path = tmp_path / "gsm8k.json"
    path.write_text(json.dumps([PROCESSBENCH] * 2))
    assert [x.first_error for x in read_solutions(path)] == [1, 1]


def test_prmbench_counts_from_1_and_has_the_original_too(tmp_path):
    modified, original = read_solutions(saved(tmp_path / "x.jsonl", PRMBENCH), alternatives=True)
    assert (modified.prompt, modified.labels) == ("What is 2+3*4, then?", (1.0, 0.0, 1.0))
    assert (original.prompt, original.labels) == ("What is 2+3*4?", (1.0, 1.0))
    assert modified.meta["classification"] == "confidence"


def test_the_real_prmbench_is_read_whole():
    try:
        path = data_file("prmbench", "prm800k_test_p1_4o_confidence.jsonl")
    except RewardlabError:
        pytest.skip("the shared data are not here")
    found = list(read_solutions(path))
    assert len(found) == 90
    first = found[0]
    assert first.prompt.startswith("Three pencils and a jumbo eraser cost $1.24.")
    assert (first.labels, first.first_error) == ((1, 1, 1, 1, 0, 0), 4)
    # line 28 lists step 54 of 53
    assert (len(found[27].steps), found[27].meta["listed"], found[27].labels.count(0.0)) == (53, [52, 54], 1)
    assert Counter(type(label) for x in found for label in x.labels) == {float: sum(len(x.steps) for x in found)}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_row_is_recognised_and_written_back_as_it_was(name, tmp_path):
    row = PUBLISHED[name]
    assert format_of(row) == name
    (solution,) = read_solutions(saved(tmp_path / "in.jsonl", row))
    assert write_solutions(tmp_path / "out.jsonl", [solution], name) == 1
    (written,) = rows_of(tmp_path / "out.jsonl")
    if name == "prm800k":
        # the alternatives are no part of the solution
        wanted = json.loads(json.dumps(row))
        del wanted["label"]["steps"][1]["completions"][1]
        assert written == wanted
    else:
        assert written == row
    # and by way of ours, whose rows keep what they do not need
    write_solutions(tmp_path / "ours.jsonl", [solution])
    assert list(read_solutions(tmp_path / "ours.jsonl")) == [solution]


words = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6).filter(lambda x: "ки" not in x)
lines = st.lists(words, min_size=1, max_size=3).map(" ".join)


LABELS = st.sampled_from([0.0, 0.25, 0.75, 1.0])


@st.composite
def solutions(draw, labels=LABELS):
    steps = draw(st.lists(lines, min_size=1, max_size=5))
    marks = [draw(labels) for _ in steps]
    return Solution(draw(lines), tuple(steps), tuple(marks), draw(st.sampled_from([True, False, None])))


@given(st.lists(solutions(st.none() | st.floats(0, 1)), max_size=4))
def test_our_own_format_holds_everything(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("x") / "x.jsonl"
    write_solutions(path, found)
    assert list(read_solutions(path)) == found


@given(solution=solutions(), name=st.sampled_from(sorted(PUBLISHED)), threshold=st.sampled_from([0.01, 0.5, 1.0]))
def test_what_a_format_holds_is_read_back(solution, name, threshold):
    (read,) = FORMATS[name].read(json.loads(json.dumps(row_in(solution, name, threshold))))[:1]
    steps = [step.removeprefix(f"Step {k}: ") for k, step in enumerate(read.steps, 1)] if name == "math-shepherd" else read.steps
    assert (read.prompt, list(steps)) == (solution.prompt, list(solution.steps))
    hard = [float(label >= threshold) for label in solution.labels]
    if name == "processbench" and 0.0 in hard:
        error = hard.index(0.0)
        assert list(read.labels) == [*hard[: error + 1], *[None] * (len(hard) - error - 1)]
    else:
        assert list(read.labels) == hard
    if name == "processbench":
        assert read.right == solution.right


@given(solution=solutions(st.none() | st.just(1.0)), name=st.sampled_from(sorted(PUBLISHED)))
def test_steps_without_labels_are_never_made_up(solution, name):
    known = [k for k, label in enumerate(solution.labels) if label is not None]
    try:
        row = row_in(solution, name)
    except RewardlabError:
        # all of the formats hold a solution whose labels are all known
        assert len(known) < len(solution.steps)
        return
    (read,) = FORMATS[name].read(row)[:1]
    assert [k for k, label in enumerate(read.labels) if label is not None] == known


@pytest.mark.parametrize(
    ("row", "format", "says"),
    [
        ("{", "trl", "not JSON"), ("[1]", "trl", "not a JSON object"), ({**PROCESSBENCH, "label": 3}, "auto", "one of 3 steps"),
        ({**PROCESSBENCH, "label": True}, "auto", "one of 3 steps"), ({**TRL, "labels": [True]}, "auto", "2 completions"),
        ({**PRMBENCH, "error_steps": [0]}, "auto", "from 1 up"),
        ({**PRMBENCH, "modified_process": "a"}, "auto", "`modified_process`"),
        ({**SHEPHERD, "label": "What is"}, "auto", "with a sign after step 1"), ({"input": "a", "label": "a"}, "auto", "no ки"),
        ({"question": {"problem": "p"}, "label": {"steps": []}}, "auto", "no step of it"),
        ({"prompt": "p", "steps": []}, "auto", "`steps`"), ({"question": 3, "label": {}}, "auto", "`question`"),
    ],
)  # fmt: skip
def test_a_broken_row_is_refused_or_passed_over_with_its_place(row, format, says, tmp_path):
    path = saved(tmp_path / "x.jsonl", row, "", row)
    with pytest.raises(RewardlabError, match="line 1: ") as error:
        list(read_solutions(path, format))
    assert says in str(error.value)
    broken: list[str] = []
    assert list(read_solutions(path, format, broken=broken)) == []
    assert [line.partition(":")[0] for line in broken] == ["line 1", "line 3"]


def test_unknown_formats_and_columns_are_named(tmp_path):
    path = saved(tmp_path / "x.jsonl", {"question": "p", "reply": "r"})
    with pytest.raises(RewardlabError, match=r"columns question, reply, which is no format .*processbench: problem, steps, label"):
        list(read_solutions(path))
    with pytest.raises(RewardlabError, match=r"'prm80k'.*did you mean.*prm800k"):
        list(read_solutions(path, "prm80k"))
    with pytest.raises(RewardlabError, match=r"\.jsonl"):
        write_solutions(tmp_path / "x.csv", [])


def test_what_a_format_cannot_hold_is_refused_or_counted(tmp_path):
    good, gap = Solution("p", ("a", "b"), (1.0, 0.2)), Solution("p", ("a", "b"), (None, 0.2))
    marked = Solution("p", ("a ки b",), (1.0,))
    with pytest.raises(RewardlabError, match="processbench cannot hold solution 0: step 1 has no label"):
        write_solutions(tmp_path / "x.jsonl", [gap], "processbench")
    assert not (tmp_path / "x.jsonl").exists()
    unfit: list[str] = []
    assert write_solutions(tmp_path / "x.jsonl", [gap, good, marked], "math-shepherd", unfit=unfit) == 1
    assert len(unfit) == 2
    assert rows_of(tmp_path / "x.jsonl")[0]["label"] == "p Step 1: a +\nStep 2: b -"


@pytest.mark.parametrize("name", [*PUBLISHED, "rewardlab"])
def test_a_table_holds_lists_as_json_in_its_cells(name, tmp_path):
    own = {"prompt": "1+1?", "steps": ["1+1=2", "So 3"], "labels": [1.0, None], "right": False, "answer": "2"}
    row = own if name == "rewardlab" else PUBLISHED[name]
    (as_json,) = read_solutions(saved(tmp_path / "in.jsonl", row))
    write(tmp_path / "in.csv", [row])
    (as_table,) = read_solutions(tmp_path / "in.csv")
    assert (as_table.prompt, as_table.steps, as_table.labels, as_table.right) == (
        as_json.prompt, as_json.steps, as_json.labels, as_json.right
    )  # fmt: skip


def test_an_empty_cell_says_nothing(tmp_path):
    (tmp_path / "x.csv").write_text('prompt,steps,labels,right,answer\n1+1?,"[""2""]",,,\n')
    (found,) = read_solutions(tmp_path / "x.csv")
    assert found == Solution("1+1?", ("2",), (None,))


@pytest.mark.parametrize("label", [1, "1", 1.0])
def test_processbench_is_known_by_its_index_where_the_problem_is_called_prompt(tmp_path, label):
    row = {"prompt": "1+1?", "steps": ["1+1=2", "So 3", "3"], "label": label}
    (found,) = read_solutions(saved(tmp_path / "x.jsonl", row))
    assert (found.prompt, found.labels, found.meta) == ("1+1?", (1.0, 0.0, None), {})
    # a label that is none of a step is a column of the user's
    (own,) = read_solutions(saved(tmp_path / "y.jsonl", row | {"label": "good"}))
    assert own.meta == {"label": "good"}


def test_rows_in_python_are_read_as_those_of_a_file():
    row = {"prompt": "1+1?", "steps": ["2"], "labels": [1]}
    assert list(read_solutions([row])) == list(read_solutions({"prompt": ["1+1?"], "steps": [["2"]], "labels": [[1]]}))
    assert list(read_solutions([row])) == [Solution("1+1?", ("2",), (1.0,))]
    with pytest.raises(RewardlabError, match="rows, row 2: 1 steps need as many `labels`"):
        list(read_solutions([row, row | {"labels": []}]))
    broken: list[str] = []
    assert len(list(read_solutions([row, 7], broken=broken))) == 1
    assert broken == ["row 2: expected an object with columns, found int"]
