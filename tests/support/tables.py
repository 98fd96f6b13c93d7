"""Checks of a table that know the rules but not how the table applies them.

Every check takes the table's class, so that the same checks run on the true table and on tables
with a seeded fault.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from coordbench.data.actions import Action, Cause
from coordbench.data.spec import Rules

__all__ = ["EXAMPLES", "check_step", "run_examples", "run_machine"]

TableClass = Callable[[int, Rules, int], Any]

L, R = Action.PICK_UP_LEFT, Action.PICK_UP_RIGHT
DL, DR = Action.PUT_DOWN_LEFT, Action.PUT_DOWN_RIGHT
EAT, THINK = Action.EAT, Action.THINK
PICK_UPS, PUT_DOWNS = {L: 0, R: 1}, {DL: 0, DR: 1}


def check_step(table: Any, before: Any, actions: Mapping[int, Action | None], rules: Rules) -> Any:
    """Apply one step and check it against the rules; returns the transition."""
    n = table.n
    acting = table.to_act(before)
    frozen = (before.forks, before.meals, before.round, before.turn)
    transition = table.step(before, actions)
    assert (before.forks, before.meals, before.round, before.turn) == frozen
    shuffled = dict(reversed(list(actions.items())))
    again = table.step(before, shuffled)
    assert tuple(again) == tuple(transition), "a step depends on the order of its actions"
    after, effects = transition.state, {effect.seat: effect for effect in transition.effects}
    assert tuple(effects) == tuple(acting)
    assert all(-1 <= holder < n for holder in after.forks)
    for seat, effect in effects.items():
        assert effect.action is actions[seat]
        assert effect.applied or not effect.changed
        assert effect.applied == (effect.cause is None and actions[seat] is not None)
        if actions[seat] in (None, THINK):
            assert not effect.changed
        elif effect.applied:
            assert effect.changed
    for fork in range(n):
        _check_fork(fork, n, before, after, actions, effects, rules)
    for seat in range(n):
        _check_meals(seat, n, before, after, actions, effects, rules)
    _check_refusals(n, before, after, actions, effects, rules)
    held = [after.forks.count(seat) for seat in range(n)]
    assert transition.deadlock == all(count == 1 for count in held)
    _check_clock(before, after, transition, rules, n)
    return transition


def _check_fork(
    fork: int,
    n: int,
    before: Any,
    after: Any,
    actions: Mapping[int, Action | None],
    effects: Mapping[int, Any],
    rules: Rules,
) -> None:
    """A fork moves only between the table and a seat beside it that acted so."""
    was, now = before.forks[fork], after.forks[fork]
    right_hand_of = (fork - 1) % n
    wanting = {
        seat for seat, action in ((fork, L), (right_hand_of, R)) if _did(actions, seat, action)
    }
    putting = {
        seat for seat, action in ((fork, DL), (right_hand_of, DR)) if _did(actions, seat, action)
    }
    freed = was == -1 or was in putting
    if was not in (-1, now) and was not in putting:
        ate = was in effects and effects[was].action is EAT and effects[was].applied
        assert ate and rules.release_after_eating, "a fork left a hand that did not put it down"
        assert now == -1
        return
    if now not in (-1, was):
        assert now in wanting, "a fork went to a seat that did not reach for it"
        assert freed
    if freed and len(wanting) == 1:
        (seat,) = wanting
        assert now == seat, "a free fork was refused to the only seat that reached for it"
    if freed and len(wanting) == 2:
        expected = {"nobody": {-1}, "lowest-seat": {min(wanting)}, "random": wanting}
        assert now in expected[rules.conflict]
    if not freed and was != -1:
        assert now == was
    if freed and not wanting:
        assert now == -1


def _check_meals(
    seat: int,
    n: int,
    before: Any,
    after: Any,
    actions: Mapping[int, Action | None],
    effects: Mapping[int, Any],
    rules: Rules,
) -> None:
    gained = after.meals[seat] - before.meals[seat]
    both = before.forks[seat] == seat == before.forks[(seat + 1) % n]
    eats = _did(actions, seat, EAT)
    assert gained == int(eats and both), "a meal without both forks, or none with them"
    if eats:
        assert effects[seat].applied == both
        if both:
            kept = after.forks[seat] == seat == after.forks[(seat + 1) % n]
            assert kept != rules.release_after_eating


def _check_refusals(
    n: int,
    before: Any,
    after: Any,
    actions: Mapping[int, Action | None],
    effects: Mapping[int, Any],
    rules: Rules,
) -> None:
    for seat, action in actions.items():
        effect = effects[seat]
        if action in PICK_UPS:
            fork = (seat + PICK_UPS[action]) % n
            got = after.forks[fork] == seat and before.forks[fork] != seat
            assert effect.applied == got
            if before.forks[fork] == seat:
                assert effect.cause is Cause.ALREADY_HOLDING
            elif not got:
                other = fork if seat != fork else (fork - 1) % n
                tie = effect.cause is Cause.LOST_TIE
                assert tie or effect.cause is Cause.FORK_TAKEN
                if tie:
                    assert _did(actions, other, R if other != fork else L)
        elif action in PUT_DOWNS:
            fork = (seat + PUT_DOWNS[action]) % n
            assert effect.applied == (before.forks[fork] == seat)
            if not effect.applied:
                assert effect.cause is Cause.NOT_HOLDING
        elif action is EAT and not effect.applied:
            assert effect.cause is Cause.FORKS_MISSING


def _check_clock(before: Any, after: Any, transition: Any, rules: Rules, n: int) -> None:
    if rules.order == "simultaneous" or before.turn == n - 1:
        assert transition.round_over
        assert (after.round, after.turn) == (before.round + 1, 0)
    else:
        assert not transition.round_over
        assert (after.round, after.turn) == (before.round, before.turn + 1)


def _did(actions: Mapping[int, Action | None], seat: int, action: Action) -> bool:
    return actions.get(seat) is action


def _play(
    table_class: TableClass, n: int, rules: Rules, rows: Iterable[Any], seed: int = 0
) -> tuple[Any, Any]:
    table = table_class(n, rules, seed)
    state, transition = table.start(), None
    for row in rows:
        actions = row if isinstance(row, dict) else dict(enumerate(row))
        transition = check_step(table, state, actions, rules)
        state = transition.state
    return state, transition


def example_all_reach_left_is_a_deadlock(table_class: TableClass) -> None:
    state, transition = _play(table_class, 5, Rules(rounds=9), [[L] * 5])
    assert state.forks == (0, 1, 2, 3, 4)
    assert transition.deadlock
    table = table_class(5, Rules(rounds=9), 0)
    assert table.is_over(state, transition)
    goes_on = table_class(5, Rules(rounds=9, on_deadlock="continue"), 0)
    assert not goes_on.is_over(state, transition)


def example_a_seat_without_a_fork_is_no_deadlock(table_class: TableClass) -> None:
    _, transition = _play(table_class, 3, Rules(rounds=9), [[L, L, THINK]])
    assert not transition.deadlock
    _, transition = _play(table_class, 2, Rules(rounds=9), [[L, THINK], [R, THINK]])
    assert not transition.deadlock


def example_a_seat_eats_with_both_forks_and_keeps_them(table_class: TableClass) -> None:
    rows = [[L, THINK, THINK], [R, THINK, THINK], [EAT, THINK, THINK], [EAT, THINK, THINK]]
    state, _ = _play(table_class, 3, Rules(rounds=9), rows)
    assert state.meals == (2, 0, 0)
    assert state.forks == (0, 0, -1)


def example_forks_go_back_after_eating_where_the_rules_say_so(table_class: TableClass) -> None:
    rules = Rules(rounds=9, release_after_eating=True)
    state, _ = _play(
        table_class, 3, rules, [[THINK, THINK, L], [THINK, THINK, R], [THINK, THINK, EAT]]
    )
    assert state.meals == (0, 0, 1)
    assert state.forks == (-1, -1, -1)


def example_a_fork_put_down_can_be_picked_up_in_the_same_round(table_class: TableClass) -> None:
    state, _ = _play(table_class, 3, Rules(rounds=9), [[L, THINK, THINK], [DL, THINK, R]])
    assert state.forks == (2, -1, -1)


def example_sequential_seats_see_the_table_as_it_is(table_class: TableClass) -> None:
    rules = Rules(rounds=9, order="sequential")
    state, transition = _play(table_class, 2, rules, [{0: L}, {1: R}])
    assert state.forks == (0, -1)
    assert transition.effects[0].cause is Cause.FORK_TAKEN
    assert state.round == 1


def example_turn_orders(table_class: TableClass) -> None:
    def order(turn_order: Any, rounds: int) -> list[int]:
        rules = Rules(rounds=9, order="sequential", turn_order=turn_order)
        table = table_class(4, rules, 5)
        state, seen = table.start(), []
        for _ in range(4 * rounds):
            (seat,) = table.to_act(state)
            seen.append(seat)
            state = table.step(state, {seat: THINK}).state
        return seen

    assert order("fixed", 2) == [0, 1, 2, 3, 0, 1, 2, 3]
    assert order("rotating", 3) == [0, 1, 2, 3, 1, 2, 3, 0, 2, 3, 0, 1]
    drawn = order("random", 40)
    rounds = [tuple(drawn[index : index + 4]) for index in range(0, 160, 4)]
    assert all(sorted(row) == [0, 1, 2, 3] for row in rounds)
    assert len(set(rounds)) > 8


def example_ties_are_fair_and_seeded(table_class: TableClass) -> None:
    wins = {0: 0, 1: 0}
    for seed in range(400):
        state, _ = _play(table_class, 2, Rules(rounds=9), [[L, R]], seed)
        again, _ = _play(table_class, 2, Rules(rounds=9), [[L, R]], seed)
        assert state == again
        wins[state.forks[0]] += 1
    assert 150 < wins[0] < 250
    ordered, _ = _play(table_class, 3, Rules(rounds=9, conflict="lowest-seat"), [[L, THINK, R]])
    assert ordered.forks[0] == 0
    nobody, _ = _play(table_class, 3, Rules(rounds=9, conflict="nobody"), [[L, THINK, R]])
    assert nobody.forks[0] == -1


def example_ties_of_one_round_are_drawn_apart(table_class: TableClass) -> None:
    patterns = set()
    for seed in range(64):
        state, _ = _play(table_class, 4, Rules(rounds=9), [[L, R, L, R]], seed)
        patterns.add((state.forks[0] == 0, state.forks[2] == 2))
    assert len(patterns) == 1 or len(patterns) == 4
    later = set()
    for seed in range(64):
        rows = [[L, R], [DL, DL], [DR, DR], [L, R]]
        first, _ = _play(table_class, 2, Rules(rounds=9, on_deadlock="continue"), rows[:1], seed)
        last, _ = _play(table_class, 2, Rules(rounds=9, on_deadlock="continue"), rows, seed)
        later.add((first.forks[0], last.forks[0]))
    assert len(later) == 4


def example_the_rounds_end(table_class: TableClass) -> None:
    table = table_class(2, Rules(rounds=2), 0)
    state, transition = table.start(), None
    for expected in (False, False, True):
        assert table.is_over(state, transition) is expected
        if not expected:
            transition = table.step(state, {0: THINK, 1: None})
            state = transition.state


def example_views(table_class: TableClass) -> None:
    table = table_class(3, Rules(rounds=9), 0)
    state, _ = _play(table_class, 3, Rules(rounds=9), [[L, THINK, THINK], [THINK, R, THINK]])
    assert [table.view(state, seat) for seat in range(3)] == [
        ("mine", "free"),
        ("free", "mine"),
        ("taken", "taken"),
    ]


def example_wrong_keys_are_refused(table_class: TableClass) -> None:
    table = table_class(3, Rules(rounds=9), 0)
    for actions in ({0: THINK}, {0: THINK, 1: THINK, 3: THINK}, {}):
        refused = False
        with contextlib.suppress(ValueError):
            table.step(table.start(), actions)
            refused = True
        assert not refused


EXAMPLES = [value for name, value in sorted(globals().items()) if name.startswith("example_")]


def run_examples(table_class: TableClass) -> None:
    """Every example."""
    for example in EXAMPLES:
        example(table_class)


def _machine(table_class: TableClass) -> type[RuleBasedStateMachine]:
    rules_strategy = st.builds(
        Rules,
        rounds=st.just(1000),
        order=st.sampled_from(["simultaneous", "sequential"]),
        conflict=st.sampled_from(["random", "lowest-seat", "nobody"]),
        turn_order=st.sampled_from(["fixed", "rotating", "random"]),
        release_after_eating=st.booleans(),
        on_deadlock=st.just("continue"),
    )
    action = st.sampled_from([*Action, L, R, EAT, None])

    class TableMachine(RuleBasedStateMachine):
        """Random play in which every step is checked."""

        @initialize(n=st.integers(2, 6), rules=rules_strategy, seed=st.integers(0, 2**31 - 1))
        def begin(self, n: int, rules: Rules, seed: int) -> None:
            self.table_rules = rules
            self.table = table_class(n, rules, seed)
            self.state = self.table.start()
            assert self.state.forks == (-1,) * n
            assert self.state.meals == (0,) * n

        @rule(actions=st.lists(action, min_size=6, max_size=6))
        def anything(self, actions: list[Action | None]) -> None:
            chosen = {seat: actions[seat] for seat in self.table.to_act(self.state)}
            self.state = check_step(self.table, self.state, chosen, self.table_rules).state

        @rule(lazy=st.sets(st.integers(0, 5)))
        def towards_a_meal(self, lazy: set[int]) -> None:
            chosen: dict[int, Action | None] = {}
            for seat in self.table.to_act(self.state):
                left, right = self.table.view(self.state, seat)
                if seat in lazy:
                    chosen[seat] = THINK
                elif left == right == "mine":
                    chosen[seat] = EAT
                else:
                    chosen[seat] = R if left == "mine" else L
            self.state = check_step(self.table, self.state, chosen, self.table_rules).state

        @rule()
        def all_put_down(self) -> None:
            for down in (DL, DR):
                chosen = dict.fromkeys(self.table.to_act(self.state), down)
                self.state = check_step(self.table, self.state, chosen, self.table_rules).state

    return TableMachine


def run_machine(table_class: TableClass, *, examples: int = 60, shrink: bool = False) -> None:
    """Random play, the same one at every run."""
    run_state_machine_as_test(
        _machine(table_class),
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
