"""The `langgraph` agent: philosophers as LangGraph agents, seats as parallel branches.

One compiled graph serves every table, episode and seat::

    START --deal--> ask (one branch per seat that acts) --> read --> END

`deal` sends each seat its own `SeatState` and nothing of the others'. `ask` calls the seat's
model with its messages, memory included, and adds the reply to them. `read` waits for all
seats and reads each conversation's end as a turn. There is no checkpointer: what a seat
remembers is in its view, so nothing of an episode outlives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, TypedDict

from coordbench.agents.options import LangGraphOptions
from coordbench.agents.turns import agent_failure, ask, failed_turn, turn_from
from coordbench.api.agents import Agent, ModelResult, SeatView, Turn
from coordbench.api.models import AssistantMessage, ChatMessage
from coordbench.data.errors import UsageError

__all__ = ["SeatState", "TableState", "build_langgraph"]


def _merged(left: dict[int, Any], right: dict[int, Any]) -> dict[int, Any]:
    """Reducer of what parallel seats write: each under its own place, so order is nothing."""
    return {**left, **right}


class SeatState(TypedDict):
    """One philosopher's own state.

    Attributes
    ----------
    place : int
        Index among the seats that act now.
    messages : tuple of ChatMessage
        Its prompt, its remembered rounds, and what it observes now.
    """

    place: int
    messages: tuple[ChatMessage, ...]
    view: SeatView


class TableState(TypedDict):
    """The state of one `decide`; what seats write in parallel is keyed by their place.

    Attributes
    ----------
    messages : mapping
        Each philosopher's conversation, its reply included.
    results : mapping
        What became of each philosopher's call.
    """

    views: tuple[SeatView, ...]
    messages: Annotated[dict[int, tuple[ChatMessage, ...]], _merged]
    results: Annotated[dict[int, ModelResult], _merged]
    turns: tuple[Turn, ...]


def build_langgraph(target: str, options: LangGraphOptions) -> Agent:
    """Build the agent. LangGraph is imported here, and the graph compiled once.

    Raises
    ------
    UsageError
        The environment asks LangChain for a tracer it no longer has.
    """
    return _LangGraphAgent(trace=options.trace)


async def _ask(state: SeatState) -> dict[str, Any]:
    place = state["place"]
    result = await ask(state["view"])
    update: dict[str, Any] = {"results": {place: result}}
    if result.reply is not None:
        update["messages"] = {place: (*state["messages"], AssistantMessage(result.reply))}
    return update


async def _read(state: TableState) -> dict[str, Any]:
    results = state["results"]
    return {
        "turns": tuple(turn_from(view, results[place]) for place, view in enumerate(state["views"]))
    }


class _LangGraphAgent:
    """Runs the graph once for each set of seats that act together."""

    def __init__(self, *, trace: bool) -> None:
        from langgraph.graph import END, START, StateGraph
        from langgraph.types import Send

        # LangGraph evaluates annotations in the module's names, where Send is not.
        async def deal(state: TableState) -> list[Any]:
            return [
                Send("ask", SeatState(place=place, messages=view.messages, view=view))
                for place, view in enumerate(state["views"])
            ]

        graph = StateGraph(TableState)
        graph.add_node("ask", _ask, input_schema=SeatState)
        graph.add_node("read", _read)
        graph.add_conditional_edges(START, deal, ["ask"])
        graph.add_edge("ask", "read")
        graph.add_edge("read", END)
        # False, not None: also inside somebody else's graph its checkpointer is not taken over.
        self.graph = graph.compile(checkpointer=False, name="philosophers")
        # No cycle: no node runs in more than one superstep. The default limit differs between
        # versions and can be set from outside.
        self.recursion_limit = len(self.graph.nodes)
        self.trace = trace
        self._check_environment()

    async def decide(self, views: Sequence[SeatView]) -> Sequence[Turn]:
        """One turn per view, in their order."""
        from langgraph.errors import GraphRecursionError

        results: dict[int, ModelResult] = {}
        try:
            return await self._run(tuple(views), results)
        except GraphRecursionError as error:
            failure = agent_failure(error, "recursion_limit")
        except Exception as error:
            failure = agent_failure(error)
        return [failed_turn(view, failure, results.get(place)) for place, view in enumerate(views)]

    async def _run(
        self, views: tuple[SeatView, ...], results: dict[int, ModelResult]
    ) -> tuple[Turn, ...]:
        """Run the graph; `results` gets each call as it is made, also if the graph then fails."""
        turns: tuple[Turn, ...] = ()
        with self._tracing():
            async for update in self.graph.astream(
                TableState(views=views, messages={}, results={}, turns=()),
                {"recursion_limit": self.recursion_limit},
                stream_mode="updates",
            ):
                if "ask" in update:
                    results.update(update["ask"]["results"])
                else:
                    turns = update["read"]["turns"]
        return turns

    def _tracing(self) -> AbstractContextManager[None]:
        from langsmith import tracing_context

        return nullcontext() if self.trace else tracing_context(enabled=False)

    def _check_environment(self) -> None:
        """LangChain raises over the variables of its first tracer, at every call."""
        from langchain_core.callbacks import AsyncCallbackManager

        try:
            with self._tracing():
                AsyncCallbackManager.configure()
        except RuntimeError as error:
            raise UsageError(
                f"LangChain refuses this environment: {error}",
                hint="unset LANGCHAIN_TRACING and LANGCHAIN_HANDLER, or use the agent direct",
            ) from error
