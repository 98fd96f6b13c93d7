"""What a model reads: the prompt of one seat's turn, rendered from the spec's templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from string import Template

import msgspec

from coordbench.api.models import (
    AssistantMessage,
    ChatMessage,
    HeardMessage,
    ModelReply,
    Observation,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from coordbench.data.actions import Action, Cause, Effect
from coordbench.data.plan import Cell
from coordbench.data.spec import Communication, Prompt, Rules

__all__ = [
    "PastRound",
    "describe_effect",
    "render_messages",
    "tools_for",
    "typical_prompt_chars",
]

_DESCRIPTIONS = {
    Action.PICK_UP_LEFT: "Pick up the fork on your left.",
    Action.PICK_UP_RIGHT: "Pick up the fork on your right.",
    Action.PUT_DOWN_LEFT: "Put the fork in your left hand back on the table.",
    Action.PUT_DOWN_RIGHT: "Put the fork in your right hand back on the table.",
    Action.EAT: "Eat one meal; you must hold both of your forks.",
    Action.THINK: "Think for this round and leave the forks as they are.",
}
_FORKS = {"free": "on the table", "mine": "in your hand", "taken": "held by your neighbour"}
_AUDIENCES = {"neighbours": "your two neighbours", "all": "all other philosophers"}
_CONFLICTS = {
    "random": "chance decides which of them gets it",
    "lowest-seat": "the one with the lower number gets it",
    "nobody": "neither of them gets it",
}
_TURN_ORDERS = {
    "fixed": "in the order of their numbers",
    "rotating": "in the order of their numbers, beginning one seat further on each round",
    "random": "in an order drawn by chance each round",
}
_DONE = {
    Action.PICK_UP_LEFT: "You picked up your left fork.",
    Action.PICK_UP_RIGHT: "You picked up your right fork.",
    Action.PUT_DOWN_LEFT: "You put down your left fork.",
    Action.PUT_DOWN_RIGHT: "You put down your right fork.",
    Action.EAT: "You ate one meal.",
    Action.THINK: "You thought and left the forks as they were.",
}
_TRIED = {
    Action.PICK_UP_LEFT: "You could not pick up your left fork",
    Action.PICK_UP_RIGHT: "You could not pick up your right fork",
    Action.PUT_DOWN_LEFT: "You could not put down your left fork",
    Action.PUT_DOWN_RIGHT: "You could not put down your right fork",
    Action.EAT: "You could not eat",
    Action.THINK: "You could not think",
}
_CAUSES = {
    Cause.FORK_TAKEN: "your neighbour holds it",
    Cause.LOST_TIE: "your neighbour reached for it at the same time",
    Cause.ALREADY_HOLDING: "you already hold it",
    Cause.NOT_HOLDING: "you do not hold it",
    Cause.FORKS_MISSING: "you do not hold both forks",
}
_UNREAD = "Your last reply was not exactly one valid tool call, so you did nothing."

_TEXT_TURNS = (SystemMessage, UserMessage)
_TOOL_CHARS = 120
"""Of a tool's JSON around its name and description."""
_CALL_CHARS = 40
"""Of an assistant turn that holds one call."""

# A line that holds nothing but one of these disappears where it has nothing to say.
_OWN_LINE = re.compile(r"\n[ \t]*\$(?:(heard|last)\b|\{(heard|last)\})[ \t]*(?=\n|\Z)")


class PastRound(msgspec.Struct, frozen=True):
    """A round as its seat lived it: one entry of its memory.

    Attributes
    ----------
    user : str
        The user turn that was shown.
    effect : str
        What came of the reply, from `describe_effect`.
    """

    user: str
    reply: ModelReply
    effect: str


def tools_for(prompt: Prompt) -> tuple[Tool, ...]:
    """The six tools under the names they have on the wire."""
    return _tools(prompt.tool_names)


