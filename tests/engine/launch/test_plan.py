"""Which engines a cluster gives, and what each one has of it."""

from __future__ import annotations

import pytest
from oasr.config import EngineConfig
from oasr.errors import OptionsError
from oasr.launch.plan import LaunchPlan, Machine, machines_of, place

GPU_BOX, CPU_BOX = Machine(32, 2), Machine(8, 0)


def test_machines_that_are_gone_do_not_count():
    nodes = [
        {"Alive": True, "Resources": {"CPU": 8.0, "GPU": 1.0, "memory": 9.0}},
        {"Alive": False, "Resources": {"CPU": 64.0}},
        {"Alive": True, "Resources": {"object_store_memory": 1.0}},
    ]
    assert machines_of(nodes) == [Machine(8, 1), Machine(0, 0)]


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_every_gpu_has_an_engine_that_reads_with_its_share_of_the_processors(device):
    found = place(LaunchPlan("ray"), EngineConfig(device=device), [GPU_BOX, CPU_BOX])
    assert (found.engines, found.gpus, found.cpus, found.device) == (2, 1, 1, "cuda")
    assert found.workers == 14 and found.threads is None and found.where == "2 × cuda"
    assert place(LaunchPlan("ray"), EngineConfig(), [Machine(4, 4)]).workers == 2


def test_what_was_asked_for_is_what_each_engine_gets():
    plan = LaunchPlan("ray", num_gpus=1, workers=5, threads=3)
    found = place(plan, EngineConfig(), [GPU_BOX])
    assert (found.engines, found.workers, found.threads) == (1, 5, 3)
    found = place(LaunchPlan("ray", actors=3, threads=2), EngineConfig(), [GPU_BOX])
    assert (found.engines, found.gpus, found.cpus, found.threads, found.device) == (3, 0, 2, 2, "cpu")


@pytest.mark.parametrize(
    ("machines", "actors", "engines", "share"),
    [
        ([Machine(8, 0), Machine(4, 0)], None, 2, 4),
        ([Machine(3, 0), Machine(3, 0)], 3, 3, 1),
        ([Machine(7, 0)], 2, 2, 3),
        ([Machine(1, 0), Machine(0, 0)], None, 1, 1),
    ],
)
def test_engines_on_cpus_fit_on_whole_machines(machines, actors, engines, share):
    found = place(LaunchPlan("ray", actors=actors), EngineConfig(device="cpu"), machines)
    assert (found.engines, found.cpus, found.threads, found.workers) == (engines, share, share, 2)


@pytest.mark.parametrize(
    ("plan", "device", "named"),
    [
        (LaunchPlan("ray", num_gpus=3), "auto", "num_gpus: 3 was asked for, and the Ray cluster has 2 GPUs"),
        (LaunchPlan("ray", actors=41), "auto", "actors: 41 were asked for.*2 machines with 40 CPUs"),
        (LaunchPlan("ray"), "cpu", None),
    ],
)
def test_more_than_there_is_is_refused(plan, device, named):
    if named is None:
        assert place(plan, EngineConfig(device=device), [GPU_BOX, CPU_BOX]).device == "cpu"
        return
    with pytest.raises(OptionsError, match=named):
        place(plan, EngineConfig(device=device), [GPU_BOX, CPU_BOX])


def test_a_gpu_that_no_machine_has_is_refused():
    with pytest.raises(OptionsError, match="device: cuda was asked for, and the Ray cluster has 0 GPUs"):
        place(LaunchPlan("ray"), EngineConfig(device="cuda"), [CPU_BOX])


@pytest.mark.parametrize("fields", [{"launcher": "slurm"}, {"num_gpus": 0}, {"actors": -1}])
def test_a_plan_that_cannot_be_is_refused(fields):
    with pytest.raises(OptionsError, match=next(iter(fields))):
        LaunchPlan(**fields)
