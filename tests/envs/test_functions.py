"""Python functions as tools: what a policy may write, what comes back, and that nothing of it stops an episode."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Trajectory, Turn, ask
from rewardlab.engine.episodes import environment_of
from rewardlab.envs.functions import functions
from rewardlab.errors import RewardlabError

FILE = '''
import asyncio, json, time
from typing import Literal, Optional

LIMIT = 3

def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b

async def wait(seconds: float) -> str:
    """Wait.

    Args:
        seconds: how long
    """
    await asyncio.sleep(seconds)
    return "waited"

def breaks(name: str) -> str:
    """Break.

    Args:
        name: of what is missing
    """
    raise KeyError(name)

def long(n: int) -> list:
    """Many numbers.

    Args:
        n: how many
    """
    return list(range(n))

def greet(name: Optional[str] = None, unit: Literal["km", "m"] | None = None, numbers: list[int | None] | str | None = None):
    """Greet.

    Args:
        name: perhaps
        unit: perhaps
        numbers: perhaps
    """
    return f"{name} {unit} {numbers}"

def table(kind: str) -> str:
    """Things that are no texts.

    Args:
        kind: of thing
    """
    import pathlib

    class Table:
        def __str__(self):
            return "a  b\\n1  2"

    return {"table": Table(), "path": pathlib.Path("/x"), "keys": {(1, 2): "é"}, "dict": {"é": [1, None]}, "nothing": None}[kind]

def yields(n: int) -> str:
    """Yield.

    Args:
        n: how often
    """
    yield "1"

def of_bytes(names: list[bytes]) -> str:
    """A hint that no JSON knows.

    Args:
        names: some
    """

def leaves(code: int) -> str:
    """Leave, as a parser of arguments does.

    Args:
        code: of the exit
    """
    raise SystemExit(code)

def mute(n: int) -> str:
    """Fail without words.

    Args:
        n: any
    """
    class Mute(Exception):
        def __str__(self):
            raise ValueError
    raise Mute

def undocumented(x: int) -> int:
    return x

def unhinted(a):
    """Nothing.

    Args:
        a: anything
    """

def half(a: int, b: int) -> int:
    """Half described.

    Args:
        a: the first
    """

class Own:
    pass

def own_type(a: Own) -> str:
    """An argument of a class.

    Args:
        a: what no JSON says
    """

def gathers(*names: str) -> str:
    """Any names.

    Args:
        names: all of them
    """

def by_place(a: int, /) -> int:
    """By place.

    Args:
        a: first
    """
'''
ADD = '{"name": "add", "arguments": {"a": 3, "b": 4}}'


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tools") / "mine.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def env(file):
    return functions(
        tools=tuple(f"{file}:{name}" for name in ("add", "wait", "breaks", "long", "leaves", "mute")), seconds=0.5, shown=80
    )


def said(env, text, state=None):
    _, first = env.start(ask("?"), 0)
    message, state = env(state or first, Turn("policy", np.zeros(1, np.int64), text=text))
    return message, state


@pytest.mark.parametrize(
    "reply",
    [
        f"<tool_call>\n{ADD}\n</tool_call>",  # Hermes, Qwen
        f"I will add them.\n<tool_call>{ADD}</tool_call>",
        # Qwen3-Coder
        "<tool_call>\n<function=add>\n<parameter=a>\n3\n</parameter>\n<parameter=b>4</parameter>\n</function>\n</tool_call>",
        ADD.replace("arguments", "parameters"),  # Llama 3
        f"<|python_tag|>{ADD}",
        f"[TOOL_CALLS][{ADD}]",  # Mistral
        f"<tool_call>[{ADD}]</tool_call>",
        "[add(a=3, b=4)]",  # Llama 4
        f"```json\n{ADD}\n```",
        f"<think>Perhaps <tool_call>no</tool_call></think>\n<tool_call>{ADD}</tool_call>",
    ],
)
def test_calls_are_read_in_the_forms_of_models(env, reply):
    message, state = said(env, reply)
    assert (message.role, message.results, state) == ("tool", ("7",), {"calls": 1})


def test_an_episode_tells_how_often_it_called_and_how_often_in_vain(env):
    def read(text):
        return Turn(None, np.zeros(1, np.int64), text=text)

    wrote = Turn("policy", np.zeros(1, np.int64), text="...")
    good, bad = said(env, f"<tool_call>{ADD}</tool_call>")[0].text, said(env, '<tool_call>{"name": "ad"}</tool_call>')[0].text
    both = said(env, f"<tool_call>{ADD}</tool_call><tool_call>{ADD.replace('3', 'x')}</tool_call>")[0].text
    called = Trajectory(ask("?"), (read("?"), wrote, read(good), wrote, read(bad), wrote))
    vainly, never = Trajectory(ask("?"), (read("?"), wrote, read(both), wrote)), Trajectory(ask("?"), (read("?"), wrote))
    assert env.logged([called, vainly, never]) == {"calls": 1.0, "failed_calls": pytest.approx(2 / 3)}
    assert env.logged([never]) == {"calls": 0.0, "failed_calls": 0.0}


@pytest.mark.parametrize(
    "reply", ["The answer is 7.", "[1, 2]", '{"answer": 3}', "", f"<think><tool_call>{ADD}</tool_call></think>7"]
)
def test_a_reply_without_a_call_is_final(env, reply):
    assert said(env, reply)[0] is None


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (
            '{"name": "subtract", "arguments": {}}',
            "there is no function 'subtract'; there are add, wait, breaks, long, leaves, mute",
        ),
        ('{"name": "add", "arguments": {"a": "three"}}', "a: 'three' is not of type 'integer'"),
        ('{"name": "add", "arguments": {"b": 2}}', "missing a required argument: 'a'"),
        ('{"name": "add", "arguments": {"a": 1, "c": 2}}', "unexpected keyword argument 'c'"),
        ('{"name": "breaks", "arguments": {"name": "x"}}', "KeyError: 'x'"),
        ('{"name": "leaves", "arguments": {"code": 2}}', "error: SystemExit: 2"),
        ('{"name": "mute", "arguments": {"n": 1}}', "error: Mute: an error without words"),
        ('{"name": "wait", "arguments": {"seconds": 9}}', "longer than 0.5 seconds"),
        ('{"name": "add"', "cannot be read"),
    ],
)
def test_what_goes_wrong_is_told_to_the_policy(env, call, answer):
    message, _ = said(env, f"<tool_call>{call}</tool_call>")
    assert answer in message.text


def test_a_default_is_the_functions_own_and_long_results_are_cut(env):
    assert said(env, '<tool_call>{"name": "add", "arguments": {"a": 3}}</tool_call>')[0].results == ("4",)
    (text,) = said(env, '<tool_call>{"name": "long", "arguments": {"n": 30}}</tool_call>')[0].results
    assert text.startswith("[0, 1, 2, 3")
    # 10 numbers of one digit and 20 of two, with ", " between them, in brackets: 110 characters
    assert text.endswith(" ... (30 more characters)")
    (text,) = said(env, f'<tool_call>{{"name": "breaks", "arguments": {{"name": "{"x" * 100}"}}}}</tool_call>')[0].results
    assert text == f"error: KeyError: '{'x' * (80 - len('error: KeyError: .'))} ... (39 more characters)"


@pytest.mark.parametrize(
    ("kind", "text"),
    [("table", "a  b\n1  2"), ("path", "/x"), ("keys", "{(1, 2): 'é'}"), ("dict", '{"é": [1, null]}'), ("nothing", "null")],
)
def test_a_result_that_is_no_text_is_told_as_one_reads_it(file, kind, text):
    call = f'<tool_call>{{"name": "table", "arguments": {{"kind": "{kind}"}}}}</tool_call>'
    assert said(functions(tools=(f"{file}:table",)), call)[0].results == (text,)


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ('{"name": null, "unit": null, "numbers": null}', "None None None"),
        ('{"unit": "km", "numbers": [1, null]}', "None km [1, None]"),
        ('{"name": 3}', "error: TypeError: name: 3 is not of type 'string', 'null'"),
        ('{"unit": "mile"}', "error: TypeError: unit: 'mile' is not one of ['km', 'm', None]"),
    ],
)
def test_an_optional_argument_may_be_null(file, arguments, answer):
    env = functions(tools=(f"{file}:greet",))
    assert said(env, f'<tool_call>{{"name": "greet", "arguments": {arguments}}}</tool_call>')[0].text.startswith(answer)


def test_a_list_of_calls_in_one_tag_is_several_calls(env):
    message, state = said(env, f"<tool_call>\n[{ADD}, {ADD.replace('4', '5')}]\n</tool_call>")
    assert (message.results, state) == (("7", "8"), {"calls": 2})


def test_calls_of_one_reply_run_at_the_same_time(env):
    wait = '<tool_call>{"name": "wait", "arguments": {"seconds": 0.3}}</tool_call>'
    began = time.monotonic()
    message, state = said(env, wait * 4)
    assert time.monotonic() - began < 0.9
    assert message.results == ("waited",) * 4
    assert state == {"calls": 4}


def test_calls_above_the_budget_are_not_run(file):
    env = functions(tools=(f"{file}:add",), calls=3, at_once=2)
    call = f"<tool_call>{ADD}</tool_call>"
    message, state = said(env, call * 3)
    assert message.results[:2] == ("7", "7")
    assert "not run" in message.results[2]
    message, state = said(env, call * 3, state)
    assert message.results[0] == "7"
    assert state == {"calls": 3}
    message, state = said(env, call, state)
    assert "no call is left" in message.text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (":undocumented", "it has no docstring[.] A tool"),
        (":unhinted", "the argument a has no type hint[.] A tool"),
        (":half", "the docstring has no description for the argument 'b'[.] A tool"),
        (":own_type", "the type hint <class 'Own'> to a JSON schema, likely because it is a custom class or object[.] A tool"),
        (":gathers", "[*]names names none"),
        (":yields", "it yields, and a tool returns its result[.] A tool"),
        (":of_bytes", "<class 'bytes'> to a JSON schema, likely .*[.] A tool has .*set, dict, Sequence.* of your own, a dict"),
        (":json", "json of .*mine.py is no function but the module json; functions there: add, wait"),
        (":LIMIT", "LIMIT of .*mine.py is no function but of the type int"),
        (":by_place", "a comes before a /"),
        (":nothing", "unknown function in .*nothing"),
        ("", "which function of .*mine.py[?] It has [0-9]+; give one of mine.py:add, mine.py:wait, "),
        ("x.py:add", "there is no tool file"),
    ],
)
def test_what_is_no_tool_is_told_before_anything_runs(file, name, says):
    with pytest.raises(RewardlabError, match=says):
        registry.build("grpo", {"tools": f"{file}{name}"})


def test_schemas_reach_the_chat_template_and_words_a_model_without_one(env):
    opening, _ = env.start(ask("?"), 0)
    assert '"name": "add"' in opening.tools
    assert '"name": "add"' in opening.text


TYPED = '''
import asyncio, functools
from collections.abc import Mapping, Sequence
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Literal, NewType, Optional

class Colour(Enum):
    RED = "red"
    BLUE = "blue"

class Size(int, Enum):
    S = 1
    L = 3

Name = NewType("Name", str)

def typed(colour: Optional[Colour] = None, sizes: list[Size] = (), by: dict[str, Colour] | None = None, pair: tuple[int, Size] = (),
          day: date | str = "", file: Path = Path(), n: int = 0, either: Size | Literal["any"] = "any", name: Name = "",
          scores: dict[int, float] = {}, many: Sequence[Size] = (), tags: set[str] = set(), row: tuple[Size, ...] = (),
          words: Mapping[str, date] = {}, few: frozenset | None = None) -> list:
    """Tell the types.

    Args:
        colour: one
        sizes: some
        by: by name
        pair: two
        day: of the year
        file: of data
        n: how many
        either: a size or any
        name: of it
        scores: by number
        many: sizes
        tags: of it
        row: of sizes
        words: by word
        few: things
    """
    given = (colour, sizes, by, pair, day, file, n, either, name, scores, many, tags, row, words, few)
    return [repr(x) for x in given if x not in (None, (), "", Path(), {}, "any", 0, set())]

def echo(colour: Colour) -> dict:
    """Echo.

    Args:
        colour: any
    """
    return {"colour": colour, "all": list(Colour)}

@functools.lru_cache
def cached(query: str) -> str:
    """Search once.

    Args:
        query: what for
    """
    return f"found {query}"

def of_index(index: object, query: str, k: int = 1) -> str:
    """Search an index.

    Args:
        query: what for
        k: how many
    """
    return f"{index}: {query} {k}"

first = functools.partial(of_index, "one", k=2)
second = functools.partial(of_index, index={"two"})

class Engine:
    """Search by an engine.

    Args:
        query: what for
    """

    def __init__(self, name):
        self.name = name

    def __call__(self, query: str) -> str:
        return f"{self.name} {query}"

    async def later(self, query: str) -> str:
        """Search later.

        Args:
            query: what for
        """
        await asyncio.sleep(0)
        return f"{self.name} later {query}"

    @classmethod
    def of_class(cls, query: "str") -> str:
        """Search by the class.

        Args:
            query: what for
        """
        return f"{cls.__name__} {query}"

engine = Engine("mine")
later = engine.later
later_too = functools.partial(Engine("other").later)
by_class = Engine.of_class
unbound = Engine.later

@functools.lru_cache
async def cached_later(query: str) -> str:
    """Search later, once.

    Args:
        query: what for
    """

def unnamed(f):
    return lambda *args, **kwargs: f(*args, **kwargs)

hidden = unnamed(of_index)
built_in = max

import rewardlab.core
@rewardlab.core.environment(start=lambda problem, seed: (None, 0))
def game(state, turn):
    """Play."""
    return None, state

import torch
def of_tensor(x: torch.Tensor) -> str:
    """Of a tensor.

    Args:
        x: any
    """

import dataclasses, typing
@dataclasses.dataclass
class Point:
    x: int

class Told(typing.TypedDict):
    x: int

def of_point(p: Point) -> str:
    """Of a point.

    Args:
        p: any
    """

def of_told(p: list[Told]) -> str:
    """Of a dictionary.

    Args:
        p: any
    """
'''


@pytest.fixture(scope="module")
def typed_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("typed") / "typed.py"
    path.write_text(TYPED)
    return path


def told_by(file, name, arguments):
    return said(functions(tools=(f"{file}:{name}",)), f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>')[
        0
    ].text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"colour": "red"}', ["<Colour.RED: 'red'>"]),
        ('{"colour": null}', []),
        ('{"sizes": [1, 3]}', ["[<Size.S: 1>, <Size.L: 3>]"]),
        ('{"by": {"a": "blue"}}', ["{'a': <Colour.BLUE: 'blue'>}"]),
        ('{"pair": [7, 3]}', ["(7, <Size.L: 3>)"]),
        ('{"day": "2026-11-29"}', ["datetime.date(2026, 11, 29)"]),
        ('{"day": "today"}', ["'today'"]),
        ('{"file": "/data/x", "n": 3.0}', ["PosixPath('/data/x')", "3"]),
        ('{"either": 3}', ["<Size.L: 3>"]),
        ('{"either": "any"}', []),
        ('{"name": "Ann", "scores": {"2": 0.5}}', ["'Ann'", "{2: 0.5}"]),
        ('{"many": [1, 3], "tags": ["a", "a"]}', ["[<Size.S: 1>, <Size.L: 3>]", "{'a'}"]),
        ('{"row": [3, 1, 1]}', ["(<Size.L: 3>, <Size.S: 1>, <Size.S: 1>)"]),
        ('{"words": {"a": "2026-11-29"}, "few": [1]}', ["{'a': datetime.date(2026, 11, 29)}", "frozenset({1})"]),
    ],
)
def test_arguments_arrive_as_their_hints_promise(typed_file, arguments, told):
    assert json.loads(told_by(typed_file, "typed", arguments)) == told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ('{"colour": "green"}', "error: TypeError: colour: 'green' is not one of ['red', 'blue', None]"),
        ('{"pair": [1, 2]}', "error: TypeError: pair.1: 2 is not one of [1, 3]"),
        ('{"row": [1, 2]}', "error: TypeError: row.1: 2 is not one of [1, 3]"),
        ('{"tags": "a"}', "error: TypeError: tags: 'a' is not of type 'array'"),
        ('{"pair": [1]}', "error: TypeError: pair: 2 values are needed, and [1] holds 1"),
        ('{"scores": {"two": 1}}', "error: TypeError: scores: invalid literal for int"),
    ],
)
def test_what_cannot_be_what_a_hint_promises_is_told(typed_file, arguments, says):
    assert told_by(typed_file, "typed", arguments).startswith(says)


def test_members_of_an_enum_come_back_as_they_are_written(typed_file):
    assert told_by(typed_file, "echo", '{"colour": "red"}') == '{"colour": "red", "all": ["red", "blue"]}'


@pytest.mark.parametrize(
    ("name", "told"),
    [("cached", "found x"), ("first", "one: x 2"), ("second", "{'two'}: x 1"), ("engine", "mine x"), ("later", "mine later x"),
     ("later_too", "other later x"), ("by_class", "Engine x")],
)  # fmt: skip
def test_what_can_be_called_is_a_tool_by_its_name_in_the_file(typed_file, name, told):
    env = functions(tools=(f"{typed_file}:{name}",))
    (schema,) = json.loads(env.start(ask("?"), 0)[0].tools)
    assert (schema["function"]["name"], *schema["function"]["parameters"]["required"]) == (name, "query")
    assert told_by(typed_file, name, '{"query": "x"}') == told


def test_a_method_is_named_with_its_object(typed_file):
    recipe = registry.build("grpo", {"tools": f"{typed_file}:engine.later,{typed_file}:Engine.of_class"})
    env = environment_of(recipe)
    assert [tool["function"]["name"] for tool in json.loads(env.start(ask("?"), 0)[0].tools)] == ["later", "of_class"]
    with pytest.raises(RewardlabError, match=r"'engine[.]now'"):
        registry.build("grpo", {"tools": f"{typed_file}:engine.now"})


def test_what_a_partial_gives_is_not_the_policys_to_give(typed_file):
    assert "unexpected keyword argument 'k'" in told_by(typed_file, "first", '{"query": "x", "k": 3}')
    assert told_by(typed_file, "second", '{"query": "x", "k": 3}') == "{'two'}: x 3"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Engine", r"it is a class: .*engine = Engine\(\)[.]METHOD"),
        ("unbound", "it is a method without its object"),
        ("cached_later", "it is async and in a cache"),
        ("hidden", r"[*]args names none .*functools[.]wraps"),
        ("built_in", "it has no signature"),
        ("game", r"it is one of rewardlab's parts \(environment\)"),
        ("of_tensor", "no JSON holds its argument x"),
        ("of_point", "'Point'> to a JSON schema"),
        ("of_told", "'Told'> to a JSON schema"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_at_the_start(typed_file, name, says):
    with pytest.raises(RewardlabError, match=rf"{name} of .*typed[.]py cannot be a tool: .*{says}"):
        registry.build("grpo", {"tools": f"{typed_file}:{name}"})


GIVEN = '''
def double(x: int) -> int:
    """Double a number.

    Args:
        x: the number
    """
    return 2 * x

'''


def test_tools_may_be_functions_of_a_module_that_is_imported(tmp_path, monkeypatch):
    """As TRL takes them; a run that is resumed finds them by their file."""
    (tmp_path / "tools_given_in_python.py").write_text(GIVEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    import tools_given_in_python as given

    for written in (given.double, [given.double], [f"{given.__file__}:double"], f"{given.__file__}:double"):
        env = environment_of(registry.build("grpo", {"tools": written}))
        assert env.settings["tools"] == (f"{tmp_path}/tools_given_in_python.py:double",)
    message, _ = env(
        env.start(ask("?"), 0)[1], Turn("policy", None, text='<tool_call>{"name": "double", "arguments": {"x": 4}}</tool_call>')
    )
    assert message.text == "8"


@pytest.mark.parametrize("tool", [lambda x: x, len])
def test_a_tool_that_no_file_holds_by_its_name_is_refused_in_words(tool):
    with pytest.raises(RewardlabError, match=r"is in no file from which it can be imported .*at the top of a file"):
        registry.build("grpo", {"tools": [tool]})
