"""What is installed, as data: for the table of `coordbench plugins`, and for its JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

from coordbench.api.hookspecs import KINDS
from coordbench.plugins.loading import Loaded
from coordbench.plugins.options import OptionDescription, describe_options
from coordbench.plugins.problems import Problem
from coordbench.plugins.registry import Registered, Registry

__all__ = ["OfferDescription", "OptionDescription", "PluginDescription", "describe"]


class OfferDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One offer.

    Attributes
    ----------
    name : str
        What to write to use it: `plugin:name` where the bare name is ambiguous.
    requires : tuple of str
        Modules it needs to be built.
    """

    kind: str
    name: str
    summary: str
    options: tuple[OptionDescription, ...] = ()
    traits: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


class PluginDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin.

    Attributes
    ----------
    state : str
        `problem` also where only some of its offers are broken.
    kinds : tuple of str
        Kinds that it offers something of.
    warnings : tuple of str
        Names that it shares with other plugins.
    """

    plugin: str
    dist: str
    version: str
    state: Literal["ok", "problem", "disabled"]
    kinds: tuple[str, ...] = ()
    offers: tuple[OfferDescription, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


def describe(registry: Registry) -> list[PluginDescription]:
    """Describe every plugin: the core's own first, broken and disabled ones as well."""
    described = [_plugin(plugin, registry) for plugin in registry.plugins]
    told = {problem for plugin in described for problem in plugin.problems}
    described += [
        PluginDescription(
            plugin=problem.plugin,
            dist=problem.dist,
            version=problem.version,
            state="problem",
            problems=(problem,),
        )
        for problem in registry.problems
        if problem not in told
    ]
    return described


def _plugin(plugin: Loaded, registry: Registry) -> PluginDescription:
    found = plugin.found
    state: Literal["ok", "problem", "disabled"] = "problem" if plugin.problems else "ok"
    own = [
        item
        for kind in KINDS
        for item in registry.offers(kind)
        if (item.plugin, item.dist) == (found.plugin, found.dist)
    ]
    clashes = {id(item): group for group in registry.clashes() for item in group}
    return PluginDescription(
        plugin=found.plugin,
        dist=found.dist,
        version=found.version,
        state="disabled" if plugin.disabled else state,
        kinds=tuple(dict.fromkeys(item.kind for item in own)),
        offers=tuple(_offer(item, registry, id(item) in clashes) for item in own),
        problems=tuple(plugin.problems),
        warnings=tuple(
            _warning(item, clashes[id(item)], registry) for item in own if id(item) in clashes
        ),
    )


def _offer(item: Registered, registry: Registry, clashes: bool) -> OfferDescription:
    offer = item.offer
    return OfferDescription(
        kind=item.kind,
        name=registry.qualified(item) if clashes else offer.name,
        summary=offer.summary,
        options=describe_options(offer.options),
        traits=tuple(sorted(offer.traits)),
        requires=tuple(offer.requires),
        examples=tuple(offer.examples),
    )


def _warning(item: Registered, group: list[Registered], registry: Registry) -> str:
    others = ", ".join(f"{other.dist} {other.version}" for other in group if other is not item)
    return (
        f'{item.kind} "{item.offer.name}" is also offered by {others}; '
        f"write {registry.qualified(item)}"
    )
