"""The calls of `provider_cpu.py` made by inspect_ai; run by that script, in an interpreter that
has inspect_ai. Reads what to do from stdin; the last line printed is CPU seconds per call.
"""

from __future__ import annotations

import json
import sys
import time

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    execute_tools,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, ToolDef


def tool_named(name: str, description: str) -> Tool:
    """A tool without arguments."""

    async def execute() -> str:
        return "ok"

    return ToolDef(execute, name=name, description=description).as_tool()


def main() -> None:
    given = json.load(sys.stdin)
    prompt = given["prompt"]
    system = prompt["messages"][0]["content"]
    user = prompt["messages"][-1]["content"]
    memory = sum(message["role"] == "assistant" for message in prompt["messages"])
    tools = [
        tool_named(tool["function"]["name"], tool["function"]["description"])
        for tool in prompt["tools"]
    ]
    config = GenerateConfig(
        max_connections=given["flight"],
        temperature=prompt["temperature"],
        top_p=prompt["top_p"],
        max_tokens=prompt["max_tokens"],
        seed=prompt["seed"],
        parallel_tool_calls=False,
        max_retries=2,
    )
    model = get_model("openai-api/stub/test", base_url=given["url"], api_key="none", config=config)
    calls = 0

    def rounds() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            nonlocal calls
            past: list[list[ChatMessage]] = []
            for _ in range(given["rounds"]):
                asked = ChatMessageUser(content=user)
                remembered = [message for turn in past[-memory:] for message in turn]
                messages = [ChatMessageSystem(content=system), *remembered, asked]
                output = await model.generate(messages, tools=tools)
                assert output.message.tool_calls
                results = await execute_tools([output.message], tools)
                past.append([asked, output.message, *results.messages])
                calls += 1
            return state

        return solve

    def play(samples: int) -> EvalLog:
        task = Task(dataset=[Sample(input=user) for _ in range(samples)], solver=solver(rounds)())
        (log,) = evaluate(
            task, model=model, max_samples=given["flight"], display="none", log_dir="logs"
        )
        return log

    play(2)
    calls = 0
    began = time.process_time()
    log = play(given["samples"])
    cpu = time.process_time() - began
    assert log.status == "success", log.error
    print(cpu / calls)


if __name__ == "__main__":
    main()
