"""Gold schemas that would fit everything: in wrappers, misspelt, without a type; and the formats."""

from __future__ import annotations

import importlib.util
import json

import pytest

from rewardlab.verifiers.structure.schemas import JUDGING, TELLING, schema_of
from rewardlab.verifiers.structure.verifier import json_schema

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
OPENAI = {"name": "x", "strict": True, "schema": SCHEMA}
WRAPPED = [
    SCHEMA,
    OPENAI,
    {"schema": SCHEMA},
    {"schema": json.dumps(SCHEMA), "value": {"a": 1}},
    {"type": "json_schema", "json_schema": OPENAI},
    {"response_format": {"type": "json_schema", "json_schema": OPENAI}},
    {"text": {"format": {"type": "json_schema", **OPENAI}}},
    {"name": "f", "description": "d", "parameters": SCHEMA},
    {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}},
    {"name": "f", "input_schema": SCHEMA},
    {"name": "f", "inputSchema": SCHEMA},
    {"parameters": SCHEMA},
    {"guided_json": SCHEMA},
    {"structured_outputs": {"json": SCHEMA}},
    {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "T",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
    },
]


@pytest.mark.parametrize("gold", WRAPPED, ids=lambda gold: ",".join(gold))
@pytest.mark.parametrize("written", [lambda gold: gold, json.dumps])
def test_a_schema_is_found_in_what_it_is_wrapped_in(gold, written):
    verdicts = [json_schema().check(reply, written(gold)) for reply in ('{"a": 1}', "7", "{}", '{"a": "x"}', "[]", "null")]
    assert [v.correct for v in verdicts] == [True, False, False, False, False, False], verdicts
    if "value" not in gold:
        assert json_schema(schema=gold).check("7", None).correct is False


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object", "propertys": {}}, r"at $, 'propertys' is no keyword; did you mean 'properties'?"),
        ({"type": "object", "requird": ["a"]}, "did you mean 'required'?"),
        ({"type": "object", "require": ["a"]}, "did you mean 'required'?"),
        ({"type": "object", "Required": ["a"]}, "did you mean 'required'?"),
        ({"type": "object", "additional_properties": False}, "did you mean 'additionalProperties'?"),
        ({"type": "object", "addtionalProperties": False}, "did you mean 'additionalProperties'?"),
        ({"typ": "object"}, "at $, 'typ' is no keyword; did you mean 'type'?"),
        ({"properties": {"a": {"type": "string", "minLenght": 3}}}, "at $.properties.a, 'minLenght' is no keyword"),
        ({"type": "array", "items": {"type": "string", "max_length": 3}}, "at $.items, 'max_length' is no keyword"),
        ({"type": "array", "item": {"type": "string"}}, "did you mean 'items'?"),
        ({"oneOf": [{"type": "string"}, {"type": "string", "patern": "a"}]}, "at $.oneOf[1], 'patern' is no keyword"),
        ({"type": "integer", "min": 3}, "did you mean 'minimum'?"),
        ({"type": "string", "choices": ["a"]}, "did you mean 'enum'?"),
        ({"anyof": [{"type": "string"}]}, "did you mean 'anyOf'?"),
        ({"type": "object", "$def": {}}, "did you mean '$defs'?"),
        ({"ref": "#/$defs/a"}, "did you mean '$ref'?"),
        ({"a": {"type": "string"}, "b": {"type": "integer"}}, """'a', 'b' are no keywords; if they are properties, write {"type"""),
        ({"a": {"type": "string"}}, "no keywords; if they are properties"),
        ({"city": "string", "nights": "integer"}, "no keyword that could refuse a value ('city', 'nights')"),
        ({"title": "T", "description": "d"}, "no keyword that could refuse a value"),
        ({"type": "dict"}, "at $, 'dict' is no type; did you mean 'object'?"),
        (
            {"type": "object", "properties": {"a": {"type": "strnig"}}},
            "at $.properties.a, 'strnig' is no type; did you mean 'string'?",
        ),
        ({"type": "wxyz"}, "'wxyz' is no type; these are: array, boolean"),
        ({"type": "array", "items": {"a": {"type": "string"}}}, "at $.items, 'a' are no keywords; if they are properties"),
        ({"type": "object", "properties": {"a": {"b": {"type": "string"}}}}, "at $.properties.a, 'b' are no keywords"),
        ({"type": "object", "properties": {"a": "string"}}, "the schema is not valid at $.properties.a"),
        ({}, "it is empty"),
        ({"name": "x", "schema": {}}, "it is empty"),
        ({"name": "x", "schema": {"requird": ["a"]}}, "did you mean 'required'?"),
    ],
)
def test_a_schema_that_would_fit_anything_is_refused(schema, says):
    verdict = json_schema().check("7", schema)
    assert verdict.correct is None
    assert says in verdict.why


@pytest.mark.parametrize("keyword", [*JUDGING, *TELLING, "x-order", "markdownDescription", "$comment", "enumNames", "tsType"])
def test_what_the_standard_and_its_users_know_is_no_mistake(keyword):
    assert keyword in schema_of({"type": "object", keyword: "object"})


