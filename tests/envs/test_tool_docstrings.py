"""Docstrings of tools in the styles of Google, NumPy and Sphinx."""

from __future__ import annotations

import json

import pytest

from rewardlab.core import ask
from rewardlab.envs.functions import functions
from rewardlab.envs.tool_docstrings import in_google
from rewardlab.errors import RewardlabError

GOOGLE = """Search the handbook.

It is long.

Args:
    query: what to look for, in a few words
    limit: how many
"""
NUMPY = """Search the handbook.

It is long.

Parameters
----------
query : str
    what to look for,
    in a few words
limit : int, optional
    how many

Returns
-------
str
    limit : passages
"""
SPHINX = """Search the handbook.

It is long.

:param query: what to look for,
    in a few words
:type query: str
:param int limit: how many

:returns: passages
:raises KeyError: never
"""
TOOL = """
def search(query: str, limit: int = 3) -> str:
    '''{}'''
    return query
"""


def schema_of(tmp_path, doc):
    path = tmp_path / "mine.py"
    path.write_text(TOOL.format(doc.replace("\n", "\n    ")))
    (tool,) = json.loads(functions(tools=(f"{path}:search",)).start(ask("?"), 0)[0].tools)
    return tool["function"]


@pytest.mark.parametrize("doc", [NUMPY, SPHINX])
def test_numpys_and_sphinxs_arguments_are_told_as_googles_are(doc, tmp_path):
    (other := tmp_path / "google").mkdir()
    found = schema_of(tmp_path, doc)
    assert found == schema_of(other, GOOGLE)
    assert found["description"] == "Search the handbook.\n\nIt is long."
    told = {name: about["description"] for name, about in found["parameters"]["properties"].items()}
    assert told == {"query": "what to look for, in a few words", "limit": "how many"}


@pytest.mark.parametrize("doc", [NUMPY.replace("limit", "most"), SPHINX.replace("limit", "most"), "Search.\n\n:param limit:\n"])
def test_an_argument_that_is_not_described_is_refused_in_any_style(doc, tmp_path):
    with pytest.raises(RewardlabError, match=r"no description for the argument '(limit|query)'[.] A tool .* NumPy or Sphinx"):
        schema_of(tmp_path, doc)


@pytest.mark.parametrize(
    ("doc", "arguments"),
    [
        ("Add.\n\nParameters\n----------\na, b : int\n    a number\n", ["a: a number", "b: a number"]),
        ("Add.\n\nOther Parameters\n----------------\na\n    a number\nNotes\n-----\nb : x\n    no", ["a: a number"]),
        ("Add.\n\n:arg a: one: first\n:keyword b: two", ["a: one: first", "b: two"]),
    ],
)
def test_other_forms_of_the_styles(doc, arguments):
    assert in_google(doc) == "\n".join(["Add.", "", "Args:", *(f"    {line}" for line in arguments)])


@pytest.mark.parametrize("doc", ["Add two numbers.", GOOGLE, "Say the time.\n\n:returns: it", "Title\n-----\nwords", "", ":param"])
def test_what_has_no_arguments_in_another_style_stays_as_it_is(doc):
    assert in_google(doc) == doc
