"""Request bodies as bytes: strict JSON, whatever text is in them."""

from __future__ import annotations

from typing import Any

import msgspec

from coordbench.data import strictjson

__all__ = ["encode_body"]

_ENCODER = msgspec.json.Encoder()


def encode_body(body: Any) -> bytes:
    """Encode a request's body. Lone surrogates, which a model may have sent, are escaped."""
    try:
        return _ENCODER.encode(body)
    except UnicodeEncodeError:
        return strictjson.encode(body)
