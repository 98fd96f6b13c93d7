"""A way to tell tools to a model whose chat template has no place for them.

llama.cpp leaves tools out of the prompt, without a word, where the template does not use them,
and then takes every reply as text. The template made here puts the tools at the end of the
system turn, in the form that Hermes models were trained on and many others know, writes past calls
in that form, and hands all of it to the model's own template as plain turns. llama.cpp finds the
form in it and reads calls by it, as it does for templates that have one of their own.
"""

from __future__ import annotations

import re

__all__ = ["takes_system", "takes_tools", "with_tools"]

_REFUSES_SYSTEM = re.compile(r"system (?:role|message|prompt)s? (?:is |are )?not", re.IGNORECASE)

_BEFORE = """\
{%- set told = namespace(turns=[], system='', user='', said='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set told.system = told.system + ('\\n\\n' if told.system else '') + message.content -%}
  {%- endif -%}
{%- endfor -%}
{%- if tools -%}
  {%- set told.system = told.system + ('\\n\\n' if told.system else '')
      + 'You may call one of the functions that are described within <tools></tools>:\\n<tools>' -%}
  {%- for tool in tools -%}
    {%- set told.system = told.system + '\\n' + (tool | tojson) -%}
  {%- endfor -%}
  {%- set told.system = told.system + '\\n</tools>\\nTo call a function, answer with its name and '
      + 'arguments as JSON within <tool_call></tool_call>:\\n'
      + '<tool_call>{"name": NAME, "arguments": {}}</tool_call>' -%}
{%- endif -%}
{%- if told.system and TAKES_SYSTEM -%}
  {%- set told.turns = [{'role': 'system', 'content': told.system}] -%}
{%- elif told.system -%}
  {%- set told.user = told.system -%}
{%- endif -%}
{%- for message in messages -%}
  {%- if message.role == 'user' -%}
    {%- set told.user = told.user + ('\\n\\n' if told.user else '') + message.content -%}
  {%- elif message.role == 'tool' -%}
    {%- set told.user = told.user + ('\\n\\n' if told.user else '')
        + '<tool_response>' + message.content + '</tool_response>' -%}
  {%- elif message.role == 'assistant' -%}
    {%- if told.user -%}
      {%- set told.turns = told.turns + [{'role': 'user', 'content': told.user}] -%}
      {%- set told.user = '' -%}
    {%- endif -%}
    {%- set told.said = message.content or '' -%}
    {%- for call in message.tool_calls or [] -%}
      {%- set told.said = told.said + ('\\n' if told.said else '')
          + '<tool_call>{"name": "' + call.function.name + '", "arguments": '
          + (call.function.arguments | tojson) + '}</tool_call>' -%}
    {%- endfor -%}
    {%- set told.turns = told.turns + [{'role': 'assistant', 'content': told.said}] -%}
  {%- endif -%}
{%- endfor -%}
{%- if told.user -%}
  {%- set told.turns = told.turns + [{'role': 'user', 'content': told.user}] -%}
{%- endif -%}
{%- set messages = told.turns -%}
"""


def takes_tools(template: str) -> bool:
    """Whether a chat template has a place for tools."""
    return "tools" in template


def takes_system(template: str) -> bool:
    """Whether a chat template has a place for a system turn."""
    return "system" in template and not _REFUSES_SYSTEM.search(template)


def with_tools(template: str) -> str:
    """A chat template that tells tools, around one that does not."""
    system = "true" if takes_system(template) else "false"
    return _BEFORE.replace("TAKES_SYSTEM", system) + template
