"""What is counted, and that a device is measured without being waited for."""

import pytest
import torch
from helpers.fake_engines import drain
from helpers.fake_engines import make_executor as make
from helpers.fake_models import request
from oasr.executor import spans
from oasr.executor.counters import STATIONS, Counters
from oasr.executor.spans import DeviceSpans


class FakeStream:
    """A device that works `lag` seconds behind what the host launches; marks are events on it."""

    def __init__(self):
        self.now = 0.0
        self.passed = 0
        self.marks = []
        self.waits = 0

    def work(self, seconds):
        self.now += seconds

    def mark(self):
        self.marks.append(FakeEvent(self, len(self.marks), self.now))
        return self.marks[-1]


class FakeEvent:
    def __init__(self, stream, number, at):
        self.stream, self.number, self.at = stream, number, at

    def query(self):
        return self.number < self.stream.passed

    def synchronize(self):
        self.stream.waits += 1
        self.stream.passed = max(self.stream.passed, self.number + 1)

    def elapsed_time(self, end):
        assert self.query() and end.query(), "torch raises when an event has not been passed"
        return 1000 * (end.at - self.at)


@pytest.fixture
def stream():
    return FakeStream()


@pytest.fixture
def counters(stream):
    return Counters(_spans=DeviceSpans(stream.mark))


def test_device_time_is_read_once_at_the_end(stream, counters):
    for seconds in (1.0, 2.0):
        with counters.time("encoder"):
            stream.work(seconds)
        stream.work(10)
        with counters.time("decode"):
            stream.work(0.5)
    assert stream.waits == 0
    assert counters.snapshot().device_seconds == pytest.approx({"encoder": 3.0, "decode": 1.0})
    assert stream.waits == 1


def test_stations_of_the_host_put_nothing_on_the_stream(stream, counters):
    for station in ("read", "collate_wait", "readback", "output"):
        with counters.time(station):
            pass
    assert stream.marks == []


def test_a_failed_block_leaves_host_time_and_no_span(stream, counters):
    with pytest.raises(RuntimeError, match="device lost"), counters.time("encoder"):
        raise RuntimeError("device lost")
    assert counters.seconds["encoder"] > 0
    assert counters.snapshot().device_seconds == {}


def test_a_long_run_keeps_few_events(stream, counters, monkeypatch):
    monkeypatch.setattr(spans, "FOLD_AT", 10)
    for _ in range(95):
        with counters.time("encoder"):
            stream.work(0.1)
        stream.passed = len(stream.marks) - 3  # the device lags behind the host
    assert len(counters._spans._open) <= 10
    assert stream.waits == 0
    assert counters.snapshot().device_seconds["encoder"] == pytest.approx(9.5)


def test_snapshots_subtract(stream, counters):
    with counters.time("encoder"):
        stream.work(1)
    counters.batches, counters.useful_samples, counters.padded_samples = 2, 30, 40
    before = counters.snapshot()
    with counters.time("encoder"):
        stream.work(4)
    counters.add("read", 0.5)
    counters.batches, counters.useful_samples, counters.padded_samples = 3, 40, 80
    spent = counters.snapshot().since(before)
    assert (spent.batches, spent.useful_samples, spent.padded_samples) == (1, 10, 40)
    assert spent.padding_share == 0.75
    assert spent.seconds["read"] == 0.5
    assert spent.device_seconds == pytest.approx({"encoder": 4})
    assert before.plus(spent) == counters.snapshot()


def test_there_is_no_padding_share_before_a_forward():
    assert Counters().padding_share is None


def test_a_cpu_is_not_measured_by_events():
    counters = Counters()
    counters.measure_device(torch.device("cpu"))
    with counters.time("encoder"):
        pass
    assert counters.snapshot().device_seconds == {}


@pytest.mark.parametrize("family", ["ar", "ctc"])
def test_the_executor_times_its_stations(family):
    executor = make(family)
    drain(executor, [request(n) for n in range(1, 30)])
    wanted = {"collate_wait", "features", "encoder", "decode"} | ({"readback"} if family == "ctc" else set())
    assert set(executor.counters.seconds) == wanted <= set(STATIONS)
    assert all(seconds > 0 for seconds in executor.counters.seconds.values())


def test_rows_that_are_tried_again_alone_are_timed_and_counted_too():
    executor = make()
    executor.model.poison = {13: ValueError("bad row")}
    drain(executor, [request(n) for n in (6, 13, 20, 27)])
    counters = executor.counters
    assert (counters.batches, counters.rows, counters.isolated) == (1 + 4, 4 + 4, 4)
    assert counters.steps > 0 and counters.seconds["decode"] > 0
    assert counters.padded_samples == 8 * 200 and counters.useful_samples == 8 * 50


@pytest.mark.gpu
def test_a_gpu_is_measured_by_its_own_clock():
    device = torch.device("cuda", 0)
    counters = Counters()
    counters.measure_device(device)
    a = torch.randn(4096, 4096, device=device)
    torch.cuda.synchronize()
    with counters.time("encoder"):
        for _ in range(50):
            a = (a @ a).clamp_(-1, 1)
    launched = counters.seconds["encoder"]
    measured = counters.snapshot().device_seconds["encoder"]
    # The host is through with launching long before the products are computed.
    assert 0 < launched < measured
