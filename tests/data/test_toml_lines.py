"""The line locator finds every key that tomllib reads, and where it stands."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordbench.data.toml_lines import Key, TomlLines

NASTY = '''\
# comment with [brackets] and "quotes" and = signs
title = "a # no comment [x] \\" = 1" # real comment
"quoted key" = 1
'literal.key' = 2
a.b.c = 3
  a . "b" . d = 4
empty = ""
long = """
[not.a.table]
x = 1 # not a comment \\""" still
five quotes""""" # done
raw = \'\'\'
n = [1,
\'\'quoted\'\' \\\'\'\'\'\'
dates = [1979-05-27 07:32:00, 1979-05-27T07:32:00Z]
arr = [ # comment, with ] bracket
  1,
  [ "]", 'x' , { k = "}" , m.n = [1,2] } ],
  # another
  3, # trailing
]
inline = { x = { y = 1 }, "z w" = "," }

[implied.deep.table]
k = 1
[implied]
k = 2
[[items]]
name = "first"
[items.sub]
v = 1
[[items.nested]]
v = 2
[[items.nested]]
v = 3
[[ items ]]
name = "second"
[ items . sub ]
v.w = 4
'''


def paths(value: Any, at: Key = ()) -> set[Key]:
    found = {at} if at else set()
    if isinstance(value, dict):
        for key, item in value.items():
            found |= paths(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found |= paths(item, (*at, index))
    return found


def test_finds_what_tomllib_finds() -> None:
    assert TomlLines(NASTY).keys() == paths(tomllib.loads(NASTY))


@pytest.mark.parametrize(
    ("key", "starts"),
    [
        (("title",), "title ="),
        (("quoted key",), '"quoted key"'),
        (("a",), "a.b.c"),
        (("a", "b", "d"), "  a . "),
        (("long",), 'long = """'),
        (("raw",), "raw ="),
        (("dates", 1), "dates"),
        (("arr", 0), "  1,"),
        (("arr", 1, 2, "m", "n", 1), '  [ "]"'),
        (("arr", 2), "  3,"),
        (("inline", "z w"), "inline"),
        (("implied", "deep"), "[implied.deep.table]"),
        (("implied",), "[implied]"),
        (("items", 0, "nested", 1), "[[items.nested]]\nv = 3"),
        (("items", 1), "[[ items ]]"),
        (("items", 1, "sub", "v", "w"), "v.w = 4"),
    ],
)
def test_names_the_line(key: Key, starts: str) -> None:
    expected = NASTY[: NASTY.index(starts)].count("\n") + 1
    assert TomlLines(NASTY).line(key) == expected


def test_unknown_keys_fall_back_to_what_is_around_them() -> None:
    lines = TomlLines("a = 1\n[t]\nb = 2\n")
    assert lines.line(("t", "missing")) == 2
    assert lines.line(("missing",)) == 1
    assert lines.line(()) == 1


def test_finds_text_inside_a_long_string() -> None:
    lines = TomlLines('x = 1\ns = """\none\ntwo $foo\n"""\n')
    assert lines.line_of_text(("s",), "$foo") == 4
    assert lines.line_of_text(("s",), "$bar") == 2


def test_windows_line_ends() -> None:
    lines = TomlLines("a = 1\r\n# c\r\nb = [\r\n 1,\r\n 2]\r\n")
    assert lines.line(("b", 1)) == 5


KEYS = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,4}", fullmatch=True),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=4),
)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), st.floats(-9, 9), TEXT)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
GAPS = st.sampled_from(["", " ", "  # x = [1]\n", "\n", "\n\n  "])
BLANKS = st.sampled_from(["", " ", "\t"])


def quoted(draw: Any, text: str, *, key: bool) -> str:
    bare = key and text.isascii() and text and text.replace("-", "").replace("_", "").isalnum()
    if bare and draw(st.booleans()):
        return text
    if "'" not in text and draw(st.booleans()):
        return f"'{text}'"
    body = text.replace("\\", "\\\\").replace('"', '\\"')
    if not key and draw(st.booleans()):
        return f'"""\n{body}\n"""'
    return f'"{body}"'


def written(draw: Any, value: Any) -> str:
    if isinstance(value, dict):
        pairs = [
            f"{quoted(draw, key, key=True)}{draw(BLANKS)}={draw(BLANKS)}{written(draw, item)}"
            for key, item in value.items()
        ]
        return f"{{{draw(BLANKS)}{', '.join(pairs)}{draw(BLANKS)}}}"
    if isinstance(value, list):
        items = "".join(f"{draw(GAPS)}{written(draw, item)}{draw(GAPS)}," for item in value)
        return f"[{items}{draw(GAPS)}]"
    if isinstance(value, str):
        return quoted(draw, value, key=False)
    return str(value).lower()


@st.composite
def documents(draw: Any) -> str:
    out: list[tuple[int, str, Any]] = []
    for key, value in draw(st.dictionaries(KEYS, VALUES, max_size=4)).items():
        name = quoted(draw, key, key=True)
        tables = isinstance(value, list) and value and all(isinstance(v, dict) for v in value)
        if isinstance(value, dict) and draw(st.booleans()):
            out.append((1, f"[{draw(BLANKS)}{name}{draw(BLANKS)}] # t", value))
        elif tables and draw(st.booleans()):
            out.extend((1, f"[[{name}]]", item) for item in value)
        else:
            out.append((0, f"{draw(BLANKS)}{name} = {written(draw, value)}", None))
    lines: list[str] = []
    for _, head, body in sorted(out, key=lambda part: part[0]):
        lines.append(head)
        lines.extend(
            f"{quoted(draw, key, key=True)} = {written(draw, item)}"
            for key, item in (body or {}).items()
        )
    end: str = draw(st.sampled_from(["", "\n", "\n# end"]))
    return "\n".join(lines) + end


@given(documents())
def test_agrees_with_tomllib_on_any_document(text: str) -> None:
    data = tomllib.loads(text)
    lines = TomlLines(text)
    found = lines.keys()
    assert found == paths(data)
    assert all(1 <= lines.line(key) <= text.count("\n") + 1 for key in found)
