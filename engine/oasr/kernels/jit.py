"""Device code of include/oasr/*.cuh: compiled at first use, kept on disk, launched on torch's stream.

NVRTC compiles for the GPU at hand, so a user needs no nvcc and no kernel depends on torch's ABI. What was
compiled is kept in the cache folder under a name made of the source, the macros, the architecture and the
compiler. This module alone imports cuda.core (extra `cuda`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from oasr.errors import OasrError
from oasr.folders import cache_dir

_INCLUDE = re.compile(r'^#include "(oasr/[\w./]+)"$')
_OPTIONS = {"std": "c++17", "fma": False}
"""Contraction is off so that a kernel computes the same bits as the C++ that it is compared with."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """One kernel.

    Attributes:
        header: file that holds it, as it is included: "oasr/<stem>.cuh".
        entry: its `extern "C"` name.
        macros: (name, value) pairs that the header asks for.
    """

    header: str
    entry: str
    macros: tuple[tuple[str, str], ...] = ()


@cache
def available() -> bool:
    """Whether kernels can be compiled here: cuda.core and NVRTC are installed. Needs no GPU."""
    try:
        return find_spec("cuda.core") is not None and _compiler_version() != ""
    except (ImportError, RuntimeError):
        # The bindings may be there while the library that they open is not: a RuntimeError.
        return False


@cache
def usable(device: torch.device) -> bool:
    """Whether kernels run on that device: an NVIDIA GPU from sm_80 on that the installed NVRTC knows."""
    if device.type != "cuda" or not torch.cuda.is_available() or torch.version.hip is not None:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0) and available() and _known(_arch(device))


def launch(
    code: DeviceCode, device: torch.device, size: tuple[int, int], arguments: Sequence[torch.Tensor | Any]
) -> None:
    """Queue a kernel on the device's current stream.

    Args:
        code: the kernel; compiled now if it never was.
        device: where it runs, with an index.
        size: blocks, and threads in each.
        arguments: the kernel's parameters in order. A tensor stands for its address, an int for a
            64-bit integer; any other number has to be a numpy scalar of the parameter's type.
    """
    from cuda.core import LaunchConfig, Stream
    from cuda.core import launch as queue

    with torch.cuda.device(device):
        stream = Stream.from_handle(torch.cuda.current_stream(device).cuda_stream)
        values = [x.data_ptr() if isinstance(x, torch.Tensor) else x for x in arguments]
        queue(stream, LaunchConfig(grid=size[0], block=size[1]), _kernel(code, _arch(device)), *values)


def compiled(code: DeviceCode, arch: str) -> bytes:
    """The machine code of `code` for an architecture such as "sm_90", from disk when it is there.

    Raises:
        OasrError: the header is missing or does not compile.
    """
    source = _source(code.header)
    identity = repr((source, code, arch, _compiler_version(), sorted(_OPTIONS.items())))
    digest = hashlib.sha256(identity.encode()).hexdigest()
    # Every header is part of the name: a changed one cannot meet old machine code.
    path = cache_dir() / "kernels" / f"{code.entry}-{arch}-{digest[:32]}.cubin"
    with contextlib.suppress(OSError):
        # Absent or unreadable: it is compiled.
        return path.read_bytes()
    machine_code = _compile(code, source, arch)
    _keep(path, machine_code)
    return machine_code


def _compile(code: DeviceCode, source: str, arch: str) -> bytes:
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(name=code.header, arch=arch, define_macro=list(code.macros) or None, **_OPTIONS)
    try:
        return bytes(Program(source, "c++", options).compile("cubin").code)
    except Exception as error:  # NVRTC's log is in the message; its type belongs to cuda.core
        raise OasrError(
            f"kernel {code.entry} of {code.header} does not compile for {arch}: {error}"
        ) from error


def _keep(path: Path, machine_code: bytes) -> None:
    """Write the file whole or not at all; a cache that cannot be written costs a compilation and no more."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".kernel-")
        with os.fdopen(handle, "wb") as stream:
            stream.write(machine_code)
        # Of two processes that compile the same the later one wins, with the same code.
        Path(name).replace(path)


@cache
def _kernel(code: DeviceCode, arch: str) -> Any:
    from cuda.core import ObjectCode

    return ObjectCode.from_cubin(compiled(code, arch)).get_kernel(code.entry)


@cache
def _arch(device: torch.device) -> str:
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def _known(arch: str) -> bool:
    from cuda.bindings import nvrtc

    _, count = nvrtc.nvrtcGetNumSupportedArchs()
    _, numbers = nvrtc.nvrtcGetSupportedArchs()
    return arch in {f"sm_{number}" for number in numbers[:count]}


@cache
def _compiler_version() -> str:
    """NVRTC's, as major.minor; "" when the library is not there."""
    from cuda.bindings import nvrtc

    status, *version = nvrtc.nvrtcVersion()
    return "" if int(status) else ".".join(map(str, version))


def _include_folder() -> Path:
    """The headers: beside the sources in a checkout, inside the package when it is installed."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package.parents[1] / "include", package / "include"):
        if (folder / "oasr").is_dir():
            return folder
    raise OasrError(f"the kernels' headers are missing under {package}; reinstall oasr")


def _source(header: str) -> str:
    """The header with the headers that it includes in their places, each once."""
    # One text: the digest covers all headers, and NVRTC needs no search path.
    folder, seen = _include_folder(), set()

    def expand(name: str) -> str:
        seen.add(name)
        try:
            lines = (folder / name).read_text("utf-8").splitlines()
        except OSError as error:
            raise OasrError(f"the kernel header {name} cannot be read: {error}; reinstall oasr") from error
        return "\n".join(
            line if not (found := _INCLUDE.match(line)) else "" if found[1] in seen else expand(found[1])
            for line in lines
            # `seen` does its work; in a main file it means nothing.
            if line != "#pragma once"
        )

    return expand(header)
