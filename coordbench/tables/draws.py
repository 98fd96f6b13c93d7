"""Counter-based randomness: every draw is a hash of the seed and where it is used.

Nothing is consumed, so a draw does not depend on which draws came before it or on the order of
seats, and an array of tables makes the same draws at once. The hash is SplitMix64's finaliser
(Steele, Lea & Flood 2014, *Fast splittable pseudorandom number generators*).
"""

from __future__ import annotations

__all__ = ["Draws", "mix64"]

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_GOLDEN = 0x9E37_79B9_7F4A_7C15
_TIE = 0x7469_6521
_TURN = 0x7475_726E


def mix64(value: int) -> int:
    """SplitMix64's finaliser on a 64-bit value."""
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
    return value ^ (value >> 31)


class Draws:
    """All random draws of one episode.

    Parameters
    ----------
    seed : int
        The episode seed, >= 0.
    """

    __slots__ = ("seed",)

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def _draw(self, salt: int, round: int, index: int) -> int:
        return mix64(mix64(mix64(self.seed ^ (salt << 32)) ^ round) ^ index)

    def coin(self, round: int, fork: int) -> bool:
        """Who gets `fork` when both neighbours reach for it in `round` (1-based).

        True: the seat whose left fork it is (seat `fork`); False: the other one.
        """
        return bool(self._draw(_TIE, round, fork) >> 63)

    def permutation(self, round: int, n: int) -> tuple[int, ...]:
        """The order of turns in `round`: seats sorted by their draws."""
        return tuple(sorted(range(n), key=lambda seat: (self._draw(_TURN, round, seat), seat)))
