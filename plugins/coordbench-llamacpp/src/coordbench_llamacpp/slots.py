"""Which slot of the server answers a call, and what is in it already.

A seat's calls go back to the slot that holds its conversation. A slot that is new to a system
prompt gets it, computed once and saved, from a file: milliseconds in place of the seconds that
computing it in each slot would take.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Post", "Slots"]

Post = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]]
"""Posts JSON to a path of the server; None where it was refused."""

_MOST_BYTES = 1 << 30
"""Of saved system prompts; beyond it the oldest are forgotten."""


class Slots:
    """The slots of one started server.

    Parameters
    ----------
    number : int
        Of slots.
    folder : Path
        Where the server saves their states.
    """

    def __init__(self, number: int, folder: Path) -> None:
        self._free = list(range(number))
        self._folder = folder
        self._talks: list[Hashable] = [None] * number
        self._prefixes: list[Hashable] = [None] * number
        self._saves: dict[Hashable, asyncio.Future[_Saved | None]] = {}
        self._names = map("prefix-{}".format, count())

    def take(self, talk: Hashable) -> int | None:
        """A free slot: the one that holds this conversation, else the one longest unused.

        None where all are taken: the server then finds one itself.
        """
        if not self._free:
            return None
        known = [slot for slot in self._free if self._talks[slot] == talk]
        slot = known[0] if known and talk is not None else self._free[0]
        self._free.remove(slot)
        self._talks[slot] = talk
        return slot

    def give_back(self, slot: int) -> None:
        """The call of this slot has ended."""
        self._free.append(slot)

    async def prime(
        self, slot: int, prefix: Hashable, text: Callable[[], Awaitable[str]], post: Post
    ) -> None:
        """See that the slot begins with this prefix. Where that fails it is computed as usual.

        Parameters
        ----------
        prefix : hashable
            Stands for the prefix.
        text : callable
            Renders it; called once for each prefix.
        """
        if self._prefixes[slot] == prefix:
            return
        save = self._saves.get(prefix)
        first = save is None or save.cancelled()
        if save is None or first:
            save = asyncio.ensure_future(self._save(slot, text, post))
            self._saves[prefix] = save
        try:
            saved = await asyncio.shield(save)
        except Exception:
            self._saves.pop(prefix, None)
            raise
        if saved is None:
            return
        if not first:
            path = f"/slots/{slot}?action=restore"
            if await post(path, {"filename": saved.name}) is None:
                return
        self._prefixes[slot] = prefix
        self._forget_old()

    async def _save(
        self, slot: int, text: Callable[[], Awaitable[str]], post: Post
    ) -> _Saved | None:
        prompt = await text()
        evaluate = {"prompt": prompt, "n_predict": 0, "id_slot": slot, "cache_prompt": True}
        if not prompt or await post("/completion", evaluate) is None:
            return None
        name = next(self._names)
        saved = await post(f"/slots/{slot}?action=save", {"filename": name})
        return None if saved is None else _Saved(name, int(saved.get("n_written", 0)))

    def _forget_old(self) -> None:
        saved = [
            (prefix, save.result())
            for prefix, save in self._saves.items()
            if save.done() and not save.cancelled() and save.exception() is None
        ]
        total = sum(one.size for _, one in saved if one is not None)
        for prefix, one in saved[:-1]:
            if one is not None and total > _MOST_BYTES:
                total -= one.size
                del self._saves[prefix]
                with contextlib.suppress(OSError):
                    (self._folder / one.name).unlink()


class _Saved(NamedTuple):
    name: str
    size: int
