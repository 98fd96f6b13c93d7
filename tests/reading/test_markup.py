"""Every form in which an engine writes a call, left in the text by a parser that missed it."""

from __future__ import annotations

import json

import pytest

from coordbench.api import Action, Decision, Invalid, InvalidReason, ModelReply, Tool
from coordbench.reading import read

HYPHENS = tuple(Tool(action.value, action, "") for action in Action)
UNDERSCORES = tuple(Tool(action.value.replace("-", "_"), action, "") for action in Action)

CALL = '{"name": "eat", "arguments": {}}'
DS = "\uff5c"  # the bar in DeepSeek's marks
LOW = "\u2581"  # and its blank

FAMILIES = {
    "hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "hermes, never closed": f"<tool_call>\n{CALL}",
    "hermes, opening tag lost": f"{CALL}\n</tool_call>",
    "hermes, arguments as text": '<tool_call>{"name": "eat", "arguments": "{}"}</tool_call>',
    "hermes, fenced": f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>",
    "qwen 2.5 coder": f"<tools>\n{CALL}\n</tools>",
    "qwen 3 coder": "<tool_call>\n<function=eat>\n</function>\n</tool_call>",
    "qwen 2": "\u273fFUNCTION\u273f: eat\n\u273fARGS\u273f: {}",
    "llama custom": "<function=eat>{}</function>",
    "llama 3": '<|python_tag|>{"name": "eat", "parameters": {}}',
    "llama 3, no tag": '{"name": "eat", "parameters": {}}',
    "llama 3, typed": '{"type": "function", "name": "eat", "parameters": {}}',
    "llama 4": "<|python_start|>[eat()]<|python_end|>",
    "pythonic": "[eat()]",
    "lfm2": "<|tool_call_start|>[eat()]<|tool_call_end|>",
    "olmo 3": "<function_calls>\neat()\n</function_calls>",
    "mistral list": f"[TOOL_CALLS][{CALL}]",
    "mistral name": "[TOOL_CALLS]eat{}",
    "mistral name, spaced": "[TOOL_CALLS] eat {}",
    "mistral args": "[TOOL_CALLS]eat[ARGS]{}",
    "mistral id and args": "[TOOL_CALLS]eat[CALL_ID]kR3vTz8Qa[ARGS]{}",
    "granite": f"<|tool_call|>[{CALL}]",
    "granite 20b": f"<function_call> {CALL}",
    "phi 4": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "phi 4 mini": f"functools[{CALL}]",
    "jamba": f"<tool_calls>[{CALL}]</tool_calls>",
    "glm": "<tool_call>eat\n</tool_call>",
    "glm, one line": "<tool_call>eat</tool_call>",
    "hunyuan": "<tool_calls>\n<tool_call>eat<tool_sep>\n</tool_call>\n</tool_calls>",
    "internlm": '<|action_start|><|plugin|>{"name": "eat", "parameters": {}}<|action_end|>',
    "nemotron": f"<TOOLCALL>[{CALL}]</TOOLCALL>",
    "longcat": f"<longcat_tool_call>{CALL}</longcat_tool_call>",
    "command": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "eat", "parameters": {}}]'
    "<|END_ACTION|>",
    "gigachat": f"<|message_sep|>\n\nfunction call<|role_sep|>\n{CALL}",
    "gigachat inline": f"<|function_call|>{CALL}",
    "apertus": '<|tools_prefix|>[{"eat": {}}]<|tools_suffix|>',
    "seed": "<seed:tool_call>\n<function=eat>\n</function>\n</seed:tool_call>",
    "minimax": f"<tool_calls>\n{CALL}\n</tool_calls>",
    "minimax 2": '<minimax:tool_call>\n<invoke name="eat">\n</invoke>\n</minimax:tool_call>',
    "minimax 3": ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="eat">]<]minimax[>[</invoke>',
    "minicpm": '<function name="eat"></function>',
    "invoke": '<invoke name="eat">\n</invoke>',
    "function_calls": '<function_calls>\n<invoke name="eat">\n</invoke>\n</function_calls>',
    "tool_call with a name": '<tool_call name="eat">{}</tool_call>',
    "deepseek 3": f"<{DS}tool{LOW}calls{LOW}begin{DS}><{DS}tool{LOW}call{LOW}begin{DS}>function"
    f"<{DS}tool{LOW}sep{DS}>eat\n```json\n{{}}\n```<{DS}tool{LOW}call{LOW}end{DS}>"
    f"<{DS}tool{LOW}calls{LOW}end{DS}>",
    "deepseek 3.1": f"<{DS}tool{LOW}calls{LOW}begin{DS}><{DS}tool{LOW}call{LOW}begin{DS}>eat"
    f"<{DS}tool{LOW}sep{DS}>{{}}<{DS}tool{LOW}call{LOW}end{DS}>",
    "deepseek 3.2": f'<{DS}DSML{DS}function_calls>\n<{DS}DSML{DS}invoke name="eat">\n'
    f"</{DS}DSML{DS}invoke>\n</{DS}DSML{DS}function_calls>",
    "step 3": f"<{DS}tool_calls_begin{DS}><{DS}tool_call_begin{DS}>function<{DS}tool_sep{DS}>"
    f'<steptml:invoke name="eat"></steptml:invoke><{DS}tool_call_end{DS}>',
    "kimi 2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.eat:0"
    "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
    "kimi 3": '<|open|>tools<|sep|><|open|>call tool="eat" index="1"<|sep|><|close|>call<|sep|>',
    "gpt-oss": "<|channel|>commentary to=functions.eat <|constrain|>json<|message|>{}<|call|>",
    "gpt-oss, recipient first": "<|start|>assistant to=functions.eat<|channel|>commentary json"
    "<|message|>{}",
    "gpt-oss, marks lost": "commentary to=functions.eat json{}",
    "gemma 3 function": "<start_function_call>call:eat{}<end_function_call>",
    "gemma 4": "<|tool_call>call:eat{}<tool_call|>",
    "gemma 3": "```tool_code\neat()\n```",
    "gemini, assigned": "```tool_code\nresult = eat()\n```",
    "json in a fence": f"```json\n{CALL}\n```",
    "json in a bare fence": f"```\n{CALL}\n```",
    "json list": f"[{CALL}]",
    "openai shape": '{"tool_calls": [{"type": "function", "function": '
    '{"name": "eat", "arguments": "{}"}}]}',
    "llama.cpp's own": f'{{"tool_call": {CALL}}}',
    "old command": '```json\n[{"tool_name": "eat", "parameters": {}}]\n```',
}


def reply(text: str, **fields: object) -> ModelReply:
    return ModelReply(stop="stop", text=text, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", FAMILIES.values(), ids=FAMILIES)
class TestEveryFamily:
    def test_is_no_decision_by_itself(self, text: str) -> None:
        result = read(reply(text), HYPHENS)
        assert isinstance(result, Invalid)
        assert result.reason is InvalidReason.TOOL_CALL_IN_TEXT
        assert result.hint == "server_parser_off"

    def test_is_taken_in_recover_mode(self, text: str) -> None:
        assert read(reply(text), HYPHENS, recover=True) == Decision(
            Action.EAT, frozenset({"from_text"})
        )

    def test_is_taken_behind_words(self, text: str) -> None:
        result = read(reply(f"Both forks are mine.\n\n{text}"), HYPHENS, recover=True)
        assert result == Decision(Action.EAT, frozenset({"from_text"}))

    def test_is_taken_with_a_hyphenated_name(self, text: str) -> None:
        other = text.replace("eat", "put-down-right")
        result = read(reply(other), HYPHENS, recover=True)
        assert result == Decision(Action.PUT_DOWN_RIGHT, frozenset({"from_text"}))

    def test_of_another_tool_is_none_of_ours(self, text: str) -> None:
        result = read(reply(text.replace("eat", "wait")), HYPHENS, recover=True)
        assert isinstance(result, Invalid)
        assert result.reason in (InvalidReason.TOOL_CALL_IN_TEXT, InvalidReason.NO_TOOL_CALL)

    def test_is_never_taken_from_reasoning(self, text: str) -> None:
        for thought in (
            reply("", reasoning=text),
            reply(f"<think>{text}</think>"),
            reply(f"<think>Perhaps {text}"),
            reply(f"{text}</think>I shall see."),
        ):
            result = read(thought, HYPHENS, recover=True)
            assert isinstance(result, Invalid)
            assert result.reason is InvalidReason.TOOL_CALL_IN_TEXT
            assert result.hint == ""

    def test_is_found_after_reasoning(self, text: str) -> None:
        result = read(reply(f"<think>I could think.</think>\n{text}"), HYPHENS, recover=True)
        assert result == Decision(Action.EAT, frozenset({"from_text"}))


@pytest.mark.parametrize(
    ("text", "action", "flags"),
    [
        ("```tool_code\nprint(default_api.put_down_left())\n```", "put-down-left", True),
        ("print(default_api.eat())", "eat", True),
        ('<tool_call>{"name": "pick_up_left", "arguments": {}}</tool_call>', "pick-up-left", True),
        ("[pickUpLeft()]", "pick-up-left", True),
        ('{"name": "functions.think", "arguments": {}}', "think", True),
        ("[pick-up-left()]", "pick-up-left", False),
    ],
)
def test_names_in_markup_may_be_near(text: str, action: str, flags: bool) -> None:
    wanted = {"from_text", "name_normalised"} if flags else {"from_text"}
    assert read(reply(text), HYPHENS, recover=True) == Decision(Action(action), frozenset(wanted))


def test_underscored_names_are_exact_where_they_are_on_the_wire() -> None:
    result = read(reply("[pick_up_left()]"), UNDERSCORES, recover=True)
    assert result == Decision(Action.PICK_UP_LEFT, frozenset({"from_text"}))


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "eat", "arguments": {}}\n{"name": "think", "arguments": {}}'
        "</tool_call>",
        '<tool_call>{"name": "eat", "arguments": {}}</tool_call>'
        '<tool_call>{"name": "think", "arguments": {}}</tool_call>',
        '<|python_tag|>{"name": "eat", "parameters": {}}; {"name": "think", "parameters": {}}',
        '{"name": "eat", "parameters": {}}; {"name": "think", "parameters": {}}',
        "[eat(), think()]",
        "[TOOL_CALLS]eat{}[TOOL_CALLS]think{}",
        '[TOOL_CALLS][{"name": "eat", "arguments": {}}, {"name": "think", "arguments": {}}]',
        "<function=eat></function><function=think></function>",
        '<invoke name="eat"></invoke><invoke name="think"></invoke>',
        "<function_calls>\neat()\nthink()\n</function_calls>",
    ],
)
def test_several_calls_in_markup(text: str) -> None:
    result = read(reply(text), HYPHENS, recover=True)
    assert result == Decision(Action.EAT, frozenset({"from_text", "multiple_calls"}))
    again = read(reply(text.replace("think", "eat")), HYPHENS, recover=True)
    assert again == Decision(Action.EAT, frozenset({"from_text", "duplicate_calls"}))
    strange = read(reply(text.replace("think", "wait")), HYPHENS, recover=True)
    assert isinstance(strange, Invalid)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "eat", "arguments": {"why": "hungry"}}</tool_call>',
        "<tool_call><function=eat><parameter=why>hungry</parameter></function></tool_call>",
        '<invoke name="eat"><parameter name="why">hungry</parameter></invoke>',
        "<tool_call>eat\n<arg_key>why</arg_key><arg_value>hungry</arg_value></tool_call>",
        "[eat(why='hungry')]",
        '[TOOL_CALLS]eat[ARGS]{"why": "hungry"}',
        '<function=eat>{"why": "hungry"}</function>',
        "```tool_code\neat(why='hungry')\n```",
    ],
)
def test_arguments_in_markup_are_flagged(text: str) -> None:
    result = read(reply(text), HYPHENS, recover=True)
    assert result == Decision(Action.EAT, frozenset({"from_text", "extra_arguments"}))


