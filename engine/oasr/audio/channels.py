"""Many channels → the ones that are transcribed.

"mix" takes the mean of all channels, an integer N (0 = the first) takes channel N, and "split" gives one
result a channel. A split row gets ids `<id>-ch0`, `<id>-ch1`, …; a recording with a single channel keeps its
id, so a list of mono files gives the same rows with and without "split".
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from oasr.errors import AudioError, OptionsError
from oasr.types import Utterance

Channel = int | str
"""Channel policy: "mix", "split" or a 0-based channel number."""

_STRIDE = 7
"""Powers are compared on every seventh frame: enough to tell silence from speech, at little cost."""
_CANCELLED = 1e-3
"""Mix power below this share of the loudest channel's: its channels are copies of opposite sign."""


def parse_channel(value: object) -> Channel:
    """`value` ("mix", "split", "0", 1…) as a policy.

    Raises:
        OptionsError: anything else.
    """
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("mix", "split"):
            return word
        # int() would also read the digits of other scripts, and refuses thousands in words of its own.
        value = int(word) if re.fullmatch("[0-9]{1,9}", word) else value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise OptionsError(f"channel: expected mix, split or a channel number from 0 on, got {value!r}")


class ChannelPicker:
    """Reduces the blocks of one recording by a policy and watches whether a mix cancels.

    Attributes:
        policy: what is done; with `falls_back`, a mix that has cancelled so far gives way to the loudest
            channel from the block on that shows it.
    """

    falls_back = False

    def __init__(self, policy: Channel, channels: int) -> None:
        """AudioError when the policy names a channel that a recording of `channels` channels lacks."""
        if isinstance(policy, int) and policy >= channels:
            raise AudioError(
                f"channel {policy} was asked for, the recording has {channels} (0 to {channels - 1})"
            )
        self.policy, self.channels = policy, channels
        self._mix_power = 0.0
        self._power = np.zeros(channels)

    @property
    def outputs(self) -> int:
        """Channels that `__call__` gives."""
        return self.channels if self.policy == "split" else 1

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """(n, channels) float32 → (n, outputs) float32."""
        if self.channels == 1 or self.policy == "split":
            return block
        if isinstance(self.policy, int):
            return block[:, self.policy : self.policy + 1]
        # Channel by channel: numpy takes ten times as long for the mean over so short an axis.
        mix = block[:, 0].copy()
        for c in range(1, self.channels):
            mix += block[:, c]
        mix *= np.float32(1 / self.channels)
        few, few_mixed = block[::_STRIDE], mix[::_STRIDE]
        # Summed over the whole recording so far: a moment in which channels happen to cancel is no sign.
        self._power += np.einsum("nc,nc->c", few, few)
        self._mix_power += float(np.einsum("n,n->", few_mixed, few_mixed))
        if self.falls_back and (loudest := self.loudest_if_cancelled()) is not None:
            self.policy = loudest
            return block[:, loudest : loudest + 1]
        return mix[:, None]

    def loudest_if_cancelled(self) -> int | None:
        """The loudest channel when the mix is silent and that channel is not, else None."""
        loudest = int(np.argmax(self._power))
        if self._power[loudest] > 0 and self._mix_power <= _CANCELLED * self._power[loudest]:
            return loudest
        return None


def split_rows(utterance: Utterance, channels: int) -> list[Utterance]:
    """One utterance a channel, in channel order; a mono recording stays as it is.

    The result row has the channel's number, too: an id of the list may end as those that are made here do.
    """
    if channels == 1:
        return [utterance]
    return [
        replace(
            utterance,
            id=f"{utterance.id}-ch{c}",
            part=c,
            parts=channels,
            channel=c,
            row={**utterance.row, "channel": c},
        )
        for c in range(channels)
    ]
