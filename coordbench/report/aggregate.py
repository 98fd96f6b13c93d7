"""From stored episodes to one summary per cell, reading each episode once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from coordbench.api.reporting import CellSummary, Estimate, SeatSummary
from coordbench.api.scoring import Metric, Reward
from coordbench.data.actions import Action
from coordbench.data.episode import Episode
from coordbench.data.events import CallRecord
from coordbench.data.manifest import ModelRecord
from coordbench.data.plan import Cell
from coordbench.engine.prices import call_cost
from coordbench.stats.intervals import Interval, t_interval, wilson

__all__ = ["RATES", "summarise_cell"]

RATES = frozenset({"deadlock"})
"""Metrics that are 0 or 1 for each episode: a rate, with a Wilson interval."""

_PARSER_HINT = "server_parser_off"
_HINT_SHARE = 0.1


class _Values:
    """Values of one reward or metric, and why some episodes have none."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.reasons: Counter[str] = Counter()

    def estimate(self, name: str) -> Estimate:
        if name in RATES:
            interval = wilson(sum(value > 0 for value in self.values), len(self.values))
        else:
            interval = t_interval(self.values)
        reason = interval.reason
        if self.reasons:
            said = "; ".join(f"{why} ({count})" for why, count in self.reasons.most_common(3))
            reason = f"{reason}; {said}" if reason else said
        return _estimate(interval, reason)


def _estimate(interval: Interval, reason: str) -> Estimate:
    return Estimate(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        n=interval.n,
        method=interval.method,
        reason=reason,
    )


class _Seat(msgspec.Struct):
    meals: int = 0
    turns: int = 0
    invalid: int = 0
    think: int = 0
    unchanged: int = 0


class _Tally:
    """Everything counted over a cell's episodes; episodes themselves are not kept."""

    def __init__(
        self,
        rewards: Iterable[str],
        metrics: Iterable[str],
        seats: Sequence[str],
        models: Mapping[str, ModelRecord],
    ) -> None:
        self.scored = self.failed = self.stopped = self.decisions = 0
        self.calls = self.cached_calls = 0
        self.cost: float | None = 0.0
        self.seats = [_Seat() for _ in seats]
        self.records = [models.get(name) for name in seats]
        self.input_tokens: int | None = 0
        self.output_tokens: int | None = 0
        self.rewards = {name: _Values() for name in rewards}
        self.metrics = {name: _Values() for name in metrics}
        self.terms: dict[str, dict[str, list[float]]] = {name: {} for name in self.rewards}
        self.actions: Counter[str] = Counter()
        self.invalid: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.hints: Counter[str] = Counter()
        self.deadlocks = 0
        self.began: float | None = None
        self.ended: float | None = None

    def add(
        self, episode: Episode, rewards: Mapping[str, Reward], metrics: Mapping[str, Metric]
    ) -> None:
        self._add_calls(episode)
        if episode.status == "failed":
            self.failed += 1
            self.failures[episode.reason] += 1
            return
        if not episode.scored:
            self.stopped += 1
            return
        self.scored += 1
        self.deadlocks += episode.deadlocked
        self.decisions += episode.decisions
        self._add_turns(episode)
        for name, reward in rewards.items():
            self._score(name, reward, episode)
        for name, metric in metrics.items():
            self._measure(name, metric, episode)

    def _add_turns(self, episode: Episode) -> None:
        for seat, meals in zip(self.seats, episode.meals, strict=True):
            seat.meals += meals
        for turn in episode.turns:
            if turn.effect is None:
                continue
            seat = self.seats[turn.seat]
            seat.turns += 1
            seat.invalid += turn.invalid is not None
            seat.think += turn.action is Action.THINK
            seat.unchanged += not turn.effect.changed
            if turn.action is not None:
                self.actions[turn.action] += 1
                if turn.effect.cause is not None:
                    self.causes[turn.effect.cause] += 1
            elif turn.invalid is not None:
                self.invalid[turn.invalid] += 1
                if _PARSER_HINT in turn.flags:
                    self.hints[_PARSER_HINT] += 1

    def _add_calls(self, episode: Episode) -> None:
        for seat, call in episode.calls:
            self._add_call(call, self.records[seat])
        if episode.started_at is not None and episode.ended_at is not None:
            self.began = min(self.began or episode.started_at, episode.started_at)
            self.ended = max(self.ended or episode.ended_at, episode.ended_at)

    def _add_call(self, call: CallRecord, model: ModelRecord | None) -> None:
        self.calls += 1
        self.cached_calls += call.cached
        if call.reply is None:
            return
        # One call that does not say makes the total unknown, not smaller.
        self.input_tokens = _plus(self.input_tokens, call.usage.input_tokens)
        self.output_tokens = _plus(self.output_tokens, call.usage.output_tokens)
        if call.cached:
            return
        price = None if model is None else call_cost(model, call.usage)
        self.cost = None if self.cost is None or price is None else self.cost + price

    def _score(self, name: str, reward: Reward, episode: Episode) -> None:
        values = self.rewards[name]
        try:
            terms = {key: float(value) for key, value in reward.score(episode).items()}
        except Exception as error:
            values.reasons[f"the reward raised {type(error).__name__}: {error}"] += 1
            return
        bad = [key for key, value in terms.items() if not math.isfinite(value)]
        if bad:
            values.reasons[f"term {bad[0]} is not finite"] += 1
            return
        values.values.append(math.fsum(terms.values()))
        for key, value in terms.items():
            self.terms[name].setdefault(key, []).append(value)

    def _measure(self, name: str, metric: Metric, episode: Episode) -> None:
        values = self.metrics[name]
        try:
            value = metric.measure(episode)
        except Exception as error:
            values.reasons[f"the metric raised {type(error).__name__}: {error}"] += 1
            return
        if value is None:
            values.reasons["undefined"] += 1
        elif not math.isfinite(value):
            values.reasons["not finite"] += 1
        else:
            values.values.append(float(value))


