"""Reading a stored run: nothing here writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from coordbench.data.episode import Episode, fold
from coordbench.data.errors import StoreError, UnknownNameError
from coordbench.data.events import TIME_FIELDS, Event
from coordbench.data.manifest import Manifest
from coordbench.data.plan import Cell
from coordbench.data.seeds import episode_seed
from coordbench.data.spec import TaskSpec
from coordbench.store.blobs import BlobPack
from coordbench.store.blocks import UNREADABLE, Block, decode_events, index_cell
from coordbench.store.finding import nearest_hint
from coordbench.store.manifests import MANIFEST, read_manifest

__all__ = ["StoredRun"]


class _CellBlocks(msgspec.Struct, frozen=True):
    """The block that counts for each episode, by index, and what was left out."""

    latest: dict[int, Block]
    problems: tuple[str, ...]


class StoredRun:
    """A stored run, as it was when each of its cells was first looked at. Made by `open`.

    Every method that reads a cell raises `StoreError` where its file cannot be trusted: it cannot
    be opened, holds another run's or cell's episodes, or two results for one episode.

    Attributes
    ----------
    path : Path
    manifest : Manifest
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._cells = {cell.id: cell for cell in manifest.cells}
        self._indices: dict[str, _CellBlocks] = {}
        self._packs: dict[str, BlobPack] = {}

    @classmethod
    def open(cls, path: Path | str) -> StoredRun:
        """Open a run folder (or its manifest file).

        Raises
        ------
        UsageError
            It is no run folder, or of another format.
        """
        path = Path(path)
        if path.name == MANIFEST:
            path = path.parent
        return cls(path, read_manifest(path))

    @property
    def spec(self) -> TaskSpec:
        """The resolved spec."""
        return self.manifest.spec

    @property
    def problems(self) -> list[str]:
        """What was left out of every cell, as `file:line: what`."""
        return [
            problem for cell in self.manifest.cells for problem in self._index(cell.id).problems
        ]

    def cell(self, cell_id: str) -> Cell:
        """The planned cell with this id."""
        if cell_id not in self._cells:
            raise UnknownNameError(
                f"{self.path} has no cell {cell_id!r}", hint=nearest_hint(cell_id, self._cells)
            )
        return self._cells[cell_id]

    def state(self, cell_id: str) -> dict[int, str]:
        """Episode index -> `completed`, `failed` or `stopped`, of those that have an end."""
        return {episode: block.status for episode, block in self._index(cell_id).latest.items()}

    def missing(self, cell_id: str) -> list[int]:
        """Episodes that a resume plays: never ended, stopped, or failed by infrastructure."""
        state = self.state(cell_id)
        return [
            episode
            for episode in range(self.cell(cell_id).episodes)
            if state.get(episode) != "completed"
        ]

    def episodes(self, cell_id: str) -> Iterator[Episode]:
        """Episodes that have an end, in index order, read one at a time."""
        rules = self.cell(cell_id).rules
        latest = self._index(cell_id).latest
        if not latest:
            return
        with self._opened(cell_id) as file:
            for block in latest.values():
                episode = fold(self._decode(cell_id, block, file), rules)
                if episode is not None:
                    yield episode

    def episode(self, cell_id: str, index: int) -> Episode:
        """One episode.

        Raises
        ------
        UnknownNameError
            It was never played to an end.
        """
        episode = fold(self.events(cell_id, index), self.cell(cell_id).rules)
        if episode is None:
            raise StoreError(f"{self._file(cell_id)}: episode {index} cannot be folded")
        return episode

    def events(self, cell_id: str, index: int) -> list[Event]:
        """Events of one episode, in order.

        Raises
        ------
        UnknownNameError
            It was never played to an end.
        """
        block = self._index(cell_id).latest.get(index)
        if block is None:
            raise UnknownNameError(
                f"{cell_id} has no episode {index}",
                hint=f"stored: {_ranges(list(self._index(cell_id).latest))}",
            )
        with self._opened(cell_id) as file:
            return self._decode(cell_id, block, file)

    def blob(self, cell_id: str, digest: str) -> bytes:
        """A prompt or raw reply of a cell by its SHA-256.

        Raises
        ------
        StoreError
            There is none, or it cannot be read.
        """
        if cell_id not in self._packs:
            self._packs[cell_id] = BlobPack(self.path / "blobs" / f"{cell_id}.jsonl")
        return self._packs[cell_id].get(digest)

    def _file(self, cell_id: str) -> Path:
        return self.path / "cells" / f"{cell_id}.jsonl"

    def _opened(self, cell_id: str) -> BinaryIO:
        try:
            return self._file(cell_id).open("rb")
        except OSError as error:
            raise self._unreadable(cell_id, error) from error

    def _unreadable(self, cell_id: str, error: OSError) -> StoreError:
        return StoreError(f"cannot read {self._file(cell_id)}: {error.strerror or error}")

    def _decode(self, cell_id: str, block: Block, file: BinaryIO) -> list[Event]:
        parts = []
        for start, end in block.spans:
            file.seek(start)
            parts.append(file.read(end - start))
        try:
            return decode_events(b"".join(parts))
        except UNREADABLE as error:
            raise StoreError(
                f"{self._file(cell_id)}:{block.line}: episode {block.episode} cannot be read: "
                f"{error}",
                hint="the file changed while it was read",
            ) from error

    def _index(self, cell_id: str) -> _CellBlocks:
        if cell_id not in self._indices:
            self._indices[cell_id] = self._look(self.cell(cell_id))
        return self._indices[cell_id]

    def _look(self, cell: Cell) -> _CellBlocks:
        """Find the block that counts for each episode.

        A later block supersedes a stopped or failed one; a completed one stands.
        """
        path = self._file(cell.id)
        try:
            index = index_cell(path)
        except OSError as error:
            raise self._unreadable(cell.id, error) from error
        latest: dict[int, Block] = {}
        notes: list[str] = []
        for block in index.blocks:
            at, episode = f"{path}:{block.line}", f"episode {block.episode}"
            self._check(cell, block)
            if not 0 <= block.episode < cell.episodes:
                notes.append(f"{at}: {episode} is not in the plan; it is left out")
                continue
            before = latest.get(block.episode)
            if before is None or before.status != "completed":
                latest[block.episode] = block
            elif block.status != "completed":
                notes.append(f"{at}: {episode} is completed above, at line {before.line}")
            elif self._content(cell.id, before) == self._content(cell.id, block):
                notes.append(f"{at}: {episode} is stored twice, alike; counted once")
            else:
                raise StoreError(
                    f"{path}: {episode} is stored twice with different events, at lines "
                    f"{before.line} and {block.line}",
                    hint="remove one of the two blocks; neither is preferred",
                )
        return _CellBlocks(dict(sorted(latest.items())), (*index.problems, *notes))

    def _check(self, cell: Cell, block: Block) -> None:
        at = f"{self._file(cell.id)}:{block.line}: episode {block.episode}"
        if block.cell != cell.id:
            raise StoreError(
                f"{at} was played in cell {block.cell!r}, not in {cell.id!r}",
                hint="the file was renamed or belongs to another run",
            )
        planned = episode_seed(self.spec.seed, cell.n, block.episode)
        if block.seed != planned:
            raise StoreError(
                f"{at} was played with seed {block.seed}, and the plan gives it {planned}",
                hint="the file belongs to another run",
            )

    def _content(self, cell_id: str, block: Block) -> list[Any]:
        with self._opened(cell_id) as file:
            events = self._decode(cell_id, block, file)
        return [_without_times(msgspec.to_builtins(event)) for event in events]


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if key not in TIME_FIELDS}
    if isinstance(value, list | tuple):
        return [_without_times(item) for item in value]
    return value


def _ranges(numbers: list[int]) -> str:
    """`0-3, 7`, of ascending numbers."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in spans) or "none"
