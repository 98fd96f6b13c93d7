"""Slots: conversations come back to theirs, and a system prompt is computed once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coordbench_llamacpp.slots import Slots


class Server:
    """Answers as llama.cpp does, and remembers what it was asked."""

    def __init__(self, refuse: str = "", size: int = 1000) -> None:
        self.asked: list[str] = []
        self.refuse = refuse
        self.size = size
        self.rendered = 0

    async def post(self, path: str, data: dict[str, Any]) -> dict[str, Any] | None:
        await asyncio.sleep(0)
        if self.refuse and self.refuse in path:
            return None
        slot = f" slot {data['id_slot']}" if "id_slot" in data else ""
        self.asked.append(f"{path}{slot} {data.get('filename', data.get('prompt', ''))}")
        return {"n_written": self.size}

    async def text(self) -> str:
        self.rendered += 1
        return "the rules"


def test_a_conversation_comes_back_to_its_slot(tmp_path: Path) -> None:
    slots = Slots(3, tmp_path)
    first = {talk: slots.take(talk) for talk in "abc"}
    assert sorted(first.values(), key=str) == [0, 1, 2]
    assert slots.take("d") is None
    for talk in "cab":
        slots.give_back(first[talk])  # type: ignore[arg-type]
    assert {talk: slots.take(talk) for talk in "bca"} == first


def test_a_new_conversation_takes_the_slot_longest_unused(tmp_path: Path) -> None:
    slots = Slots(2, tmp_path)
    one, two = slots.take("a"), slots.take("b")
    assert one is not None and two is not None
    slots.give_back(two)
    slots.give_back(one)
    assert slots.take("c") == two


async def test_a_prefix_is_computed_once_and_restored_elsewhere(tmp_path: Path) -> None:
    server, slots = Server(), Slots(3, tmp_path)
    await asyncio.gather(*(slots.prime(i, "p", server.text, server.post) for i in range(3)))
    assert server.rendered == 1
    assert sorted(server.asked) == [
        "/completion slot 0 the rules",
        "/slots/0?action=save prefix-0",
        "/slots/1?action=restore prefix-0",
        "/slots/2?action=restore prefix-0",
    ]
    await slots.prime(1, "p", server.text, server.post)
    assert len(server.asked) == 4


async def test_a_slot_that_held_another_prefix_gets_its_own_back(tmp_path: Path) -> None:
    server, slots = Server(), Slots(1, tmp_path)
    for prefix in ("p", "q", "p"):
        await slots.prime(0, prefix, server.text, server.post)
    assert server.asked[-1] == "/slots/0?action=restore prefix-0"


@pytest.mark.parametrize("refuse", ["/completion", "save", "restore"])
async def test_where_it_cannot_be_saved_the_call_goes_on(tmp_path: Path, refuse: str) -> None:
    server, slots = Server(refuse), Slots(2, tmp_path)
    for slot in (0, 1):
        await slots.prime(slot, "p", server.text, server.post)


async def test_a_lost_server_is_not_remembered(tmp_path: Path) -> None:
    server, slots = Server(), Slots(1, tmp_path)

    async def lost(path: str, data: dict[str, Any]) -> dict[str, Any] | None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await slots.prime(0, "p", server.text, lost)
    await slots.prime(0, "p", server.text, server.post)
    assert server.asked[-1].startswith("/slots/0?action=save")


async def test_a_cancelled_call_leaves_the_prefix_to_the_others(tmp_path: Path) -> None:
    server, slots = Server(), Slots(2, tmp_path)
    first = asyncio.create_task(slots.prime(0, "p", server.text, server.post))
    await asyncio.sleep(0)
    second = asyncio.create_task(slots.prime(1, "p", server.text, server.post))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert server.rendered == 1
    assert server.asked[-1] == "/slots/1?action=restore prefix-0"


async def test_old_prefixes_make_room(tmp_path: Path) -> None:
    server, slots = Server(size=600 << 20), Slots(1, tmp_path)
    for number in range(3):
        (tmp_path / f"prefix-{number}").write_bytes(b"state")
        await slots.prime(0, number, server.text, server.post)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["prefix-2"]
