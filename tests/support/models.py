"""Models whose every answer a test decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from coordbench.api import ModelError, ModelInfo, ModelReply, ModelRequest, RawCall, Usage

Answer = Callable[[ModelRequest, int], ModelReply | Exception]


def call_of(request: ModelRequest, action: str) -> ModelReply:
    """A clean native call of `action`, by the wire name in the request."""
    name = next(tool.name for tool in request.tools if tool.action == action)
    return ModelReply(
        stop="tool_calls",
        calls=(RawCall(name=name, arguments="{}", id="c1"),),
        usage=Usage(input_tokens=100, output_tokens=10),
    )


class FakeModel:
    """Answers by a function of the request and the number of the call (from 0)."""

    def __init__(self, answer: Answer, *, delay_s: float = 0.0, **info: object) -> None:
        fields: dict[str, object] = {"provider": "fake", "model": "fake", "max_in_flight": 64}
        self._info = ModelInfo(**(fields | info))  # type: ignore[arg-type]
        self._answer = answer
        self._delay_s = delay_s
        self.calls = 0
        self.now = 0
        self.most = 0
        self.closed = 0

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def complete(self, request: ModelRequest) -> ModelReply:
        number = self.calls
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            result = self._answer(request, number)
        finally:
            self.now -= 1
        if isinstance(result, Exception):
            raise result
        return result

    async def aclose(self) -> None:
        self.closed += 1


def failing(kind: str, times: int, then: Answer, **error: object) -> Answer:
    """Fail `times` times, then answer by `then`."""

    def answer(request: ModelRequest, number: int) -> ModelReply | Exception:
        if number < times:
            return ModelError(kind, "made to fail", **error)  # type: ignore[arg-type]
        return then(request, number)

    return answer
