"""Reading a stored run: nothing here writes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from coordbench.data.episode import Episode, fold
from coordbench.data.errors import ResumeError, StoreError, UnknownNameError, UsageError
from coordbench.data.events import TIME_FIELDS, Event
from coordbench.data.manifest import FORMAT, Manifest
from coordbench.data.plan import Cell, Plan
from coordbench.data.seeds import episode_seed
from coordbench.data.spec import TaskSpec
from coordbench.store.blobs import BlobPack
from coordbench.store.blocks import Block, CellIndex, decode_events, index_cell

__all__ = ["MANIFEST", "StoredRun", "check_resume", "find_run", "read_manifest"]

MANIFEST = "manifest.json"
_LATEST = "latest"
_MOST_DIFFERENCES = 5


def read_manifest(path: Path) -> Manifest:
    """The manifest of the run folder `path`.

    Raises
    ------
    UsageError
        There is none, it cannot be read, or it is of another format.
    """
    file = path / MANIFEST
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"{path} is not a run folder: it holds no {MANIFEST}",
            hint="name a folder that `coordbench run` made, or `latest`",
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from error
    try:
        found = msgspec.json.decode(data)
        format_ = found.get("format") if isinstance(found, dict) else None
        if format_ is not None and format_ != FORMAT:
            raise UsageError(
                f"{file}: format {format_!r}, and this coordbench reads format {FORMAT}",
                hint=f"use the version that wrote it: {found.get('coordbench') or 'unknown'}",
            )
        return msgspec.convert(found, Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


class StoredRun:
    """A stored run. Made by `open`.

    Attributes
    ----------
    path : Path
    manifest : Manifest
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._cells = {cell.id: cell for cell in manifest.cells}
        self._indices: dict[str, tuple[CellIndex, dict[int, Block], tuple[str, ...]]] = {}
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
        if path.name == MANIFEST and path.is_file():
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
            problem
            for cell in self.manifest.cells
            for problem in (*self._index(cell.id)[0].problems, *self._index(cell.id)[2])
        ]

    def cell(self, cell_id: str) -> Cell:
        """The planned cell with this id."""
        if cell_id not in self._cells:
            raise UnknownNameError(
                f"{self.path} has no cell {cell_id!r}", hint=_nearest(cell_id, self._cells)
            )
        return self._cells[cell_id]

    def state(self, cell_id: str) -> dict[int, str]:
        """Episode index -> `completed`, `failed` or `stopped`, of those that have an end."""
        return {episode: block.status for episode, block in self._index(cell_id)[1].items()}

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
        for events in self._blocks(cell_id):
            episode = fold(events, rules)
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
        """Events of one episode, in order."""
        block = self._index(cell_id)[1].get(index)
        if block is None:
            raise UnknownNameError(
                f"{cell_id} has no episode {index}",
                hint=f"stored: {_ranges(sorted(self.state(cell_id)))}",
            )
        with self._file(cell_id).open("rb") as file:
            return self._decode(cell_id, block, file)

    def blob(self, cell_id: str, digest: str) -> bytes:
        """A prompt or raw reply of a cell by its SHA-256."""
        if cell_id not in self._packs:
            self._packs[cell_id] = BlobPack(self.path / "blobs" / f"{cell_id}.jsonl")
        return self._packs[cell_id].get(digest)

    def _file(self, cell_id: str) -> Path:
        return self.path / "cells" / f"{cell_id}.jsonl"

    def _blocks(self, cell_id: str) -> Iterator[list[Event]]:
        latest = self._index(cell_id)[1]
        if not latest:
            return
        with self._file(cell_id).open("rb") as file:
            for _, block in sorted(latest.items()):
                yield self._decode(cell_id, block, file)

    def _decode(self, cell_id: str, block: Block, file: Any) -> list[Event]:
        file.seek(block.start)
        data = file.read(block.end - block.start)
        try:
            return decode_events(data)
        except msgspec.DecodeError as error:
            raise StoreError(
                f"{self._file(cell_id)}:{block.line}: episode {block.episode} cannot be read: "
                f"{error}"
            ) from error

    def _index(self, cell_id: str) -> tuple[CellIndex, dict[int, Block], tuple[str, ...]]:
        if cell_id not in self._indices:
            cell = self.cell(cell_id)
            index = index_cell(self._file(cell_id))
            self._indices[cell_id] = (index, *self._latest(cell, index))
        return self._indices[cell_id]

    def _latest(self, cell: Cell, index: CellIndex) -> tuple[dict[int, Block], tuple[str, ...]]:
        """The block that counts for each episode, and notes on those that don't.

        A later block supersedes a stopped or failed one; a completed one stands.
        """
        latest: dict[int, Block] = {}
        notes: list[str] = []
        path = self._file(cell.id)
        for block in index.blocks:
            expected = episode_seed(self.spec.seed, cell.n, block.episode)
            if block.seed != expected:
                raise StoreError(
                    f"{path}:{block.line}: episode {block.episode} was played with seed "
                    f"{block.seed}, and the plan gives it {expected}",
                    hint="the file belongs to another run",
                )
            before = latest.get(block.episode)
            if before is not None and before.status == "completed":
                if block.status != "completed":
                    continue
                if self._content(cell.id, before) != self._content(cell.id, block):
                    raise StoreError(
                        f"{path}: episode {block.episode} is stored twice with different events, "
                        f"at lines {before.line} and {block.line}",
                        hint="remove one of the two blocks; neither is preferred",
                    )
                notes.append(
                    f"{path}:{block.line}: episode {block.episode} is stored twice, alike; "
                    "counted once"
                )
                continue
            latest[block.episode] = block
        return latest, tuple(notes)

    def _content(self, cell_id: str, block: Block) -> list[Any]:
        with self._file(cell_id).open("rb") as file:
            events = self._decode(cell_id, block, file)
        return [_without_times(msgspec.to_builtins(event)) for event in events]


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if key not in TIME_FIELDS}
    if isinstance(value, list | tuple):
        return [_without_times(item) for item in value]
    return value