def summarise_cell(
    cell: Cell,
    episodes: Iterable[Episode],
    rewards: Mapping[str, Reward],
    metrics: Mapping[str, Metric],
    models: Mapping[str, ModelRecord],
    error_share: float,
) -> CellSummary:
    """Summarise one cell.

    Parameters
    ----------
    cell : Cell
    episodes : iterable of Episode
        Every stored episode of the cell, read once; memory does not grow with their length.
    rewards, metrics : mapping
        By name. One that raises or answers a number that is not finite leaves that episode out of
        its own column only, and the estimate's `reason` says so.
    models : mapping
        Records from the manifest, for tool modes and differences of settings.
    error_share : float
        Above it the cell is `incomplete`.
    """
    tally = _Tally(rewards, metrics, cell.seats, models)
    for episode in episodes:
        tally.add(episode, rewards, metrics)
    ended = tally.scored + tally.failed
    status = "complete"
    if ended and tally.failed / ended > error_share:
        status = "incomplete"
    elif ended < cell.episodes:
        status = "partial"
    seats = dict.fromkeys(cell.seats)
    known = [models[name] for name in seats if name in models]
    notes = _notes(cell, tally, status, error_share)
    notes += [
        f"{name}: {difference}"
        for name in seats
        if name in models
        for difference in (*models[name].differences, *models[name].notes)
    ]
    return CellSummary(
        cell=cell.id,
        team=cell.team,
        models=tuple(seats),
        n=cell.n,
        variant=cell.variant,
        agent=cell.agent,
        tool_modes=tuple(dict.fromkeys(record.tool_mode for record in known)),
        n_planned=cell.episodes,
        n_scored=tally.scored,
        n_failed=tally.failed,
        n_missing=max(0, cell.episodes - ended),
        decisions=tally.decisions,
        rewards={name: values.estimate(name) for name, values in tally.rewards.items()},
        metrics={name: values.estimate(name) for name, values in tally.metrics.items()},
        terms={
            name: {key: math.fsum(values) / len(values) for key, values in terms.items()}
            for name, terms in tally.terms.items()
        },
        deadlock_bounds=_bounds(tally.deadlocks, tally.scored, tally.failed),
        actions=dict(sorted(tally.actions.items())),
        invalid_reasons=dict(tally.invalid.most_common()),
        refusal_causes=dict(tally.causes.most_common()),
        failure_kinds=dict(tally.failures.most_common()),
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        calls=tally.calls,
        wall_s=_span(tally),
        cost=tally.cost,
        seats=_seats(cell, tally) if len(seats) > 1 else (),
        status=status,
        rankable=bool(tally.scored) and bool(tally.actions) and status != "incomplete",
        notes=tuple(notes),
    )


def _notes(cell: Cell, tally: _Tally, status: str, error_share: float) -> list[str]:
    notes = []
    if not tally.scored:
        notes.append("not rankable: no episode was scored")
    elif not tally.actions:
        worst = tally.invalid.most_common(1)
        why = f", mostly {worst[0][0]}" if worst else ""
        notes.append(f"not rankable: not one valid action in {tally.decisions} decisions{why}")
    if status == "incomplete":
        share = tally.failed / (tally.scored + tally.failed)
        notes.append(
            f"incomplete: {share:.0%} of episodes failed, above the limit of {error_share:.0%}; "
            "it takes part in no comparison"
        )
    missing = cell.episodes - tally.scored - tally.failed
    if missing > 0:
        notes.append(f"{missing} of {cell.episodes} episodes were not played")
    hinted = tally.hints[_PARSER_HINT]
    if tally.decisions and hinted / tally.decisions > _HINT_SHARE:
        notes.append(
            f"tool-call markup stood in the text of {hinted / tally.decisions:.0%} of replies: "
            "the server's tool parser may be off or wrong"
        )
    if tally.cached_calls:
        notes.append(
            f"{tally.cached_calls:,} of {tally.calls:,} calls were answered from the reply cache: "
            "in the tokens, not in the cost"
        )
    return notes


def _seats(cell: Cell, tally: _Tally) -> tuple[SeatSummary, ...]:
    def share(count: int, turns: int) -> float | None:
        return count / turns if turns else None

    return tuple(
        SeatSummary(
            seat=index,
            model=cell.seats[index],
            meals=seat.meals / tally.scored if tally.scored else 0.0,
            turns=seat.turns,
            invalid=share(seat.invalid, seat.turns),
            think=share(seat.think, seat.turns),
            unchanged=share(seat.unchanged, seat.turns),
        )
        for index, seat in enumerate(tally.seats)
    )


def _bounds(events: int, scored: int, failed: int) -> tuple[float, float] | None:
    """Best and worst rate if the failed episodes had all gone one way or the other."""
    total = scored + failed
    return (events / total, (events + failed) / total) if failed and total else None


def _plus(total: int | None, value: int | None) -> int | None:
    return None if total is None or value is None else total + value


def _span(tally: _Tally) -> float | None:
    if tally.began is None or tally.ended is None:
        return None
    return round(max(0.0, tally.ended - tally.began), 3)
