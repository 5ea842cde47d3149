"""Where a reply clicks, and which box it names, in the notations of GUI agents.

click 6 2                    click(x=6, y=2)         pyautogui.click(6, 2)        click(start_box='(6,2)')
{"action": "click", "coordinate": [6, 2]}            [{'action': 'click', 'point': [6, 2]}]
{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [6, 2]}}
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rewardlab.text.answers import after_thinking

_NUMBER, _ = r"(\d{1,5})(?:\.\d{1,6})?", r"[^\S\n]*"
_CALLED = (
    rf"^{_}[`*>-]{{0,3}}{_}(?:action:?{_})?(?:pyautogui\.)?(?:left_)?click{_}[( ]{_}(?:[a-z_]{{1,12}}{_}={_})?"
    rf"['\"]?(?:<\|box_start\|>|<point>)?[(\[]?{_}{_NUMBER}{_}[, ]{_}(?:y{_}={_})?{_NUMBER}(?!\d|{_}[, ]{_}\d)"
)
_CLICK = r"['\"]action(?:_type)?['\"]\s{0,3}:\s{0,3}['\"](?:left_)?click['\"]"
_POINT = (
    rf"['\"](?:coordinates?|point|position)['\"]\s{{0,3}}:\s{{0,3}}\[\s{{0,9}}{_NUMBER}\s{{0,9}},\s{{0,9}}{_NUMBER}\s{{0,9}}\]"
    rf"|['\"]x['\"]\s{{0,3}}:\s{{0,3}}{_NUMBER}\s{{0,9}},\s{{0,9}}['\"]y['\"]\s{{0,3}}:\s{{0,3}}{_NUMBER}"
)
FORM = rf"(?im){_CALLED}|{_CLICK}[^{{}}]{{0,200}}?(?:{_POINT})|(?:{_POINT})[^{{}}]{{0,200}}?{_CLICK}"
"""A regular expression of a click in any of these notations."""
_FORM = re.compile(FORM)
_BOX = re.compile(r"(\d{1,5})\W{1,4}(\d{1,5})\W{1,4}(\d{1,5})\W{1,4}(\d{1,5})(?!\w)")


def last_click(reply: str) -> tuple[int, int, int] | None:
    """(x, y, position in the visible text) of the last click of a reply, behind its thinking; None without one."""
    found = list(_FORM.finditer(after_thinking(reply)))
    if not found:
        return None
    x, y = (int(number) for number in found[-1].groups() if number is not None)
    return x, y, found[-1].start()


def last_box(reply: str, labels: Iterable[str]) -> tuple[str, list[int]] | None:
    """(label, box) of the last line before the click of a reply that names a label and four numbers; None without one."""
    clicked = last_click(reply)
    text = after_thinking(reply)
    thought = reply[: len(reply) - len(text)]
    before = thought + (text[: clicked[2]] if clicked else text)
    names = "|".join(sorted(map(re.escape, labels), key=len, reverse=True))
    found = None
    for line in before.splitlines():
        named, box = re.findall(rf"(?<!\w)(?:{names})(?!\w)", line, re.IGNORECASE), _BOX.search(line)
        if named and box:
            found = named[-1].lower(), [int(x) for x in box.groups()]
    return found
