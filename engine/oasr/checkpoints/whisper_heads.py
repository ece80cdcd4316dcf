"""Heads that follow the speech, for checkpoint files that do not name them.

The released `.pt` files hold weights and sizes alone. OpenAI publishes the heads of each released size beside
them (openai-whisper, MIT licence; the configurations of the converted models repeat them). Two releases,
large-v1 and large-v2, cannot be told apart by their sizes and are left out: for them, as for any other
size, all heads of the decoder's upper half are used.
"""

from __future__ import annotations

from oasr.models.whisper_config import WhisperDims

Heads = dict[int, tuple[int, ...]]

# (decoder layers, width, vocabulary) → layer → heads.
_RELEASED: dict[tuple[int, int, int], Heads] = {
    (4, 384, 51864): {1: (0,), 2: (0, 5), 3: (0, 1, 2, 3, 4)},
    (4, 384, 51865): {2: (2,), 3: (0, 2, 3, 4, 5)},
    (6, 512, 51864): {3: (3,), 4: (7,), 5: (1, 5, 7)},
    (6, 512, 51865): {3: (1,), 4: (2, 3, 7), 5: (1, 2, 4, 6)},
    (12, 768, 51864): {
        6: (6,), 7: (0, 3, 8), 8: (2, 5, 7), 9: (0, 4, 8, 10), 10: (0, 1, 2, 3, 6, 11), 11: (2, 4),
    },
    (12, 768, 51865): {5: (3, 9), 8: (0, 4, 7, 8), 9: (0, 7, 9), 10: (5,)},
    (24, 1024, 51864): {
        11: (4,), 14: (1, 12, 14), 15: (4,), 16: (0, 4, 9), 17: (12, 14), 18: (7, 10, 15),
        20: (0, 3, 9, 14), 21: (12,),
    },
    (24, 1024, 51865): {13: (15,), 15: (4, 15), 16: (1,), 20: (0,), 23: (4,)},
    (32, 1280, 51866): {
        7: (0,), 10: (17,), 12: (18,), 13: (12,), 16: (1,), 17: (14,), 19: (11,), 21: (4,), 24: (1,),
        25: (6,),
    },
    (4, 1280, 51866): {2: (4, 11), 3: (3, 6, 11, 14)},
}  # fmt: skip


def released_heads(dims: WhisperDims) -> tuple[tuple[int, int], ...]:
    """(layer, head) pairs of the released model of these sizes; none for other sizes."""
    found = _RELEASED.get((dims.decoder_layers, dims.width, dims.vocab_size), {})
    return tuple((layer, head) for layer, heads in found.items() for head in heads)
