"""Why a name could not be had, and what to do next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from coordbench.api.hookspecs import KINDS
from coordbench.data.errors import AmbiguousNameError, PluginError, UnknownNameError, UsageError
from coordbench.data.suggest import did_you_mean, nearest
from coordbench.plugins.discovery import Found, normal
from coordbench.plugins.names import Name, render_name
from coordbench.plugins.problems import Problem

if TYPE_CHECKING:
    from coordbench.plugins.loading import Loaded
    from coordbench.plugins.registry import Registered, Registry

__all__ = [
    "ambiguous",
    "broken_rival",
    "build_error",
    "check_disabled",
    "missing_modules",
    "strict_error",
    "unknown",
]

_FIRST_PARTY: dict[str, dict[str, str]] = {
    "model": {
        "adapter": "coordbench-peft",
        "anthropic": "coordbench-anthropic",
        "art": "coordbench-art",
        "gemini": "coordbench-google",
        "google": "coordbench-google",
        "litellm": "coordbench-litellm",
        "llamacpp": "coordbench-llamacpp",
        "mistral": "coordbench-mistral",
        "openai": "coordbench-openai",
        "peft": "coordbench-peft",
        "vllm": "coordbench-vllm",
    },
    "executor": {"ray": "coordbench-ray"},
}
"""Kind -> name -> the distribution of this project that offers it."""


def unknown(kind: str, name: Name, registry: Registry) -> UsageError:
    """No sound offer has this name: say what is nearest to one."""
    if name.plugin:
        return _unknown_in_plugin(kind, name, registry)
    broken = _broken(kind, name.name, registry)
    if broken is not None:
        return _broken_error(f'there is no {kind} "{name.name}"', broken)
    text = f'no {kind} is named "{name.name}"'
    disabled = _plugin(name.name, (item for item in registry.plugins if item.disabled))
    if disabled is not None:
        return UnknownNameError(
            f"{text}: its plugin is switched off",
            hint=f"leave out --no-plugin {disabled.found.plugin}",
        )
    installable = _FIRST_PARTY.get(kind, {})
    if name.name in installable:
        return UnknownNameError(
            f"{text}: it is in {installable[name.name]}, which is not installed",
            hint=f"pip install {installable[name.name]}",
        )
    names = [item.offer.name for item in registry.offers(kind)]
    match = nearest(name.name, [*names, *installable])
    if match is not None and match not in names:
        return UnknownNameError(
            f'{text}; did you mean "{match}"?', hint=f"pip install {installable[match]}"
        )
    if match is not None:
        return UnknownNameError(f'{text}; did you mean "{match}"?', hint=_list(kind, registry))
    for other in KINDS:
        if other != kind and any(item.offer.name == name.name for item in registry.offers(other)):
            text += f"; it is a {other}" if other[0] not in "aeiou" else f"; it is an {other}"
            break
    return UnknownNameError(text, hint=_list(kind, registry))


def ambiguous(
    kind: str, name: Name, sharing: Sequence[Registered], qualified: Sequence[str]
) -> AmbiguousNameError:
    """Several plugins offer the name."""
    dists = " and ".join(f"{item.dist} {item.version}" for item in sharing)
    return AmbiguousNameError(
        f'{len(sharing)} plugins offer a {kind} "{name.name}": {dists}',
        hint="say which: " + " or ".join(qualified),
    )


def broken_rival(
    kind: str, name: Name, problem: Problem, sound: Registered, qualified: str
) -> PluginError:
    """One plugin offers the name, and so would another, were its offer sound."""
    return _with_traceback(
        PluginError(
            f'{kind} "{name.name}" is offered by {sound.dist}, but also by {problem.dist}, '
            f"where it is broken: {problem.error}",
            hint=f"say which: {qualified}",
        ),
        problem,
    )


def build_error(registered: Registered, name: str, step: str, what: str) -> PluginError:
    """Building, or the check before it, failed in a way that the plugin did not foresee."""
    return PluginError(
        f"{registered.dist} {registered.version} could not {step} {registered.kind} {name}: {what}",
        hint=f"coordbench --debug shows the traceback; this is for the authors of "
        f"{registered.dist}",
    )


def missing_modules(
    registered: Registered, modules: Sequence[str], requires: Sequence[str]
) -> PluginError:
    """Modules that the offer needs can't be imported."""
    from coordbench.plugins.requirements import required_name

    known = {normal(found): found for text in requires if (found := required_name(text))}
    packages = []
    for module in modules:
        whole, top = normal(module), normal(module.partition(".")[0])
        packages.append(known.get(whole) or known.get(top) or (whole if "." in module else module))
    named = " and ".join(f"`{module}`" for module in modules)
    return PluginError(
        f"{registered.kind} {registered.offer.name} of {registered.dist} needs {named}",
        hint=f"pip install {' '.join(packages)}",
    )


