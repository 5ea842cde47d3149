"""Step scorers by name: the convention of a checkpoint, and its parts.

A checkpoint says it by step_scorer.json (those that rewardlab writes), else by config.json and its weights. Causal models look
alike, so that those which the folder's name does not give away need it said: PATH?as=shepherd. Code that came with a checkpoint
is never run: the heads of such models are small, and are built here from their weights.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import torch
from safetensors import safe_open
from torch import Tensor, nn

from rewardlab.data.values import number_of
from rewardlab.errors import RewardlabError, unknown
from rewardlab.models.checkpoint import Checkpoint, find, loading
from rewardlab.policies.ends import SCORED_AT
from rewardlab.policies.hf.adapters import with_saved_adapter
from rewardlab.policies.hf.loading import quiet
from rewardlab.policies.hf.model import check_head
from rewardlab.prm.generative import GenerativeScorer, RLHFlowScorer
from rewardlab.prm.head import LAYOUTS, HeadScorer
from rewardlab.prm.implicit import BETA, ImplicitScorer, LikelihoodScorer
from rewardlab.prm.scorer import NoScorer, StepScorer
from rewardlab.prm.skywork import SkyworkScorer
from rewardlab.prm.step_tokens import QwenScorer, ShepherdScorer
from rewardlab.text.splitters import of_text
from rewardlab.util.device import device_of, dtype_of

FILE = "step_scorer.json"
"""In a checkpoint of ours: {"convention": "head", "layout": "chat", "separator": "\\n", "splitter": "newline"}."""
CAUSAL: dict[str, type[StepScorer]] = {
    c.convention: c for c in (ShepherdScorer, RLHFlowScorer, GenerativeScorer, LikelihoodScorer)
}  # fmt: skip
CONVENTIONS = ("head", "shepherd", "rlhflow", "qwen", "skywork", "generative", "implicit", "likelihood")
SPLITTER = "splitter"
"""What may be said of every convention: what the steps are that it learnt from."""
SETTINGS = {"head": ("layout", "separator"), "implicit": ("reference", "beta", "sums")}
"""What may be said of a convention, in step_scorer.json or after PATH?."""
YES_NO = {"true": True, "false": False}


def load_scorer(name: str, device: str = "auto", dtype: str = "auto") -> StepScorer:
    """The scorer of steps in a checkpoint: a folder, a run, or a model of the Hugging Face hub.

    After a question mark it may be said what the checkpoint does not say, or says otherwise: PATH?as=shepherd (head, shepherd,
    rlhflow, qwen, skywork, generative, implicit, likelihood); for head layout=trl|chat, for implicit reference=PATH, beta=0.05 and
    sums=true, where it was taught by outcomes; for all splitter=newline|paragraph|tag|sentence, what a step is. dtype: of the
    weights.
    Raises RewardlabError for a model that is no scorer of steps, or of a convention that cannot be told.
    """
    found, convention, settings = settings_of(name)
    where = device_of(device)
    number = dtype_of(dtype, where)
    try:
        # one seam for all of them: whatever transformers cannot read is the user's to know
        with loading(found.folder):
            scorer = _loaded(convention, found, where, number, {k: v for k, v in settings.items() if k != SPLITTER})
            scorer.splitter = settings.get(SPLITTER, "")
            return scorer
    except NoScorer as problem:
        raise RewardlabError(
            f"{found.folder} cannot score steps as {convention!r}: {problem}. Name the convention that it was trained in, "
            f"?as=CONVENTION, one of {', '.join(CONVENTIONS)}; likelihood takes any language model"
        ) from problem


def settings_of(name: str) -> tuple[Checkpoint, str, dict[str, Any]]:
    """Where a scorer's checkpoint is, its convention, and what else is said of it. No weights are read.

    Raises RewardlabError for a checkpoint that is not there, and for a convention that is unknown or cannot be told.
    """
    place, _, query = name.removeprefix("prm:").partition("?")
    found = find(_plain_name(place))
    said = dict(parse_qsl(query, keep_blank_values=True))
    said |= {"convention": said.pop("as")} if "as" in said else {}
    with loading(found.folder):
        settings: dict[str, Any] = {**_kept(_written(found.folder), said.get("convention")), **said}
        convention = settings.pop("convention", None) or recognised(found, place)
    if convention not in CONVENTIONS:
        raise unknown("convention of a scorer", convention, CONVENTIONS)
    if extra := sorted(set(settings) - {SPLITTER, *SETTINGS.get(convention, ())}):
        raise RewardlabError(f"{name}: a scorer as {convention!r} has no setting {extra[0]!r}")
    _check(name, settings)
    if convention == "implicit" and "reference" not in settings:
        raise RewardlabError(f"{name}: implicit rewards need the model that it began from: ?as=implicit&reference=PATH")
    return found, convention, settings


def _kept(written: dict[str, Any], convention: str | None) -> dict[str, Any]:
    """What a checkpoint says itself that holds of a convention: all of it, or of another than its own what a step is."""
    if convention in (None, written.get("convention")):
        return written
    return {name: value for name, value in written.items() if name == SPLITTER}


def _check(name: str, settings: dict[str, Any]) -> None:
    """Raise RewardlabError for a setting with a value that it cannot have, before weights are read."""
    if SPLITTER in settings:
        of_text(settings[SPLITTER])
    if (layout := settings.get("layout", LAYOUTS[0])) not in LAYOUTS:
        raise unknown("layout of a scorer", layout, LAYOUTS)
    if not settings.get("separator", "x"):
        raise RewardlabError(f"{name}: a step's score is read at its separator, which cannot be empty")
    if "beta" in settings and not (number_of(settings["beta"]) or 0) > 0:
        raise RewardlabError(f"{name}: beta is a number above 0, and not {settings['beta']!r}")
    if str(settings.get("sums", "true")).lower() not in YES_NO:
        raise RewardlabError(f"{name}: sums is true or false, and not {settings['sums']!r}")


def recognised(found: Checkpoint, name: str) -> str:
    """The convention of a checkpoint that does not state it. Raises RewardlabError where it cannot be told."""
    config = found.config
    kind, known_as = str((config.get("architectures") or [""])[0]), f"{name} {config.get('_name_or_path', '')}".lower()
    if kind == "Qwen2ForProcessRewardModel":
        return "qwen"
    if any(key.startswith("v_head.") for key in weight_names(found.folder)):
        return "skywork"
    stated = config.get("rewardlab")
    # an export says besides what stands before or after a reply
    if stated == SCORED_AT or (isinstance(stated, dict) and "scored_at" in stated):
        raise RewardlabError(
            f"{name} is a reward model of whole replies, and its numbers at the ends of steps would mean nothing: as a reward, "
            f"it is model:{name}; if it was trained on steps after all, write {name}?as=head"
        )
    if kind.endswith(("ForTokenClassification", "ForSequenceClassification")):
        return "head"
    for part, convention in (("shepherd", "shepherd"), ("rlhflow", "rlhflow")):
        if part in known_as:
            return convention
    raise RewardlabError(
        f"{name} ({kind or 'of unknown architecture'}) does not say how it scores steps: write {name}?as=CONVENTION, one of "
        f"{', '.join(CONVENTIONS)}"
    )


def _plain_name(place: str) -> str:
    if place.startswith("embedded:"):
        # by name: it is made by training, which loads scorers itself
        return str(importlib.import_module("rewardlab.prm.small").checkpoint(place.removeprefix("embedded:")))
    return place


def _written(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    written = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    if "reference" in written and (own := folder / written["reference"]).is_dir():
        # one that is saved with the scorer moves with it
        written["reference"] = str(own)
    return written


def _loaded(convention: str, found: Checkpoint, device: torch.device, dtype: torch.dtype, settings: dict[str, Any]) -> StepScorer:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(found.folder), trust_remote_code=False)
    if convention in CAUSAL:
        return CAUSAL[convention](causal(found, device, dtype), tokenizer, device)
    if convention == "implicit":
        beside = find(_plain_name(str(settings["reference"])))
        with loading(beside.folder):
            reference = causal(beside, device, dtype)
        beta, sums = float(settings.get("beta", BETA)), YES_NO[str(settings.get("sums", "false")).lower()]
        return ImplicitScorer(causal(found, device, dtype), tokenizer, device, reference, beta, sums)
    trunk, of_head = _trunk(found, dtype), _head_weights(found.folder)
    if convention == "head":
        plain = {"layout": "chat" if found.config["architectures"][0].endswith("ForSequenceClassification") else "trl"}
        # some families call it classifier
        part = next((name for name in ("score", "classifier") if f"{name}.weight" in of_head), "score")
        return HeadScorer(trunk, tokenizer, device, linear(of_head, part, dtype), **{**plain, **settings})
    if convention == "qwen":
        head = nn.Sequential(linear(of_head, "score.0", dtype), nn.ReLU(), linear(of_head, "score.2", dtype))
        return QwenScorer(trunk, tokenizer, device, head)
    return SkyworkScorer(trunk, tokenizer, device, linear(of_head, "v_head.summary", dtype))


def causal(found: Checkpoint, device: torch.device, dtype: torch.dtype) -> Any:
    """The causal language model of a checkpoint, with its adapter merged; its logits are a linear map of its hidden states."""
    from transformers import AutoModelForCausalLM

    # its types are of a class that gives no pair
    kind: Any = AutoModelForCausalLM
    model, told = kind.from_pretrained(str(found.folder), dtype=dtype, trust_remote_code=False, output_loading_info=True)
    _complete(found.folder, told)
    if found.adapter:
        model = with_saved_adapter(model, found.adapter, trains=False)
    check_head(model.to(device), device)
    return model


def _trunk(found: Checkpoint, dtype: torch.dtype) -> Any:
    """The model below the head of a checkpoint."""
    from transformers import AutoModel

    if found.adapter:
        raise RewardlabError(f"{found.adapter}: an adapter below a head is not loaded: merge it first (peft's merge_and_unload)")
    with quiet():
        model, told = AutoModel.from_pretrained(str(found.folder), dtype=dtype, trust_remote_code=False, output_loading_info=True)
    _complete(found.folder, told)
    return model


def _complete(folder: Path, told: dict[str, Any]) -> None:
    if missing := told["missing_keys"]:
        # transformers would fill them with random numbers
        raise RewardlabError(f"{folder}: the checkpoint lacks the weight {min(missing)}")


def weight_names(folder: Path) -> list[str]:
    """The names of all weights in a checkpoint's safetensors files."""
    names: list[str] = []
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            names += tensors.keys()
    return names


def _head_weights(folder: Path) -> dict[str, Tensor]:
    """What is not of the trunk: the weights of `score` and `v_head`."""
    weights: dict[str, Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            weights |= {k: tensors.get_tensor(k) for k in tensors.keys() if k.startswith(("score.", "v_head.", "classifier."))}  # noqa: SIM118
    return weights


def linear(weights: dict[str, Tensor], name: str, dtype: torch.dtype) -> nn.Linear:
    """The linear layer of this name. Raises RewardlabError where the checkpoint has none, or one with more than two outputs."""
    weight = weights.get(f"{name}.weight")
    bias = weights.get(f"{name}.bias")
    if weight is None:
        raise NoScorer(f"it has no weight {name}.weight")
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None)
    layer.weight = nn.Parameter(weight)
    if bias is not None:
        layer.bias = nn.Parameter(bias)
    return layer.to(dtype)
