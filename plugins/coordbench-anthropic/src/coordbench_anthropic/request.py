"""A request's body, and the settings in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordbench.api import ModelError, ModelRequest, Tool
from coordbench.api.conversation import conversation_of
from coordbench_anthropic.history import keeps_id, messages_of, names_called
from coordbench_anthropic.options import AnthropicOptions

__all__ = ["request_body"]

_CACHED = {"cache_control": {"type": "ephemeral"}}
_NO_PARAMETERS = {"type": "object", "properties": {}}


def request_body(
    model: str, options: AnthropicOptions, request: ModelRequest, *, forcing: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The body of a request, and its settings under the names by which the core asks for them.

    Parameters
    ----------
    forcing : bool
        Whether a call may be forced: no model can be while it thinks.

    Raises
    ------
    ModelError
        `config`: the cap leaves no room behind the thinking.
    """
    talk = conversation_of(request.messages, keep_id=keeps_id, mint_id="toolu_{:05d}".format)
    asked = options.sampling(request)
    cap = asked["max_tokens"]
    body: dict[str, Any] = {"model": model, "max_tokens": cap}
    sent: dict[str, Any] = {"max_tokens": cap}
    if talk.system:
        body["system"] = [{"type": "text", "text": talk.system}]
        if options.cache:
            body["system"][0] |= _CACHED
    body["messages"] = messages_of(talk)
    if request.tools:
        body["tools"] = _declared(request.tools, options)
        body["tool_choice"] = _choice(request, options, forcing)
        sent["tool_choice"] = body["tool_choice"]["type"]
        if "disable_parallel_tool_use" in body["tool_choice"]:
            sent["parallel_tool_calls"] = False
    elif names := names_called(talk):
        # Calls in earlier turns need their tools declared, also where a message is asked for.
        body["tools"] = [{"name": name, "input_schema": _NO_PARAMETERS} for name in names]
        body["tool_choice"] = {"type": "none"}
    thinking = options.thinking_field()
    if thinking is not None:
        if cap <= thinking.get("budget_tokens", 0):
            raise ModelError(
                "config",
                f"max_tokens={cap} leaves no room behind thinking_budget="
                f"{options.thinking_budget}: it counts the thinking too; give a larger max_tokens",
                scope="run",
            )
        body["thinking"] = thinking
        sent["thinking"] = thinking["type"]
    if options.effort:
        body["output_config"] = {"effort": options.effort}
        sent["effort"] = options.effort
    if options.takes_sampling and not options.thinks:
        sampling = _sampling(asked, options)
        body |= sampling
        sent |= sampling
    if options.stream:
        body["stream"] = True
    return body, sent


def _declared(tools: Sequence[Tool], options: AnthropicOptions) -> list[dict[str, Any]]:
    declared: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in tools
    ]
    if options.cache:
        declared[-1] |= _CACHED
    return declared


def _choice(request: ModelRequest, options: AnthropicOptions, forcing: bool) -> dict[str, Any]:
    choice: dict[str, Any]
    if request.force and forcing:
        choice = {"type": "tool", "name": request.force}
    elif options.tools == "required":
        choice = {"type": "any"}
    else:
        choice = {"type": "auto"}
    if "parallel_tool_calls" not in options.omitted():
        choice["disable_parallel_tool_use"] = True
    return choice


def _sampling(asked: dict[str, Any], options: AnthropicOptions) -> dict[str, Any]:
    sampling = {"temperature": asked["temperature"], "top_p": asked["top_p"]}
    if options.top_p is None and asked["top_p"] == 1.0:
        # It cuts nothing, and many models refuse to be given both.
        del sampling["top_p"]
    return {key: value for key, value in sampling.items() if key not in options.omitted()}
