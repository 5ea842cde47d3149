"""vLLM on a server that `vllm serve` started, whose weights follow the policy's.

    VLLM_SERVER_DEV_MODE=1 vllm serve FOLDER --logprobs-mode processed_logprobs --hf-overrides '{"tie_word_embeddings": false}'
    VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve FOLDER --logprobs-mode processed_logprobs --enable-lora --max-lora-rank R

The first takes whole weights, FOLDER being any checkpoint of the same architecture. The second takes adapters, which are on the
weights in FOLDER. Both travel through a folder that the two of them read.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.core import Sampling
from rewardlab.errors import RewardlabError
from rewardlab.policies.vllm.exchange import Asked, Said, parameters, why, write_checkpoint
from rewardlab.settings.sampling import Settings
from rewardlab.util.extras import require

DEV_MODE = "VLLM_SERVER_DEV_MODE=1"
LORA_MODE = "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"


class Server:
    """The address of a vLLM server that serves one model."""

    def __init__(self, url: str, settings: Settings, policy: Any):
        require("served", "httpx2", what="a vLLM server as sampler")
        import httpx2

        self.url, self.settings, self.rank = url, settings, policy.adapter_rank
        limits = httpx2.Limits(max_connections=settings.concurrency)
        self.http = httpx2.Client(base_url=url, timeout=settings.timeout, limits=limits)
        self.model = self._only_model()
        self._made = None if settings.folder else tempfile.TemporaryDirectory(prefix="rewardlab-vllm-", ignore_cleanup_errors=True)
        self.folder, self._version = Path(settings.folder or self._made.name), 0  # type: ignore[union-attr]

    def load(self, policy: Any) -> None:
        self._version += 1
        folder = self.folder / f"weights-{self._version}"
        if self.rank:
            policy.save_adapter(folder)
            if self._version > 1:
                self._post("/v1/unload_lora_adapter", {"lora_name": self.model})
            # a name of its own for each version: what is kept of prompts is kept by name
            self.model = f"policy-{self._version}"
            self._post("/v1/load_lora_adapter", {"lora_name": self.model, "lora_path": str(folder.absolute())})
        else:
            write_checkpoint(policy, folder, weights=True)
            self._post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(folder.absolute())}})
            self._post("/reset_prefix_cache", None)
        shutil.rmtree(folder, ignore_errors=True)

    def sample(self, rows: Sequence[Asked], sampling: Sampling, ends: Sequence[int]) -> list[Said]:
        # `logprobs` counts here what is told beside the token that was sampled
        shared = {**parameters(sampling, ends), "model": self.model, "return_token_ids": True}
        del shared["detokenize"]
        bodies = [{**shared, "prompt": row.ids, "seed": row.seed} for row in rows]
        with ThreadPoolExecutor(self.settings.concurrency) as pool:
            return [_said(answer) for answer in pool.map(lambda body: self._post("/v1/completions", body), bodies)]

    def _only_model(self) -> str:
        found = [model["id"] for model in self._ask("GET", "/v1/models", None)["data"] if not model.get("parent")]
        if len(found) != 1:
            raise RewardlabError(
                f"the server at {self.url} serves {', '.join(found) or 'no model'}: the sampler needs one with one model"
            )
        return found[0]

    def _post(self, path: str, body: Mapping[str, Any] | None) -> Any:
        return self._ask("POST", path, body)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        import httpx2

        try:
            answer = self.http.request(method, path, json=body)
        except httpx2.HTTPError as e:
            raise RewardlabError(
                f"the vLLM server at {self.url} does not answer ({type(e).__name__}); start it and resume (--sampler names another)"
            ) from e
        if answer.status_code == 404 and path not in ("/v1/models", "/v1/completions"):
            raise RewardlabError(
                f"the vLLM server at {self.url} has no {path}, by which weights are handed over: start it with "
                f"{LORA_MODE if 'lora' in path else DEV_MODE} in its environment"
            )
        if answer.status_code >= 400:
            raise RewardlabError(f"the vLLM server at {self.url} refuses {path}: {answer.status_code} {answer.text[:300]}")
        return answer.json() if answer.headers.get("content-type", "").startswith("application/json") and answer.content else None


def _said(answer: Mapping[str, Any]) -> Said:
    choice = answer["choices"][0]
    if choice.get("token_ids") is None:
        raise RewardlabError("the server tells no ids of tokens (return_token_ids): it is no vLLM of version 0.32 or later")
    ids = np.asarray(choice["token_ids"], np.int64)
    logprobs = np.asarray(choice["logprobs"]["token_logprobs"], np.float32)
    return Said(ids, logprobs, why(choice["finish_reason"], choice.get("stop_reason")))
