"""Prompts and raw replies, by hash.

One pack per cell, a JSON line per blob: an episode with hundreds of calls then costs one fsync,
where a file per blob would cost hundreds. A blob that several episodes share is stored once.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from coordbench.data.errors import StoreError

__all__ = ["BlobPack", "decode_blob", "encode_blobs", "index_blobs"]

_PREFIX = b'{"sha256":"'
_HASH_LENGTH = 64
_ENCODER = msgspec.json.Encoder()


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    sha256: str
    text: str | None = None
    base64: str | None = None


_DECODER = msgspec.json.Decoder(_Line)


def encode_blobs(blobs: Mapping[str, bytes]) -> bytes:
    """Lines of a pack. Bytes that are not UTF-8 are written as base64."""
    lines = []
    for digest, data in blobs.items():
        try:
            line = _Line(digest, text=data.decode("utf-8"))
        except UnicodeDecodeError:
            line = _Line(digest, base64=base64.b64encode(data).decode("ascii"))
        lines.append(_ENCODER.encode(line))
    return b"".join(line + b"\n" for line in lines)


def decode_blob(line: bytes) -> tuple[str, bytes]:
    """Hash and bytes of one line of a pack.

    Raises
    ------
    ValueError
        It is no such line, or its bytes are not those that the hash is of.
    """
    found = _DECODER.decode(line)
    if found.text is not None:
        data = found.text.encode("utf-8")
    else:
        try:
            data = base64.b64decode(found.base64 or "", validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
    if sha256(data).hexdigest() != found.sha256:
        raise ValueError("its bytes are not those that were stored")
    return found.sha256, data


def index_blobs(path: Path) -> tuple[dict[str, int], int]:
    """Hash -> offset of its line, and the bytes up to the end of the last whole line."""
    found: dict[str, int] = {}
    offset = 0
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                if line.startswith(_PREFIX):
                    digest = line[len(_PREFIX) : len(_PREFIX) + _HASH_LENGTH]
                    found[digest.decode("ascii", "replace")] = offset
                offset += len(line)
    return found, offset


class BlobPack:
    """Reads one cell's blobs; the index is made at the first look.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._index: dict[str, int] | None = None

    def get(self, digest: str) -> bytes:
        """The blob with this SHA-256.

        Raises
        ------
        StoreError
            There is none, its line cannot be read, or its bytes have another hash.
        """
        if self._index is None:
            self._index, _ = index_blobs(self.path)
        offset = self._index.get(digest)
        if offset is None:
            raise StoreError(f"{self.path}: no blob {digest}")
        with self.path.open("rb") as file:
            file.seek(offset)
            line = file.readline()
        try:
            return decode_blob(line)[1]
        except ValueError as error:
            raise StoreError(f"{self.path}: blob {digest} cannot be read: {error}") from error