def find_run(name: str, roots: Sequence[Path | str] = ("runs", "reports")) -> Path:
    """The folder of a run: a path, `latest`, or the start of a run's name under `roots`.

    Raises
    ------
    UnknownNameError
        There is none, or several start so.
    """
    path = Path(name)
    if path.exists():
        return path.parent if path.name == MANIFEST else path
    runs = [
        folder.parent
        for root in roots
        if Path(root).is_dir()
        for folder in sorted(Path(root).glob(f"*/{MANIFEST}"))
    ]
    where = " or ".join(f"{root}/" for root in roots)
    if not runs:
        raise UnknownNameError(
            f"no run {name!r}: there is no such folder, and none under {where}",
            hint="`coordbench run` makes one",
        )
    if name == _LATEST:
        return max(runs, key=lambda run: (run / MANIFEST).stat().st_mtime)
    matches = [run for run in runs if run.name == name] or [
        run for run in runs if run.name.startswith(name)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UnknownNameError(
            f"several runs start with {name!r}: {', '.join(run.name for run in matches)}"
        )
    raise UnknownNameError(
        f"no run {name!r} under {where}", hint=_nearest(name, [run.name for run in runs])
    )


def check_resume(manifest: Manifest, plan: Plan) -> None:
    """Refuse to mix two experiments in one run folder.

    Raises
    ------
    ResumeError
        The plan asked for is not the one that was recorded; names what differs.
    """
    if manifest.digest == plan.digest:
        return
    recorded = msgspec.to_builtins(manifest.spec)
    asked = msgspec.to_builtins(plan.spec)
    found = list(_differences(recorded, asked))
    if not found:
        found = ["the cells (models, agents or their order)"]
    shown = "; ".join(found[:_MOST_DIFFERENCES])
    more = f"; and {len(found) - _MOST_DIFFERENCES} more" if len(found) > _MOST_DIFFERENCES else ""
    raise ResumeError(
        f"run {manifest.run} was recorded with other settings: {shown}{more}",
        hint="resume without those options, or start a new run",
    )


def _differences(recorded: Any, asked: Any, key: str = "") -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for name in [*recorded, *(name for name in asked if name not in recorded)]:
            inner = f"{key}.{name}" if key else str(name)
            yield from _differences(recorded.get(name), asked.get(name), inner)
    elif recorded != asked:
        yield f"{key} was {_short(recorded)}, now {_short(asked)}"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known: " + ", ".join(list(known)[:10])


def _ranges(numbers: list[int]) -> str:
    if not numbers:
        return "none"
    parts: list[str] = []
    begin = previous = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == previous + 1:
            previous = number
            continue
        parts.append(str(begin) if begin == previous else f"{begin}-{previous}")
        if number is not None:
            begin = previous = number
    return ", ".join(parts)
