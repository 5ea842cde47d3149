"""Generators of reasoning-gym: gold gets full marks from their own scorers, and nothing a model writes is run, hangs or raises."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest

from rewardlab import api, registry
from rewardlab.core import Problem, Score, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.tasks.reasoning_gym import client as gym
from rewardlab.tasks.reasoning_gym import server
from rewardlab.tasks.reasoning_gym.problems import Generated
from rewardlab.tasks.reasoning_gym.rewards import reasoning_gym_answer, stated

HERE = importlib.util.find_spec("reasoning_gym") is not None
installed = pytest.mark.skipif(not HERE, reason="reasoning-gym is not installed: pip install 'rewardlab[gym-tasks]'")

NO_GOLD = {"boxnet": "states no solution", "rush_hour": "states no solution"}
EXAMPLES = {"graph_color": "possible_answer", "propositional_logic": "example_answer", "rubiks_cube": "example_correct_answer"}
"""Generators whose entries have no gold answer, only an example of one in their metadata."""

FLAWS = {
    "game_of_life_halting": "compares the truth of two texts, so any answer that is not empty is right",
    "puzzle24": "does not ask whether the four numbers are those of the puzzle, so the solution of another is right",
}
"""Scorers of the package that give 1 to "I do not know" or to the gold of another problem."""

SHARED = {"jugs", "n_queens"}
"""Generators where the solution of one problem may rightly be a solution of another."""

SLOW = {"acre", "futoshiki", "knight_swap", "zebra_puzzles"}
"""Generators that need a tenth of a second or more for a problem: not sampled a second time here."""

EVALUATE = {
    *("binary_matrix", "n_queens", "spiral_matrix", "string_insertion"),
    *("countdown", "intermediate_integration", "polynomial_multiplication", "puzzle24", "simple_integration"),
}
"""Scorers of the package that run the answer as code."""


def judged(problem: Problem, answer: str, form: str = "<answer>{}</answer>", seconds: float = 5.0) -> Score:
    reply = form.format(answer)
    trajectory = Trajectory(problem, (Turn("policy", np.zeros(len(reply), np.int64), text=reply),))
    return reasoning_gym_answer(seconds=seconds)([[trajectory]])[0][0]


@functools.cache
def problems(generator: str, n: int = 2) -> list[Problem]:
    source = Generated(generator, "{}", None)
    return [source[i] for i in range(n)]


def usable() -> list[str]:
    """All generators but those that are refused, or need to be told which others they are made of."""
    return [name for name, refused in gym.ask("generators").items() if not refused and name != "composite"]


def gold(problem: Problem) -> str | None:
    """The stated answer, or the example of one."""
    generator = problem.meta["generator"]
    if generator in NO_GOLD:
        return None
    if generator not in EXAMPLES:
        return problem.answer
    found = server.decode(json.loads(problem.meta["entry"]))["metadata"][EXAMPLES[generator]]
    return found if isinstance(found, str) else json.dumps(found)


# ---- reading, without the package ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("I think <answer>3</answer>, no, <answer> 4\n5 </answer>.", "4\n5"),
        ("<answer>3 <answer>4</answer>", "4"),
        ("Answer: 7\n<answer>8</answer> Answer: 9", "8"),
        ("Answer: 7\nso the answer is 9.\nGood luck", "9."),
        ("Answer: 7\n<answer>8", "7"),
        ("</answer><answer>", "</answer><answer>"),
        ("  forty two \n", "forty two"),
        ("", ""),
    ],
)
def test_the_answer_is_in_the_last_tags_else_after_the_mark_else_the_whole_reply(reply, answer):
    assert stated(reply) == answer


def test_reading_an_answer_takes_no_time_that_grows_with_its_square():
    assert stated("<answer>" * 200_000) == "<answer>" * 200_000


def test_an_entry_comes_back_as_it_was():
    entry = {"a": (1, [2.5, ("x",)]), "b": {0: None, "c": True}, "$": {"of": [(), {}]}, "n": np.int64(3)}
    again = server.decode(json.loads(json.dumps(server.encode(entry))))
    assert again == entry
    assert type(again["a"]) is tuple
    with pytest.raises(TypeError, match="a set"):
        server.encode({"a": {1}})


@pytest.mark.parametrize(
    "text", ["3*x**2/4 - 1/2", "-sin(x)*exp(-2*x) + C", "0.25*x**3", "sqrt(x + 1)*log(Abs(x))", "x**(1/3) + E*pi", "+(7 - 2) * 3"]
)
def test_arithmetic_is_read_as_sympy_reads_it(text):
    import sympy
    from sympy.parsing.sympy_parser import parse_expr

    names = {"x": sympy.Symbol("x"), "C": sympy.Symbol("C")}
    assert server.expression(text, dict(names)) == parse_expr(text, dict(names))


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "x.args", "(lambda: 1)()", "[1][0]", "x if x else x", "sympify('1')", "exp(*x)", "'a'", "True", "x ^ 2"],
)
def test_what_is_no_arithmetic_is_refused(text):
    with pytest.raises(ValueError, match="not arithmetic"):
        server.expression(text)


def test_whole_numbers_are_worked_out_and_names_refused():
    assert server.whole_number("((0x3a + 0x5) << 2) - (0x10 >> 1) * -3") == ((0x3A + 0x5) << 2) - (0x10 >> 1) * -3
    for text in ("x", "1.5", "exp(1)"):
        with pytest.raises(ValueError, match="only whole numbers"):
            server.whole_number(text)


@pytest.mark.skipif(HERE, reason="reasoning-gym is installed")
def test_without_the_package_the_error_names_the_extra():
    with pytest.raises(RewardlabError, match=r"pip install 'rewardlab\[gym-tasks\]'"):
        registry.task("reasoning_gym:generator=chain_sum")


# ---- scorers ---------------------------------------------------------------------------------------------------------------


@installed
def test_every_gold_gets_full_marks():
    short: list[tuple[str, Score]] = []
    for name in usable():
        for problem in problems(name):
            said = gold(problem)
            found = [judged(problem, said), judged(problem, said, "{}")] if said is not None else []
            short += [(name, score) for score in found if score.value != 1.0]
            assert said is not None or name in NO_GOLD, name
    assert short == []


@installed
def test_a_wrong_answer_gets_less_and_never_raises():
    full = set()
    for name in usable():
        first, second = problems(name)
        others = set() if name in SHARED else {gold(second)}
        wrong = {"I do not know", "", *filter(None, others)} - {gold(first)}
        for said in wrong:
            value = judged(first, said).value
            assert value is not None, name
            assert 0.0 <= value <= 1.0, name
            if value == 1.0:
                full.add(name)
    assert full == FLAWS.keys()


@installed
def test_holes_of_the_scorers_that_a_policy_could_find():
    """Full marks for what is wrong: known, and the package's. No reward that one should train on blindly."""
    flips = [p for p in problems("coin_flip", 10) if p.answer.startswith("0.")]
    assert {judged(p, "0").value for p in flips} == {1.0}  # a matching prefix is divided by the shorter of both lengths
    assert judged(problems("complex_arithmetic")[0], "nan").value == 1.0  # min(1, nan) is 1
    numbers = problems("number_sorting")[0]
    # one in fifteen golds of intermediate_integration is an integral left as it is: refused here, since it would answer everything
    integral = problems("intermediate_integration")[0]
    entry = server.decode(json.loads(integral.meta["entry"]))
    left = f"Integral({entry['metadata']['integrand']}, {entry['metadata']['variable']})"
    assert judged(integral, left).value == 0.0
    off = [float(x) + 0.9 for x in ast.literal_eval(numbers.answer)]
    assert judged(numbers, json.dumps(off)).value == 1.0  # each number may be off by 1


