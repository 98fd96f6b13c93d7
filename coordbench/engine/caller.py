"""One model behind limits, retries, time-outs and the budget: the only retry layer."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from coordbench.api.agents import ModelResult
from coordbench.api.models import ModelError, ModelInfo, ModelProvider, ModelReply, ModelRequest
from coordbench.data.events import CallRecord, FailureRecord
from coordbench.data.spec import Limits
from coordbench.engine.budget import Budget
from coordbench.engine.cache import ReplyCache
from coordbench.engine.limiter import Limiter
from coordbench.engine.prices import priced
from coordbench.engine.rates import RateLimits
from coordbench.engine.redact import redact_failure

__all__ = ["CallEvent", "Caller", "SeatCaller"]

_ENCODER = msgspec.json.Encoder()
_BUSY = frozenset({"rate_limit", "overloaded"})
_INSTANT_REPLIES_KEPT = 64
_TOOL_CHARS = 120

CallEvent = Callable[[ModelInfo, CallRecord, FailureRecord | None], None]


class Caller:
    """Makes the calls of one model.

    Parameters
    ----------
    model : ModelProvider
    limiter : Limiter
        Shared by all models of one endpoint.
    budget : Budget
        Shared by the run.
    limits : Limits
        Time-out, tries and longest wait of the spec.
    on_call : callable or None
        Told of every call once it ended.
    name : str
        The model's name in the plan.
    rates : RateLimits or None
        Shared by all models of one endpoint.
    cache : ReplyCache or None
        Asked before every call, where given.
    """

    def __init__(
        self,
        model: ModelProvider,
        limiter: Limiter,
        budget: Budget,
        limits: Limits,
        on_call: CallEvent | None = None,
        *,
        name: str = "",
        rates: RateLimits | None = None,
        cache: ReplyCache | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.info = priced(model.info)
        self.limiter = limiter
        self.rates = rates or RateLimits(None, None)
        self.cache = cache
        self.budget = budget
        self.limits = limits
        self.on_call = on_call
        self.served: set[str] = set()
        self.sent: dict[str, Any] = {}
        self._instant: dict[int, tuple[ModelReply, bytes, str, ModelResult]] = {}

    async def call(self, request: ModelRequest, blobs: dict[str, bytes]) -> ModelResult:
        """Make one call; put its prompt and reply into `blobs` by SHA-256. Never raises for a
        failed call.
        """
        if self.info.instant and self.budget.unlimited:
            return await self._call_instant(request, blobs)
        return await self._call_waiting(request, blobs)

    async def _call_instant(self, request: ModelRequest, blobs: dict[str, bytes]) -> ModelResult:
        try:
            reply = await self.model.complete(request)
        except ModelError as error:
            return self._failed(error.record(), CallRecord())
        except Exception as error:  # a provider's bug must not end the run
            return self._failed(_bug(error), CallRecord())
        known = self._instant.get(id(reply))
        if known is None or known[0] is not reply:
            known = self._remember(reply)
        blobs[known[2]] = known[1]
        if self.on_call is not None:
            self.on_call(self.info, known[3].record, None)
        return known[3]

    def _remember(self, reply: ModelReply) -> tuple[ModelReply, bytes, str, ModelResult]:
        # An instant model gives the same few reply objects again and again: encode each once.
        data = encode_reply(reply)
        digest = sha256(data).hexdigest()
        record = CallRecord(reply=digest, usage=reply.usage, request_id=reply.request_id)
        if len(self._instant) >= _INSTANT_REPLIES_KEPT:
            self._instant.clear()
        known = (reply, data, digest, ModelResult(record=record, reply=reply))
        self._instant[id(reply)] = known
        self._note(reply)
        return known

    async def _call_waiting(self, request: ModelRequest, blobs: dict[str, bytes]) -> ModelResult:
        prompt = _last_text(request)
        digest = None
        if prompt:
            data = prompt.encode("utf-8", "backslashreplace")
            digest = sha256(data).hexdigest()
            blobs[digest] = data
        key = None
        if self.cache is not None:
            key = self.cache.key(self.name, self.info, request)
            known = self.cache.get(key)
            if known is not None:
                return self._from_cache(known, digest, blobs)
        chars = sum(len(_text_of(message)) for message in request.messages)
        chars += sum(_TOOL_CHARS + len(tool.description) for tool in request.tools)
        started = time.perf_counter()
        waited = 0.0
        failures: list[FailureRecord] = []
        reply: ModelReply | None = None
        failure: FailureRecord | None = None
        answered_in = 0.0
        for attempt in itertools.count(1):
            held = await self.budget.reserve(self.info, chars, request.sampling.max_tokens)
            if isinstance(held, str):
                failure = FailureRecord(kind="stopped", message=held, scope="run")
                break
            settled = False
            try:
                if not self.rates.unlimited:
                    await self.rates.wait(held.tokens)
                async with self.limiter:
                    began = time.perf_counter()
                    try:
                        async with asyncio.timeout(self.limits.timeout_s):
                            reply = await self.model.complete(request)
                    finally:
                        answered_in = time.perf_counter() - began
                self.limiter.answered()
                self.budget.settle(held, self.info, reply.usage)
                settled = True
                failure = None
                break
            except ModelError as error:
                problem = error
            except TimeoutError:
                problem = ModelError(
                    "timeout", f"no answer within {self.limits.timeout_s:g} s", retry=True
                )
            except Exception as error:  # a provider's bug must not end the run
                problem = None
                failure = _bug(error)
            finally:
                if not settled and reply is None:
                    self.budget.settle(held, self.info, None)
            if problem is None:
                break
            if problem.kind in _BUSY:
                self.limiter.refused()
            else:
                self.limiter.answered()
            failure = redact_failure(problem.record())
            wait = self._wait(problem, attempt, waited)
            if wait is None:
                break
            failures.append(failure)
            await asyncio.sleep(wait)
            waited += wait
        record = CallRecord(
            prompt=digest,
            reply=None,
            tries=len(failures) + 1,
            latency_s=round(answered_in, 6),
            waited_s=round(time.perf_counter() - started - answered_in, 6),
            failures=tuple(failures),
        )
        if reply is None:
            assert failure is not None
            return self._failed(failure, record)
        data = encode_reply(reply)
        reply_digest = sha256(data).hexdigest()
        blobs[reply_digest] = data
        if self.cache is not None and key is not None:
            self.cache.put(key, data)
        self._note(reply)
        record = msgspec.structs.replace(
            record, reply=reply_digest, usage=reply.usage, request_id=reply.request_id
        )
        if self.on_call is not None:
            self.on_call(self.info, record, None)
        return ModelResult(record=record, reply=reply)

    def _from_cache(
        self, reply: ModelReply, prompt: str | None, blobs: dict[str, bytes]
    ) -> ModelResult:
        data = encode_reply(reply)
        digest = sha256(data).hexdigest()
        blobs[digest] = data
        self._note(reply)
        record = CallRecord(
            prompt=prompt,
            reply=digest,
            usage=reply.usage,
            request_id=reply.request_id,
            cached=True,
        )
        if self.on_call is not None:
            self.on_call(self.info, record, None)
        return ModelResult(record=record, reply=reply)

    def _wait(self, problem: ModelError, attempt: int, waited: float) -> float | None:
        """Seconds to wait before the next try; None where there is none.

        A busy server has refused the call, not failed it: such a call is given up only once the
        tries are used up and it has also waited `max_wait_s` in all.
        """
        limits = self.limits
        last = attempt >= limits.tries
        patient = problem.kind in _BUSY and waited < limits.max_wait_s
        if not problem.retry or (last and not patient):
            return None
        backoff = min(limits.max_wait_s, 0.5 * 2.0 ** min(attempt, 30)) * random.uniform(0.5, 1.0)
        if problem.wait_s is None:
            return backoff
        if problem.wait_s > limits.max_wait_s:
            return None
        if last:
            return max(problem.wait_s, backoff)
        return problem.wait_s + random.uniform(0.0, 0.1) * backoff

    def _note(self, reply: ModelReply) -> None:
        if reply.model is not None:
            self.served.add(reply.model)
        if reply.sent and not self.sent:
            self.sent = dict(reply.sent)

    def _failed(self, failure: FailureRecord, record: CallRecord) -> ModelResult:
        failure = redact_failure(failure)
        if self.on_call is not None:
            self.on_call(self.info, record, failure)
        return ModelResult(record=record, failure=failure)


class SeatCaller:
    """A seat's model within one episode: what an agent calls.

    `ledger` holds every call made, so that an agent that fails loses none that were paid for.
    """

    __slots__ = ("_blobs", "_caller", "info", "ledger")

    def __init__(self, caller: Caller, blobs: dict[str, bytes]) -> None:
        self._caller = caller
        self._blobs = blobs
        self.info = caller.info
        self.ledger: list[CallRecord] = []

    async def call(self, request: ModelRequest) -> ModelResult:
        """Make one call."""
        result = await self._caller.call(request, self._blobs)
        self.ledger.append(result.record)
        return result


def encode_reply(reply: ModelReply) -> bytes:
    """A reply as it is stored: JSON, lone surrogates escaped."""
    try:
        return _ENCODER.encode(reply)
    except (UnicodeEncodeError, ValueError, TypeError, OverflowError):
        return _ENCODER.encode(_storable(msgspec.structs.asdict(reply)))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    if isinstance(value, msgspec.Struct):
        return _storable(msgspec.structs.asdict(value))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return repr(value)


def _bug(error: Exception) -> FailureRecord:
    return FailureRecord(
        kind="provider_error",
        message=f"the provider raised {type(error).__name__}: {error}"[:2000],
        scope="episode",
    )


def _last_text(request: ModelRequest) -> str:
    return _text_of(request.messages[-1]) if request.messages else ""


def _text_of(message: Any) -> str:
    reply = getattr(message, "reply", None)
    text = message.text if reply is None else reply.text
    return str(text)
