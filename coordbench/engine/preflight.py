"""Before a run scores anything: can this model be reached, and can it call each tool?

One forced call per tool. What it finds is said in one line and kept in the manifest; only a
failure that no episode could get past (key, address, settings) stops the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from coordbench.api.agents import Decision, Invalid
from coordbench.api.models import (
    ModelReply,
    ModelRequest,
    SystemMessage,
    Tool,
    UserMessage,
)
from coordbench.data.events import FailureRecord
from coordbench.data.spec import Sampling
from coordbench.engine.caller import Caller
from coordbench.engine.player import settings_differences
from coordbench.reading import read

__all__ = ["ModelCheck", "check_model", "check_models"]

_SYSTEM = "You are being checked. Call the tool you are told to call, once, without arguments."
_HELP = {
    "auth": "the key was refused: check the variable that holds it",
    "quota": "the account has no quota left: check its billing",
    "config": "a setting or the model's name was refused",
    "network": "the server cannot be reached: check base_url and that it runs",
    "timeout": "the server does not answer in time",
    "rate_limit": "the server is busy: try later, or lower the concurrency",
    "overloaded": "the server is overloaded: try later",
}
_SMALL_CAP = 256


class ModelCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What the preflight found out about one model.

    Attributes
    ----------
    tools : mapping
        Wire name of each tool -> `ok`, or what came instead.
    failure : FailureRecord or None
        The failure that stopped the check.
    differences : tuple of str
        Settings that were asked for and not sent, or sent otherwise.
    price_known : bool
        True for models that cost nothing.
    served : str or None
        The model that the server says answered.
    """

    name: str
    tool_mode: str
    tools: dict[str, str]
    failure: FailureRecord | None = None
    differences: tuple[str, ...] = ()
    price_known: bool = True
    served: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether every tool could be called."""
        return self.failure is None and all(found == "ok" for found in self.tools.values())

    def lines(self) -> list[str]:
        """What to say about it, the most important first."""
        if self.failure is not None:
            help_ = _HELP.get(self.failure.kind, "")
            what = f"{self.failure.kind}: {self.failure.message}"
            return [f"{what} ({help_})" if help_ else what]
        said: list[str] = []
        bad = {tool: found for tool, found in self.tools.items() if found != "ok"}
        if bad:
            found = ", ".join(sorted(set(bad.values())))
            said.append(
                f"{len(bad)} of {len(self.tools)} forced tool calls could not be read ({found}): "
                f"{', '.join(bad)}"
            )
        said += [f"setting {difference}" for difference in self.differences]
        if not self.price_known:
            said.append("price unknown: costs are reported as unknown, --max-cost cannot be used")
        return [*said, *self.notes]


async def check_models(
    callers: Mapping[str, Caller], tools: Sequence[Tool], sampling: Sampling
) -> list[ModelCheck]:
    """Check models beside each other; those that read no text need no check."""
    reading = [(name, caller) for name, caller in callers.items() if caller.info.reads_text]
    return list(
        await asyncio.gather(
            *(check_model(name, caller, tools, sampling) for name, caller in reading)
        )
    )


async def check_model(
    name: str, caller: Caller, tools: Sequence[Tool], sampling: Sampling
) -> ModelCheck:
    """Make one forced call of each tool."""
    info = caller.info
    price_known = not info.paid or (info.price_in is not None and info.price_out is not None)
    found: dict[str, str] = {}
    last: ModelReply | None = None
    for tool in tools:
        request = ModelRequest(
            messages=(
                SystemMessage(_SYSTEM),
                UserMessage(f"Call the tool {tool.name} now."),
            ),
            tools=tuple(tools),
            sampling=sampling,
            seed=0 if sampling.seeded else None,
            force=tool.name,
        )
        result = await caller.call(request, {})
        if result.failure is not None:
            return ModelCheck(
                name=name,
                tool_mode=info.tool_mode,
                tools=found,
                failure=result.failure,
                price_known=price_known,
            )
        assert result.reply is not None
        last = result.reply
        found[tool.name] = _verdict(result.reply, tool, tools)
    asked = {"temperature": sampling.temperature, "top_p": sampling.top_p} | {
        key: info.settings[key] for key in ("temperature", "top_p") if key in info.settings
    }
    notes = []
    reasoning = last.usage.reasoning_tokens if last is not None else None
    cap = last.max_tokens if last is not None else None
    if (
        cap is not None
        and cap < _SMALL_CAP
        and (reasoning or (last is not None and last.reasoning))
    ):
        notes.append(f"it reasons, and a cap of {cap} output tokens leaves little room")
    return ModelCheck(
        name=name,
        tool_mode=info.tool_mode,
        tools=found,
        differences=settings_differences(asked, caller.sent),
        price_known=price_known,
        served=last.model if last is not None else None,
        notes=tuple(notes),
    )


def _verdict(reply: ModelReply, tool: Tool, tools: Sequence[Tool]) -> str:
    result = read(reply, tools)
    if isinstance(result, Invalid):
        return result.hint or result.reason.value
    assert isinstance(result, Decision)
    return "ok" if result.action is tool.action else f"called {result.action}"
