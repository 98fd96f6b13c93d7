"""The model `echo`: a provider without a network."""

from __future__ import annotations

from coordbench.api import (
    Action,
    ModelInfo,
    ModelReply,
    ModelRequest,
    Observation,
    RawCall,
    Tool,
    Usage,
)

__all__ = ["Echo"]


class Echo:
    """Always calls the first tool that the table would accept.

    Parameters
    ----------
    say : str
        What it says in message rounds.
    """

    def __init__(self, say: str = "") -> None:
        self._say = say
        self._info = ModelInfo(
            provider="example",
            model="echo",
            instant=True,  # never waits, so the core spends no task or limit on it
            reads_text=False,  # decides by the structured observation; no prompt is rendered
        )

    @property
    def info(self) -> ModelInfo:
        """What the core must know of it."""
        return self._info

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request. A provider with a network raises `ModelError` where it fails."""
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
