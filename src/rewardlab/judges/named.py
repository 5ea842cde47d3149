"""Forms of judges by name, by file, or as a text.

rm_r1          a published form
rm_r1:FILE     the same with the prompt of a file, as a judge was trained on it: its system message, a line `=== user ===`, and the
               user's message; without that line all is the user's
FILE, TEXT     a prompt of one's own
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from rewardlab.errors import RewardlabError, unknown
from rewardlab.judges.forms import SHOWN, Form, Kind, own_form
from rewardlab.judges.published import FORMS

USER = "=== user ==="
"""The line of a file between the system message and the user's."""


def form_of(form: str, kind: str = "pairwise", low: int = 1, high: int = 5) -> Form:
    """The form of this name; or a text with the places of its kind, or a file that holds one; or, if empty, ours of this kind.

    kind: of a text or of ours; a published form has its own.  low, high: of the scale of ours.
    """
    if kind not in SHOWN:
        raise unknown("kind of judge", kind, tuple(SHOWN))
    of = cast(Kind, kind)
    if not form:
        return own_form(of, low=low, high=high)
    # a text with a place in it is neither a name nor a path
    if "{" in form:
        return own_form(of, _complete(form, of, "the judge's template"), "template", low, high)
    if published := FORMS.get(form.partition(":")[0]):
        return published if form == published.name else _reworded(published, form.partition(":")[2])
    return own_form(of, _complete(_file(form, of), of, f"the judge's template {form}"), form, low, high)


def _reworded(form: Form, path: str) -> Form:
    """The form with the prompt of a file."""
    first, line, rest = _file(path, form.kind).partition(f"{USER}\n")
    system, text = (first.strip(), rest) if line else ("", first)
    return replace(form, text=_complete(text, form.kind, f"the judge's template {path}"), system=system)


def _file(form: str, kind: Kind) -> str:
    try:
        return Path(form).expanduser().read_text("utf-8")
    except (OSError, ValueError) as problem:
        places = " and ".join(f"{{{place}}}" for place in SHOWN[kind])
        raise RewardlabError(
            f"the judge's template {form} is neither a text with {places} in it nor a file: {problem}; nor is it one of the "
            f"published forms {', '.join(FORMS)}"
        ) from None


def _complete(text: str, kind: Kind, of: str) -> str:
    if missing := [f"{{{place}}}" for place in SHOWN[kind] if f"{{{place}}}" not in text]:
        raise RewardlabError(f"{of} has no {' and no '.join(missing)} in it, which a judge of kind {kind!r} needs")
    return text
