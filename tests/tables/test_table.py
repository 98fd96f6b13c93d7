"""The table: examples of each rule, random play, and seeded faults that must be caught."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import EXAMPLES, run_examples, run_machine

from coordbench.api import UsageError
from coordbench.data.actions import Action
from coordbench.data.spec import Rules
from coordbench.tables import draws as draws_module
from coordbench.tables import table as table_module
from coordbench.tables.table import Table

FAULTS: dict[str, tuple[str, str]] = {
    "eats with the left fork alone": (
        "if forks[seat] == seat and forks[self._right[seat]] == seat:",
        "if forks[seat] == seat:",
    ),
    "eats without any fork": (
        "if forks[seat] == seat and forks[self._right[seat]] == seat:",
        "if True:",
    ),
    "a meal counts twice": ("counts[seat] += 1", "counts[seat] += 2"),
    "a meal goes to the neighbour": ("counts[seat] += 1", "counts[self._right[seat]] += 1"),
    "pick-ups come before put-downs": (
        "        self._put_down(acting, actions, forks, done)\n"
        "        self._pick_up(acting, actions, forks, done, state.round + 1)\n",
        "        self._pick_up(acting, actions, forks, done, state.round + 1)\n"
        "        self._put_down(acting, actions, forks, done)\n",
    ),
    "a put-down hands the fork to the neighbour": (
        "forks[fork] = ON_TABLE\n                    done",
        "forks[fork] = self._right[seat]\n                    done",
    ),
    "putting down what a neighbour holds frees it": (
        "if forks[fork] == seat:\n                    forks[fork] = ON_TABLE",
        "if forks[fork] != ON_TABLE:\n                    forks[fork] = ON_TABLE",
    ),
    "a taken fork is taken away": (
        "if forks[fork] == ON_TABLE:\n                    reaching",
        "if forks[fork] != seat:\n                    reaching",
    ),
    "a tie always goes to the seat on the right": (
        "return fork if self.draws.coin(round_, fork) else (fork - 1) % self.n",
        "return (fork - 1) % self.n",
    ),
    "a tie ignores the rule `nobody`": (
        'if self.rules.conflict == "nobody":',
        'if self.rules.conflict == "no-one":',
    ),
    "a tie ignores the rule `lowest-seat`": ("return min(seats)", "return max(seats)"),
    "ties are drawn alike in every round": (
        "self.draws.coin(round_, fork)",
        "self.draws.coin(0, fork)",
    ),
    "the loser of a tie is told that the fork was taken before": (
        "Cause.LOST_TIE)",
        "Cause.NOT_HOLDING)",
    ),
    "both win a tie in the log": (
        "done[seat] = Effect(seat, action, False, False, Cause.LOST_TIE)",
        "done[seat] = Effect(seat, action, True, True)",
    ),
    "a deadlock is seen wherever all forks are held": (
        "return ON_TABLE not in forks and len(set(forks)) == len(forks)",
        "return ON_TABLE not in forks",
    ),
    "a deadlock is never seen": (
        "return ON_TABLE not in forks and len(set(forks)) == len(forks)",
        "return False",
    ),
    "a deadlock ends play although it should go on": (
        'return deadlocked and self.rules.on_deadlock == "end"',
        "return deadlocked",
    ),
    "think changes the table": (
        "done[seat] = Effect(seat, action, action is not None, False)",
        "done[seat] = Effect(seat, action, action is not None, action is not None)",
    ),
    "an invalid reply counts as applied": (
        "done[seat] = Effect(seat, action, action is not None, False)",
        "done[seat] = Effect(seat, action, True, False)",
    ),
    "forks stay in the hands although they should be released": (
        "if self.rules.release_after_eating:",
        "if False:",
    ),
    "only one fork is released": (
        "forks[seat] = forks[self._right[seat]] = ON_TABLE",
        "forks[seat] = ON_TABLE",
    ),
    "the last seat's right fork is not fork 0": (
        "tuple((seat + 1) % n for seat in range(n))",
        "tuple(min(seat + 1, n - 1) for seat in range(n))",
    ),
    "sequential rounds never end": ("or turn == self.n", "or turn > self.n"),
    "rotating turns do not rotate": (
        "seat = (state.round + state.turn) % self.n",
        "seat = state.turn",
    ),
    "play goes on for a round too long": (
        "if state.round >= self.rules.rounds:",
        "if state.round > self.rules.rounds:",
    ),
    "a seat sees its neighbour's fork as its own": (
        'return "mine" if holder == seat else "taken"',
        'return "mine"',
    ),
    "actions for a seat that does not act are taken": (
        "if len(actions) != len(acting) or any(seat not in actions for seat in acting):",
        "if False:",
    ),
}
"""Name -> (exact source, faulty source)."""


def faulty_table(name: str) -> type[Any]:
    """The table with one seeded fault. The true snippet must stand in the source exactly once."""
    source = Path(table_module.__file__ or "").read_text(encoding="utf-8")
    true, faulty = FAULTS[name]
    assert source.count(true) == 1, f"the seeded fault {name!r} no longer fits the source"
    module = ModuleType(f"faulty_{abs(hash(name))}")
    sys.modules[module.__name__] = module
    exec(compile(source.replace(true, faulty), module.__name__, "exec"), module.__dict__)
    table: type[Any] = module.Table
    return table


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_the_table_follows_its_rules(example: Any) -> None:
    example(Table)


def test_random_play_keeps_every_rule() -> None:
    run_machine(Table, examples=120, shrink=True)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_seeded_fault_is_caught(fault: str) -> None:
    table_class = faulty_table(fault)

    def suite() -> None:
        run_examples(table_class)
        run_machine(table_class)

    with pytest.raises((AssertionError, KeyError, IndexError)):
        suite()


@pytest.mark.parametrize("n", [1, 0, -3])
def test_a_table_needs_two_seats(n: int) -> None:
    with pytest.raises(UsageError, match="at least 2"):
        Table(n, Rules(rounds=1), 0)


ACTIONS = st.sampled_from([*Action, None])


@given(st.integers(2, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))), st.data())
@settings(deadline=None, max_examples=100)
def test_turning_the_table_turns_the_play(size: tuple[int, int], data: st.DataObject) -> None:
    """No seat is special: under `nobody`, play commutes with rotation."""
    n, shift = size
    rules = Rules(rounds=50, conflict="nobody", on_deadlock="continue")
    table = Table(n, rules, 0)
    state = turned = table.start()

    def turn(forks: tuple[int, ...]) -> tuple[int, ...]:
        moved = [-1] * n
        for fork, holder in enumerate(forks):
            moved[(fork + shift) % n] = -1 if holder == -1 else (holder + shift) % n
        return tuple(moved)

    for _ in range(data.draw(st.integers(1, 12))):
        row = data.draw(st.lists(ACTIONS, min_size=n, max_size=n))
        state = table.step(state, dict(enumerate(row))).state
        moved_row = {(seat + shift) % n: action for seat, action in enumerate(row)}
        turned = table.step(turned, moved_row).state
        assert turned.forks == turn(state.forks)
        assert turned.meals == tuple(state.meals[(seat - shift) % n] for seat in range(n))


def test_draws_do_not_depend_on_what_was_drawn_before() -> None:
    draws = draws_module.Draws(9)
    alone = draws.coin(3, 2)
    for round_ in range(50):
        draws.coin(round_, 1)
        draws.permutation(round_, 5)
    assert draws.coin(3, 2) == alone
    assert len({draws_module.Draws(seed).permutation(1, 4) for seed in range(400)}) == 24