def test_absent_and_broken_arguments_in_markup() -> None:
    absent = read(reply('<tool_call>{"name": "eat"}</tool_call>'), HYPHENS, recover=True)
    assert absent == Decision(Action.EAT, frozenset({"from_text", "empty_arguments"}))
    broken = read(reply("[TOOL_CALLS]eat{why: hungry"), HYPHENS, recover=True)
    assert broken == Decision(Action.EAT, frozenset({"from_text", "bad_arguments"}))


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "eat", "arguments": {}</tool_call>',
        "<tool_call>I will eat now</tool_call>",
        "<tool_call>",
        "</tool_call>",
        "[TOOL_CALLS]",
        "<|python_tag|>import forks",
    ],
)
def test_markup_that_cannot_be_read_exactly_is_not_guessed(text: str) -> None:
    for recover in (False, True):
        result = read(reply(text), HYPHENS, recover=recover)
        assert isinstance(result, Invalid)
        assert result.reason is InvalidReason.TOOL_CALL_IN_TEXT


@pytest.mark.parametrize(
    "text",
    [
        "I will not put-down-left while my neighbour waits.",
        "Options: pick-up-left, pick-up-right or eat.",
        "I call eat() now.",
        "eat",
        "think",
        "`eat`",
        "Action: eat\nAction Input: {}",
        "I could call [eat()] but my neighbour is hungry.",
        'It would be {"name": "eat", "arguments": {}} if I had both forks.',
        '{"name": "Plato", "arguments": {}}',
        '{"name": "eat"}',
        '{"action": "eat"}',
        '["eat", "think"]',
        "[1](eat)",
        "The tools tag of the prompt is <tools>.",
        "x < y and [y] > {z}",
        json.dumps(
            [
                {
                    "type": "function",
                    "function": {
                        "name": "eat",
                        "description": "Eat one meal.",
                        "parameters": {"type": "object", "properties": {}},
                    },
                }
            ]
        ),
        '<tools>{"name": "eat", "parameters": {"type": "object", "properties": {}}}</tools>',
    ],
)
def test_prose_and_declarations_are_no_calls(text: str) -> None:
    for recover in (False, True):
        result = read(reply(text), HYPHENS, recover=recover)
        assert isinstance(result, Invalid), text
        assert result.reason is InvalidReason.NO_TOOL_CALL


@pytest.mark.parametrize(
    "text",
    [
        "My turn now. [eat()]",
        "[eat()]\n\nBoth forks are mine.",
        f"{CALL}\nBecause both forks are mine.",
        f"So I answer {CALL}",
        f"First words.\n```json\n{CALL}\n```\nLast words.",
        f"{CALL}<|eot_id|>",
    ],
)
def test_unmarked_forms_stand_on_their_own_lines_or_at_the_end(text: str) -> None:
    assert isinstance(read(reply(text), HYPHENS), Invalid)
    result = read(reply(text), HYPHENS, recover=True)
    assert result == Decision(Action.EAT, frozenset({"from_text"}))


def test_the_end_of_a_long_text_is_read_too() -> None:
    text = "The forks are on the table. " * 20_000 + f"\n<tool_call>{CALL}</tool_call>"
    assert isinstance(read(reply(text), HYPHENS, recover=True), Decision)
