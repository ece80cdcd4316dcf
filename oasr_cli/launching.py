"""Which engines a run has: the flags about them, checked together, and the engines themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from oasr.errors import OptionsError
from oasr.launch.plan import LaunchPlan

if TYPE_CHECKING:
    from oasr.launch.fleet import Fleet

    from oasr_cli.settings import Job


@dataclass(frozen=True, slots=True)
class LaunchFlags:
    """The flags as they were given; None = not."""

    launcher: str | None = None
    devices: str | None = None
    num_gpus: int | None = None
    actors: int | None = None
    ray_address: str | None = None
    workers: int | None = None
    threads: int | None = None

    def plan(self, device: str, dry_run: bool = False) -> LaunchPlan:
        """What they mean together.

        Args:
            device: of --device.
            dry_run: whether --dry-run is given.

        Raises:
            OptionsError: flags that contradict each other, or a value that cannot be.
        """
        own = {"workers": self.workers, "threads": self.threads}
        if self.devices is not None:
            self._check_devices(device)
            gpus = visible_gpus()
            # One GPU is what a local run uses anyway, without Ray unless that is asked for. Ray's address is
            # named, since RAY_ADDRESS may lead to a cluster of other machines.
            on_ray = gpus > 1 or self.launcher is not None
            launcher = self.launcher or "ray"
            plan = LaunchPlan(launcher, gpus, address="local", **own) if on_ray else LaunchPlan(**own)
        else:
            plan = LaunchPlan(self.launcher or "local", self.num_gpus, self.actors, self.ray_address, **own)
        self._check(plan, device, dry_run)
        return plan

    def _check(self, plan: LaunchPlan, device: str, dry_run: bool) -> None:
        given = {"--num-gpus": self.num_gpus, "--actors": self.actors, "--ray-address": self.ray_address}
        ray_only = [flag for flag, value in given.items() if value is not None]
        on_ray = plan.launcher == "ray"
        conflicts = (
            (
                ray_only and not on_ray,
                f"{', '.join(ray_only)}: read by --launcher ray only: add that, or leave it out",
            ),
            (
                self.num_gpus is not None and self.actors is not None,
                "--num-gpus asks for engines on GPUs and --actors for engines on CPUs: leave one of them out",
            ),
            (
                self.num_gpus is not None and device == "cpu",
                "--num-gpus and --device cpu exclude each other: --actors is the number of engines on CPUs",
            ),
            (
                self.actors is not None and device.startswith("cuda"),
                f"--actors asks for engines on CPUs and --device {device} for GPUs: --num-gpus counts those",
            ),
            (
                on_ray and device.startswith("cuda:"),
                f"--device {device} and --launcher ray exclude each other: Ray gives each engine a GPU of "
                "its own (CUDA_VISIBLE_DEVICES limits which); use --device cuda",
            ),
            (
                on_ray and dry_run,
                "--dry-run estimates the time of one engine here: leave --launcher and --devices out",
            ),
        )
        for wrong, text in conflicts:
            if wrong:
                raise OptionsError(text)

    def _check_devices(self, device: str) -> None:
        """What --devices all cannot go with."""
        if self.devices != "all":
            raise OptionsError(f"--devices: expected all, got {self.devices!r}; --device takes a single one")
        flags = {
            "--launcher local": self.launcher == "local",
            "--num-gpus": self.num_gpus is not None,
            "--actors": self.actors is not None,
            "--ray-address": self.ray_address is not None,
            f"--device {device}": device not in ("auto", "cuda"),
        }
        for flag, given in flags.items():
            if given:
                raise OptionsError(f"--devices all means every GPU of this machine and cannot go with {flag}")
        if visible_gpus() == 0:
            raise OptionsError(
                "--devices all: this machine has no GPU that torch can use. One engine uses all processors: "
                "leave --devices out; for several engines, see --launcher ray and --actors"
            )


def visible_gpus() -> int:
    """CUDA GPUs that torch can use here; CUDA_VISIBLE_DEVICES limits them."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def load_fleet(job: Job, total: int | None) -> Fleet:
    """The engines of a job with --launcher ray."""
    from oasr.launch.fleet import Fleet

    return Fleet(job.config, job.options, job.launch, total)
