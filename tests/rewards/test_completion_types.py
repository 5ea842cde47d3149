"""Whether a function takes texts or messages is read from its signature and its code."""

from __future__ import annotations

import functools
import importlib.util

import pytest

from rewardlab.rewards.completion_types import takes_messages

TEXT = "def text(turns):\n    return turns[0]['content']\n\n"
MESSAGES = {
    "open_r1": "def f(completions, **kwargs):\n    return [len(completion[0]['content']) for completion in completions]",
    "last": "def f(prompts, completions, answer):\n    return [c[-1].get('content') == a for c, a in zip(completions, answer)]",
    "loop": "def f(completions):\n    out = []\n    for i, c in enumerate(completions):\n        message = c[-1]\n"
    "        out.append(message['role'] == 'assistant')\n    return out",
    "helper": TEXT + "def f(completions):\n    return [len(text(c)) for c in completions]",
    "mapped": TEXT + "def f(completions):\n    return list(map(len, map(text, completions)))",
    "keyword": "def text(*, of):\n    return of[0]['content']\n\n"
    "def f(completions):\n    return [len(text(of=c)) for c in completions]",
    "single": "def f(completion):\n    return len(completion[0]['content'])",
    "prompt": "def f(prompts, completions):\n    return [len(p[-1]['content']) for p in prompts]",
    "annotated": "def f(completions: list[list[dict[str, str]]]):\n    return [1.0 for c in completions]",
    "object": "class F:\n    def __call__(self, completions):\n"
    "        return [len(c[0]['content']) for c in completions]\n\nf = F()",
    "wrapped": "import functools\n\ndef same(g):\n    @functools.wraps(g)\n    def inner(*args, **kw):\n"
    "        return g(*args, **kw)\n    return inner\n\n"
    "@same\ndef f(completions):\n    return [len(c[0]['content']) for c in completions]",
}  # fmt: skip
TEXTS = {
    "plain": "def f(completions, **kwargs):\n    return [len(c) for c in completions]",
    "first_letter": "def f(completion):\n    return completion[0].isupper()",
    "json": "import json\n\ndef f(completions):\n    return [json.loads(c)['content'] for c in completions]",
    "json_named": "import json\n\ndef f(completion):\n    data = json.loads(completion)\n    return data['content']",
    "column": "def f(completions, solution):\n    return [s['content'] == c for c, s in zip(completions, solution)]",
    "swapped": "def f(completions, solution):\n    return [s['content'] == c for s, c in zip(solution, completions)]",
    "meta": "def f(completion, meta):\n    return meta['content'] in completion",
    "annotated": "def f(completions: list[str]):\n    return [c[0]['content'] for c in completions]",
    "vague": "def f(completions: list):\n    return [len(c) for c in completions]",
    "verl": "def f(data_source, solution_str, ground_truth, extra_info=None):\n    return extra_info['content'] == solution_str",
}


def loaded(code, folder):
    file = folder / "mine.py"
    file.write_text(code)
    spec = importlib.util.spec_from_file_location("mine", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


@pytest.mark.parametrize(
    ("code", "messages"),
    [*((x, True) for x in MESSAGES.values()), *((x, False) for x in TEXTS.values())],
    ids=[*(f"messages-{name}" for name in MESSAGES), *(f"texts-{name}" for name in TEXTS)],
)
def test_the_form_is_read_from_the_function(code, messages, tmp_path):
    assert takes_messages(loaded(code, tmp_path)) is messages


def test_a_partial_object_has_the_form_of_its_function(tmp_path):
    assert takes_messages(functools.partial(loaded(MESSAGES["open_r1"], tmp_path), weight=2.0))


def test_a_function_without_source_gets_texts():
    assert not takes_messages(len)
    assert not takes_messages(eval("lambda completions: [c[0]['content'] for c in completions]"))
