"""A request's body, and the settings in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordbench.api import ModelRequest, Tool
from coordbench.api.conversation import conversation_of
from coordbench_google.history import contents_of, names_called, was_sent
from coordbench_google.options import GoogleOptions

__all__ = ["request_body"]

_NAMES = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
}
"""Settings by the core's names -> by the API's."""


def request_body(
    options: GoogleOptions, request: ModelRequest
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The body of a request, and its settings under the names by which the core asks for them."""
    talk = conversation_of(request.messages, keep_id=was_sent, mint_id=lambda _: None)
    body: dict[str, Any] = {"contents": contents_of(talk)}
    if talk.system:
        body["systemInstruction"] = {"parts": [{"text": talk.system}]}
    asked = options.sampling(request)
    if request.seed is not None:
        asked["seed"] = request.seed
    omitted = options.omitted()
    sent = {key: value for key, value in asked.items() if key not in omitted}
    config: dict[str, Any] = {_NAMES[key]: value for key, value in sent.items()}
    thinking = options.thinking_config()
    if thinking:
        config["thinkingConfig"] = thinking
    if options.thinking_level:
        sent["thinking_level"] = options.thinking_level
    if options.thinking_budget is not None:
        sent["thinking_budget"] = options.thinking_budget
    body["generationConfig"] = config
    if request.tools:
        body["tools"] = [{"functionDeclarations": _declared(request.tools)}]
        calling = _calling(request, options)
        body["toolConfig"] = {"functionCallingConfig": calling}
        sent["tool_choice"] = calling["mode"].lower()
    elif names := names_called(talk):
        # Calls in earlier turns keep their declarations where only a message is asked for.
        body["tools"] = [{"functionDeclarations": [{"name": name} for name in names]}]
        body["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    return body, sent


def _declared(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Declarations. An object without properties is refused as parameters, so none are given."""
    declared = []
    for tool in tools:
        one: dict[str, Any] = {"name": tool.name, "description": tool.description}
        if tool.parameters.get("properties"):
            one["parametersJsonSchema"] = tool.parameters
        declared.append(one)
    return declared


def _calling(request: ModelRequest, options: GoogleOptions) -> dict[str, Any]:
    if request.force:
        return {"mode": "ANY", "allowedFunctionNames": [request.force]}
    return {"mode": "ANY" if options.tools == "required" else "AUTO"}
