"""The core's player: builds models and agents, and plays the episodes of a plan."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from coordbench.api.agents import Agent
from coordbench.api.executors import EpisodeJob, EpisodeLog, Lane
from coordbench.api.models import ModelInfo, ModelProvider
from coordbench.data.manifest import ModelRecord
from coordbench.data.plan import Plan
from coordbench.data.spec import Sampling
from coordbench.engine.budget import Budget, BudgetLimits
from coordbench.engine.cache import ReplyCache
from coordbench.engine.caller import Caller, CallEvent
from coordbench.engine.limiter import Limiter
from coordbench.engine.loop import play_episode
from coordbench.engine.rates import RateLimits
from coordbench.plugins import Registry

__all__ = ["CorePlayer", "settings_differences"]


class CorePlayer:
    """Plays the plan's episodes in this process.

    Parameters
    ----------
    plan : Plan
    disabled : collection of str
        Plugins not to load where a registry has to be made (in a worker process).
    registry : Registry or None
        The registry at hand; not pickled.
    budget : BudgetLimits
    on_call : callable or None
        Told of every call; not pickled.
    cache : Path or None
        File of the reply cache; None: no cache.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        disabled: Collection[str] = (),
        registry: Registry | None = None,
        budget: BudgetLimits | None = None,
        on_call: CallEvent | None = None,
        cache: Path | None = None,
    ) -> None:
        self.plan = plan
        self.disabled = tuple(disabled)
        self.budget_limits = budget or BudgetLimits()
        self.budget = Budget(self.budget_limits)
        self._registry = registry
        self.on_call = on_call
        self.notes: dict[str, list[str]] = {}
        self._cells = {cell.id: cell for cell in plan.cells}
        self._callers: dict[str, Caller] = {}
        self._agents: dict[str, Agent] = {}
        self._limiters: dict[str, Limiter] = {}
        self._rates: dict[str, RateLimits] = {}
        self.cache_path = cache
        self._cache: ReplyCache | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {
            "plan": msgspec.json.encode(self.plan),
            "disabled": self.disabled,
            "budget": self.budget_limits,
            "cache": self.cache_path,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        plan = msgspec.json.decode(state["plan"], type=Plan)
        self.__init__(  # type: ignore[misc]
            plan,
            disabled=state["disabled"],
            budget=state["budget"],
            cache=state["cache"],
        )

    async def open(self) -> None:
        """Build every model and agent of the plan, each once."""
        if self.cache_path is not None:
            self._cache = ReplyCache(self.cache_path)
        if self._registry is None:
            self._registry = Registry.load(self.disabled)
        for cell in self.plan.cells:
            for name in dict.fromkeys(cell.seats):
                if name not in self._callers:
                    self._callers[name] = self._caller(name, self._registry.build("model", name))
            if cell.agent not in self._agents:
                self._agents[cell.agent] = self._registry.build("agent", cell.agent)

    def lane(self, job: EpisodeJob) -> Lane:
        """Episodes that share endpoints share a lane."""
        cell = self._cells[job.cell]
        infos = [self._callers[name].info for name in dict.fromkeys(cell.seats)]
        waiting = [info for info in infos if not info.instant]
        if not waiting:
            return Lane(key="instant", capacity=1, weight=1)
        key = "+".join(sorted({info.endpoint or info.provider for info in waiting}))
        weight = cell.n if cell.rules.order == "simultaneous" else 1
        return Lane(key=key, capacity=min(info.max_in_flight for info in waiting), weight=weight)

    async def play(self, job: EpisodeJob) -> EpisodeLog:
        """Play one episode."""
        cell = self._cells[job.cell]
        spec = self.plan.spec
        return await play_episode(
            cell,
            job,
            self._agents[cell.agent],
            [self._callers[name] for name in cell.seats],
            spec.sampling,
            recover=spec.reading.recover,
        )

    async def aclose(self) -> None:
        """Close every model, also where closing one fails."""
        errors: list[Exception] = []
        for caller in self._callers.values():
            try:
                await caller.model.aclose()
            except Exception as error:  # the others must be closed too
                errors.append(error)
        self._callers.clear()
        if self._cache is not None:
            self._cache.close()
            self._cache = None
        if errors:
            raise errors[0]

    def callers(self) -> dict[str, Caller]:
        """What calls each model, by the model's name."""
        return dict(self._callers)

    def infos(self) -> dict[str, ModelInfo]:
        """What is known of each model, prices filled in."""
        return {name: caller.info for name, caller in self._callers.items()}

    def windows(self) -> dict[str, tuple[int, int]]:
        """Endpoint -> (calls it is now trusted with, its limit), where the two differ."""
        return {
            endpoint: (int(limiter.window), limiter.limit)
            for endpoint, limiter in self._limiters.items()
            if int(limiter.window) < limiter.limit
        }

    def records(self) -> dict[str, ModelRecord]:
        """Each model as the manifest keeps it: what was asked for, and what went out."""
        records = {}
        for name, caller in self._callers.items():
            info = caller.info
            asked = _asked(self.plan.spec.sampling, info.settings) if info.reads_text else {}
            records[name] = ModelRecord(
                provider=info.provider,
                model=info.model,
                tool_mode=info.tool_mode,
                paid=info.paid,
                price_in=info.price_in,
                price_out=info.price_out,
                price_cached=info.price_cached,
                settings=dict(info.settings),
                served=tuple(sorted(caller.served)),
                asked=asked,
                sent=caller.sent,
                differences=settings_differences(asked, caller.sent),
                notes=tuple(self.notes.get(name, ())),
            )
        return records

    def _caller(self, name: str, model: ModelProvider) -> Caller:
        info = model.info
        endpoint = info.endpoint or info.provider
        limiter = self._limiters.setdefault(endpoint, Limiter(info.max_in_flight))
        limiter.lower(info.max_in_flight)
        rates = self._rates.setdefault(
            endpoint, RateLimits(info.requests_per_minute, info.tokens_per_minute)
        )
        return Caller(
            model,
            limiter,
            self.budget,
            self.plan.spec.limits,
            self.on_call,
            name=name,
            rates=rates,
            cache=self._cache,
        )


def settings_differences(asked: dict[str, Any], sent: dict[str, Any]) -> tuple[str, ...]:
    """What a provider dropped or changed, in words. Nothing where it did not say what it sent."""
    if not sent:
        return ()
    found = []
    for key, value in asked.items():
        if key not in sent:
            found.append(f"{key}: asked for {value}, not sent")
        elif value is not True and sent[key] != value:
            found.append(f"{key}: asked for {value}, sent {sent[key]}")
    return tuple(found)


def _asked(sampling: Sampling, settings: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
    }
    if sampling.seeded:
        asked["seed"] = True
    for key in asked:
        if settings.get(key) is not None:
            asked[key] = settings[key]
    return asked