def describe_effect(effect: Effect) -> str:
    """One sentence on what a seat's turn did, addressed to the seat."""
    if effect.action is None:
        return _UNREAD
    if effect.applied:
        return _DONE[effect.action]
    if effect.cause is None:
        return f"{_TRIED[effect.action]}."
    return f"{_TRIED[effect.action]}: {_CAUSES[effect.cause]}."


def render_messages(
    prompt: Prompt,
    communication: Communication,
    observation: Observation,
    memory: Sequence[PastRound] = (),
    *,
    exchange: int = -1,
) -> tuple[ChatMessage, ...]:
    """Render the conversation that asks one seat for its turn.

    The system turn, then a user, an assistant and a tool turn for each remembered round (one
    tool turn for each call of the reply), then the user turn of now. What came of the last
    reply stands in its tool turns; where there are none it opens the user turn, unless the
    template says it itself with `$last`.

    Parameters
    ----------
    memory : sequence of PastRound
        The seat's own past rounds, oldest first; the last `prompt.memory` of them are shown.
    exchange : int
        -1 for a decision, else the message round (0-based).
    """
    system = prompt.system
    fixed = _for_seat(system)
    messages: list[ChatMessage] = []
    if system:
        seat = observation.seat if fixed else -1
        messages.append(_system(prompt, communication, observation.rules, observation.n, seat))
    shown = memory[-prompt.memory :] if prompt.memory else ()
    for past in shown:
        messages.append(UserMessage(past.user))
        messages.append(AssistantMessage(past.reply))
        messages.extend(ToolMessage(index, past.effect) for index in range(len(past.reply.calls)))
    template = prompt.round if exchange < 0 else prompt.message
    text = _user_text(template, prompt, communication, observation, exchange)
    told = bool(shown and shown[-1].reply.calls)
    if observation.last is not None and not told and not _tells_last(template):
        text = f"{describe_effect(observation.last)}\n\n{text}"
    messages.append(UserMessage(text))
    return tuple(messages)


