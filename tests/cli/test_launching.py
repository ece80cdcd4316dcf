"""The flags about several engines: what they mean together, and what is refused by name."""

from __future__ import annotations

import sys

import pytest
from oasr.errors import OptionsError

from oasr_cli import launching
from oasr_cli.launching import LaunchFlags


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--launcher", "slurm"), ("--launcher: expected local or ray",)),
        (("--ray-address", "h:1"), ("--ray-address: read by --launcher ray only",)),
        (("--launcher", "local", "--num-gpus", "2"), ("--num-gpus: read by --launcher ray only",)),
        (("--actors", "2", "--num-gpus", "2"), ("--num-gpus, --actors: read by --launcher ray only",)),
        (("--launcher", "ray", "--actors", "2", "--num-gpus", "2"), ("--num-gpus", "--actors")),
        (("--launcher", "ray", "--num-gpus", "2", "--device", "cpu"), ("--num-gpus", "--device cpu")),
        (("--launcher", "ray", "--actors", "2", "--device", "cuda"), ("--actors", "--device cuda")),
        (("--launcher", "ray", "--device", "cuda:1"), ("--device cuda:1", "--launcher ray")),
        (("--launcher", "ray", "--dry-run"), ("--dry-run", "--launcher")),
        (("--launcher", "ray", "--actors", "0"), ("--actors: expected an integer > 0",)),
        (("--devices", "2"), ("--devices: expected all",)),
        (("--devices", "all", "--launcher", "local"), ("--devices all", "--launcher local")),
        (("--devices", "all", "--num-gpus", "2"), ("--devices all", "--num-gpus")),
        (("--devices", "all", "--ray-address", "auto"), ("--devices all", "--ray-address")),
        (("--devices", "all", "--device", "cuda:0"), ("--devices all", "--device cuda:0")),
        (("--devices", "all"), ("--devices all: this machine has no GPU",)),
    ],
)
def test_flags_that_contradict_each_other_are_refused(oasr, engines, manifest, monkeypatch, flags, named):
    monkeypatch.setattr(launching, "visible_gpus", lambda: 0)
    done = oasr("transcribe", manifest(1), *flags)
    assert done.code == 2 and not engines and done.out == ""
    assert all(text in done.err for text in named), done.err


def test_all_devices_are_a_cluster_of_this_machine_where_there_are_several(monkeypatch):
    flags = LaunchFlags(devices="all", workers=5)
    monkeypatch.setattr(launching, "visible_gpus", lambda: 3)
    plan = flags.plan("auto")
    assert (plan.launcher, plan.num_gpus, plan.address, plan.workers) == ("ray", 3, "local", 5)
    monkeypatch.setattr(launching, "visible_gpus", lambda: 1)
    assert flags.plan("cuda").launcher == "local"


def test_one_gpu_is_a_cluster_where_ray_is_asked_for(monkeypatch):
    monkeypatch.setattr(launching, "visible_gpus", lambda: 1)
    plan = LaunchFlags(devices="all", launcher="ray").plan("auto")
    assert (plan.launcher, plan.num_gpus, plan.address) == ("ray", 1, "local")
    with pytest.raises(OptionsError, match="expected local or ray"):
        LaunchFlags(devices="all", launcher="slurm").plan("auto")


def test_without_ray_the_run_ends_before_it_writes(oasr, engines, manifest, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    listed, out = manifest(1), tmp_path / "out"
    assert oasr("transcribe", listed, "-o", out).code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    done = oasr("transcribe", listed, "--launcher", "ray", "-o", out, "--overwrite")
    assert done.code == 2 and "--launcher: ray needs Ray" in done.err
    assert "[ray]'" in done.err and {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_cluster_that_does_not_answer(oasr, engines, manifest):
    done = oasr("transcribe", manifest(1), "--launcher", "ray", "--ray-address", "127.0.0.1:1")
    assert done.code == 1 and "no Ray cluster answers at 127.0.0.1:1" in done.err and done.out == ""
