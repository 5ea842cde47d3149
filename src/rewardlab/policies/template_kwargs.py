"""Keyword arguments of a chat template, such as Qwen3's `enable_thinking`, as defaults in the first line of its text.

Whoever renders messages by such a template has them: training, measures, searches, judges, what scores a reply, and whoever loads
an export. A value that is given to `apply_chat_template` still goes before them. TRL calls them `chat_template_kwargs`, vLLM's
server `--default-chat-template-kwargs`, verl `data.apply_chat_template_kwargs`.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

FIRST = re.compile(r"\A\{#- chat_template_kwargs (?P<held>.*?) #\}.*\n")
"""The line of a template that sets them; the comment in it says them as JSON."""
OURS = ("messages", "documents", "add_generation_prompt", "continue_final_message")
"""Names that every rendering decides."""
FILE = "chat_template.jinja"


def with_kwargs(tokenizer: Any, kwargs: Mapping[str, Any]) -> Any:
    """A copy of the tokenizer whose chat template takes these as defaults, over those that it has.

    Raises RewardlabError without a template, and for a name that the template does not read: it would change nothing.
    """
    template = getattr(tokenizer, "chat_template", None)
    if not template:
        raise RewardlabError(f"chat_template_kwargs ({', '.join(kwargs)}): the model has no chat template that would read them")
    _check(template, kwargs)
    copied = copy.copy(tokenizer)
    named = isinstance(template, Mapping)
    copied.chat_template = {k: _set(v, kwargs) for k, v in template.items()} if named else _set(template, kwargs)
    return copied


def kwargs_in(template: Any) -> dict[str, Any]:
    """The defaults that a template's first line sets; of several templates, those of the first."""
    text = next(iter(template.values()), "") if isinstance(template, Mapping) else template or ""
    found = FIRST.match(text)
    return json.loads(found["held"]) if found else {}


def write_template(tokenizer: Any, folder: Path) -> None:
    """Write the chat template beside an adapter, whose base has another."""
    if isinstance(template := tokenizer.chat_template, str):
        (folder / FILE).write_text(template, "utf-8")


def with_template_of(tokenizer: Any, folder: Path | None) -> Any:
    """The tokenizer with the chat template in the folder of an adapter, where TRL and others save one; None where it has no other
    than its base."""
    if folder is None or not (folder / FILE).is_file():
        return None
    template = (folder / FILE).read_text("utf-8")
    if template == tokenizer.chat_template:
        return None
    copied = copy.copy(tokenizer)
    copied.chat_template = template
    return copied


def _set(template: str, kwargs: Mapping[str, Any]) -> str:
    whole = {**kwargs_in(template), **kwargs}
    # a mark that ends a comment may stand in a text
    held = json.dumps(whole, ensure_ascii=False).replace("#}", r"#\u007d")
    lines = "".join(f"{{%- if {k} is not defined %}}{{%- set {k} = {_literal(v)} %}}{{%- endif %}}" for k, v in whole.items())
    # templates are read with the line break after a block left out, so that the rest begins as it did
    return f"{{#- chat_template_kwargs {held} #}}{lines}\n{FIRST.sub('', template)}"


def _literal(value: Any) -> str:
    """A JSON value as Jinja writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _check(template: Any, kwargs: Mapping[str, Any]) -> None:
    if "tools" in kwargs:
        raise RewardlabError("chat_template_kwargs: tools are given by --tools (docs/ENVIRONMENTS.md)")
    read = read_by(template)
    for name in kwargs:
        if name in OURS or name.endswith("_token"):
            raise RewardlabError(f"chat_template_kwargs: {name} is decided by whoever renders a conversation, and cannot be set")
        if name not in read:
            says = f"it reads {', '.join(sorted(read))}" if read else "it reads none"
            raise RewardlabError(f"chat_template_kwargs: the model's chat template reads no {name!r}; {says}")


def read_by(template: Any) -> set[str]:
    """The names that a template, or any of several, takes from whoever renders it."""
    texts = template.values() if isinstance(template, Mapping) else [template]
    return {name for text in texts for name in _read(FIRST.sub("", text))}


def _read(template: str) -> set[str]:
    """The names that a template takes from whoever renders it, but those that every rendering gives; where it has a statement that
    Jinja does not know, all its words."""
    from jinja2 import meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    known = ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])
    try:
        names = meta.find_undeclared_variables(known.parse(template))
    except Exception:
        # transformers' own {% generation %}
        names = set(re.findall(r"[A-Za-z_]\w*", template))
    usual = {*OURS, "tools", "raise_exception", "strftime_now"}
    return {name for name in names if name not in usual and not name.endswith("_token")}
