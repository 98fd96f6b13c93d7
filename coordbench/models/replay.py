"""`replay/<run>`: answers again what a stored run's models answered, without a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from coordbench.api.models import CallContext, ModelError, ModelInfo, ModelReply, ModelRequest
from coordbench.data.errors import CoordbenchError, UsageError
from coordbench.data.events import CallRecord, FailureRecord, MessageSent, TurnTaken

if TYPE_CHECKING:
    from coordbench.store import StoredRun

__all__ = ["ReplayOptions", "build_replay"]

_Key = tuple[int, int, int]
"""(round, seat, exchange)"""


class ReplayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `replay`.

    Attributes
    ----------
    cell : str
        The recorded cell to answer from; may stay empty where the run has one cell for each N.
    """

    cell: str = ""


class _Recorded(msgspec.Struct):
    """What one seat was answered at one place, and how much of it was served."""

    calls: tuple[CallRecord, ...]
    failure: FailureRecord | None
    served: int = 0


class _Game(msgspec.Struct):
    """One recorded episode while it is replayed."""

    cell: str
    answers: dict[_Key, _Recorded]


def build_replay(target: str, options: ReplayOptions) -> ReplayModel:
    """Build `replay/<run>`.

    Raises
    ------
    UsageError
        There is no such run or cell, or several cells could answer.
    """
    # Imported here: listing what is installed must stay fast.
    from coordbench.store import StoredRun, find_run

    stored = StoredRun.open(find_run(target or "latest"))
    if options.cell:
        stored.cell(options.cell)
        return ReplayModel(stored, {stored.cell(options.cell).n: options.cell})
    by_n: dict[int, str] = {}
    for cell in stored.manifest.cells:
        if cell.n in by_n:
            raise UsageError(
                f"{stored.path} has several cells with N = {cell.n}",
                hint=f"name one: replay/{target},cell={cell.id}",
            )
        by_n[cell.n] = cell.id
    return ReplayModel(stored, by_n)


class ReplayModel:
    """Answers by (N, episode, round, seat, message round) from recorded replies.

    Parameters
    ----------
    stored : StoredRun
    cells : mapping
        N -> the cell that answers for it.
    """

    def __init__(self, stored: StoredRun, cells: dict[int, str]) -> None:
        self._stored = stored
        self._cells = cells
        self._games: dict[tuple[int, int], _Game] = {}
        self._decoder = msgspec.json.Decoder(ModelReply)
        self._info = ModelInfo(
            provider="replay",
            model=stored.path.name,
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
        """The recorded reply; a recorded failure is raised again."""
        context, view = request.context, request.observation
        if context is None or view is None:
            raise ModelError("config", "a replay answers within an episode only", scope="cell")
        game = self._game(view.n, context)
        key = (context.round, context.seat, context.exchange)
        recorded = game.answers.get(key)
        if recorded is None or (
            recorded.served >= len(recorded.calls) and recorded.failure is None
        ):
            raise ModelError(
                "config",
                f"{self._stored.path.name} recorded no answer for cell {game.cell}, episode "
                f"{context.episode}, round {context.round}, seat {context.seat}: rules, agent or "
                "the other seats differ from the recorded run",
                scope="episode",
            )
        while recorded.served < len(recorded.calls):
            call = recorded.calls[recorded.served]
            recorded.served += 1
            if call.reply is not None:
                return self._reply(game.cell, call.reply)
        assert recorded.failure is not None
        raise ModelError(
            recorded.failure.kind, f"recorded: {recorded.failure.message}", scope="episode"
        )

    async def aclose(self) -> None:
        """Forget what was read."""
        self._games.clear()

    def _reply(self, cell: str, digest: str) -> ModelReply:
        try:
            return self._decoder.decode(self._stored.blob(cell, digest))
        except (msgspec.DecodeError, CoordbenchError) as error:
            raise ModelError(
                "config", f"the recorded reply cannot be read: {error}", scope="episode"
            ) from error

    def _game(self, n: int, context: CallContext) -> _Game:
        key = (n, context.episode)
        game = self._games.get(key)
        if game is None or (context.round == 1 and game.cell and self._restarted(game, context)):
            cell = self._cells.get(n)
            if cell is None:
                raise ModelError(
                    "config",
                    f"{self._stored.path.name} has no cell with N = {n}",
                    scope="cell",
                )
            # One episode at a time is in play; older ones need not stay in memory.
            self._games = {key: self._load(cell, context)}
            game = self._games[key]
        return game

    @staticmethod
    def _restarted(game: _Game, context: CallContext) -> bool:
        first = game.answers.get((context.round, context.seat, context.exchange))
        return first is not None and first.served >= len(first.calls) > 0

    def _load(self, cell: str, context: CallContext) -> _Game:
        try:
            events = self._stored.events(cell, context.episode)
        except CoordbenchError as error:
            raise ModelError("config", error.message, scope="episode") from error
        started = events[0]
        if getattr(started, "seed", None) != context.episode_seed:
            raise ModelError(
                "config",
                f"{self._stored.path.name} played episode {context.episode} of {cell} with "
                "another seed",
                scope="cell",
            )
        answers: dict[_Key, _Recorded] = {}
        for event in events:
            if isinstance(event, TurnTaken):
                key = (event.round, event.seat, -1)
            elif isinstance(event, MessageSent):
                key = (event.round, event.seat, event.exchange)
            else:
                continue
            answers[key] = _Recorded(calls=event.calls, failure=event.failure)
        return _Game(cell=cell, answers=answers)
