r"""The grammar of names, one for all kinds of offers.

::

    [plugin:]name[/target][,key=value...]

    openai/gpt-5.4,temperature=0.2        adapter/runs/grpo-n5@best
    paper,variance=0                      example:echo
    sum,terms=[study,"paper,variance=0"]  vllm/qwen,base_url=http://127.0.0.1:8000/v1

Only the part before the first `/` and the first `,` may hold `plugin:`, so a target and a value
may hold colons. A target or value that holds a comma, begins with `"`, or begins or ends with
white space is put in double quotes, in which `\"` and `\\` stand for `"` and `\`. A value that
begins with `[` is a list; inside one, `]` needs quotes as well.
"""

from __future__ import annotations

import re
from typing import NoReturn

import msgspec

from coordbench.data.errors import UsageError

__all__ = ["Name", "Value", "parse_name", "render_name", "render_value"]

Value = str | tuple["Value", ...]
"""Of an option: text as written, or a list."""

_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# Line ends would tear a table's row, lone surrogates can't be stored as UTF-8.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_DEEPEST = 16
_EXAMPLE = "names look like openai/gpt-5.4,temperature=0.2 or study,variance=0"


class Name(msgspec.Struct, frozen=True):
    """A name, taken apart but not looked up.

    Attributes
    ----------
    name : str
        Of the offer.
    target : str
        What follows the slash; empty where nothing does.
    options : tuple of (key, value)
        As written, in that order; no key twice.
    plugin : str
        The prefix; empty where none was written.
    """

    name: str
    target: str = ""
    options: tuple[tuple[str, Value], ...] = ()
    plugin: str = ""


def parse_name(text: str) -> Name:
    """Take a name apart.

    Raises
    ------
    UsageError
        The text is not a name; says where it stops being one.
    """
    return _Parser(text).name()


def render_name(name: Name) -> str:
    """Write a name so that `parse_name` reads it back: `parse_name(render_name(x)) == x`."""
    parts = [f"{name.plugin}:" if name.plugin else "", name.name]
    if name.target:
        parts += ["/", _quoted(name.target, ",")]
    for key, value in name.options:
        parts += [",", key, "=", render_value(value)]
    return "".join(parts)


def render_value(value: Value) -> str:
    """Write one value, with quotes where it needs them."""
    if isinstance(value, str):
        return _quoted(value, ",", opens="[")
    return "[" + ",".join(_element(item) for item in value) + "]"


def _element(value: Value) -> str:
    return _quoted(value, ",]", opens="[") if isinstance(value, str) else render_value(value)


def _quoted(text: str, special: str, opens: str = "") -> str:
    plain = text and text == text.strip() and text[0] not in '"' + opens
    if plain and not any(char in text for char in special):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.at = 0
        if not self.text:
            raise UsageError("a name is empty", hint=_EXAMPLE)
        if found := _UNWRITABLE.search(self.text):
            self._fail(f"it holds the character {found[0]!a}")

    def name(self) -> Name:
        plugin, name = self._head()
        target = ""
        if self._peek() == "/":
            self.at += 1
            target = self._scalar(",")
            if not target:
                self._fail("nothing follows the slash", "name a target, or leave the slash out")
        options: dict[str, Value] = {}
        while self.at < len(self.text):
            self.at += 1
            key, value = self._option()
            if key in options:
                self._fail(f"the option {key!r} is given twice")
            options[key] = value
        return Name(name=name, target=target, options=tuple(options.items()), plugin=plugin)

    def _head(self) -> tuple[str, str]:
        while self._peek() not in ("/", ",", ""):
            self.at += 1
        head = self.text[: self.at].strip()
        plugin, colon, name = head.rpartition(":")
        if ":" in plugin:
            self._fail(
                "more than one colon stands before the first slash",
                "a target that holds colons follows a slash: name/target",
            )
        if "=" in head:
            self._fail("an option stands where the name should", _EXAMPLE)
        for word in (plugin, name) if colon else (name,):
            if not _WORD.fullmatch(word):
                self._fail(f"{word!r} is no name of a plugin or offer", _EXAMPLE)
        return plugin, name

    def _option(self) -> tuple[str, Value]:
        start = self.at
        while self._peek() not in ("=", ",", ""):
            self.at += 1
        key = self.text[start : self.at].strip()
        if self._peek() != "=":
            self._fail(
                f"the option {key!r} has no value" if key else "nothing follows a comma",
                'options are key=value; a target that holds a comma needs quotes: name/"a,b"',
            )
        if not _KEY.fullmatch(key):
            self._fail(f"{key!r} is no option", _EXAMPLE)
        self.at += 1
        self._skip_blanks()
        return key, self._list(1) if self._peek() == "[" else self._scalar(",")

    def _list(self, depth: int) -> Value:
        if depth > _DEEPEST:
            self._fail(f"lists are nested deeper than {_DEEPEST}")
        self.at += 1
        self._skip_blanks()
        items: list[Value] = []
        while self._peek() != "]" or items:
            start = self.at
            items.append(self._list(depth + 1) if self._peek() == "[" else self._scalar(",]"))
            if self.at == start and self._peek():
                self._fail('a list holds an empty item; write ""')
            if self._peek() == "]":
                break
            if not self._peek():
                self._fail("a list has no closing ]")
            self.at += 1
            self._skip_blanks()
        self.at += 1
        self._skip_blanks()
        if self._peek() not in ("", ",", "]") or (depth == 1 and self._peek() == "]"):
            self._fail(
                f"{self.text[self.at :]!r} follows the end of a list",
                'a value that is no list but begins with "[", and a nested name with options, '
                'need quotes: terms=[study,"paper,variance=0"]',
            )
        return tuple(items)

    def _scalar(self, ends: str) -> str:
        self._skip_blanks()
        if self._peek() == '"':
            return self._quoted_scalar(ends)
        start = self.at
        while self._peek() and self._peek() not in ends:
            self.at += 1
        return self.text[start : self.at].strip()

    def _quoted_scalar(self, ends: str) -> str:
        self.at += 1
        chars: list[str] = []
        while (char := self._peek()) != '"':
            if char == "\\":
                self.at += 1
                char = self._peek()
                if char and char not in '"\\':
                    chars.append("\\")
            if not char:
                self._fail("a quote is not closed")
            chars.append(char)
            self.at += 1
        self.at += 1
        self._skip_blanks()
        if self._peek() and self._peek() not in ends:
            self._fail(f"{self.text[self.at :]!r} follows a closing quote")
        return "".join(chars)

    def _skip_blanks(self) -> None:
        while self._peek() == " ":
            self.at += 1

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _fail(self, what: str, hint: str = "") -> NoReturn:
        shown = self.text.encode("utf-8", "backslashreplace").decode()
        raise UsageError(f"cannot read the name {shown!r}: {what}", hint=hint)
