"""Seeds derived from one run seed, so that cells share episode seeds and can be paired."""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["call_seed", "derive_seed", "episode_seed"]


def derive_seed(*parts: int | str) -> int:
    """Derive a seed from named parts.

    Returns
    -------
    int
        In [0, 2**31): every provider's `seed` field accepts it.
    """
    text = "\x1f".join(str(part) for part in parts).encode("utf-8", "backslashreplace")
    return int.from_bytes(blake2b(text, digest_size=4).digest(), "big") & 0x7FFF_FFFF


def episode_seed(run_seed: int, n: int, episode: int) -> int:
    """Seed of one episode: a function of N and the index alone, never of the team or variant."""
    return derive_seed("episode", run_seed, n, episode)


def call_seed(episode_seed: int, round: int, seat: int, exchange: int = -1) -> int:
    """Seed of one model call. `exchange` is -1 for a decision, else the message round."""
    # A plain mix: hashing here would cost more than a scripted policy's whole decision.
    mixed = (episode_seed * 0x9E3779B1 + round * 0x85EBCA77 + seat * 0xC2B2AE3D) & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 0x2C1B3C6D + exchange * 0x297A2D39
    mixed &= 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 12)) * 0x297A2D39) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 15)) & 0x7FFF_FFFF
