"""The preflight: what is found before anything is scored."""

from __future__ import annotations

from support.episodes import PROMPT
from support.models import FakeModel, call_of, failing

from coordbench.api import ModelReply, ModelRequest, Sampling
from coordbench.data.spec import Limits
from coordbench.engine.budget import Budget, BudgetLimits
from coordbench.engine.caller import Caller
from coordbench.engine.limiter import Limiter
from coordbench.engine.preflight import ModelCheck, check_models
from coordbench.engine.prompts import tools_for

TOOLS = tools_for(PROMPT)


def forced(request: ModelRequest, number: int) -> ModelReply:
    tool = next(tool for tool in request.tools if tool.name == request.force)
    return call_of(request, tool.action)


async def check(model: FakeModel) -> ModelCheck:
    caller = Caller(model, Limiter(4), Budget(BudgetLimits()), Limits(tries=1))
    (found,) = await check_models({"fake": caller}, TOOLS, Sampling())
    return found


async def test_a_model_that_calls_all_six_tools_is_usable() -> None:
    model = FakeModel(forced)
    found = await check(model)
    assert found.usable
    assert found.lines() == []
    assert model.calls == 6


async def test_tools_that_cannot_be_expressed_are_named() -> None:
    def pythonic(request: ModelRequest, number: int) -> ModelReply:
        if request.force in ("eat", "think"):
            return forced(request, number)
        return ModelReply(stop="stop", text=f"[{request.force}()]")

    found = await check(FakeModel(pythonic))
    assert not found.usable
    (line,) = found.lines()
    assert "4 of 6" in line
    assert "server_parser_off" in line
    assert "pick_up_left" in line


async def test_a_refused_key_says_what_to_do() -> None:
    found = await check(FakeModel(failing("auth", 9, forced, scope="run")))
    assert found.failure is not None
    assert "key was refused" in found.lines()[0]


async def test_a_changed_setting_and_an_unknown_price_are_said() -> None:
    def cold(request: ModelRequest, number: int) -> ModelReply:
        reply = forced(request, number)
        return ModelReply(stop=reply.stop, calls=reply.calls, sent={"temperature": 1.0})

    found = await check(FakeModel(cold, paid=True, model="nobody-knows"))
    text = "\n".join(found.lines())
    assert "temperature: asked for 0.7, sent 1.0" in text
    assert "top_p: asked for 1.0, not sent" in text
    assert "price unknown" in text


async def test_scripted_models_are_not_called() -> None:
    model = FakeModel(forced, reads_text=False)
    caller = Caller(model, Limiter(4), Budget(BudgetLimits()), Limits())
    assert await check_models({"fake": caller}, TOOLS, Sampling()) == []
    assert model.calls == 0
