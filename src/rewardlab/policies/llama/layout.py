"""Convert a table of texts to one flat list of tokens and back. A prompt that neighbouring rows share is computed once."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.policies.llama.attention import attention, causal_attention
from rewardlab.policies.packing import rounded, scatter, unflatten

LEAST_SAVED = 0.1
"""The least share of tokens to be saved by computing shared prompts once: copying their keys and values to each row costs time."""


class Layout:
    """Which tokens of a table (B, T) are computed, in which order.

    ids, positions: (n,) of the flat tokens: `real` tokens, and `extra` ones that pad n to a round number;
    where: (m,) indices of real tokens in the flattened table, None if it is full;
    flat: (m,) the flat token at each of these indices, None if they are the same (no token is shared).
    """

    def __init__(self, ids: Tensor, length: Tensor):
        self.rows, self.width = ids.shape
        column = torch.arange(self.width, device=ids.device)
        real = (column < length[:, None]).view(-1)
        self.where = None if bool(real.all()) else real.nonzero().squeeze(1)
        self.flat: Tensor | None = None
        positions = column.repeat(self.rows)
        self._compute(*(x if self.where is None else x[self.where] for x in (ids.reshape(-1), positions)))

    def _compute(self, ids: Tensor, positions: Tensor) -> None:
        # rounded up, so that matrix products have few sizes (see `rounded`)
        self.real, self.extra = len(ids), rounded(len(ids)) - len(ids)
        self.ids, self.positions = (F.pad(x, (0, self.extra)) for x in (ids, positions))

    def table(self, x: Tensor) -> Tensor:
        """Flat values (n, ...) as a table (B, T, ...), zeros on the right."""
        x = x[: self.real] if self.flat is None else x.index_select(0, self.flat)
        return unflatten(x, self.where, self.rows, self.width)

    def flat_of(self, place: Tensor) -> Tensor:
        """The flat tokens at these indices of the flattened table."""
        if self.where is not None:
            # `where` is sorted, so the rank of an index in it is its flat token
            place = torch.searchsorted(self.where, place)
        return place if self.flat is None else self.flat[place]

    def seen(self) -> Tensor:
        """(real, 4): which flat tokens each one sees, of a shared prompt (from, to) and of its own text (from, to), itself last."""
        at, positions = torch.arange(self.real, device=self.ids.device), self.positions[: self.real]
        none = torch.zeros_like(at)
        return torch.stack((none, none, at - positions, at + 1), 1)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        a = causal_attention(self.table(q), self.table(k), self.table(v))
        a = a.reshape(self.rows * self.width, *a.shape[2:])
        if self.where is None and not self.extra:
            return a
        # the extra tokens read index 0: any value will do, since nothing reads theirs
        where = torch.arange(len(a), device=a.device) if self.where is None else self.where
        return a.index_select(0, F.pad(where, (0, self.extra)))


class SharedLayout(Layout):
    """Flat tokens are the shared prompts, each once, then the rest of each row (all of a row that shares nothing).

    shared: (B,) how many leading tokens a row shares; owner: (B,) the index of the prompt it shares; heads: (P,) its first row.
    Replies attend to the keys of their prompt, copied to each of its rows, and to their own; backward adds the copies' gradients.
    """

    def __init__(self, ids: Tensor, length: Tensor, shared: Tensor, owner: Tensor, heads: Tensor):
        super().__init__(ids, length)
        self.owner, self.prompts, column = owner, len(heads), torch.arange(self.width, device=ids.device)
        self.prompt_width, self.reply_width = int(shared.max()), int((length - shared).max())
        in_prompt = column[: self.prompt_width] < shared[heads, None]
        at = shared[:, None] + torch.arange(self.reply_width, device=ids.device)
        in_reply = at < length[:, None]
        self.prompt_places, self.reply_places = (x.view(-1).nonzero().squeeze(1) for x in (in_prompt, in_reply))
        # past a row's end `gather` needs a valid column; `in_reply` leaves these tokens out
        at = at.clamp(max=self.width - 1)
        self._compute(
            torch.cat((ids[heads, : self.prompt_width][in_prompt], ids.gather(1, at)[in_reply])),
            torch.cat((column[: self.prompt_width].expand_as(in_prompt)[in_prompt], at[in_reply])),
        )
        self.flat = self._flat_of_all(in_prompt, in_reply, shared)
        self.visible = self._visible(shared)
        self.shared, self.lengths = (shared, shared[heads]), length - shared

    def _flat_of_all(self, in_prompt: Tensor, in_reply: Tensor, shared: Tensor) -> Tensor:
        n = len(self.prompt_places)
        # cumsum - 1 over the mask numbers its tokens: (P, Tp) and (B, Tr) tables of flat tokens
        prompt = (in_prompt.view(-1).cumsum(0) - 1).view(in_prompt.shape)[self.owner]
        reply = (in_reply.view(-1).cumsum(0) - 1 + n).view(in_reply.shape)
        column = torch.arange(self.width, device=shared.device).expand(self.rows, -1)
        of_reply = reply.gather(1, (column - shared[:, None]).clamp(0, self.reply_width - 1))
        of_prompt = F.pad(prompt, (0, self.width - self.prompt_width))
        flat = torch.where(column < shared[:, None], of_prompt, of_reply).reshape(-1)
        return flat if self.where is None else flat[self.where]

    def _visible(self, shared: Tensor) -> Tensor:
        """(B, R, P + R) bool: which keys of its prompt (all) and of its reply (up to itself) a token of a reply may attend to."""
        reply = torch.ones(self.reply_width, self.reply_width, dtype=torch.bool, device=shared.device).tril()
        prompt = torch.arange(self.prompt_width, device=shared.device) < shared[:, None]
        return torch.cat((prompt[:, None].expand(-1, self.reply_width, -1), reply.expand(self.rows, -1, -1)), 2)

    def seen(self) -> Tensor:
        of_row, of_prompt = self.shared
        seen, n = super().seen(), len(self.prompt_places)
        row = torch.repeat_interleave(self.lengths)
        seen[n:, 2] += of_row[row]  # positions count from the start of the prompt, which lies elsewhere
        seen[n:, 0] = (of_prompt.cumsum(0) - of_prompt)[self.owner[row]]
        seen[n:, 1] = seen[n:, 0] + of_row[row]
        return seen

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        prompt_tokens = len(self.prompt_places)
        pq, pk, pv = (scatter(x[:prompt_tokens], self.prompt_places, self.prompts, self.prompt_width) for x in (q, k, v))
        rq, rk, rv = (scatter(x[prompt_tokens : self.real], self.reply_places, self.rows, self.reply_width) for x in (q, k, v))
        keys, values = (torch.cat((p.index_select(0, self.owner), r), 1) for p, r in ((pk, rk), (pv, rv)))
        of_prompts, of_replies = causal_attention(pq, pk, pv), attention(rq, keys, values, self.visible)
        return torch.cat(
            (
                of_prompts.flatten(0, 1).index_select(0, self.prompt_places),
                of_replies.flatten(0, 1).index_select(0, F.pad(self.reply_places, (0, self.extra))),
            )
        )


def layout(ids: Tensor, length: Tensor, mask: Tensor) -> Layout:
    """The cheaper layout of these rows. Only what comes before a row's first decision (`mask`) can be shared."""
    shared, owner, heads = shared_prompts(ids, length, mask)
    saved = shared.sum() - shared[heads].sum()
    if int(saved) < LEAST_SAVED * int(length.sum()):
        return Layout(ids, length)
    return SharedLayout(ids, length, shared, owner, heads)


def shared_prompts(ids: Tensor, length: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(B,) leading tokens in common with a neighbour, (B,) which run of neighbours a row is in, and the first row of each run."""
    column = torch.arange(ids.shape[1], device=ids.device)
    # a row without a decision is all prompt, but for its last token: a layout has something besides prompts in it
    prompt = torch.where(mask.any(1), mask.int().argmax(1), length - 1)
    # only neighbours are compared: the rows of a group are next to each other, and all pairs would cost B^2 T
    alike = ((ids[1:] == ids[:-1]) | (column >= prompt[1:, None])).all(1) & (prompt[1:] == prompt[:-1])
    starts = F.pad(~alike, (1, 0), value=True)
    owner = starts.cumsum(0) - 1
    # a run of one row shares nothing: all its tokens count as reply
    alone = torch.bincount(owner)[owner] == 1
    return prompt.masked_fill(alone, 0), owner, starts.nonzero().squeeze(1)