def typical_prompt_chars(cell: Cell) -> float:
    """Characters of a typical decision's prompt in `cell`, tools included, its memory full."""
    rounds = cell.rules.rounds
    tools = tools_for(cell.prompt)
    last = Effect(0, Action.PICK_UP_LEFT, applied=True, changed=True)
    heard = tuple(
        HeardMessage(seat, exchange, "." * (cell.communication.max_chars // 2))
        for exchange in range(cell.communication.rounds)
        for seat in range(2 if cell.communication.audience == "neighbours" else cell.n - 1)
    )
    observation = Observation(
        seat=0,
        n=cell.n,
        round=(rounds + 1) // 2,
        rules=cell.rules,
        left="mine",
        right="taken",
        meals=0,
        last=last,
        heard=heard,
    )
    alone = render_messages(cell.prompt, cell.communication, observation)
    text = _user_text(cell.prompt.round, cell.prompt, cell.communication, observation, -1)
    each_round = len(text) + len(describe_effect(last)) + _CALL_CHARS
    # Memory fills up from nothing: on average over the rounds this much of it is there.
    window = min(cell.prompt.memory, rounds - 1)
    filled = window * (rounds - (window + 1) / 2) / rounds
    chars = sum(len(tool.name) + len(tool.description) + _TOOL_CHARS for tool in tools)
    chars += sum(len(message.text) for message in alone if isinstance(message, _TEXT_TURNS))
    return chars + filled * each_round


@lru_cache(maxsize=8)
def _tools(names: str) -> tuple[Tool, ...]:
    return tuple(
        Tool(name=_wire_name(action, names), action=action, description=_DESCRIPTIONS[action])
        for action in Action
    )


def _wire_name(action: Action, names: str) -> str:
    return action.value.replace("-", "_") if names == "underscore" else action.value


@lru_cache(maxsize=512)
def _compiled(template: str) -> Template:
    return Template(_OWN_LINE.sub(r"${\1\2_line}", template))


@lru_cache(maxsize=512)
def _for_seat(template: str) -> bool:
    names = set(Template(template).get_identifiers())
    return bool(names & {"seat", "left_neighbour", "right_neighbour"})


@lru_cache(maxsize=512)
def _tells_last(template: str) -> bool:
    return "last" in Template(template).get_identifiers()


@lru_cache(maxsize=1024)
def _system(
    prompt: Prompt, communication: Communication, rules: Rules, n: int, seat: int
) -> SystemMessage:
    values = dict(_table_values(prompt, communication, rules, n))
    if seat >= 0:
        values |= _seat_values(seat, n)
    return SystemMessage(_compiled(prompt.system).substitute(values).strip())


@lru_cache(maxsize=256)
def _table_values(
    prompt: Prompt, communication: Communication, rules: Rules, n: int
) -> dict[str, str]:
    tools = tools_for(prompt)
    values = {tool.action.value.replace("-", "_"): tool.name for tool in tools}
    return values | {
        "n": str(n),
        "rounds": str(rules.rounds),
        "memory": str(prompt.memory),
        "exchanges": str(communication.rounds),
        "max_chars": str(communication.max_chars),
        "audience": _AUDIENCES[communication.audience],
        "rules": _rules_text(rules, communication),
        "tools": "\n".join(f"- {tool.name}: {tool.description}" for tool in tools),
    }


def _seat_values(seat: int, n: int) -> dict[str, str]:
    return {
        "seat": str(seat),
        "left_neighbour": str((seat - 1) % n),
        "right_neighbour": str((seat + 1) % n),
    }


def _user_text(
    template: str,
    prompt: Prompt,
    communication: Communication,
    observation: Observation,
    exchange: int,
) -> str:
    rules = observation.rules
    heard = _heard_text(observation, communication) if observation.heard else ""
    last = describe_effect(observation.last) if observation.last is not None else ""
    values = {
        **_table_values(prompt, communication, rules, observation.n),
        **_seat_values(observation.seat, observation.n),
        "round": str(observation.round),
        "rounds_left": str(rules.rounds - observation.round),
        "left": _FORKS[observation.left],
        "right": _FORKS[observation.right],
        "meals": str(observation.meals),
        "exchange": str(exchange + 1),
        "last": last,
        "last_line": f"\n{last}" if last else "",
        "heard": heard,
        "heard_line": f"\n{heard}" if heard else "",
    }
    return _compiled(template).substitute(values).strip()


def _heard_text(observation: Observation, communication: Communication) -> str:
    lines = ["Messages you heard:"]
    for message in observation.heard:
        when = f" (message round {message.exchange + 1})" if communication.rounds > 1 else ""
        # On one line, so that no message can pass for another seat's.
        lines.append(f"- Philosopher {message.seat}{when}: {' '.join(message.text.split())}")
    return "\n".join(lines)


def _rules_text(rules: Rules, communication: Communication) -> str:
    if rules.order == "simultaneous":
        lines = [
            "In each round all philosophers choose at the same time, from the same state of the "
            "table. Forks are put down first, then picked up, then philosophers eat.",
            "If two neighbours reach for the same free fork in one round, "
            f"{_CONFLICTS[rules.conflict]}.",
        ]
    else:
        lines = [
            "In each round the philosophers act one after another, "
            f"{_TURN_ORDERS[rules.turn_order]}, each seeing the table as it then is."
        ]
    lines.append("Eating takes both of your forks, in your hands before you choose to eat.")
    lines.append(
        "After eating, both forks return to the table by themselves."
        if rules.release_after_eating
        else "After eating, you still hold both forks until you put them down, one per round."
    )
    lines.append("An action that is not possible changes nothing.")
    lines.append(
        "If every philosopher holds exactly one fork, the table is deadlocked"
        + (" and the episode ends." if rules.on_deadlock == "end" else ".")
    )
    if communication.rounds:
        times = "once" if communication.rounds == 1 else f"{communication.rounds} times"
        lines.append(
            f"Before each choice, every philosopher may {times} send a message of at most "
            f"{communication.max_chars} characters to {_AUDIENCES[communication.audience]}."
        )
    return "\n".join(lines)
