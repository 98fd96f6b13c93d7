"""Episodes of the real table: by a scripted policy, or at random."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from coordbench.api import Observation, Rules
from coordbench.data.actions import Action, Effect, InvalidReason
from coordbench.data.episode import Episode, fold
from coordbench.data.events import EpisodeEnded, EpisodeStarted, Event, TableStepped, TurnTaken
from coordbench.data.seeds import call_seed
from coordbench.models.script import POLICIES
from coordbench.tables.table import Table

__all__ = ["episodes", "play_events", "scripted_episode", "turned"]


def play_events(
    n: int, rules: Rules, seed: int, choose: Any, *, index: int = 0, cell: str = "cell"
) -> list[Event]:
    """Events of one episode; `choose(view, seed) -> Action | None` for every turn."""
    table = Table(n, rules, seed)
    state, transition = table.start(), None
    last: list[Effect | None] = [None] * n
    events: list[Event] = [
        EpisodeStarted(episode=index, cell=cell, seed=seed, n=n, team=("model",) * n)
    ]
    while not table.is_over(state, transition):
        actions: dict[int, Action | None] = {}
        for seat in table.to_act(state):
            left, right = table.view(state, seat)
            meals = state.meals[seat]
            view = Observation(seat, n, state.round + 1, rules, left, right, meals, last[seat])
            action = choose(view, call_seed(seed, state.round + 1, seat))
            actions[seat] = action
            events.append(
                TurnTaken(
                    episode=index,
                    round=state.round + 1,
                    seat=seat,
                    action=action,
                    invalid=InvalidReason.NO_TOOL_CALL if action is None else None,
                )
            )
        transition = table.step(state, actions)
        for effect in transition.effects:
            last[effect.seat] = effect
        events.append(
            TableStepped(
                episode=index,
                round=state.round + 1,
                effects=transition.effects,
                forks=transition.state.forks,
                meals=transition.state.meals,
                deadlock=transition.deadlock,
            )
        )
        state = transition.state
    ended_early = transition is not None and transition.deadlock
    events.append(
        EpisodeEnded(
            episode=index,
            status="completed",
            reason="deadlock" if ended_early and rules.on_deadlock == "end" else "rounds",
            rounds=max(state.round, 1) if transition is not None else 0,
        )
    )
    return events


def scripted_episode(policy: str, n: int, rules: Rules, seed: int = 3) -> Episode:
    """One episode of a scripted policy on all seats."""
    episode = fold(play_events(n, rules, seed, POLICIES[policy]), rules)
    assert episode is not None
    return episode


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    """A random episode: any rules, any actions, invalid replies among them."""
    rules = draw(
        st.builds(
            Rules,
            rounds=st.integers(1, 8),
            order=st.sampled_from(["simultaneous", "sequential"]),
            release_after_eating=st.booleans(),
            on_deadlock=st.sampled_from(["end", "continue"]),
        )
    )
    n = draw(st.integers(2, 6))
    eager = draw(st.booleans())
    random = draw(st.randoms(use_true_random=False))

    def choose(view: Observation, seed: int) -> Action | None:
        if eager and view.left == view.right == "mine":
            return Action.EAT
        if eager and random.random() < 0.7:
            return Action.PICK_UP_RIGHT if view.left == "mine" else Action.PICK_UP_LEFT
        chosen: Action | None = random.choice([*Action, None])
        return chosen

    episode = fold(play_events(n, rules, draw(st.integers(0, 2**31 - 1)), choose), rules)
    assert episode is not None
    return episode


def turned(episode: Episode, by: int = 1) -> Episode:
    """The same episode with every seat moved on by `by` places."""
    n = episode.n

    def moved(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(values[(seat - by) % n] for seat in range(n))

    def effect(old: Effect | None) -> Effect | None:
        if old is None:
            return None
        return msgspec.structs.replace(old, seat=(old.seat + by) % n)

    return Episode(
        **{
            field: getattr(episode, field)
            for field in episode.__struct_fields__
            if field not in ("meals", "turns", "steps")
        },
        meals=moved(episode.meals),
        turns=tuple(
            msgspec.structs.replace(turn, seat=(turn.seat + by) % n, effect=effect(turn.effect))
            for turn in episode.turns
        ),
        steps=(),
    )
