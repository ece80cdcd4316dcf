"""How many engines a run has, where they are, and what share of the processors each one gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oasr.config import EngineConfig
from oasr.errors import OptionsError

LAUNCHERS = ("local", "ray")
MOST_READERS = 14
"""Reader threads that one engine is given unasked: with more, Python itself is what they wait for."""


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What was asked for.

    Attributes:
        launcher: "local" (one engine in this process) or "ray".
        num_gpus: engines on GPUs, one each; None = all GPUs of the cluster, if there are any.
        actors: engines on CPUs; None = one a machine.
        address: HOST:PORT of a cluster that runs already, "auto" for the one that this machine belongs to, or
            "local" for one of this machine alone, for this run; None = what RAY_ADDRESS says, else "local".
        workers, threads: reader and compute threads of each engine; None = its share of the cluster's CPUs.
    """

    launcher: str = "local"
    num_gpus: int | None = None
    actors: int | None = None
    address: str | None = None
    workers: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        """Raise OptionsError for a value that no cluster could serve."""
        if self.launcher not in LAUNCHERS:
            raise OptionsError(f"launcher: expected {' or '.join(LAUNCHERS)}, got {self.launcher!r}")
        for name in ("num_gpus", "actors"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise OptionsError(f"{name}: expected an integer > 0, got {value}")


@dataclass(frozen=True, slots=True)
class Machine:
    """What one machine of a cluster has."""

    cpus: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The pool of engines as Ray is asked for it.

    Attributes:
        engines: how many.
        gpus, cpus: what Ray sets aside for each.
        device: what each one computes on.
        workers, threads: as in EngineConfig.
    """

    engines: int
    gpus: int
    cpus: int
    device: str
    workers: int
    threads: int | None

    @property
    def where(self) -> str:
        """For people: `2 × cuda`."""
        return f"{self.engines} × {self.device}"


def machines_of(nodes: Sequence[Mapping[str, Any]]) -> list[Machine]:
    """The machines that are alive in what `ray.nodes()` returns."""
    alive = [node["Resources"] for node in nodes if node.get("Alive")]
    return [Machine(int(has.get("CPU", 0)), int(has.get("GPU", 0))) for has in alive]


def place(plan: LaunchPlan, config: EngineConfig, machines: Sequence[Machine]) -> Placement:
    """Divide the machines among the engines.

    An engine on a GPU is given one processor by Ray's count and reads with its share of all of them: how many
    it keeps busy is up to the audio. An engine on CPUs computes on what Ray sets aside for it.

    Raises:
        OptionsError: the cluster does not have what was asked for.
    """
    gpus, cpus = sum(one.gpus for one in machines), sum(one.cpus for one in machines)
    asked_for_gpus = plan.num_gpus is not None or config.device == "cuda"
    if asked_for_gpus and gpus < (plan.num_gpus or 1):
        flag = "device: cuda" if plan.num_gpus is None else f"num_gpus: {plan.num_gpus}"
        raise OptionsError(f"{flag} was asked for, and the Ray cluster has {gpus} GPUs ({_size(machines)})")
    if asked_for_gpus or (gpus and config.device == "auto" and plan.actors is None):
        engines = plan.num_gpus or gpus
        readers = min(MOST_READERS, max(2, cpus // engines - 2))
        return Placement(engines, 1, 1, "cuda", plan.workers or readers, plan.threads)
    engines = plan.actors or sum(one.cpus > 0 for one in machines)
    if not 0 < engines <= cpus:
        raise OptionsError(f"actors: {engines} were asked for, and the Ray cluster has {_size(machines)}")
    # The largest share that fits often enough, since no engine has parts of two machines; 1 always does.
    share = next(
        size
        for size in range(min(plan.threads or cpus, cpus // engines), 0, -1)
        if sum(one.cpus // size for one in machines) >= engines
    )
    return Placement(engines, 0, share, "cpu", plan.workers or 2, plan.threads or share)


def _size(machines: Sequence[Machine]) -> str:
    cpus = sum(one.cpus for one in machines)
    return f"{len(machines)} machine{'s' * (len(machines) != 1)} with {cpus} CPUs in all"
