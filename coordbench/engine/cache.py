"""A cache of replies (opt-in): a rerun after a crash or a fix of the report costs nothing.

The key is everything that was asked: provider, model with its settings, endpoint, the whole
request, and the place in the episode with its seed, so that repeated samples stay distinct.
Failures are never cached.
"""

from __future__ import annotations

import os
import sqlite3
from hashlib import sha256
from pathlib import Path

import msgspec

from coordbench.api.models import ModelInfo, ModelReply, ModelRequest
from coordbench.data.errors import UsageError

__all__ = ["ReplyCache", "default_cache_path"]

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(ModelReply)
_BUSY_TIMEOUT_S = 30.0


def default_cache_path() -> Path:
    """`$XDG_CACHE_HOME/coordbench/replies.sqlite`, or under `~/.cache`."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "coordbench" / "replies.sqlite"


class ReplyCache:
    """Replies in one SQLite file, shared by processes.

    Parameters
    ----------
    path : Path
        Made where it does not exist.

    Raises
    ------
    UsageError
        The file cannot be opened or is no cache.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        opened: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            opened = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
            opened.execute("PRAGMA journal_mode=WAL")
            opened.execute("PRAGMA synchronous=NORMAL")
            opened.execute(
                "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply BLOB NOT NULL)"
                " WITHOUT ROWID"
            )
            self._db = opened
        except (OSError, sqlite3.Error) as error:
            if opened is not None:
                opened.close()
            raise UsageError(
                f"cannot use {path} as a reply cache: {error}",
                hint="name another file: --cache-file FILE",
            ) from error

    def key(self, name: str, info: ModelInfo, request: ModelRequest) -> bytes:
        """The key of a request to the model called `name`."""
        context = request.context
        place = None
        if context is not None:
            place = (context.episode_seed, context.round, context.seat, context.exchange)
        asked = (
            info.provider,
            info.model,
            info.endpoint,
            info.tool_mode,
            name,
            dict(info.settings),
            request.messages,
            request.tools,
            request.sampling,
            request.seed,
            request.force,
            place,
        )
        try:
            data = _ENCODER.encode(asked)
        except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
            data = repr(asked).encode("utf-8", "backslashreplace")
        return sha256(data).digest()

    def get(self, key: bytes) -> ModelReply | None:
        """The stored reply, or None; one that cannot be read counts as absent."""
        row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            return _DECODER.decode(row[0])
        except msgspec.DecodeError:
            return None

    def put(self, key: bytes, reply: bytes) -> None:
        """Store an encoded reply. A cache that cannot be written costs money, not the run."""
        try:
            self._db.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, reply))
        except sqlite3.Error:
            return

    def close(self) -> None:
        """Close the file."""
        self._db.close()