def check_disabled(
    disabled: Collection[str], found: Sequence[Found], problems: Sequence[Problem]
) -> None:
    """A name in `--no-plugin` that is no plugin is a slip, and would disable nothing."""
    names = [item.plugin for item in found] + [item.plugin for item in problems]
    dists = {normal(item.dist) for item in found} | {normal(item.dist) for item in problems}
    for name in disabled:
        if name not in names and normal(name) not in dists:
            raise UnknownNameError(
                f'no plugin is named "{name}"{did_you_mean(name, names)}',
                hint=f"installed: {', '.join(sorted(set(names)))}",
            )


def strict_error(problems: Sequence[Problem], variable: str) -> PluginError:
    """All problems as one error."""
    count = f"{len(problems)} problems" if len(problems) > 1 else "a problem"
    lines = "".join(f"\n  {problem}" for problem in problems)
    error = PluginError(
        f"{count} with plugins, and {variable} makes that an error:{lines}",
        hint=f"repair or uninstall them, leave them out with --no-plugin NAME, or unset {variable}",
    )
    for problem in problems:
        _with_traceback(error, problem)
    return error


def _unknown_in_plugin(kind: str, name: Name, registry: Registry) -> UsageError:
    plugin = _plugin(name.plugin, registry.plugins)
    if plugin is None:
        failed = [item for item in registry.problems if item.plugin == name.plugin]
        if failed:
            return _broken_error(f'there is no {kind} "{render_name(name)}"', failed[0])
        text = f'no plugin is named "{name.plugin}"'
        if any(item.offer.name == name.plugin for item in registry.offers(kind)) or (
            name.plugin in _FIRST_PARTY.get(kind, {})
        ):
            # "openai:gpt-5" most likely meant a target.
            meant = msgspec.structs.replace(
                name,
                plugin="",
                name=name.plugin,
                target="/".join(part for part in (name.name, name.target) if part),
            )
            return UnknownNameError(text, hint=f"a target follows a slash: {render_name(meant)}")
        names = [item.found.plugin for item in registry.plugins]
        return UnknownNameError(
            text + did_you_mean(name.plugin, names), hint=f"plugins: {', '.join(names)}"
        )
    label = plugin.found.plugin
    if plugin.disabled:
        return UnknownNameError(
            f"plugin {label} is switched off", hint=f"leave out --no-plugin {label}"
        )
    broken = [item for item in plugin.problems if item.kind in ("", kind)]
    broken.sort(key=lambda item: (item.kind, item.offer) != (kind, name.name))
    if broken and (not plugin.offers or broken[0].offer in ("", name.name)):
        return _broken_error(f'plugin {label} offers no {kind} "{name.name}"', broken[0])
    names = [offer.name for of_kind, offer in plugin.offers if of_kind == kind]
    return UnknownNameError(
        f'plugin {label} offers no {kind} "{name.name}"{did_you_mean(name.name, names)}',
        hint=f"its {kind}s: {', '.join(names)}" if names else f"it offers no {kind} at all",
    )


def _broken(kind: str, name: str, registry: Registry) -> Problem | None:
    """The problem that most likely is why nothing has this name."""
    for problem in registry.problems:
        if (problem.kind, problem.offer) == (kind, name):
            return problem
    for problem in registry.problems:
        if (
            problem.kind in ("", kind)
            and not problem.offer
            and (
                problem.plugin == name
                or normal(problem.dist) in (normal(name), normal(f"coordbench-{name}"))
                or _FIRST_PARTY.get(kind, {}).get(name) == normal(problem.dist)
            )
        ):
            return problem
    return None


def _broken_error(text: str, problem: Problem) -> PluginError:
    what = f"plugin {problem.plugin} ({problem.dist} {problem.version})"
    return _with_traceback(
        PluginError(
            f"{text}: {what} is broken ({problem.stage}): {problem.error}",
            hint=problem.hint or "coordbench --debug shows the traceback",
        ),
        problem,
    )


def _with_traceback(error: PluginError, problem: Problem) -> PluginError:
    if problem.traceback:
        error.add_note(problem.traceback)
    return error


def _plugin(name: str, plugins: Iterable[Loaded]) -> Loaded | None:
    plugins = list(plugins)
    exact = [item for item in plugins if item.found.plugin == name]
    close = [item for item in plugins if item.found.named(name)]
    return next(iter(exact or close), None)


def _list(kind: str, registry: Registry) -> str:
    names = dict.fromkeys(item.offer.name for item in registry.offers(kind))
    text = f"{kind}s: {', '.join(names)}" if names else f"no plugin offers a {kind}"
    failed = [item.found.plugin for item in registry.plugins if item.failed]
    failed += [item.plugin for item in registry.problems if item.code == "bad_metadata"]
    if failed:
        text += f"; broken plugins: {', '.join(dict.fromkeys(failed))} (see coordbench plugins)"
    return text
