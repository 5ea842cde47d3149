"""Raters by name.

PATH, ORG/NAME                     a reward model (a sequence classifier), or a process reward model, as its checkpoint says
PATH?label=NAME                    of a classifier with several labels, the one that is the score
PATH?weights=helpfulness=1,verbosity=-1   of a classifier with several labels, their sum by these weights
PATH?principle=Be brief.           of a reward model of rlbff or salmon, by what it judges; of salmon several: &principle=Be true.
PATH?as=shepherd&by=product        a process reward model whose convention it does not say; how a reply is scored by its steps
likelihood:MODEL?norm=sum&end=no   how likely a language model finds the reply, here without the end token
implicit:MODEL?reference=OTHER     how much likelier than a reference does: the reward that DPO trains
judge:MODEL?kind=scale             a judge, local or served (judge:openai:URL#NAME): pairwise, scale, verdict or scores
judge:MODEL?form=rm_r1&votes=4     the same by a published form, the mean of several judgements
judge:MODEL?kind=nway&orders=3     a judge that chooses one of all replies at once, in several orders
PATH?as=embedder                   the cosine of prompt and reply by an encoder; minilm, and ngrams, which needs none
minilm?as=embedder&head=PAIRS      a linear head on the encoder's vectors, fitted to a file of pairs: prompt, chosen, rejected
tests:COLUMN?k=8                   the share of the first k tests in a column of the row (asserts) that a program passes
outputs:FILE                       verdicts of others
length, mine.py:score              a reward of rewardlab, or a function of your own
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from rewardlab.clients.endpoint import is_served
from rewardlab.data.files import is_rows
from rewardlab.errors import RewardlabError, unknown
from rewardlab.scoreboard.raters.outputs import PREFIX as OUTPUTS
from rewardlab.scoreboard.raters.rater import Rater
from rewardlab.settings.domain import ABOVE_ZERO, POSITIVE

__all__ = ["OUTPUTS", "Rater", "load_rater"]

LENGTH = "length"
PATH = re.compile(r"~?[\w./@-]+(\?.*)?")
"""A name that holds nothing that a formula does but a slash."""
KINDS = "likelihood:MODEL, judge:MODEL, implicit:MODEL?reference=OTHER, outputs:FILE, a reward, FILE.py:FUNCTION"
SETTINGS = {
    "likelihood": ("norm", "end"), "implicit": ("reference", "norm", "beta", "end"),
    "judge": ("kind", "template", "form", "by", "votes", "max_new", "orders"), "steps": ("by", "splitter"), "tests": ("k",),
    "embedder": ("instruct", "head"),
}  # fmt: skip
NUMBERS: dict[str, tuple[Callable[[str], Any], Any]] = {
    "beta": (float, ABOVE_ZERO), **dict.fromkeys(("max_new", "votes", "orders", "k"), (int, POSITIVE)),
}  # fmt: skip


def load_rater(name: str, device: str = "auto", dtype: str = "auto") -> Rater:
    """The rater of this name, but for `outputs:`, which are read benchmark by benchmark.

    Raises RewardlabError for a name, a setting or a checkpoint that stands for none.
    """
    prefix, _, rest = name.partition(":")
    if prefix in ("likelihood", "implicit", "judge"):
        return _of_language_model(prefix, name, rest, device, dtype)
    place, _, query = name.partition("?")
    if ("as", "embedder") in (said := parse_qsl(query)):
        from rewardlab.scoreboard.raters.embedder import Embedder

        own = "&".join(f"{key}={value}" for key, value in said if key != "as")
        return Embedder(name, place, device, dtype, **_parted(f"{place}?{own}", SETTINGS["embedder"], name)[1])
    if prefix == "tests":
        from rewardlab.scoreboard.raters.tests import Tests

        column, settings = _parted(rest, SETTINGS[prefix], name)
        return Tests(name, column, **settings)
    if _is_checkpoint(name):
        return _of_checkpoint(name, device, dtype)
    from rewardlab.scoreboard.raters.formula import Formula

    if is_rows(Path(name)) and Path(name).expanduser().is_file():
        raise RewardlabError(
            f"{name} is a file of rows, and no rater: verdicts of others are outputs:{name}; pairs are --data {name}"
        )
    if "/" in name and PATH.fullmatch(name) and not name.partition("?")[0].endswith(".py"):
        raise RewardlabError(f"there is no folder {name.partition('?')[0]}: a rater is a checkpoint, a run, or {KINDS}")
    # of rewards whose names are nearer there are many
    if name != LENGTH and difflib.get_close_matches(name, [LENGTH], cutoff=0.8):
        raise unknown("rater", name, (LENGTH,))
    return Formula(name, "tokens()" if name in (LENGTH, f"{LENGTH}()") else name)


def _of_language_model(kind: str, name: str, rest: str, device: str, dtype: str) -> Rater:
    model, settings = _parted(rest, SETTINGS[kind], name)
    if kind == "judge":
        if settings.get("kind") == "nway":
            from rewardlab.scoreboard.raters.nway import NWay

            return NWay(name, model, device, dtype, **{k: v for k, v in settings.items() if k != "kind"})
        if "orders" in settings:
            raise RewardlabError(f"{name}: orders are of a choice among all replies: kind=nway")
        from rewardlab.scoreboard.raters.judge import Judge

        return Judge(name, model, device, dtype, **settings)
    from rewardlab.scoreboard.raters.likelihood import Likelihood

    if kind == "implicit" and "reference" not in settings:
        raise RewardlabError(f"{name}: an implicit reward needs the model that training began from: ?reference=MODEL")
    return Likelihood(name, model, device, dtype, **settings)


def _of_checkpoint(name: str, device: str, dtype: str) -> Rater:
    from rewardlab.models.checkpoint import find
    from rewardlab.prm.load import FILE as SCORER

    place, _, query = name.removeprefix("prm:").partition("?")
    said = dict(parse_qsl(query, keep_blank_values=True))
    found = find(place)
    architecture = str((found.config.get("architectures") or [""])[0])
    # a checkpoint of ours says itself that it scores steps, whatever model it is
    steps = "as" in said or name.startswith("prm:") or (found.folder / SCORER).is_file()
    if architecture.endswith("ForSequenceClassification") and not steps:
        from rewardlab.scoreboard.raters.classifier import Classifier

        return Classifier(name, device, dtype)
    if not architecture.endswith("ForCausalLM") or steps:
        from rewardlab.scoreboard.raters.steps import Steps

        own = {k: said.pop(k) for k in SETTINGS["steps"] if k in said}
        rest = "&".join(f"{k}={v}" for k, v in said.items())
        return Steps(name, f"{place}?{rest}" if rest else place, device, dtype, **own)
    raise RewardlabError(
        f"{name} is a language model ({architecture}) and has no head: write judge:{name}, likelihood:{name}, "
        f"implicit:{name}?reference=MODEL, or {name}?as=CONVENTION for a process reward model"
    )


def _parted(text: str, known: tuple[str, ...], name: str) -> tuple[str, dict[str, Any]]:
    """The model, and the settings after its question mark."""
    model, _, query = text.partition("?")
    if is_served(text):
        # an address may have a question mark of its own
        model, _, query = text.rpartition("?") if "=" in text.rpartition("?")[2] and "?" in text else (text, "", "")
    said = dict(parse_qsl(query, keep_blank_values=True))
    for key in said:
        if key not in known:
            raise unknown(f"setting of {name}", key, known)
    return model, {key: _number(key, value, name) for key, value in said.items()}


def _number(key: str, value: str, name: str) -> Any:
    if key not in NUMBERS:
        return value
    kind, domain = NUMBERS[key]
    try:
        number = kind(value)
    except ValueError:
        raise RewardlabError(f"{name}: {key} is a number, and not {value!r}") from None
    domain.check(f"{key} of {name}", number)
    return number


def _is_checkpoint(name: str) -> bool:
    from rewardlab.models.checkpoint import is_hub_name, is_packaged

    place = name.removeprefix("prm:").partition("?")[0]
    if name.startswith("prm:") or is_packaged(place) or Path(place).expanduser().is_dir():
        return True
    return not place.endswith(".py") and ".py:" not in place and "(" not in place and is_hub_name(place)
