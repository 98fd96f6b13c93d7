"""Options of `llamacpp`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

__all__ = ["LlamaCppOptions"]

Count = Annotated[int, msgspec.Meta(ge=0)]


class LlamaCppOptions(msgspec.Struct, frozen=True):
    """Options of `llamacpp`.

    Attributes
    ----------
    tools : str
        `native`: the model's own tool calls. `constrained`: the reply is held to one of the
        six names. They measure different things.
    form : str
        How `constrained` holds the reply: `grammar`, a bare name; `schema`, a JSON object.
    temperature, max_tokens
        In place of the task's.
    threads : int
        Threads that compute; 0: two, or one where there is one core.
    context : int
        Tokens that a conversation may hold, its reply included; 0: 4096, or what the model was
        trained for where that is less.
    slots : int
        Calls that are computed at once; 0: 16, or what a quarter of the free memory holds.
    lora : str
        A LoRA adapter of this model, as a GGUF file.
    lora_scale : float
        What the adapter's change is multiplied by.
    template : str
        A Jinja chat template to use in place of the model's own: a file.
    """

    tools: Literal["native", "constrained"] = "native"
    form: Literal["grammar", "schema"] = "grammar"
    temperature: Annotated[float, msgspec.Meta(ge=0.0)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    threads: Count = 0
    context: Count = 0
    slots: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0
    lora: str = ""
    lora_scale: float = 1.0
    template: str = ""
