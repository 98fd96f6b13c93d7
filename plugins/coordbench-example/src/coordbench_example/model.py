"""The model `echo`: a provider without a network."""

from __future__ import annotations

import msgspec

from coordbench.api import (
    Action,
    ModelInfo,
    ModelProvider,
    ModelReply,
    ModelRequest,
    Observation,
    RawCall,
    Tool,
    Usage,
)

__all__ = ["EchoOptions", "build_echo"]


class EchoOptions(msgspec.Struct, frozen=True):
    """Options of `echo`: frozen, with a default for each.

    Attributes
    ----------
    say : str
        What it says in message rounds; nothing by default.
    """

    say: str = ""


def build_echo(target: str, options: EchoOptions) -> ModelProvider:
    """Build the model. A provider with an SDK imports it here, and nowhere above."""
    return _Echo(options)


class _Echo:
    def __init__(self, options: EchoOptions) -> None:
        self._say = options.say
        self._info = ModelInfo(
            provider="example",
            model="echo",
            instant=True,  # never waits, so the core spends no task or limit on it
            reads_text=False,  # decides by the structured observation; no prompt is rendered
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    async def complete(self, request: ModelRequest) -> ModelReply:
        if not request.tools:
            return ModelReply(stop="stop", text=self._say, usage=Usage(0, 0))
        name = request.force or _first_accepted(request.tools, request.observation).name
        return ModelReply(
            stop="tool_calls",
            calls=(RawCall(name=name, arguments="{}", id="call-0"),),
            usage=Usage(0, 0),
        )

    async def aclose(self) -> None:
        """Nothing is open."""


def _first_accepted(tools: tuple[Tool, ...], observation: Observation | None) -> Tool:
    if observation is None:
        return tools[0]
    return next((tool for tool in tools if _accepted(tool.action, observation)), tools[0])


def _accepted(action: Action, seen: Observation) -> bool:
    match action:
        case Action.PICK_UP_LEFT:
            return seen.left == "free"
        case Action.PICK_UP_RIGHT:
            return seen.right == "free"
        case Action.PUT_DOWN_LEFT:
            return seen.left == "mine"
        case Action.PUT_DOWN_RIGHT:
            return seen.right == "mine"
        case Action.EAT:
            return seen.left == seen.right == "mine"
        case Action.THINK:
            return True
