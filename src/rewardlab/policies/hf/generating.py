"""How a transformers model samples: by its own `generate`, in calls for which there is memory, from what is known of prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rewardlab.core import Sampling, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.policies.hf.adapters import adapted, for_sampling
from rewardlab.policies.hf.kept import Given, empty_cache, fill, findable, keep, laid_out
from rewardlab.policies.hf.logit_ensemble import processors
from rewardlab.policies.hf.model import decoder_layers, reading
from rewardlab.policies.hf.prefill import cache_name, keeps_all, read_once
from rewardlab.policies.hf.sampling import Sampler
from rewardlab.policies.hf.sizes import ROWS, Sizes
from rewardlab.policies.kept import Found, Kept
from rewardlab.policies.replies import Replies
from rewardlab.policies.room import fitting_rows, in_parts, sampling_cost
from rewardlab.policies.text import TextPolicy
from rewardlab.policies.vectors import numbered


class Generating(Sizes, TextPolicy):
    """`extend` of a policy that transformers runs.

    static_cache: whether keys and values are sampled into tables of full length.
    """

    value_head: nn.Parameter | None
    device: torch.device
    static_cache: bool
    compiled = False
    """Whether transformers compiles steps over a static cache: it does so anew for each number of rows, or of tokens."""

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """Sample one reply for each trajectory."""
        if self.value_head is not None:
            raise RewardlabError(f"the model {self.name!r} has a value head and cannot generate")
        if (elsewhere := self._sampled_elsewhere(trajectories, sampling, rng)) is not None:
            return elsewhere
        if not trajectories:
            return []
        trajectories = self._begun(trajectories, rng)
        for t in trajectories:
            for member in (self, *(other for _, other in self._joined)):
                member.check_fits(t, sampling.max_new)
        vocab = self.model.config.get_text_config().vocab_size
        sampler = Sampler(Replies(self, len(trajectories), sampling, rng, vocab))
        prompts, vectors = numbered(trajectories, self._known, self._joined)
        model, kept = for_sampling(self.whole, self.dtype), self._usable(vectors)

        def sample(part: list[int]) -> None:
            for rows, found in _apart(part, prompts, kept):
                if not sampler.enough:
                    sampler.rows = np.array(rows)
                    with reading(model, vectors):
                        self._generate(model, [prompts[i] for i in rows], sampler, kept, found)

        def again(part: list[int]) -> None:
            sampler.restart(np.array(part))
            if kept is not None:
                # what can be computed anew makes room first
                kept.forget()

        fewer = in_parts(self._sampled_together(trajectories, sampling.max_new, kept), sample, again, self.alone)
        self.most_rows = fewer or self.most_rows
        self.count_generated(int(sampler.replies.count.sum()))
        return sampler.replies.added_to(trajectories)

    # ---- what is kept between calls ------------------------------------------------------------------------------------

    def _keeps(self) -> bool:
        return self._by_ids_alone and self.alone and keeps_all(self.model)

    _by_ids_alone = True
    """Whether keys and values of a text follow from its ids, where nothing is inserted."""

    def _usable(self, vectors: np.ndarray | None) -> Kept | None:
        """What is kept, if this call may use it and add to it: vectors that are numbered anew make other keys of the same ids."""
        if self._kept is None or self._joined or self._inserted is not None or vectors is not None:
            return None
        self._kept.begin(self.parameters())
        return self._kept

    # ---- calls of `generate` -------------------------------------------------------------------------------------------

    def _sampled_together(self, trajectories: Sequence[Trajectory], max_new: int, kept: Kept | None) -> list[list[int]]:
        """The rows of each call of `generate`: as many as there is memory for. What a row samples does not depend on the others."""
        # prompts of similar length go together, since they are padded to the longest on the left
        order = sorted(range(len(trajectories)), key=lambda i: len(trajectories[i]))
        lengths = [len(trajectories[i]) for i in order]

        def with_free(free: int) -> list[list[int]]:
            return fitting_rows(lengths, min(ROWS, self.most_rows), sampling_cost(self, max_new), free)

        most = with_free(1 << 62)
        # what is kept takes no memory that rows need, but makes room
        while (parts := with_free(self.free_memory())) != most and kept is not None and kept.drop_oldest():
            pass
        return [sorted(order[i] for i in part) for part in parts]

    def _generate(
        self, model: Any, prompts: list[np.ndarray], sampler: Sampler, kept: Kept | None = None, found: Sequence[Found] = ()
    ) -> None:
        """Sample a reply to each prompt.

        kept: what is computed is added to it.  found: where it holds the beginning of each prompt, if it does.
        """
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        given = laid_out(prompts, found)
        inside = None if self._nucleus is None else (self._nucleus, sorted(self.ends))
        added = processors(self._joined, self._candidates, given.mask.to(self.device), inside)
        chosen, over = LogitsProcessorList([*added, sampler]), StoppingCriteriaList([sampler.over])
        own_config, max_new = model.generation_config, sampler.replies.sampling.max_new
        # the checkpoint's own penalties and limits would change what is sampled without changing the log-probs
        model.generation_config = GenerationConfig()
        # greedy, because `Sampler` leaves a single token possible
        greedy = GenerationConfig(do_sample=False, max_new_tokens=max_new, pad_token_id=0)
        if self.static_cache:
            greedy.disable_compile = not self.compiled
        try:
            with torch.no_grad(), self._autocast(), self._changed(self._read_in_sampling(given.mask), model):
                ids, mask = given.ids.to(self.device), given.mask.to(self.device)
                cache = self._cache(model, prompts, given, max_new, kept, found)
                if cache is None and self.static_cache:
                    greedy.cache_implementation = "static"
                model.generate(
                    input_ids=ids, attention_mask=mask, generation_config=greedy, logits_processor=chosen,
                    stopping_criteria=over, **({} if cache is None else {cache_name(self.model.base_model): cache}),
                    # by itself, transformers would have the processes of a divided model wait for each other in every call
                    synced_gpus=False, **self._in_sampling(sampler.rows.tolist(), ids.shape[1]),
                )  # fmt: skip
        finally:
            model.generation_config = own_config
        if kept is not None:
            keep(kept, given, cache, sampler.replies, sampler.rows)

    def _in_sampling(self, rows: Sequence[int], width: int) -> dict[str, Any]:
        """What `generate` is given beside ids, of a table of the prompts of these rows."""
        return {}

    def _cache(
        self, model: Any, prompts: Sequence[np.ndarray], given: Given, max_new: int, kept: Kept | None, found: Sequence[Found]
    ) -> Any:
        """What `generate` samples into, with what is known of the prompts in it; None where it makes one by itself."""
        width = given.ids.shape[1]
        if not found and self._reads_once(width):
            once = read_once(model, prompts, given.ids.to(self.device), given.mask.to(self.device))
            if once is not None:
                return once
        if kept is None:
            return None
        cache = empty_cache(self.model, width + max_new if self.static_cache else None)
        if found:
            fill(cache, found, given.first)
        return cache

    def _reads_once(self, width: int) -> bool:
        """Whether prompts of several rows may be read once: nothing else decides or is inserted, and the cache grows."""
        plain = self._by_ids_alone and not self._joined and self._inserted is None
        return width > 1 and plain and self.alone and not self.static_cache

    def _read_in_sampling(self, mask: Tensor) -> Callable[[Tensor], Tensor]:
        """x (rows, t, hidden) -> (rows, t), which tokens are real: of prompts as `mask` says, and each sampled after them."""
        prompts = mask.bool().to(self.device)
        return lambda x: prompts if x.shape[1] == prompts.shape[1] > 1 else prompts[:, -1:].expand(-1, x.shape[1])

    @contextmanager
    def _changed(self, real: Callable[[Tensor], Tensor], whole: Any) -> Iterator[None]:
        """A context in which the model's forward pass has what is inserted after a layer, for the tokens where `real` (B, T)."""
        if self._inserted is None:
            yield
            return
        layer, change = self._inserted

        def hook(module: nn.Module, inputs: Any, output: Any) -> Any:
            x = output[0] if isinstance(output, tuple) else output
            at = real(x)
            changed = x.masked_scatter(at[:, :, None], change(x[at].float()).to(x.dtype))
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        model = whole.get_base_model() if adapted(whole) else whole
        handle = decoder_layers(model)[layer].register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    # ---- of the policy -------------------------------------------------------------------------------------------------

    @property
    def _known(self) -> int:
        """The ids that have embeddings."""
        return len(self.model.get_input_embeddings().weight)

    def _autocast(self, cached: bool = True) -> torch.autocast:
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32, cache_enabled=cached)


def _apart(part: Sequence[int], prompts: Sequence[np.ndarray], kept: Kept | None) -> Iterator[tuple[list[int], list[Found]]]:
    """The rows of a call of which nothing is kept, and those of which something is, with where that is."""
    found = {row: None if kept is None else findable(kept, prompts[row]) for row in part}
    if anew := [row for row, one in found.items() if one is None]:
        yield anew, []
    if begun := {row: one for row, one in found.items() if one is not None}:
        yield list(begun), list(begun.values())