def test_what_lists_properties_is_an_object_within_others_too():
    schema = {"type": "object", "properties": {"x": {"properties": {"y": {"type": "integer"}}, "required": ["y"]}}}
    found = [json_schema().check(reply, schema).correct for reply in ('{"x": {"y": 1}}', '{"x": 7}', '{"x": {}}', "{}")]
    assert found == [True, False, False, True]
    # where a schema is a condition, it is left as it stands
    condition = {"type": ["object", "integer"], "if": {"required": ["a"]}, "then": {"required": ["b"]}}
    assert json_schema().check("7", condition).correct is True


def test_a_schema_with_a_gold_value_among_other_things():
    gold = {"name": "x", "schema": json.dumps(SCHEMA), "value": {"a": 1}}
    assert [json_schema().check(reply, gold).correct for reply in ('{"a": 1}', '{"a": 2}')] == [True, False]
    assert json_schema().check("7", {"name": "x", "schema": json.dumps(SCHEMA)}).correct is False


def test_names_of_properties_are_no_keywords():
    schema = {"properties": {"typ": {"enum": [1]}, "requird": True, "min": {"const": {"patern": 1}}}, "default": {"itms": 1}}
    assert json_schema().check('{"typ": 1, "min": {"patern": 1}}', schema).correct is True
    assert json_schema().check('{"typ": 2}', schema).correct is False


def test_what_says_more_than_properties_is_taken_as_it_stands():
    for schema in ({"anyOf": [{"type": "integer"}, {"required": ["a"]}]}, {"enum": [7], "required": ["a"]}, True):
        assert json_schema().check("7", schema).correct is True
    assert json_schema().check("7", False).correct is False


FORMATS = {
    "time": (["12:30:00Z", "23:59:60z", "01:02:03.456+05:30"], ["12:30", "24:00:00Z", "12:60:00Z", "12:30:00", "12:30:00+5"]),
    "date-time": (["2024-02-29T12:30:00Z", "2024-01-01t00:00:00.5-08:00"], ["2023-02-29T12:30:00Z", "2024-01-01 12:30:00Z"]),
    "date": (["2024-02-29"], ["2023-02-29", "2024-2-9", "soon"]),
    "uri": (
        ["https://a.org/b?c=d#e", "mailto:a@b.c", "urn:isbn:0", "http://[::1]:80/x", "http://u:p@h:8/", "file:///etc/x", "a:b%20c"],
        ["a.org/b", "//a.org", "http://a b", "http://a.org/<b>", "http://a.org/%zz", "http://é.org", "7:x", ":x", "", "http://a/#b#c"],
    ),
    "uri-reference": (["/b?c", "//a.org", "a/b", "#x", "", "http://a.org"], ["a b", "1:b", "\\a"]),
    "iri": (["http://é.org/ü"], ["é.org", "http://é org"]),
    "hostname": (["a.org", "localhost", "xn--a.b-c"], ["-a.org", "a-.org", "a..b", "a_b.org", "a" * 64 + ".org", "a b", "é.org"]),
    "duration": (["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P2W", "PT1H"], ["1D", "P", "PT", "P1S", "P1W2D", "P1DT", "PT5", "PT1H6S"]),
    "json-pointer": (["", "/a/b", "/a~0b/~1", "/"], ["a", "/a~", "/a~2", "#/a"]),
    "relative-json-pointer": (["0", "1/a", "2#"], ["/a", "-1", "01", "1a"]),
    "email": (["a@b.c"], ["a"]),
    "ipv4": (["127.0.0.1"], ["127.0.0.256"]),
    "ipv6": (["::1"], ["12345::"]),
    "uuid": (["2eb8aa08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08"]),
    "regex": (["a+"], ["("]),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("within", [lambda schema: schema, lambda schema: OPENAI | {"schema": {"type": "array", "items": schema}}])
def test_formats_are_checked_unless_that_is_turned_off(name, within):
    good, bad = FORMATS[name]
    schema, listed = within({"type": "string", "format": name}), "name" in within({})
    texts = [(json.dumps([text] if listed else text), text in good) for text in (*good, *bad)]
    verdicts = json_schema().check_all([(reply, schema) for reply, _ in texts])
    assert {reply: v.correct for (reply, _), v in zip(texts, verdicts, strict=True)} == dict(texts)
    assert all(v.correct for v in json_schema(formats=False).check_all([(reply, schema) for reply, _ in texts]))
    assert json_schema().check("7", {"format": name}).correct is True


def test_a_format_of_the_standard_that_nothing_checks_says_what_to_install_and_others_are_notes():
    found = json_schema().check('"x"', {"type": "array", "items": {"format": "uri-template"}})
    if importlib.util.find_spec("uri_template") is None:
        assert found.correct is None
        assert "pip install 'jsonschema[format-nongpl]'" in found.why
    assert json_schema().check('"x"', {"type": "string", "format": "colour"}).correct is True
