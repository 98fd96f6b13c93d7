"""The registry: every offer by kind, names resolved to offers, offers built."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, overload

import msgspec

from coordbench.api.agents import Agent
from coordbench.api.executors import Executor
from coordbench.api.hookspecs import KINDS
from coordbench.api.models import ModelProvider
from coordbench.api.offers import Offer
from coordbench.api.reporting import Reporter
from coordbench.api.scoring import Metric, Reward
from coordbench.data.errors import CoordbenchError, UsageError
from coordbench.plugins import explain
from coordbench.plugins.discovery import Found, find_plugins, normal
from coordbench.plugins.loading import Loaded, load_plugin
from coordbench.plugins.names import Name, parse_name, render_name
from coordbench.plugins.options import decode_options, normalised
from coordbench.plugins.problems import Problem, one_line

__all__ = ["STRICT", "Registered", "Registry", "Resolved"]

STRICT = "COORDBENCH_STRICT"

_PROTOCOLS: dict[str, type] = {
    "model": ModelProvider,
    "reward": Reward,
    "metric": Metric,
    "agent": Agent,
    "reporter": Reporter,
    "executor": Executor,
}


class Registered(msgspec.Struct, frozen=True):
    """An offer and where it comes from."""

    kind: str
    offer: Offer[Any]
    plugin: str
    dist: str
    version: str


class Resolved(msgspec.Struct, frozen=True):
    """A name that was found.

    Attributes
    ----------
    options : msgspec.Struct
        Decoded, of the offer's options type.
    canonical_name : str
        One spelling for all names that mean the same: no prefix unless the bare name is
        ambiguous, options in field order, defaults left out. It resolves to the same again.
    """

    registered: Registered
    target: str
    options: msgspec.Struct
    canonical_name: str


class Registry:
    """What is installed. Made by `Registry.load()`.

    Attributes
    ----------
    plugins : tuple of Loaded
        The core's own first; failed and disabled ones as well.
    problems : tuple of Problem
        Of all plugins.
    """

    def __init__(self, plugins: Iterable[Loaded], problems: Iterable[Problem] = ()) -> None:
        self.plugins = tuple(plugins)
        self.problems = (
            *problems,
            *(problem for plugin in self.plugins for problem in plugin.problems),
        )
        self._offers: dict[str, dict[str, list[Registered]]] = {kind: {} for kind in KINDS}
        for plugin in self.plugins:
            found = plugin.found
            for kind, offer in plugin.offers:
                registered = Registered(kind, offer, found.plugin, found.dist, found.version)
                self._offers[kind].setdefault(offer.name, []).append(registered)

    @classmethod
    def load(cls, disabled: Collection[str] = (), strict: bool | None = None) -> Registry:
        """Load every installed plugin, one by one.

        Parameters
        ----------
        disabled : collection of str
            Plugins, or distributions, that are not even imported.
        strict : bool or None
            Whether a problem is an error. None: what `COORDBENCH_STRICT` says.

        Raises
        ------
        UnknownNameError
            `disabled` names no plugin.
        PluginError
            There is a problem, and `strict` says that is an error.
        """
        found, problems = find_plugins()
        explain.check_disabled(disabled, found, problems)
        problems = [
            problem
            for problem in problems
            if not {problem.plugin, normal(problem.dist)} & {*disabled, *map(normal, disabled)}
        ]
        plugins: list[Loaded] = []
        for item in found:
            if any(item.named(name) for name in disabled):
                plugins.append(Loaded(item, disabled=True))
            else:
                plugins.append(load_plugin(item, plugins))
        registry = cls(plugins, problems)
        if _strict(strict) and registry.problems:
            raise explain.strict_error(registry.problems, STRICT)
        return registry

    @classmethod
    def of(cls, plugins: Mapping[str, object]) -> Registry:
        """A registry of plugin objects at hand, by name: for tests, and for notebooks."""
        loaded: list[Loaded] = []
        for name, thing in plugins.items():
            loaded.append(load_plugin(_at_hand(name, thing), loaded))
        return cls(loaded)

    def offers(self, kind: str) -> list[Registered]:
        """Every offer of a kind, the core's own first."""
        return [item for group in self._offers[kind].values() for item in group]

    def clashes(self) -> list[list[Registered]]:
        """Offers that share kind and name; a list for each such name."""
        return [
            group for names in self._offers.values() for group in names.values() if len(group) > 1
        ]

    def qualified(self, registered: Registered, name: Name | None = None) -> str:
        """The name that means this offer whatever else is installed."""
        return render_name(
            msgspec.structs.replace(
                name or Name(registered.offer.name), plugin=self._prefix(registered)
            )
        )

    def resolve(self, kind: str, name: str) -> Resolved:
        """Find the offer that a name means, and decode its options.

        Raises
        ------
        UsageError
            The name can't be read, or its target or an option is wrong.
        UnknownNameError, AmbiguousNameError, PluginError
            There is no such offer; there are several; or there would be one, if its plugin
            were not broken.
        """
        parsed = parse_name(name)
        registered = self._find(kind, parsed)
        offer = registered.offer
        self._check_target(registered, parsed)
        options = decode_options(offer.options, parsed.options, offer.name)
        canonical = msgspec.structs.replace(
            parsed,
            plugin=self._prefix(registered) if len(self._offers[kind][offer.name]) > 1 else "",
            options=normalised(options),
        )
        return Resolved(registered, parsed.target, options, render_name(canonical))

    def check(self, kind: str, name: str) -> Resolved:
        """Resolve a name, and see whether it could be built here and now, without building it.

        Raises
        ------
        PluginError
            A module it requires is missing.
        UsageError
            As `resolve`, or what the offer's own check says.
        """
        resolved = self.resolve(kind, name)
        offer = resolved.registered.offer
        missing = [module for module in offer.requires if not _importable(module)]
        if missing:
            raise explain.missing_modules(resolved.registered, missing, self._requires(resolved))
        if offer.check is not None:
            try:
                offer.check(resolved.target, resolved.options)
            except CoordbenchError:
                raise
            except Exception as error:
                raise explain.build_error(
                    resolved.registered, name, "check", one_line(error)
                ) from error
        return resolved

    @overload
    def build(self, kind: Literal["model"], name: str) -> ModelProvider: ...
    @overload
    def build(self, kind: Literal["reward"], name: str) -> Reward: ...
    @overload
    def build(self, kind: Literal["metric"], name: str) -> Metric: ...
    @overload
    def build(self, kind: Literal["agent"], name: str) -> Agent: ...
    @overload
    def build(self, kind: Literal["reporter"], name: str) -> Reporter: ...
    @overload
    def build(self, kind: Literal["executor"], name: str) -> Executor: ...
    def build(self, kind: str, name: str) -> Any:
        """Build what a name means.

        Raises
        ------
        PluginError
            A module it requires is missing, building raised, or what was built is not of
            this kind.
        UsageError
            As `resolve`, or as the plugin itself puts it.
        """
        resolved = self.check(kind, name)
        registered = resolved.registered
        try:
            built: Any = registered.offer.build(resolved.target, resolved.options)
        except CoordbenchError:
            raise
        except (Exception, SystemExit) as error:
            module = error.name if isinstance(error, ModuleNotFoundError) else None
            if module and not _importable(module.partition(".")[0]):
                raise explain.missing_modules(
                    registered, [module], self._requires(resolved)
                ) from error
            raise explain.build_error(registered, name, "build", one_line(error)) from error
        protocol = _PROTOCOLS[kind]
        lacking = [member for member in _members(protocol) if not _has(built, member)]
        if lacking:
            raise explain.build_error(
                registered,
                name,
                "build",
                f"it built {type(built).__name__}, which is no {protocol.__name__}: "
                f"it lacks {', '.join(lacking)}",
            )
        return built

    def _find(self, kind: str, name: Name) -> Registered:
        sharing = self._offers[kind].get(name.name, [])
        if name.plugin:
            named = {
                id(item): item
                for item in sharing
                if item.plugin == name.plugin or normal(item.dist) == normal(name.plugin)
            }
            by_plugin = [item for item in named.values() if item.plugin == name.plugin]
            sharing = by_plugin if len(by_plugin) == 1 else list(named.values())
        broken = [] if name.plugin else self._broken(kind, name.name)
        if len(sharing) == 1 and not broken:
            return sharing[0]
        if len(sharing) > 1:
            raise explain.ambiguous(
                kind, name, sharing, [self.qualified(item, name) for item in sharing]
            )
        if sharing:
            raise explain.broken_rival(
                kind, name, broken[0], sharing[0], self.qualified(sharing[0], name)
            )
        raise explain.unknown(kind, name, self)

    def _broken(self, kind: str, offer: str) -> list[Problem]:
        """Faulty offers of this name: they would have made it ambiguous."""
        return [item for item in self.problems if item.kind == kind and item.offer == offer]

    def _prefix(self, registered: Registered) -> str:
        """What tells this offer from others of its name: the plugin, or else the distribution."""
        same = [
            item
            for item in self._offers[registered.kind][registered.offer.name]
            if item.plugin == registered.plugin
        ]
        return registered.plugin if len(same) == 1 else registered.dist

    def _check_target(self, registered: Registered, name: Name) -> None:
        offer = registered.offer
        if not name.target and "target" in offer.traits:
            example = next(iter(offer.examples), f"{offer.name}/NAME")
            raise UsageError(
                f"{registered.kind} {offer.name} needs a target after a slash",
                hint=f"for example: {example}",
            )
        if name.target and not {"target", "optional-target"} & set(offer.traits):
            hint = f"leave out /{name.target}"
            if "=" in name.target:
                hint = f"options follow a comma: {offer.name},{name.target}"
            raise UsageError(f"{registered.kind} {offer.name} takes no target", hint=hint)

    def _requires(self, resolved: Resolved) -> tuple[str, ...]:
        registered = resolved.registered
        return next(
            (
                plugin.found.requires
                for plugin in self.plugins
                if plugin.found.plugin == registered.plugin and plugin.found.dist == registered.dist
            ),
            (),
        )


def _at_hand(name: str, thing: object) -> Found:
    return Found(name, name, "0", name, lambda: thing)


def _strict(strict: bool | None) -> bool:
    if strict is not None:
        return strict
    return os.environ.get(STRICT, "").strip().lower() not in ("", "0", "false", "no")


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _members(protocol: type) -> list[str]:
    return sorted(name for name in vars(protocol) if not name.startswith("_"))


def _has(built: object, member: str) -> bool:
    # A property of the class counts without being read: reading it may need an open model.
    return hasattr(type(built), member) or hasattr(built, member)
