"""The header of a GGUF file: what must be known of a model before it is loaded.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3,
little-endian.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["GgufError", "ModelFile", "read_header", "read_model_file"]

_MAGIC = b"GGUF"
_STRING, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    _BOOL: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_LONGEST_ARRAY = 4096
"""Of numbers, that is read; longer ones, and all of strings, belong to tokenizers."""
_BYTES_PER_NUMBER = 2
"""Of the cache of keys and values: half-precision floats."""


class GgufError(ValueError):
    """The file is no GGUF file, or a damaged one."""


class ModelFile(msgspec.Struct, frozen=True):
    """What a GGUF file says of itself.

    Attributes
    ----------
    kind : str
        `model`, or `adapter`.
    context : int
        Tokens that it was trained for; 0 where it does not say.
    bytes_per_token : int
        That a token of context takes in memory, at most.
    template : str
        Its chat template; empty where it has none.
    """

    path: Path
    kind: str
    architecture: str
    context: int = 0
    bytes_per_token: int = 0
    template: str = ""


def read_model_file(path: Path) -> ModelFile:
    """Read what must be known.

    Raises
    ------
    GgufError
    OSError
    """
    header = read_header(path)
    architecture = str(header.get("general.architecture") or "")
    if not architecture:
        raise GgufError("it names no architecture")
    return ModelFile(
        path=path,
        kind=str(header.get("general.type") or "model"),
        architecture=architecture,
        context=_whole(header.get(f"{architecture}.context_length")),
        bytes_per_token=_bytes_per_token(header, architecture),
        template=str(header.get("tokenizer.chat_template") or ""),
    )


def read_header(path: Path) -> dict[str, Any]:
    """Key-value pairs of the header; long arrays and arrays of strings are left out.

    Raises
    ------
    GgufError
        It is no GGUF file, one of another version, or one that ends within its header.
    """
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise GgufError("it is no GGUF file: its first four bytes are not GGUF")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(data).header()
            except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
                raise GgufError("its header is damaged or cut short") from error


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 4

    def header(self) -> dict[str, Any]:
        version = self.number("<I")
        if version not in (2, 3):
            raise GgufError(f"it is of GGUF version {version}; 2 and 3 can be read")
        self.number("<Q")
        pairs: dict[str, Any] = {}
        for _ in range(self.number("<Q")):
            key = self.string()
            value = self.value(self.number("<I"))
            if value is not None:
                pairs[key] = value
        return pairs

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array()
        if kind not in _SCALARS:
            raise GgufError(f"its header holds a value of the unknown type {kind}")
        return self.number(_SCALARS[kind])

    def array(self) -> list[Any] | None:
        kind, count = self.number("<I"), self.number("<Q")
        if kind in _SCALARS and count > _LONGEST_ARRAY:
            self.move(count * struct.calcsize(_SCALARS[kind]))
            return None
        if kind == _STRING:
            for _ in range(count):
                self.move(self.number("<Q"))
            return None
        return [self.value(kind) for _ in range(count)]

    def string(self) -> str:
        length = self.number("<Q")
        start = self.at
        self.move(length)
        return self.data[start : self.at].decode("utf-8")

    def number(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def move(self, length: int) -> None:
        self.at += length
        if self.at > len(self.data):
            raise IndexError


def _bytes_per_token(header: dict[str, Any], architecture: str) -> int:
    """Keys and values of every layer, for every head that has its own."""

    def field(name: str) -> Any:
        return header.get(f"{architecture}.{name}")

    layers, width = _whole(field("block_count")), _whole(field("embedding_length"))
    heads = _most(field("attention.head_count"))
    head = width // heads if heads else 0
    key = _whole(field("attention.key_length")) or head
    value = _whole(field("attention.value_length")) or head
    shared = field("attention.head_count_kv")
    if isinstance(shared, list):
        return (key + value) * sum(map(_whole, shared)) * _BYTES_PER_NUMBER
    return layers * (key + value) * (_whole(shared) or heads) * _BYTES_PER_NUMBER


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _most(value: Any) -> int:
    return max(map(_whole, value), default=0) if isinstance(value, list) else _whole(value)
