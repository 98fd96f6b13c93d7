"""The public API for plugins: everything a plugin may use, and nothing else.

Importing this loads no SDK, no scipy and no langgraph.
"""

from coordbench.api.agents import (
    Agent,
    Decision,
    Failure,
    Invalid,
    Message,
    ModelCaller,
    ModelResult,
    Result,
    SeatView,
    Turn,
)
from coordbench.api.executors import EpisodeJob, EpisodeLog, Executor, Lane, Player, StopSignal
from coordbench.api.hookspecs import API_VERSION, hookimpl
from coordbench.api.models import (
    AssistantMessage,
    CallContext,
    ChatMessage,
    ForkView,
    HeardMessage,
    ModelError,
    ModelInfo,
    ModelProvider,
    ModelReply,
    ModelRequest,
    Observation,
    RawCall,
    Scope,
    StopReason,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from coordbench.api.offers import NoOptions, Offer
from coordbench.api.reporting import CellSummary, Estimate, Reporter, RunView, SeatSummary
from coordbench.api.scoring import Metric, Reward
from coordbench.data.actions import Action, Cause, Effect, InvalidReason
from coordbench.data.episode import Episode, SeatTurn
from coordbench.data.errors import CoordbenchError, UsageError
from coordbench.data.events import CallRecord, FailureKind, FailureRecord, Usage
from coordbench.data.spec import Rules, Sampling, TaskSpec

__all__ = [
    "API_VERSION",
    "Action",
    "Agent",
    "AssistantMessage",
    "CallContext",
    "CallRecord",
    "Cause",
    "CellSummary",
    "ChatMessage",
    "CoordbenchError",
    "Decision",
    "Effect",
    "Episode",
    "EpisodeJob",
    "EpisodeLog",
    "Estimate",
    "Executor",
    "Failure",
    "FailureKind",
    "FailureRecord",
    "ForkView",
    "HeardMessage",
    "Invalid",
    "InvalidReason",
    "Lane",
    "Message",
    "Metric",
    "ModelCaller",
    "ModelError",
    "ModelInfo",
    "ModelProvider",
    "ModelReply",
    "ModelRequest",
    "ModelResult",
    "NoOptions",
    "Observation",
    "Offer",
    "Player",
    "RawCall",
    "Reporter",
    "Result",
    "Reward",
    "Rules",
    "RunView",
    "Sampling",
    "Scope",
    "SeatSummary",
    "SeatTurn",
    "SeatView",
    "StopReason",
    "StopSignal",
    "SystemMessage",
    "TaskSpec",
    "Tool",
    "ToolMessage",
    "Turn",
    "Usage",
    "UsageError",
    "UserMessage",
    "hookimpl",
]