@installed
def test_partial_credit_is_kept_and_is_not_right():
    problem = ask("?", "olleh", generator="spell_backward", options="{}", entry=json.dumps({"answer": "olleh", "metadata": {}}))
    assert judged(problem, "ollxh").value == pytest.approx(0.8)  # 4 of 5 letters
    assert judged(problem, "olleh").value == 1.0
    many = ask("?", "12", generator="chain_sum", options="{}", entry=json.dumps({"answer": "12", "metadata": {}}))
    assert judged(many, "12 apples").value == pytest.approx(2 / 9)


@installed
def test_scorers_with_readers_in_place_of_eval_say_what_they_said_before():
    """On text that may be trusted: golds of this and other problems, a gold in another form, and lists."""
    from reasoning_gym.factory import create_dataset

    for name in sorted(EVALUATE):
        own, (first, *others) = create_dataset(name, seed=0), problems(name, 4)
        rows = [line.split() for line in first.answer.splitlines()]
        said = [
            first.answer,
            *(p.answer for p in others),
            f"({first.answer})",
            f"2*({first.answer})/2",
            repr(rows),
            repr(rows[0]),
            "x",
        ]
        entry = server.decode(json.loads(first.meta["entry"]))
        for text in said:
            assert judged(first, text).value == pytest.approx(own.score_answer(text, entry)), (name, text)


