"""Whisper's text decoder over per-row caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oasr.cache.decoder_state import DecoderState, can_merge, merge
from oasr.cache.windows import DenseWindow, Window, WindowStack
from oasr.models.interfaces import EncoderOutput
from oasr.models.layers.attention import CrossAttention, SelfAttention
from oasr.models.layers.feed_forward import FeedForward
from oasr.models.layers.linear import Linear
from oasr.models.layers.mask import valid_frames
from oasr.models.whisper_config import WhisperDims


class WhisperDecoderLayer(nn.Module):
    """Self-attention, cross-attention, feed-forward, each pre-norm and residual."""

    def __init__(self, dims: WhisperDims) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(dims.width)
        self.self_attn = SelfAttention(dims.width, dims.decoder_heads)
        self.cross_norm = nn.LayerNorm(dims.width)
        self.cross_attn = CrossAttention(dims.width, dims.decoder_heads)
        self.ffn_norm = nn.LayerNorm(dims.width)
        self.ffn = FeedForward(dims.width, dims.decoder_ffn)

    def prompt(self, x: Tensor, starts: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Self-attention of whole prompts (B, P, width): the new x, and the keys and values to cache."""
        q, k, v = self.self_attn.project(self.self_norm(x))
        return x + self.self_attn.over_prompt((q, k, v), starts, mask), k, v

    def step(self, x: Tensor, state: DecoderState, layer: int, mask: Tensor | None) -> Tensor:
        """Self-attention of one token (B, 1, width) over what `state` caches for `layer`."""
        q, k, v = self.self_attn.project(self.self_norm(x))
        state.write(layer, k, v)
        return x + self.self_attn.over_cache(q, state, layer, mask)

    def finish(self, x: Tensor, window: Window, mask: Tensor | None, starts: Tensor | None = None) -> Tensor:
        """Cross-attention over the encoder window, then feed-forward; `starts` as in `prompt`."""
        x = x + self.cross_attn(self.cross_norm(x), window, mask, starts)
        return x + self.ffn(self.ffn_norm(x))


