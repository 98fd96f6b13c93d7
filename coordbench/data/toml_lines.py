"""Where each key of a TOML text stands: the line numbers that `tomllib` does not give."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

__all__ = ["Key", "TomlLines"]

Key = tuple[str | int, ...]
"""Path of a value: `("variants", 0, "rules", "order")`."""

_SKIP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
# A closing delimiter may follow one or two quotes that belong to the string.
_LONG_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(?:[^']|'(?!''))*'{3,5}")
_SCALAR = re.compile(r"[^,\]}#\n]+")


class TomlLines:
    """Lines of all keys, tables and array items of a text that `tomllib` accepts.

    Parameters
    ----------
    text : str
        Valid TOML.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._lines: dict[Key, int] = {}
        self._implied: set[Key] = set()
        self._tables_in: dict[Key, int] = {}
        self._scan()

    def keys(self) -> set[Key]:
        """All paths found."""
        return set(self._lines)

    def line(self, key: Key) -> int:
        """1-based line of `key`, or of the nearest table or array around it; 1 for the root."""
        while key not in self._lines and key:
            key = key[:-1]
        return self._lines.get(key, 1)

    def line_of_text(self, key: Key, needle: str) -> int:
        """1-based line of the first `needle` at or after `key`; the key's line without one."""
        line = self.line(key)
        start = self._newlines[line - 2] + 1 if line > 1 else 0
        at = self._text.find(needle, start)
        return self._line_at(at) if at >= 0 else line

    def _line_at(self, offset: int) -> int:
        return bisect_right(self._newlines, offset - 1) + 1

    def _scan(self) -> None:
        table: Key = ()
        at = self._skip(0)
        while at < len(self._text):
            if self._text.startswith("[[", at):
                names, end = self._key(at + 2)
                table = self._open_item(names, at)
                at = end + 2
            elif self._text[at] == "[":
                names, end = self._key(at + 1)
                table = self._open_table(names, at)
                at = end + 1
            else:
                at = self._pair(table, at)
            at = self._skip(at)

    def _open_table(self, names: Key, at: int) -> Key:
        table = self._resolve(names, at)
        self._note(table, at)
        return table

    def _open_item(self, names: Key, at: int) -> Key:
        array = (*self._resolve(names[:-1], at), names[-1])
        index = self._tables_in.get(array, 0)
        self._tables_in[array] = index + 1
        if index == 0:
            self._note(array, at)
        self._note((*array, index), at)
        return (*array, index)

    def _resolve(self, names: Key, at: int) -> Key:
        """The path that a header names: an array of tables stands for its last item."""
        path: Key = ()
        for name in names:
            path = (*path, name)
            if path in self._tables_in:
                path = (*path, self._tables_in[path] - 1)
            else:
                self._imply(path, at)
        return path

    def _pair(self, table: Key, at: int) -> int:
        names, end = self._key(at)
        for depth in range(1, len(names)):
            self._imply((*table, *names[:depth]), at)
        path = (*table, *names)
        self._note(path, at)
        return self._value(path, self._after(_BLANK, end + 1))

    def _value(self, path: Key, at: int) -> int:
        text = self._text
        if text.startswith('"""', at):
            return self._after(_LONG_BASIC, at)
        if text.startswith("'''", at):
            return self._after(_LONG_LITERAL, at)
        match text[at]:
            case '"':
                return self._after(_BASIC, at)
            case "'":
                return self._after(_LITERAL, at)
            case "[":
                return self._array(path, at)
            case "{":
                return self._inline_table(path, at)
            case _:
                return self._after(_SCALAR, at)

    def _array(self, path: Key, at: int) -> int:
        at = self._skip(at + 1)
        index = 0
        while self._text[at] != "]":
            self._note((*path, index), at)
            at = self._skip(self._value((*path, index), at))
            if self._text[at] == ",":
                at = self._skip(at + 1)
            index += 1
        return at + 1

    def _inline_table(self, path: Key, at: int) -> int:
        at = self._skip(at + 1)
        while self._text[at] != "}":
            at = self._skip(self._pair(path, at))
            if self._text[at] == ",":
                at = self._skip(at + 1)
        return at + 1

    def _key(self, at: int) -> tuple[Key, int]:
        """A dotted key's names, and the offset of the `=` or `]` after it."""
        names: list[str] = []
        while True:
            at = self._after(_BLANK, at)
            quote = self._text[at]
            pattern = {'"': _BASIC, "'": _LITERAL}.get(quote, _BARE_KEY)
            end = self._after(pattern, at)
            raw = self._text[at:end]
            names.append(raw if pattern is _BARE_KEY else next(iter(tomllib.loads(f"{raw}=0"))))
            at = self._after(_BLANK, end)
            if self._text[at] != ".":
                return tuple(names), at
            at += 1

    def _note(self, path: Key, at: int) -> None:
        if path in self._implied:
            self._implied.discard(path)
            del self._lines[path]
        self._lines.setdefault(path, self._line_at(at))

    def _imply(self, path: Key, at: int) -> None:
        """A table that stands there only because a longer name goes through it."""
        if path not in self._lines:
            self._lines[path] = self._line_at(at)
            self._implied.add(path)

    def _skip(self, at: int) -> int:
        return self._after(_SKIP, at)

    def _after(self, pattern: re.Pattern[str], at: int) -> int:
        match = pattern.match(self._text, at)
        assert match is not None, f"not valid TOML at offset {at}"
        return match.end()
