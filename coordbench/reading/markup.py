"""Tool calls that an engine's parser left in the text: exact markup only, never prose.

A mark is something that only an engine or a chat template writes; each family below is one that
a tool parser of vLLM, SGLang or llama.cpp reads. Three forms have no mark of their own and count
only where they name a known tool and stand apart from prose, on lines of their own or at the
text's end: a JSON call, the same in a code fence, and a Python list such as `[eat()]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from coordbench.reading.forms import (
    FoundCall,
    arguments_at,
    calls_after_mark,
    calls_in,
    calls_in_code,
    json_at,
    python_calls_at,
    tag_arguments,
)
from coordbench.reading.names import own_name

__all__ = ["Markup", "find_markup"]

_MARK = re.compile(
    r"""
    # Claude, DeepSeek 3.2 and 4, MiniMax, Step, MiniCPM: <invoke name="eat">
    <[^\s<>]{0,30}(?:invoke|function|tool_call|function_call)\s+name\s*=\s*
        ["']?(?P<tag>[^"'<>\s]{1,80})["']?[^<>]{0,200}>
    # Qwen3-Coder, Seed, Llama's custom form: <function=eat>
  | <function\s*=\s*["']?(?P<function>[^"'<>\s]{1,80})["']?\s*>
    # Kimi K3
  | <\|open\|>call\s[^<>|]{0,100}?\btool="(?P<open>[^"<>\s]{1,80})"[^<>]{0,100}<\|sep\|>
    # DeepSeek 3, Kimi K2, Step 3
  | <[|\uff5c]tool[_\u2581]call[_\u2581]begin[|\uff5c]>\s*
        (?:function\s*<[|\uff5c]tool[_\u2581]sep[|\uff5c]>\s*)?(?P<token>[^\s<>`{]{1,80})
    # gpt-oss
  | (?:commentary|<\|start\|>\s*assistant)\s+to=(?P<channel>[^\s<>]{1,80})
    # Gemini, Gemma 3
  | (?P<code>```tool_code\b)
    # Gemini
  | \b(?P<api>default_api[.:]\w{1,60}(?=\())
    # Hermes, Qwen, GLM, Granite, Hunyuan, Jamba, ERNIE, LongCat, OLMo, MiniMax, Nemotron, Seed
  | (?P<mark>
        <(?:\w{1,20}:)?(?:tool_calls?|function_calls?|longcat_tool_call|TOOLCALL
            |start_function_call)(?::\w{1,20})?>
        # Llama, Granite, Phi-4, Command, LFM2, GigaChat, Apertus, InternLM, Gemma 4
      | <\|(?:tool_calls?|python_tag|python_start|START_ACTION|tool_call_start|function_call
            |tools_prefix|plugin)\|>
      | <\|tool_call>
        # DeepSeek, Step, Kimi
      | <[|\uff5c](?:DSML\uff5c)?(?:tool[_\u2581]calls[_\u2581](?:section_)?begin|tool_calls
            |function_calls)[|\uff5c]?>
      | <\|open\|>tools<\|sep\|>
      | \[TOOL_CALLS\]                       # Mistral
      | \bfunctools\s*(?=\[\s*\{)            # Phi-4 mini, Firefunction
      | function\ call<\|role_sep\|>         # GigaChat
      | \u273fFUNCTION\u273f:?               # Qwen2
    )
    # The prompt's own tag for declarations; Qwen2.5-Coder puts calls in it.
  | (?P<weak><tools>)
  | (?P<close>
        </(?:\w{1,20}:)?(?:tool_calls?|function_calls?|function|invoke)>
      | <tool_call\|> | <end_function_call> | </TOOLCALL>
      | <\|(?:/?tool_calls?|END_ACTION|tool_call_end|python_end|tools_suffix)\|>
      | <[|\uff5c]tool[_\u2581]calls?[_\u2581](?:section_)?end[|\uff5c]>
    )
    """,
    re.VERBOSE,
)
_TOKEN_THEN = re.compile(r"(?:\s|```(?:json)?|<[|\uff5c][^<>]{1,40}[|\uff5c]>)*")
_CHANNEL_THEN = re.compile(r"(?:\s|json|commentary|<\|\w{1,20}\|>)*")
_OBJECT_NEXT = re.compile(r"\s*(?:```(?:json)?\s*)?[{\[]")
_API_CALL = re.compile(r"\(([^()]{0,300})\)")

_CANDIDATE = re.compile(r"""\{\s*"|\[\s*(?:\{\s*"|[^\W\d])""")
_LINE_START = re.compile(r"(?:^|[\r\n])[ \t]*(?:```\w{0,12})?[ \t`]*\Z")
_TAIL = r"[ \t`;,]|</?[\w|:]{1,30}>|<\|\w{1,30}\|>"
_LINE_END = re.compile(rf"(?:{_TAIL})*(?:[\r\n]|\Z)")
_TEXT_END = re.compile(rf"(?:{_TAIL}|\s)*\Z")
_LINE_BEFORE = 40
# Each try may read the text to its end, so their number is what keeps the whole linear.
_MOST_TRIES = 64
_MOST_MARKS = 256
_MOST_CALLS = 64

Known = Callable[[str], bool]


class Markup(NamedTuple):
    """What was found.

    Attributes
    ----------
    present : bool
        There is markup, whether or not a call can be read from it.
    calls : tuple of FoundCall
        In their order.
    """

    present: bool
    calls: tuple[FoundCall, ...]


def find_markup(text: str, known: Known) -> Markup:
    """Find engine markup in a text. Linear in its length.

    Parameters
    ----------
    known : callable
        Whether a name is, or is nearly, that of a tool.
    """
    present, calls = _marked(text)
    if not calls:
        calls = _unmarked(text, known)
    return Markup(present or bool(calls), tuple(calls[:_MOST_CALLS]))


def _marked(text: str) -> tuple[bool, list[FoundCall]]:
    present = False
    calls: list[FoundCall] = []
    at = 0
    for _ in range(_MOST_MARKS):
        mark = _MARK.search(text, at)
        if mark is None or len(calls) >= _MOST_CALLS:
            break
        kind, at = mark.lastgroup or "", mark.end()
        found, at = _calls_of(kind, mark.group(kind), text, at)
        calls += found
        present = present or bool(found) or kind not in ("weak", "api")
    return present, calls


def _calls_of(kind: str, word: str, text: str, at: int) -> tuple[list[FoundCall], int]:
    """The calls behind a mark of this kind, and where to look on."""
    match kind:
        case "tag" | "function" | "open":
            arguments, end = tag_arguments(text, at)
            return [FoundCall(word, arguments)], end
        case "token" if word == "function":
            return [], at  # Step writes a tag of its own behind it.
        case "token" | "channel":
            then = (_TOKEN_THEN if kind == "token" else _CHANNEL_THEN).match(text, at)
            arguments, end = arguments_at(text, then.end() if then else at)
            return [FoundCall(own_name(word), arguments)], end
        case "code":
            return calls_in_code(text, at)
        case "api":
            call = _API_CALL.match(text, at)
            if call is None:
                return [], at
            inner = call.group(1).strip()
            return [FoundCall(word, {"text": inner} if inner else {})], call.end()
        case "close":
            return [], at
        case "weak" if not _OBJECT_NEXT.match(text, at):
            return [], at
        case _:
            return calls_after_mark(text, at)


def _unmarked(text: str, known: Known) -> list[FoundCall]:
    calls: list[FoundCall] = []
    at = 0
    for _ in range(_MOST_TRIES):
        candidate = _CANDIDATE.search(text, at)
        if candidate is None:
            break
        start, at = candidate.start(), candidate.start() + 1
        values, end = json_at(text, start)
        found = [call for value in values for call in calls_in(value, marked=False)]
        if not values and text[start] == "[":
            found, end = python_calls_at(text, start)
        at = max(at, end)
        if found and all(known(call.name) for call in found) and _stands_apart(text, start, end):
            calls += found
    return calls


def _stands_apart(text: str, start: int, end: int) -> bool:
    """Whether a form fills whole lines, or ends the text."""
    if _TEXT_END.match(text, end):
        return True
    if not _LINE_END.match(text, end):
        return False
    before = text[max(0, start - _LINE_BEFORE) : start]
    return bool(_LINE_START.search(before if start > _LINE_BEFORE else "\n" + before))
