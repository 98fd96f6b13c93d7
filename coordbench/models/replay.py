"""`replay/<run>`: answers again what a stored run's models answered, without a call."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from coordbench.api.models import CallContext, ModelError, ModelInfo, ModelReply, ModelRequest
from coordbench.data.errors import CoordbenchError, UsageError
from coordbench.data.events import (
    CallRecord,
    EpisodeStarted,
    FailureRecord,
    MessageSent,
    TurnTaken,
)

if TYPE_CHECKING:
    from coordbench.data.plan import Cell
    from coordbench.store import StoredRun

__all__ = ["ReplayModel", "ReplayOptions", "build_replay", "check_replay"]

_MOST_GAMES = 256
"""Episodes in play at once that keep their place; what is answered is forgotten at once."""
_MOST_REPLIES = 256
_DECISION = -1


class ReplayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `replay`: which recorded cell answers, where the run has several for one N.

    Attributes
    ----------
    cell : str
        Its id.
    team : str
        The team (the model's name, where one model took all seats); one cell for each N.
    variant : str
        The variant of rules or prompt.
    """

    cell: str = ""
    team: str = ""
    variant: str = ""


def build_replay(target: str, options: ReplayOptions) -> ReplayModel:
    """Build `replay/<run>`; the target is a path, the start of a run's name, or `latest`.

    Raises
    ------
    UsageError
        There is no such run or cell, or several cells could answer.
    """
    return ReplayModel(*_select(target, options))


def check_replay(target: str, options: ReplayOptions) -> None:
    """Raise what `build_replay` would."""
    _select(target, options)


class _Recorded(msgspec.Struct):
    """What one seat was answered at one place, and how much of it was served."""

    calls: tuple[CallRecord, ...]
    failure: FailureRecord | None
    served: int = 0


class _Game:
    """One recorded episode while it is replayed.

    Attributes
    ----------
    answers : mapping
        (round, seat, exchange) -> what is still to be served there.
    last : mapping
        Seat -> the latest place it was answered at.
    """

    def __init__(self, answers: dict[tuple[int, int, int], _Recorded]) -> None:
        self.answers = answers
        self.last: dict[int, tuple[int, float]] = {}


