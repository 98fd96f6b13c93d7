"""Scripted policies: models that need no key, and the baselines every report shows.

A policy sees what any seat sees (its own two forks, its meals, what its last action did) and a
seed; it keeps nothing between calls. Where nobody gets a fork that two seats reach for
(`conflict = "nobody"`), policies without a draw can reach for it together for ever.
"""

from __future__ import annotations

from collections.abc import Callable

from coordbench.api.models import ModelInfo, ModelReply, ModelRequest, Observation, RawCall
from coordbench.api.offers import NoOptions
from coordbench.data.actions import Action
from coordbench.data.errors import UnknownNameError
from coordbench.data.events import Usage
from coordbench.data.suggest import nearest
from coordbench.tables.draws import mix64

__all__ = ["POLICIES", "Policy", "build_script", "check_script"]

Policy = Callable[[Observation, int], Action | None]
"""(observation, seed) -> action; None answers without a call."""

_ALL = tuple(Action)
_NO_TOKENS = Usage(input_tokens=0, output_tokens=0)


def silent(view: Observation, seed: int) -> Action | None:
    """Answer without a call."""
    return None


def idle(view: Observation, seed: int) -> Action | None:
    """Always think."""
    return Action.THINK


def busy_idle(view: Observation, seed: int) -> Action | None:
    """Call tools that change nothing: put down what one does not hold, eat without forks."""
    if view.round % 2:
        return Action.EAT
    return Action.PUT_DOWN_LEFT if seed & 1 else Action.PUT_DOWN_RIGHT


def random(view: Observation, seed: int) -> Action | None:
    """Any of the six tools."""
    return _ALL[mix64(seed) % len(_ALL)]


def random_legal(view: Observation, seed: int) -> Action | None:
    """Any tool that the seat's own view does not rule out."""
    legal = [Action.THINK]
    legal += _turn(view.left, Action.PICK_UP_LEFT, Action.PUT_DOWN_LEFT)
    legal += _turn(view.right, Action.PICK_UP_RIGHT, Action.PUT_DOWN_RIGHT)
    if view.left == "mine" == view.right:
        legal.append(Action.EAT)
    return legal[mix64(seed) % len(legal)]


def grab_left(view: Observation, seed: int) -> Action | None:
    """Left fork, right fork, eat, put both down; wait for a fork for ever."""
    return _in_order(view, left_first=True)


def resource_order(view: Observation, seed: int) -> Action | None:
    """Lower-numbered fork first, and put down last: Dijkstra's solution, no circular wait.

    A seat's only fork is always its lower-numbered one: the right one for the last seat, the left
    one for the others. So never do all seats hold one fork, not even while forks change hands.
    """
    return _in_order(view, left_first=view.seat != view.n - 1, first_down_last=True)


def parity(view: Observation, seed: int) -> Action | None:
    """Even seats left fork first, odd seats right fork first; the first one is put down last.

    No circular wait, for the same reason as in resource order.
    """
    return _in_order(view, left_first=view.seat % 2 == 0, first_down_last=True)


def polite_backoff(view: Observation, seed: int) -> Action | None:
    """As grab-left, but draw the first fork where both are alike, and half the time put down the
    only fork one holds when the other is taken.
    """
    draw = mix64(seed)
    if draw & 1 and not _ate(view):
        if view.left == "mine" and view.right == "taken":
            return Action.PUT_DOWN_LEFT
        if view.right == "mine" and view.left == "taken":
            return Action.PUT_DOWN_RIGHT
    return _in_order(view, left_first=bool(draw & 2) if view.left == view.right else True)


def optimal(view: Observation, seed: int) -> Action | None:
    """The seat's part in the fair schedule of a perfect team."""
    from coordbench.tables.optimum import fair_schedule

    return fair_schedule(view.n, view.rules.rounds, view.rules)[view.round - 1][view.seat]


POLICIES: dict[str, Policy] = {
    "silent": silent,
    "idle": idle,
    "busy-idle": busy_idle,
    "random": random,
    "random-legal": random_legal,
    "grab-left": grab_left,
    "resource-order": resource_order,
    "parity": parity,
    "polite-backoff": polite_backoff,
    "optimal": optimal,
}
"""Name -> policy."""


def check_script(target: str, options: NoOptions) -> None:
    """Refuse a policy that does not exist.

    Raises
    ------
    UnknownNameError
    """
    if target not in POLICIES:
        near = nearest(target, POLICIES)
        said = f"no scripted policy {target!r}" if target else "script needs a policy"
        hint = f"did you mean script/{near}? " if near else ""
        raise UnknownNameError(said, hint=f"{hint}policies: {', '.join(POLICIES)}")


def build_script(target: str, options: NoOptions) -> ScriptedModel:
    """Build `script/<policy>`.

    Raises
    ------
    UnknownNameError
        There is no such policy.
    """
    check_script(target, options)
    return ScriptedModel(target)


class ScriptedModel:
    """A policy as an ordinary model.

    Parameters
    ----------
    name : str
        A key of `POLICIES`.
    """

    def __init__(self, name: str) -> None:
        self._policy = POLICIES[name]
        self._info = ModelInfo(
            provider="script", model=name, endpoint="script", instant=True, reads_text=False
        )
        self._nothing = ModelReply(stop="stop", stop_native="stop", usage=_NO_TOKENS)
        self._tools: tuple[object, ...] = ()
        self._replies: dict[Action, ModelReply] = {}

    @property
    def info(self) -> ModelInfo:
        """Instant, free, reads no text."""
        return self._info

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer by the policy; in a message round, say nothing."""
        view = request.observation
        if not request.tools or view is None:
            return self._nothing
        seed = request.seed
        if seed is None:
            seed = mix64(view.round << 16 | view.seat)
        action = self._policy(view, seed)
        if action is None:
            return self._nothing
        if request.tools is not self._tools:
            self._tools = request.tools
            self._replies = {
                tool.action: ModelReply(
                    stop="tool_calls",
                    stop_native="tool_calls",
                    calls=(RawCall(name=tool.name, arguments="{}", id="script"),),
                    usage=_NO_TOKENS,
                )
                for tool in request.tools
            }
        # A task may offer fewer tools than a policy knows: then it has no call to make.
        return self._replies.get(action, self._nothing)

    async def aclose(self) -> None:
        """Nothing to close."""


def _ate(view: Observation) -> bool:
    """Whether the last thing the seat did was a meal or putting down after one."""
    last = view.last
    if last is None or not last.applied:
        return False
    return last.action in (Action.EAT, Action.PUT_DOWN_LEFT, Action.PUT_DOWN_RIGHT)


def _in_order(view: Observation, *, left_first: bool, first_down_last: bool = False) -> Action:
    """Pick up in a fixed order, eat once, put both down, begin again.

    Parameters
    ----------
    first_down_last : bool
        Put down in the reverse order of picking up, instead of left then right.
    """
    has_left, has_right = view.left == "mine", view.right == "mine"
    if has_left and has_right:
        if not _ate(view):
            return Action.EAT
        return Action.PUT_DOWN_RIGHT if first_down_last and left_first else Action.PUT_DOWN_LEFT
    if has_left:
        return Action.PUT_DOWN_LEFT if _ate(view) else Action.PICK_UP_RIGHT
    if has_right:
        return Action.PUT_DOWN_RIGHT if _ate(view) else Action.PICK_UP_LEFT
    return Action.PICK_UP_LEFT if left_first else Action.PICK_UP_RIGHT


def _turn(fork: str, up: Action, down: Action) -> list[Action]:
    if fork == "free":
        return [up]
    return [down] if fork == "mine" else []