class WhisperDecoder(nn.Module):
    """Tokens and an encoder window → logits of the next token.

    The output head is the token embedding itself; logits are float32 whatever the weights' dtype.
    """

    def __init__(self, dims: WhisperDims) -> None:
        super().__init__()
        # Drawing values that a checkpoint replaces would load torch's compiler: seconds, and 150 MB.
        tokens = torch.empty(dims.vocab_size, dims.width)
        self.tokens = nn.Embedding(dims.vocab_size, dims.width, _weight=tokens)
        self.positions = nn.Parameter(torch.empty(dims.decoder_positions, dims.width), requires_grad=False)
        self.layers = nn.ModuleList(WhisperDecoderLayer(dims) for _ in range(dims.decoder_layers))
        self.norm = nn.LayerNorm(dims.width)
        self.head = Linear(dims.width, dims.vocab_size, bias=False)
        self.head.weight = self.tokens.weight  # type: ignore[assignment]
        self.max_positions = dims.decoder_positions

    @property
    def _stack(self) -> list[WhisperDecoderLayer]:
        return cast("list[WhisperDecoderLayer]", list(self.layers))

    def prefill(
        self, tokens: Tensor, encoder_out: EncoderOutput, capacity: int, prompt_lens: Tensor | None = None
    ) -> tuple[Tensor, DecoderState]:
        """Run the prompts and open the caches.

        Args:
            tokens: (B, P) int64 prompts. Shorter prompts are padded on the left, with any id.
            encoder_out: hidden states (B, S, width) and their lengths.
            capacity: tokens to make room for, prompt included; the buffers grow beyond it.
            prompt_lens: (B,) int64 tokens of each prompt, on the host; None = all have P.

        Returns:
            (B, vocab) float32 logits after the last prompt token, and the state.
        """
        x, state = self._prefill(tokens, encoder_out, capacity, prompt_lens)
        return self._logits(x[:, -1]), state

    def prefill_probed(
        self, tokens: Tensor, encoder_out: EncoderOutput, capacity: int, prompt_lens: Tensor, probe: int
    ) -> tuple[Tensor, Tensor, DecoderState]:
        """As `prefill`, with the (B, vocab) float32 logits after prompt column `probe` in the middle."""
        x, state = self._prefill(tokens, encoder_out, capacity, prompt_lens)
        return self._logits(x[:, -1]), self._logits(x[:, probe]), state

    def _prefill(
        self, tokens: Tensor, encoder_out: EncoderOutput, capacity: int, prompt_lens: Tensor | None
    ) -> tuple[Tensor, DecoderState]:
        batch, width = tokens.shape
        self._check_depth(width if prompt_lens is None else int(prompt_lens.max()))
        starts = None
        if prompt_lens is not None and bool((prompt_lens < width).any()):
            starts = (width - prompt_lens).to(tokens.device)
        window, window_mask = self._open_window(encoder_out)
        x, mask = self._embed_prompt(tokens, starts)
        keys, values = [], []
        for layer, pair in zip(self._stack, window, strict=True):
            x, k, v = layer.prompt(x, starts, mask)
            keys.append(_buffer(k, capacity))
            values.append(_buffer(v, capacity))
            x = layer.finish(x, pair, window_mask, starts)
        # Packed windows know how much of them a row sees.
        dense = window_mask is not None and isinstance(window[0], DenseWindow)
        # Padding on the left is cached as well: `lens` counts it, and `starts` hides it.
        state = DecoderState(
            keys, values, window,
            lens=torch.full((batch,), width, dtype=torch.int64, device=tokens.device),
            starts=starts,
            cross_lens=encoder_out.lengths.to(tokens.device) if dense else None,
            width=width,
        )  # fmt: skip
        return x, state

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Append one token (B,) int64 to every row: (B, vocab) float32 logits. Mutates `state`.

        A row past the last position stays on it: rows that have finished may be carried along, and
        the caller's token budget keeps all others below.
        """
        state.reserve(state.width + 1)
        positions = state.positions().clamp_max(self.max_positions - 1)
        # (B, 1, width): the layers take sequences, here of one token.
        x = (self.tokens(tokens) + self.positions[positions])[:, None]
        mask, window_mask = state.step_mask(), state.cross_mask()
        for index, (layer, pair) in enumerate(zip(self._stack, state.cross, strict=True)):
            x = layer.step(x, state, index, mask)
            x = layer.finish(x, pair, window_mask)
        state.advance()
        return self._logits(x[:, 0])

    def row_bytes(self, tokens: int, frames: int) -> int:
        """Bytes of one row's caches with room for `tokens`, over a window of `frames` encoder frames."""
        # One frame tells what the projection keeps: packed kernels may store another type than the weights'.
        silence = self.positions.new_zeros(1, 1, self.positions.shape[1])
        window = frames * self._stack[0].cross_attn.project_window(silence, torch.ones(1)).nbytes
        own = 2 * tokens * self.positions.shape[1] * self.positions.element_size()
        return len(self._stack) * (own + window)

    def select(self, state: DecoderState, index: Tensor) -> DecoderState:
        """Rows `index` (int64) of `state`, repeats allowed, as a state of its own."""
        return state.select(index)

    def windows(self, state: DecoderState, index: Tensor) -> WindowStack:
        """The encoder windows of rows `index` (int64), for `cross_attention` after the rows have left."""
        return state.windows(index)

    def can_merge(self, a: DecoderState, b: DecoderState) -> bool:
        """Whether `merge` accepts the two states."""
        return can_merge(a, b)

    def merge(self, a: DecoderState, b: DecoderState) -> DecoderState:
        """Rows of `a` followed by rows of `b`."""
        return merge(a, b)

    def forward_teacher(self, tokens: Tensor, encoder_out: EncoderOutput) -> Tensor:
        """Score given tokens: (B, L) int64 → (B, L, vocab) float32, logits after each token."""
        self._check_depth(tokens.shape[1])
        window, window_mask = self._open_window(encoder_out)
        x, mask = self._embed_prompt(tokens, None)
        for layer, pair in zip(self._stack, window, strict=True):
            x = layer.finish(layer.prompt(x, None, mask)[0], pair, window_mask)
        return self._logits(x)

    def open_windows(self, encoder_out: EncoderOutput) -> WindowStack:
        """The encoder windows of a batch, as `prefill` opens them for its rows."""
        window, _ = self._open_window(encoder_out)
        return WindowStack(tuple(window), encoder_out.lengths.to(self.positions.device))

    def cross_attention(
        self, tokens: Tensor, windows: WindowStack, heads: Sequence[tuple[int, int]]
    ) -> Tensor:
        """Where some heads look while the decoder reads given tokens.

        Args:
            tokens: (B, L) int64; shorter rows are padded on the right, with any id.
            windows: of the same rows, as `DecoderState.windows` or `open_windows` give them.
            heads: (layer, head) pairs; layers above the last one named are not computed.

        Returns:
            (B, len(heads), L, S) float32 softmax over the frames that each row may see, the heads in
            the order of their layers.
        """
        self._check_depth(tokens.shape[1])
        wanted: dict[int, list[int]] = {}
        for number, head in sorted(heads):
            wanted.setdefault(number, []).append(head)
        window_mask, last = windows.mask(), max(wanted)
        x, mask = self._embed_prompt(tokens, None)
        weights = []
        for number, (layer, window) in enumerate(zip(self._stack, windows.layers, strict=True)):
            if number > last:
                break
            x = layer.prompt(x, None, mask)[0]
            if number in wanted:
                query = layer.cross_norm(x)
                weights.append(layer.cross_attn.weights(query, window, window_mask, wanted[number]))
            # Nobody looks at what the last wanted layer would pass on.
            if number < last:
                x = layer.finish(x, window, window_mask)
        return torch.cat(weights, dim=1)

    def _open_window(self, encoder_out: EncoderOutput) -> tuple[list[Window], Tensor | None]:
        """Each layer's keys and values of the encoder window, and the mask its padding needs."""
        hidden = encoder_out.hidden
        if hidden is None:
            raise ValueError("the Whisper decoder needs encoder hidden states, got none")
        valid = valid_frames(encoder_out.lengths, hidden.shape[1], hidden.device)
        mask = None if valid is None else valid[:, None, None]
        lengths = encoder_out.lengths
        return [layer.cross_attn.project_window(hidden, lengths) for layer in self._stack], mask

    def _embed_prompt(self, tokens: Tensor, starts: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """(B, P, width) embeddings and the (B, 1, P, P) mask; None = plain causal attention."""
        index = torch.arange(tokens.shape[1], device=tokens.device)
        if starts is None:
            return self.tokens(tokens) + self.positions[index], None
        positions = (index - starts[:, None]).clamp_min(0)
        visible = (index <= index[:, None]) & (index >= starts[:, None, None])
        # A padding query sees itself, so that no softmax runs over an empty set.
        visible |= torch.eye(tokens.shape[1], dtype=torch.bool, device=tokens.device)
        return self.tokens(tokens) + self.positions[positions], visible[:, None]

    def _logits(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x)).float()

    def _check_depth(self, depth: int) -> None:
        if depth > self.max_positions:
            raise ValueError(f"token {depth}: this decoder has {self.max_positions} positions")


def _buffer(x: Tensor, capacity: int) -> Tensor:
    """A (B, H, capacity, D) zero buffer that begins with `x` (B, H, P, D)."""
    return F.pad(x, (0, 0, 0, max(0, capacity - x.shape[2])))