class ReplayModel:
    """Answers by (N, episode, seed, round, seat, message round) from recorded replies.

    A turn that took several calls is answered in their order. Where the replay leaves the recorded
    run (other rules, another agent, other decisions of the other seats) there may be no answer:
    that is a failure of the episode, never a guess.

    Parameters
    ----------
    stored : StoredRun
    cells : mapping
        N -> the cell that answers for it.
    """

    def __init__(self, stored: StoredRun, cells: dict[int, str]) -> None:
        self._stored = stored
        self._cells = cells
        self._games: OrderedDict[tuple[str, int, int], _Game] = OrderedDict()
        self._replies: dict[tuple[str, str], ModelReply] = {}
        self._decoder = msgspec.json.Decoder(ModelReply)
        self._info = ModelInfo(
            provider="replay",
            model=stored.manifest.run,
            endpoint="replay",
            instant=True,
            reads_text=False,
            tool_mode="replay",
        )

    @property
    def info(self) -> ModelInfo:
        """Instant and free."""
        return self._info

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded reply; a recorded failure is raised again.

        Raises
        ------
        ModelError
            `config` where nothing was recorded for this place; else the recorded kind.
        """
        context, view = request.context, request.observation
        if context is None or view is None:
            raise ModelError("config", "a replay answers within an episode only", scope="cell")
        cell = self._cells.get(view.n)
        if cell is None:
            known = ", ".join(str(n) for n in sorted(self._cells))
            raise ModelError(
                "config",
                f"{self._info.model} has no cell with N = {view.n}, only {known}",
                scope="cell",
            )
        game = self._game(cell, view.n, context)
        key = (context.round, context.seat, context.exchange)
        recorded = game.answers.get(key)
        game.last[context.seat] = _place(context)
        if recorded is None:
            raise ModelError("config", self._nothing(cell, context), scope="episode")
        while recorded.served < len(recorded.calls):
            call = recorded.calls[recorded.served]
            recorded.served += 1
            if recorded.served == len(recorded.calls) and recorded.failure is None:
                del game.answers[key]
            if call.reply is not None:
                return self._reply(cell, call.reply)
        raise self._failed(cell, context, recorded.failure)

    async def aclose(self) -> None:
        """Forget what was read."""
        self._games.clear()
        self._replies.clear()

    def _reply(self, cell: str, digest: str) -> ModelReply:
        known = self._replies.get((cell, digest))
        if known is not None:
            return known
        try:
            reply = self._decoder.decode(self._stored.blob(cell, digest))
        except (msgspec.DecodeError, RecursionError, OSError, CoordbenchError) as error:
            raise ModelError(
                "config", f"the recorded reply cannot be read: {error}", scope="episode"
            ) from error
        if len(self._replies) >= _MOST_REPLIES:
            self._replies.clear()
        self._replies[cell, digest] = reply
        return reply

    def _failed(self, cell: str, context: CallContext, failure: FailureRecord | None) -> ModelError:
        if failure is None or failure.kind == "stopped":
            # A budget that ended the recorded run must not end this one.
            return ModelError("config", self._nothing(cell, context), scope="episode")
        return ModelError(
            failure.kind, f"recorded: {failure.message}", scope="episode", status=failure.status
        )

    def _nothing(self, cell: str, context: CallContext) -> str:
        what = "decision" if context.exchange == _DECISION else f"message {context.exchange + 1}"
        return (
            f"{self._info.model} recorded no (other) answer for cell {cell}, episode "
            f"{context.episode}, round {context.round}, seat {context.seat}, {what}: it was "
            "stopped there, or rules, agent or the other seats differ from the recorded run"
        )

    def _game(self, cell: str, n: int, context: CallContext) -> _Game:
        key = (context.cell, n, context.episode)
        game = self._games.get(key)
        # A seat that is asked for an earlier round than before plays the episode anew.
        if game is None or _place(context) < game.last.get(context.seat, (0, 0)):
            game = self._games[key] = self._load(cell, context)
        self._games.move_to_end(key)
        if len(self._games) > _MOST_GAMES:
            self._games.popitem(last=False)
        return game

    def _load(self, cell: str, context: CallContext) -> _Game:
        try:
            events = self._stored.events(cell, context.episode)
        except CoordbenchError as error:
            raise ModelError("config", str(error), scope="episode") from error
        started = events[0]
        if not isinstance(started, EpisodeStarted) or started.seed != context.episode_seed:
            raise ModelError(
                "config",
                f"{self._info.model} played episode {context.episode} of {cell} with another seed",
                scope="cell",
            )
        answers: dict[tuple[int, int, int], _Recorded] = {}
        for event in events:
            if isinstance(event, TurnTaken):
                exchange = _DECISION
            elif isinstance(event, MessageSent):
                exchange = event.exchange
            else:
                continue
            key = (event.round, event.seat, exchange)
            before = answers.get(key)
            calls = (*before.calls, *event.calls) if before is not None else event.calls
            answers[key] = _Recorded(calls, event.failure)
        return _Game(answers)


def _place(context: CallContext) -> tuple[int, float]:
    """Where a call stands within its episode: messages come before the decision of a round."""
    exchange = context.exchange
    return context.round, float("inf") if exchange == _DECISION else exchange


def _select(target: str, options: ReplayOptions) -> tuple[StoredRun, dict[int, str]]:
    """The run, and for each N the one cell that answers."""
    # Imported here: listing what is installed must stay fast.
    from coordbench.store import StoredRun, find_run

    stored = StoredRun.open(find_run(target or "latest"))
    if options.cell:
        stored.cell(options.cell)
    cells = [
        cell
        for cell in stored.manifest.cells
        if options.cell in ("", cell.id)
        and options.team in ("", cell.team)
        and options.variant in ("", cell.variant)
    ]
    if not cells:
        raise UsageError(
            f"{stored.path} has no cell of team {options.team!r}, variant {options.variant!r}",
            hint=f"its cells: {_listed(stored.manifest.cells)}",
        )
    by_n: dict[int, list[Cell]] = {}
    for cell in cells:
        by_n.setdefault(cell.n, []).append(cell)
    for n, several in by_n.items():
        if len(several) > 1:
            raise UsageError(
                f"{stored.path} has several cells with N = {n}: {_listed(several)}",
                hint=f"name one: replay/{target},cell={several[0].id} (or team=..., variant=...)",
            )
    return stored, {n: several[0].id for n, several in by_n.items()}


def _listed(cells: tuple[Cell, ...] | list[Cell]) -> str:
    return ", ".join(cell.id for cell in cells)
