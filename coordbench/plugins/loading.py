"""Loading one plugin: whatever it does, the answer is its offers and its problems."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any

import pluggy

from coordbench import __version__
from coordbench.api import hookspecs
from coordbench.api.hookspecs import API_VERSION, GROUP, KINDS
from coordbench.api.offers import Offer
from coordbench.data.suggest import did_you_mean
from coordbench.plugins.discovery import CORE, Found
from coordbench.plugins.offer_checks import offer_fault
from coordbench.plugins.problems import Code, Problem, Stage, one_line, traceback_text
from coordbench.plugins.requirements import unmet

__all__ = ["Loaded", "load_plugin"]


class Loaded:
    """A plugin after loading.

    Attributes
    ----------
    offers : list of (kind, Offer)
        The sound ones, in the order given.
    """

    __slots__ = ("disabled", "found", "offers", "problems", "thing")

    def __init__(self, found: Found, *, disabled: bool = False) -> None:
        self.found = found
        self.disabled = disabled
        self.thing: object = None
        self.offers: list[tuple[str, Offer[Any]]] = []
        self.problems: list[Problem] = []

    @property
    def failed(self) -> bool:
        """Whether it offers nothing because of a problem."""
        return not self.offers and bool(self.problems)

    def add(
        self,
        stage: Stage,
        code: Code,
        error: str,
        hint: str = "",
        *,
        kind: str = "",
        offer: str = "",
        raised: BaseException | None = None,
    ) -> None:
        """Note a problem."""
        self.problems.append(
            Problem(
                plugin=self.found.plugin,
                dist=self.found.dist,
                version=self.found.version,
                stage=stage,
                code=code,
                error=error,
                hint=hint,
                kind=kind,
                offer=offer,
                traceback=traceback_text(raised) if raised is not None else "",
            )
        )


def load_plugin(found: Found, earlier: Iterable[Loaded] = ()) -> Loaded:
    """Import a plugin and ask it for its offers. Raises only KeyboardInterrupt.

    Parameters
    ----------
    earlier : iterable of Loaded
        Plugins loaded before it; one object named by two entry points is loaded once.
    """
    loaded = Loaded(found)
    # What a plugin prints would tear `--json` output.
    with contextlib.redirect_stdout(sys.stderr):
        if _import(loaded):
            twin = next((item for item in earlier if item.thing is loaded.thing), None)
            if twin is not None:
                loaded.add(
                    "register",
                    "same_plugin",
                    f"it is the same object as plugin {twin.found.plugin} of {twin.found.dist}",
                    "uninstall one of them, or remove one of the entry points",
                )
            else:
                _collect(loaded)
    return loaded


def _import(loaded: Loaded) -> bool:
    found = loaded.found
    requirement = _guarded(loaded, "requirements", "api_version", lambda: unmet(found))
    if loaded.problems:
        return False
    if requirement is not None:
        loaded.add("requirements", "api_version", *requirement)
        return False
    loaded.thing = _guarded(loaded, "import", "plugin_load_failed", found.load)
    if not loaded.problems and loaded.thing is None:
        loaded.add("import", "plugin_load_failed", f"{found.value} is None")
    return not loaded.problems


def _collect(loaded: Loaded) -> None:
    # A manager for each plugin: with one for all, a hook that raises would lose every
    # plugin's offers, and a refused plugin may stay half registered.
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    _guarded(
        loaded,
        "register",
        "api_mismatch",
        lambda: manager.register(loaded.thing, loaded.found.plugin),
    )
    if loaded.problems:
        return
    callers = manager.get_hookcallers(loaded.thing) or []
    for caller in callers:
        if not caller.has_spec() and not all(impl.optionalhook for impl in caller.get_hookimpls()):
            loaded.add(
                "register",
                "unknown_hook",
                f'coordbench {__version__} has no hook "{caller.name}"'
                + did_you_mean(caller.name, KINDS.values()),
                f"hooks are: {', '.join(KINDS.values())}",
            )
        elif any(impl.wrapper or impl.hookwrapper for impl in caller.get_hookimpls()):
            loaded.add(
                "register", "api_mismatch", f"hook {caller.name} is a wrapper; hooks return offers"
            )
    if not callers:
        _explain_no_hook(loaded)
    if any(problem.code == "api_mismatch" for problem in loaded.problems):
        return
    for kind, hook in KINDS.items():
        offers = _guarded(loaded, "hook", "hook_failed", partial(_call, manager, hook), kind)
        _guarded(
            loaded, "offer", "bad_offer", partial(_accept, loaded, kind, hook, offers or []), kind
        )


def _call(manager: pluggy.PluginManager, hook: str) -> list[Any]:
    offers: list[Any] = []
    for result in getattr(manager.hook, hook)():
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError(f"{hook} is async; hooks are synchronous")
        if isinstance(result, (Offer, str)) or not isinstance(result, Iterable):
            raise TypeError(
                f"{hook} returned {type(result).__name__}; hooks return a list of offers"
            )
        offers += result
    return offers


def _accept(loaded: Loaded, kind: str, hook: str, offers: list[Any]) -> None:
    counts = Counter(str(offer.name) for offer in offers if isinstance(offer, Offer))
    for name, count in counts.items():
        if count > 1:
            loaded.add(
                "offer",
                "duplicate_name",
                f'{hook} returned {count} offers named "{name}"; none of them is used',
                "give each its own name",
                kind=kind,
                offer=name,
            )
    for offer in offers:
        name = str(offer.name) if isinstance(offer, Offer) else ""
        if counts[name] > 1:
            continue
        before = len(loaded.problems)
        fault = _guarded(loaded, "offer", "bad_offer", partial(offer_fault, offer), kind)
        if fault is not None:
            loaded.add("offer", "bad_offer", f"{hook}: {fault}", kind=kind, offer=name)
        elif len(loaded.problems) == before:
            loaded.offers.append((kind, offer))


def _guarded(
    loaded: Loaded, stage: Stage, code: Code, do: Callable[[], Any], kind: str = ""
) -> Any:
    """Run the plugin's code; what it raises becomes a problem, SystemExit included."""
    try:
        return do()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text, hint = one_line(error), ""
        if stage == "import":
            hint = _import_hint(loaded.found, error)
        elif isinstance(error, pluggy.PluginValidationError):
            text = " ".join(str(error).split())
            hint = (
                f"{loaded.found.dist} {loaded.found.version} was written for another plugin API "
                f"than this: coordbench {__version__}, plugin API {API_VERSION}; "
                "its hooks take no arguments"
            )
        elif stage == "hook" and "missing" in text and "'self'" in text:
            hint = "the entry point names a class; name an instance of it, or a module"
        loaded.add(stage, code, text, hint, kind=kind, raised=error)
        return None


