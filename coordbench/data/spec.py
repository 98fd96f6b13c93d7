"""The task spec: every choice that makes two reports comparable, as data.

A spec is written in TOML and decoded strictly by `coordbench.data.decode`. Every field is
printed in every report; where the study of origin is silent, the field's default is the
reading this project takes, and `choices` says so in words.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

__all__ = [
    "Communication",
    "Limits",
    "Prompt",
    "Reading",
    "Rules",
    "Sampling",
    "TaskSpec",
    "Team",
    "Variant",
]

Seats = Annotated[int, msgspec.Meta(ge=2, le=1000)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the spec: frozen, strict."""


class Rules(_Part, frozen=True, kw_only=True):
    """The rules of the table (pure, deterministic).

    Seat i's left fork is i, its right fork is (i+1) mod N. All seats start empty-handed.

    Attributes
    ----------
    rounds : int
        Rounds an episode lasts at most. In sequential order one round is one turn of each seat.
    order : str
        `simultaneous`: all seats decide on one snapshot; put-downs apply first, then pick-ups,
        then eating. `sequential`: seats act in turn, each seeing the table as it now is.
    conflict : str
        Who gets a free fork that both neighbours reach for in one simultaneous round.
    turn_order : str
        Sequential only. `fixed`: 0..N-1. `rotating`: round r starts at seat (r-1) mod N.
        `random`: a seeded permutation per round.
    release_after_eating : bool
        Both forks return to the table at the end of the step in which the seat ate.
    on_deadlock : str
        `end` the episode when every seat holds exactly one fork, or count it and `continue`.
    """

    rounds: Positive
    order: Literal["simultaneous", "sequential"] = "simultaneous"
    conflict: Literal["random", "lowest-seat", "nobody"] = "random"
    turn_order: Literal["fixed", "rotating", "random"] = "fixed"
    release_after_eating: bool = False
    on_deadlock: Literal["end", "continue"] = "end"


class Communication(_Part, frozen=True, kw_only=True):
    """Message rounds before each decision. Messages are text, never read as actions."""

    rounds: Count = 0
    audience: Literal["neighbours", "all"] = "neighbours"
    max_chars: Positive = 280


class Prompt(_Part, frozen=True, kw_only=True):
    """What an LLM is told. Templates use `string.Template` fields (`$seat`, `$n`, ...).

    Attributes
    ----------
    system, round, message : str
        The system prompt; the user turn of a decision; the user turn of a message round.
    memory : int
        How many of its own past rounds an agent is shown (0: none).
    tool_names : str
        Surface form of the six names on the wire. Underscores pass everywhere.
    """

    system: str
    round: str
    message: str = ""
    memory: Count = 0
    tool_names: Literal["underscore", "hyphen"] = "underscore"


class Sampling(_Part, frozen=True, kw_only=True):
    """Sampling asked of every model. Local engines' defaults differ, so all are explicit."""

    temperature: Annotated[float, msgspec.Meta(ge=0.0)] = 0.7
    top_p: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 1.0
    max_tokens: Positive = 512
    seeded: bool = True
    """Send a seed derived from the episode, where the provider takes one."""


class Reading(_Part, frozen=True, kw_only=True):
    """How replies are read. See `coordbench.reading`."""

    recover: bool = False


class Limits(_Part, frozen=True, kw_only=True):
    """When a cell counts as incomplete, and how long and how often a call is tried."""

    error_share: Share = 0.1
    """A cell with a larger share of failed episodes takes part in no comparison."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0.0)] = 120.0
    tries: Positive = 5
    """How often a call is tried. A busy server's refusals end it only after `max_wait_s` too."""
    max_wait_s: Annotated[float, msgspec.Meta(ge=0.0)] = 60.0
    """The longest single wait, and how long a call waits in all for a server that is busy."""


class Team(_Part, frozen=True, kw_only=True):
    """Which model sits where: `seats` is repeated around the table until N seats are filled.

    `n` and `episodes` override the task's for this team: a slow model may play fewer cells.
    """

    name: str
    seats: tuple[str, ...]
    n: tuple[Seats, ...] = ()
    episodes: Positive | None = None

    def model_at(self, seat: int) -> str:
        """Name of the model at `seat` (0-based)."""
        return self.seats[seat % len(self.seats)]


class Variant(_Part, frozen=True, kw_only=True):
    """A named change of rules, communication or prompt: some fields of each, the rest as is."""

    name: str
    rules: dict[str, Any] = {}
    communication: dict[str, Any] = {}
    prompt: dict[str, Any] = {}


class TaskSpec(_Part, frozen=True, kw_only=True):
    """One task: what is played, how it is shown to models, and what is reported.

    Attributes
    ----------
    n : tuple of int
        Table sizes; one cell per team, N and variant.
    seed : int
        The run seed; episode seeds follow from it, N and the episode's index.
    models, teams
        Played when the command names none.
    rewards, metrics : tuple of str
        Offer names; `metrics` empty means all standard ones.
    primary : str
        The outcome a comparison is about: `reward` (the first one) or a metric's name.
    agent : str
        Offer name of the agent that models act through. `auto`: `langgraph`, and `direct` where
        all seats are scripted.
    choices : mapping
        Where the source is silent: the question, and the reading taken.
    """

    name: str
    rules: Rules
    prompt: Prompt
    description: str = ""
    source: str = ""
    n: tuple[Seats, ...] = (5,)
    episodes: Positive = 30
    seed: Count = 0
    models: tuple[str, ...] = ()
    teams: tuple[Team, ...] = ()
    agent: str = "auto"
    rewards: tuple[str, ...] = ("study",)
    metrics: tuple[str, ...] = ()
    primary: str = "reward"
    communication: Communication = Communication()
    sampling: Sampling = Sampling()
    reading: Reading = Reading()
    limits: Limits = Limits()
    variants: tuple[Variant, ...] = ()
    choices: dict[str, str] = {}
