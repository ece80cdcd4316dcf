"""The attention decoders of U2 and U2++: one reads left to right, an optional second one right to left.

They score whole hypotheses at once (teacher forcing): n hypotheses of one utterance attend to its
encoder frames as if they were one long query, so frames are projected once and never repeated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from oasr.models.conformer_config import DecoderConfig
from oasr.models.layers.activation import activation
from oasr.models.layers.attention import CrossAttention, SelfAttention
from oasr.models.layers.feed_forward import FeedForward
from oasr.models.layers.linear import Linear
from oasr.models.layers.mask import valid_frames
from oasr.models.layers.positions import Sinusoids

_LOGITS_AT_ONCE = 1 << 24


@dataclass(frozen=True, slots=True)
class Memory:
    """Encoder output that a batch of hypotheses attends to.

    Attributes:
        hidden: (B, S, width).
        lengths: (B,) int64 valid frames, on the host.
        mask: (B, 1, 1, S) bool valid frames; None = all are.
    """

    hidden: Tensor
    lengths: Tensor
    mask: Tensor | None

    @classmethod
    def of(cls, hidden: Tensor, lengths: Tensor) -> Memory:
        """With its mask; a row without frames keeps one visible (see `frame_masks`)."""
        valid = valid_frames(lengths.clamp_min(1), hidden.shape[1], hidden.device)
        return cls(hidden, lengths, None if valid is None else valid[:, None, None])


class DecoderLayer(nn.Module):
    """Causal self-attention, attention over the encoder, feed-forward."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.pre_norm = config.pre_norm
        self.attn_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.attn = SelfAttention(config.width, config.heads)
        self.cross_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.cross = CrossAttention(config.width, config.heads)
        self.ffn_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.ffn = FeedForward(config.width, config.ffn, activation(config.activation))

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """(B·n, L, width) → (B·n, L, width); rows of one utterance stand together."""
        inner = self.attn(self.attn_norm(x) if self.pre_norm else x, causal=True)
        x = x + inner if self.pre_norm else self.attn_norm(x + inner)
        inner = self._cross(self.cross_norm(x) if self.pre_norm else x, memory)
        x = x + inner if self.pre_norm else self.cross_norm(x + inner)
        inner = self.ffn(self.ffn_norm(x) if self.pre_norm else x)
        return x + inner if self.pre_norm else self.ffn_norm(x + inner)

    def _cross(self, x: Tensor, memory: Memory) -> Tensor:
        window = self.cross.project_window(memory.hidden, memory.lengths)
        # (B, n·L, width): all hypotheses of an utterance side by side.
        queries = x.reshape(len(memory.hidden), -1, x.shape[-1])
        return self.cross(queries, window, memory.mask).view_as(x)


class TransformerDecoder(nn.Module):
    """Embedding, layers, output map of one direction."""

    def __init__(self, config: DecoderConfig, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(config.vocab_size, config.width), requires_grad=False)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(layers))
        self.norm = nn.LayerNorm(config.width, eps=config.norm_eps) if config.pre_norm else None
        self.output = Linear(config.width, config.vocab_size)
        self.sinusoids = Sinusoids(config.width)

    def forward(self, tokens: Tensor, memory: Memory) -> Tensor:
        """(B·n, L) int64 inputs → (B·n, L, width) states before the output map."""
        x = self.embedding[tokens]
        x = x * math.sqrt(x.shape[-1]) + self.sinusoids(tokens.shape[1], x)
        for layer in self.layers:
            x = layer(x, memory)
        return x if self.norm is None else self.norm(x)

    def target_log_probs(self, states: Tensor, targets: Tensor) -> Tensor:
        """Log p of `targets` (M,) given `states` (M, width): (M,) float32.

        Logits are made in slices, because those of a long n-best over a large vocabulary would be
        the largest tensor of the whole run.
        """
        at_once = max(1, _LOGITS_AT_ONCE // len(self.embedding))
        parts = []
        for some, wanted in zip(states.split(at_once), targets.split(at_once), strict=True):
            logits = self.output(some).float()
            parts.append(logits.gather(-1, wanted[:, None])[:, 0] - logits.logsumexp(-1))
        return torch.cat(parts)


class BiTransformerDecoder(nn.Module):
    """One decoder or two, and the scores they give to hypotheses."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.left = TransformerDecoder(config, config.layers)
        self.right = TransformerDecoder(config, config.right_layers) if config.right_layers else None

    def memory(self, hidden: Tensor, lengths: Tensor) -> Memory:
        """Encoder output (B, S, width) and (B,) host lengths, ready to be attended to."""
        return Memory.of(hidden, lengths)

    def score(self, memory: Memory, hypotheses: Tensor, lengths: Tensor, reverse: bool = False) -> Tensor:
        """Sum of log p of each hypothesis and of the end after it.

        Args:
            memory: encoder output of B utterances.
            hypotheses: (B, n, L) int64 label ids, anything beyond each length.
            lengths: (B, n) int64 labels of each, on the same device.
            reverse: read each from its end, with the right-to-left decoder.

        Returns:
            (B, n) float64, on the device; -inf where an id is outside the decoder's vocabulary.
        """
        decoder = self.right if reverse else self.left
        if decoder is None:
            raise ValueError("this checkpoint has no right-to-left decoder")
        rows, size = hypotheses.flatten(0, 1), lengths.flatten()[:, None]
        index = torch.arange(rows.shape[1], device=rows.device)
        if reverse and rows.shape[1]:
            # Each is turned round within its own length; what the clamp repeats lies behind it.
            rows = rows.gather(1, (size - 1 - index).clamp_min(0))
        inside = index < size
        strange = (inside & ((rows < 0) | (rows >= self.config.vocab_size))).any(1)
        rows = rows.clamp(0, self.config.vocab_size - 1).masked_fill(~inside, self.config.eos_id)
        edge = rows.new_full((len(rows), 1), self.config.eos_id)
        states = decoder(torch.cat([edge.fill_(self.config.sos_id), rows], dim=1), memory)
        targets = torch.cat([rows, torch.full_like(edge, self.config.eos_id)], dim=1)
        log_probs = decoder.target_log_probs(states.flatten(0, 1), targets.flatten()).view_as(targets)
        # Column i predicts label i; the one behind the last label predicts the end, which padding was set to.
        scored = torch.cat([inside.new_ones(len(rows), 1), inside], dim=1)
        # In double: the sum over a long hypothesis must still tell it from its neighbours.
        total = log_probs.double().masked_fill(~scored, 0.0).sum(1)
        return total.masked_fill(strange, -torch.inf).view_as(lengths)
