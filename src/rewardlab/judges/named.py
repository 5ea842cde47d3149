"""Forms of judges by name, by file, or as a text."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from rewardlab.errors import RewardlabError, unknown
from rewardlab.judges.forms import SHOWN, Form, Kind, own_form
from rewardlab.judges.published import FORMS


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
    if form in FORMS:
        return FORMS[form]
    return own_form(of, _complete(_file(form, of), of, f"the judge's template {form}"), form, low, high)


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
