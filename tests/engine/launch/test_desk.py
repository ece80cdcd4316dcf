"""What the Desk keeps, and whom it keeps waiting."""

from __future__ import annotations

import asyncio
import pickle

from oasr.launch.desk import NOTHING, Desk
from oasr.launch.facts import EngineFacts


def test_a_window_is_there_until_its_results_are():
    async def run():
        desk = Desk()
        early = asyncio.ensure_future(desk.window(1))
        await desk.hand_in(0, b"zero")
        await asyncio.sleep(0)
        assert not early.done()
        await desk.hand_in(1, b"one")
        assert await early == b"one" == await desk.window(1)  # whoever runs it again gets the same
        await desk.forget(0)
        assert pickle.loads(await desk.window(0)) == [] and await desk.window(0) == NOTHING
        last = asyncio.ensure_future(desk.window(2))
        await desk.complete()
        assert await last is None and await desk.window(1) == b"one"

    asyncio.run(run())


def test_engines_that_began_and_have_not_loaded_are_counted():
    async def run():
        desk = Desk()
        assert [await desk.begin() for _ in range(3)] == [1, 2, 3]
        await desk.report(EngineFacts("float32", "aed", 16000, {}, {}))
        await desk.report(RuntimeError("one that could not"))
        assert await desk.begin() == 3

    asyncio.run(run())


def test_orders_reports_and_a_stop_wake_those_who_wait():
    async def run():
        desk = Desk()
        waiting = [asyncio.ensure_future(one) for one in (desk.orders(), desk.read_report(1), desk.stopped())]
        await desk.report("first")
        await desk.order(b"do")
        assert await waiting[0] == b"do" and await desk.read_report(0) == "first"
        await asyncio.sleep(0)
        assert not waiting[1].done() and not waiting[2].done()
        await desk.report("second")
        assert await waiting[1] == "second"
        blocked = asyncio.ensure_future(desk.window(0))
        await desk.stop()
        assert await waiting[2] is None and await blocked is None

    asyncio.run(run())
