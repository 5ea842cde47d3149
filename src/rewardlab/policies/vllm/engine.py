"""vLLM in this process.

It is started with the model's configuration alone, and takes its weights from the policy: nothing goes through a disk. Adapters are
handed over by themselves, as files in a folder of this machine's memory where there is one, on weights that stay as they are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rewardlab.core import Sampling
from rewardlab.errors import RewardlabError
from rewardlab.policies.vllm.exchange import Asked, Said, cast, parameters, untied, why, write_checkpoint
from rewardlab.settings.sampling import Settings
from rewardlab.util.progress import console

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks of adapters that vLLM makes room for."""
MEMORY = Path("/dev/shm")


class InProcess:
    """vLLM's `LLM`, whose weights follow the policy's."""

    def __init__(self, settings: Settings, policy: Any):
        self.rank = policy.adapter_rank
        self._folder = tempfile.TemporaryDirectory(
            prefix="rewardlab-vllm-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None, ignore_cleanup_errors=True
        )
        self._adapter: Any = None
        self._adapters = 0
        self.dtype = policy.dtype
        self.llm = self._start(settings, policy)

    def _start(self, settings: Settings, policy: Any) -> Any:
        # weights are handed over as tensors, which another process could not be sent
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        from vllm import LLM

        folder = self.folder / "model"
        write_checkpoint(policy, folder, weights=bool(self.rank))
        on_cpu = policy.device.type == "cpu"
        options: dict[str, Any] = {"load_format": "dummy"}
        if self.rank:
            options = {"enable_lora": True, "max_loras": 1, "max_lora_rank": min(r for r in RANKS if r >= self.rank)}
        if on_cpu:
            options["kv_cache_memory_bytes"] = int(settings.cache * 2**30)
        else:
            options["gpu_memory_utilization"] = settings.memory
        console.print("vLLM starts ...", highlight=False)
        # vLLM seeds all of this process, whose own random numbers are not to depend on who samples
        state = torch.get_rng_state(), np.random.get_state()
        try:
            return LLM(
                str(folder), dtype=str(self.dtype).removeprefix("torch."), seed=0, generation_config="vllm",
                logprobs_mode="processed_logprobs", max_num_seqs=settings.rows, enable_prefix_caching=True,
                max_model_len=min(settings.context or policy.context, policy.context),
                enforce_eager=on_cpu if settings.eager is None else settings.eager, **options,
            )  # fmt: skip
        except (ValueError, RuntimeError) as e:
            raise RewardlabError(f"vLLM cannot run this model: {str(e).strip().splitlines()[0]}") from e
        finally:
            torch.set_rng_state(state[0])
            np.random.set_state(state[1])

    @property
    def folder(self) -> Path:
        return Path(self._folder.name)

    def load(self, policy: Any) -> None:
        if self.rank:
            self._adapter = self._saved_adapter(policy)
        else:
            weights = cast(untied(policy.named_weights()), self.dtype)
            self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
        # keys and values of prompts that were read with the weights of before
        self.llm.reset_prefix_cache()

    def _saved_adapter(self, policy: Any) -> Any:
        from vllm.lora.request import LoRARequest

        # vLLM knows adapters by their numbers, and would take a new one under an old number for the old one
        self._adapters += 1
        policy.save_adapter(folder := self.folder / "adapter")
        if self._adapter is not None:
            self.llm.llm_engine.remove_lora(self._adapter.lora_int_id)
        request = LoRARequest(f"policy-{self._adapters}", self._adapters, str(folder))
        # read now, since the next adapter is written to the same folder
        self.llm.llm_engine.add_lora(request)
        return request

    def sample(self, rows: Sequence[Asked], sampling: Sampling, ends: Sequence[int]) -> list[Said]:
        from vllm import SamplingParams

        params = [SamplingParams(seed=row.seed, **parameters(sampling, ends)) for row in rows]
        done = self.llm.generate(
            [{"prompt_token_ids": row.ids} for row in rows], params, use_tqdm=False, lora_request=self._adapter
        )  # fmt: skip
        return [self._said(one.outputs[0]) for one in done]

    def _said(self, output: Any) -> Said:
        ids = np.asarray(output.token_ids, np.int64)
        logprobs = np.asarray([at[i].logprob for at, i in zip(output.logprobs, ids.tolist(), strict=True)], np.float32)
        return Said(ids, logprobs, why(output.finish_reason, output.stop_reason))
