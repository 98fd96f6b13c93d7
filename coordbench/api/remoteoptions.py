"""Options that every provider behind a network has, under the same names."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from coordbench.api.endpoints import check_url
from coordbench.api.models import ModelError, ModelRequest
from coordbench.data.errors import UsageError

__all__ = ["RemoteOptions", "with_omit_hint"]

Positive = Annotated[float, msgspec.Meta(gt=0.0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class RemoteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a model behind a network; a plugin's own options extend them.

    Attributes
    ----------
    base_url : str
        The server, where it is not the provider's own; in whole, with its `/v1`.
    api_key_env : str
        Environment variable that holds the key; `none` sends no key.
    temperature, top_p, max_tokens
        Override the task's sampling.
    tools : str
        `native`: the model may call a tool; `required`: it must.
    omit : str
        Settings not to send, joined by `+`, where a model refuses them: `temperature+seed`.
        The report says so.
    concurrency : int
        Calls in flight at once.
    requests_per_minute, tokens_per_minute
        Rate limits of the account.
    price_in, price_out, price_cached
        US dollars per million tokens.
    """

    base_url: str = ""
    api_key_env: str = ""
    temperature: NotNegative | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] | None = None
    max_tokens: Count | None = None
    tools: Literal["native", "required"] = "native"
    omit: str = ""
    concurrency: Count = 32
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    price_in: NotNegative | None = None
    price_out: NotNegative | None = None
    price_cached: NotNegative | None = None

    def check(self, omittable: frozenset[str]) -> None:
        """Check what types cannot say.

        Parameters
        ----------
        omittable : frozenset of str
            Settings that `omit` may name.

        Raises
        ------
        UsageError
        """
        if self.base_url:
            check_url(self.base_url)
        unknown = sorted(self.omitted() - omittable)
        if unknown:
            raise UsageError(
                f'option omit: "{unknown[0]}" is no setting that can be left out',
                hint=f"it may name: {', '.join(sorted(omittable))}",
            )
        if (self.price_in is None) != (self.price_out is None):
            raise UsageError(
                "options price_in and price_out belong together: give both or none",
                hint="in US dollars per million tokens: price_in=1.25,price_out=10",
            )

    def omitted(self) -> frozenset[str]:
        """The settings that `omit` names."""
        return frozenset(filter(None, self.omit.split("+")))

    def settings(self) -> dict[str, Any]:
        """What the model's name fixes, for `ModelInfo.settings`."""
        fixed = {
            "base_url": self.base_url or None,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "omit": self.omit or None,
        }
        return {key: value for key, value in fixed.items() if value is not None}

    def sampling(self, request: ModelRequest) -> dict[str, Any]:
        """Temperature, top_p and max_tokens of a call: the name's, else the task's."""
        asked = request.sampling
        return {
            "temperature": asked.temperature if self.temperature is None else self.temperature,
            "top_p": asked.top_p if self.top_p is None else self.top_p,
            "max_tokens": asked.max_tokens if self.max_tokens is None else self.max_tokens,
        }


def with_omit_hint(error: ModelError, omittable: frozenset[str], **other: str) -> ModelError:
    """The same error, where it refuses a setting by name: with the option that mends it.

    Parameters
    ----------
    omittable : frozenset of str
        Settings that `omit` may name.
    **other : str
        Setting -> another option that mends it.
    """
    if error.kind != "config" or error.status not in (400, 422):
        return error
    named = set(re.findall(r"[a-z_]+", error.message))
    refused = next((name for name in sorted(omittable) if name in named), None)
    if refused is None:
        return error
    option = other.get(refused, f"omit={refused}")
    return ModelError(
        error.kind,
        f"{error.message} (option {option})",
        retry=error.retry,
        wait_s=error.wait_s,
        scope=error.scope,
        status=error.status,
    )