def _import_hint(found: Found, error: BaseException) -> str:
    if found.dist == CORE:
        return f"this installation is damaged: pip install --force-reinstall {CORE}"
    module = found.value.partition(":")[0].strip()
    if isinstance(error, ModuleNotFoundError) and error.name:
        if module == error.name or module.startswith(f"{error.name}."):
            return (
                f"what is left of {found.dist} names a module that is gone: "
                f"pip uninstall {found.dist}, or reinstall it"
            )
        if error.name.partition(".")[0] != CORE:
            return f"it needs the module {error.name}: pip install --upgrade {found.dist}"
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == CORE:
        return (
            f"{found.dist} {found.version} was written for another version than "
            f"coordbench {__version__}: pip install --upgrade {CORE} {found.dist}"
        )
    return f"without it: --no-plugin {found.plugin}"


def _explain_no_hook(loaded: Loaded) -> None:
    close = [
        name for name in dir(loaded.thing) if name in KINDS.values() or name.startswith(f"{GROUP}_")
    ]
    what = loaded.found.value if isinstance(loaded.thing, ModuleType) else repr(type(loaded.thing))
    if close:
        error, hint = f"{what}: {', '.join(close)} is not marked", "put @hookimpl above it"
    else:
        error = f"{what} implements no hook, so it offers nothing"
        hint = f"hooks are: {', '.join(KINDS.values())}"
    loaded.add("register", "no_hook", error, hint)