@installed
def test_text_of_a_model_is_never_run(tmp_path):
    from reasoning_gym.factory import create_dataset

    mark = tmp_path / "ran"
    attacks = [
        f"[__import__('pathlib').Path('{mark}').touch()]",
        f"(lambda: open('{mark}', 'w'))()",
        f"x + open('{mark}', 'w').write('1')",
    ]
    for name in usable():
        for attack in attacks:
            judged(problems(name)[0], attack)
    assert not mark.exists()
    ran = set()
    for name in EVALUATE:
        for attack in attacks:
            create_dataset(name, seed=0).score_answer(attack, server.decode(json.loads(problems(name)[0].meta["entry"])))
            ran |= {name} if mark.exists() else set()
            mark.unlink(missing_ok=True)
    assert ran == EVALUATE  # untamed, each of them runs it


@installed
def test_an_entry_is_not_run_either(tmp_path):
    attack = f"open({str(tmp_path / 'ran')!r}, 'w')"
    for name in ("bitwise_arithmetic", "number_sorting"):
        entry = {"answer": attack, "metadata": {"problem": attack, "direction": "ascending"}}
        problem = ask("?", "1", generator=name, options="{}", entry=json.dumps(entry))
        assert judged(problem, "[1]").value == 0.0
    assert not (tmp_path / "ran").exists()


@installed
def test_the_tripwire_stops_what_a_scorer_would_run(tmp_path):
    """As a scorer of another version might: one whose reader is taken away again."""
    text = f"""
import runpy, sys
module = runpy.run_path({server.__file__!r})
scorer = lambda answer, entry: eval(answer)
sys.addaudithook(module["refuse_code"])
with module["_refusing_code"]() as seen:
    print(module["_outcome"](scorer, "open({str(tmp_path / "ran")!r}, 'w')", {{}}), seen)
print(eval("1 + 1"))
"""
    import subprocess
    import sys

    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    assert "PermissionError" in said
    assert "['exec']" in said
    assert said.endswith("2\n")  # only while an answer is scored
    assert not (tmp_path / "ran").exists()


@installed
def test_an_answer_that_hangs_or_eats_memory_is_wrong_and_the_next_is_scored():
    flip = problems("coin_flip")[0]
    hung = judged(flip, "1e999999999", seconds=0.5)  # a fraction of a billion digits
    assert hung.value == 0.0
    assert "took more than 0.5 seconds" in hung.why
    assert judged(flip, flip.answer).value == 1.0
    cube = problems("rubiks_cube")[0]
    assert judged(cube, "R9999999999").value <= 0.01
    assert judged(cube, gold(cube)).value == 1.0
    queens = problems("n_queens")[0]
    assert judged(queens, "[" * 100_000).value == 0.0
    assert judged(queens, "-" * 100_000 + "1").value == 0.0


@installed
def test_a_verdict_is_missing_only_where_the_fault_is_ours():
    problem = problems("chain_sum")[0]
    for meta in (
        {},
        {**problem.meta, "entry": "{"},
        {**problem.meta, "generator": "nothing"},
        {**problem.meta, "options": '{"x": 1}'},
    ):
        missing = judged(Problem(problem.prompt, problem.answer, meta), "1")
        assert missing.value is None
        assert missing.why
    raised = judged(problems("prime_factorization")[0], "two times three")
    assert raised.value == 0.0
    assert "ValueError" in raised.why


# ---- problems --------------------------------------------------------------------------------------------------------------


@installed
def test_a_position_gives_the_same_problem_in_any_process_and_order():
    names = [name for name in usable() if name not in SLOW]
    before = {name: problems(name) for name in names}
    gym.pool().close()
    for name in reversed(names):
        assert [Generated(name, "{}", None)[i] for i in (1, 0)] == before[name][::-1], name


