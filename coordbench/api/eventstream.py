"""Server-sent events as the JSON they carry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from coordbench.api.models import ModelError

__all__ = ["events_of"]

_FIELDS = ("event:", "id:", "retry:", ":")
_END = "[DONE]"


def events_of(lines: Iterable[str]) -> Iterator[Any]:
    """The JSON of each data line of a stream that has one event a line.

    Parameters
    ----------
    lines : iterable of str
        With or without `data:` in front; comments and other fields of the protocol are skipped.

    Raises
    ------
    ModelError
        `stream_incomplete`: a line is no JSON, as where the connection broke within it.
    """
    for line in lines:
        data = line.strip()
        if not data or data.startswith(_FIELDS):
            continue
        data = data.removeprefix("data:").strip()
        if data == _END:
            return
        if not data:
            continue
        try:
            yield json.loads(data)
        except (ValueError, RecursionError) as error:
            text = f"a line of the stream is no JSON: {error}"
            raise ModelError("stream_incomplete", text, retry=True) from error
