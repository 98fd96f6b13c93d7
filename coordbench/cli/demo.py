"""What `coordbench run` plays when nothing is named."""

from __future__ import annotations

import importlib.util

import click
import msgspec

from coordbench.data.errors import CoordbenchError
from coordbench.data.spec import Prompt, Sampling, TaskSpec, Team
from coordbench.plugins import Registry

__all__ = ["demo_spec"]

_SCRIPT_EPISODES = 30
_LOCAL_EPISODES = 2
_LOCAL_MAX_TOKENS = 32
_LOCAL_MEMORY = 1


def demo_spec(spec: TaskSpec, registry: Registry, *, small: bool) -> TaskSpec:
    """The standard task on every scripted policy and on bundled local models at the smallest N.

    Parameters
    ----------
    small : bool
        Whether episodes are left to this function (they are not where `--episodes` was given).
    """
    scripted: list[str] = []
    local: list[str] = []
    for registered in registry.offers("model"):
        offer = registered.offer
        if "scripted" in offer.traits:
            scripted += offer.examples
        elif "bundled" in offer.traits:
            local += _usable(offer.examples, offer.requires, registry)
    teams = tuple(
        Team(
            name=name, seats=(name,), n=(min(spec.n),), episodes=_LOCAL_EPISODES if small else None
        )
        for name in local
    )
    sampling, prompt = spec.sampling, spec.prompt
    if teams:
        # Without a GPU most time goes to reading the prompt, which grows with the rounds shown.
        prompt = msgspec.structs.replace(prompt, memory=min(prompt.memory, _LOCAL_MEMORY))
        # A small model that misses the format rambles to the cap in every turn.
        sampling = msgspec.structs.replace(sampling, max_tokens=_LOCAL_MAX_TOKENS)
    assert isinstance(sampling, Sampling)
    assert isinstance(prompt, Prompt)
    return msgspec.structs.replace(
        spec,
        models=tuple(scripted),
        teams=teams,
        sampling=sampling,
        prompt=prompt,
        episodes=_SCRIPT_EPISODES if small else spec.episodes,
    )


def _usable(names: tuple[str, ...], requires: tuple[str, ...], registry: Registry) -> list[str]:
    if any(importlib.util.find_spec(name) is None for name in requires):
        return []
    usable = []
    for name in names:
        try:
            registry.check("model", name)
        except CoordbenchError as error:
            click.echo(f"note: {name} is left out: {error.message}", err=True)
        else:
            usable.append(name)
    return usable