@installed
@pytest.mark.parametrize("generator", ["tower_of_hanoi", "coin_flip", "string_splitting", "chain_sum", "gsm_symbolic"])
def test_training_never_sees_a_question_of_the_test_set(generator):
    task = registry.task(f"reasoning_gym:generator={generator},test_size=40", system="Be brief.")
    test = {p.question for p in task.test}
    assert len(test) == len(task.test) >= 10
    assert not test & {task.train[i].question for i in range(300)}
    other = registry.task(f"reasoning_gym:generator={generator},test_size=40")
    assert [p.question for p in other.test] == [p.question for p in task.test]  # whatever is said before it
    with pytest.raises(IndexError):
        task.train[-1]


@installed
def test_a_generator_with_too_few_questions_says_so():
    task = registry.task("reasoning_gym:count_bits,min_n=5,max_n=5")  # asks one question
    if task.test:
        with pytest.raises(RewardlabError, match="too few different questions"):
            task.train[0]
    else:
        assert task.train[0].question == task.train[1].question


@installed
def test_options_reach_the_generator_and_its_scorer():
    task = registry.task("reasoning_gym:chain_sum,test_size=5,min_terms=2,max_terms=2,min_digits=1,max_digits=1")
    assert all(sum(c.isdigit() for c in p.question) == 2 for p in (task.train[i] for i in range(20)))
    assert registry.task(task.source["name"], **task.source["options"]).test == task.test
    board = registry.task("reasoning_gym:generator=rearc", options={"board_format_opts": {"row_delimiter": ";"}}, test_size=1)
    assert ";" in board.test[0].question
    assert judged(board.test[0], board.test[0].answer).value == 1.0
    parts = [{"name": "chain_sum"}, {"name": "gcd", "weight": 2.0, "config": {"max_value": 9}}]
    both = registry.task("reasoning_gym:generator=composite", options={"datasets": parts}, test_size=20)
    assert {"sum" if "arithmetic" in p.question else "gcd" for p in both.test} == {"sum", "gcd"}
    assert all(judged(p, p.answer).value == 1.0 for p in both.test)


@installed
@pytest.mark.parametrize(
    ("written", "options", "said"),
    [
        ("chain_sun", None, "unknown generator of reasoning-gym 'chain_sun'; did you mean chain_sum"),
        ("chain_sum,min_term=2", None, "unknown option of chain_sum 'min_term'; did you mean min_terms"),
        ("chain_sum,seed=2", None, "unknown option of chain_sum 'seed'"),
        ("chain_sum,min_terms", None, "write min_terms=VALUE"),
        ("chain_sum,min_terms=5,max_terms=2", None, "max_terms must be >= min_terms"),
        ("generator=chain_sum,test_size=0", None, "test_size must be at least 1"),
        ("generator=chain_sum", {"min_terms": {1}}, "plain data"),
        ("generator=codeio", None, "codeio is refused: its problems are made by running programs"),
        ("generator=composite", {"datasets": [{"name": "codeio"}]}, "codeio is refused"),
        ("", None, "has nothing after the colon"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_the_reason(written, options, said):
    with pytest.raises(RewardlabError) as caught:
        registry.task(f"reasoning_gym:{written}", **({} if options is None else {"options": options}))
    assert said in str(caught.value)


@installed
def test_problems_survive_being_saved_as_plain_data(tmp_path):
    """As lines of JSON, also where an entry holds tuples (arc_agi compares them) or keys that are no text (graph_color)."""
    names = ("arc_agi", "knights_knaves", "word_ladder", "sudoku")
    kept = [p for name in names for p in problems(name)]
    rows = [{"prompt": p.question, "answer": p.answer, **p.meta} for p in kept]
    (tmp_path / "saved.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = registry.task(str(tmp_path / "saved.jsonl"), verifier="reasoning_gym_answer", test_share=0.5)
    again = {p.question: p for p in (*task.train.problems, *task.test)}
    assert again.keys() == {p.question for p in kept}
    for p in kept:
        assert judged(again[p.question], p.answer).value == 1.0
        assert judged(again[p.question], p.answer[::-1]).value < 1.0


@installed
def test_a_policy_trains_on_it(tmp_path):
    task = "reasoning_gym:generator=letter_counting,test_size=4"
    rest = {"steps": 2, "eval_problems": 4, "max_new": 6, "device": "cpu", "settings": {"n": 2, "problems": 2}}
    result = api.train("grpo", "untrained", task, out=tmp_path / "run", **rest)
    assert math.isfinite(result.summary["after"]["pass@1"])
    assert Path(tmp_path / "run" / "report.html").is_file()
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["source"] == {"name": task, "options": {}}
