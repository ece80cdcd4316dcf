"""What is compiled: the extension, torch's CUDA, and the kernels that are compiled at first use."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from oasr.doctor.finding import Finding
from oasr.errors import OasrError
from oasr.reinstall import pip_install

_ARCH = "sm_90"
_BEAM = 8


def check_extension(_: str) -> Iterator[Finding]:
    """The module `oasr._C`, and which processor kernels of it run here."""
    from oasr.native import extension

    try:
        module = extension()
    except OasrError as error:
        yield Finding("extension", "fails", str(error), pip_install("", "--force-reinstall", "--no-deps"))
        return
    import torch

    from oasr.kernels import fixed16

    fast = fixed16.supports(torch.device("cpu"))
    kernels = (
        "int16 kernels run" if fast else "no int16 kernels for this processor: float32 or bfloat16 instead"
    )
    yield Finding("extension", "ok", f"{module.__name__}; {kernels}")


def check_gpu(_: str) -> Iterator[Finding]:
    """Whether torch sees and can use a GPU, where there seems to be one."""
    import torch

    if not torch.cuda.is_available():
        if shutil.which("nvidia-smi") is None:
            yield Finding("gpu", "ok", "none: transcribing runs on the processor")
        elif torch.version.cuda is None:
            mend = "pip install --force-reinstall torch torchaudio --index-url https://download.pytorch.org/whl/cu130"
            yield Finding("gpu", "warning", "there is a driver, but this torch was built without CUDA", mend)
        else:
            mend = "update the NVIDIA driver, or install a torch for the CUDA that nvidia-smi shows"
            found = f"there is a driver, but torch (CUDA {torch.version.cuda}) cannot use it"
            yield Finding("gpu", "warning", found, mend)
        return
    for number in range(torch.cuda.device_count()):
        yield _gpu(number)


def _gpu(number: int) -> Finding:
    import torch

    free, total = torch.cuda.mem_get_info(number)
    about = f"{torch.cuda.get_device_name(number)}, CUDA {torch.version.cuda}, "
    about += f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
    try:
        one = torch.ones(8, 8, device=f"cuda:{number}")
        good = float((one @ one).sum()) == 512
        why = "" if good else "a product of ones is wrong"
    except RuntimeError as error:
        good, why = False, str(error).splitlines()[0]
    if good:
        return Finding(f"gpu {number}", "ok", about)
    mend = "install a torch built for this GPU, or give --device cpu"
    return Finding(f"gpu {number}", "fails", f"{about}: {why}", mend)


def check_kernels(_: str) -> Iterator[Finding]:
    """Whether NVRTC compiles a kernel: for the first GPU, else for some, since that needs none."""
    import torch

    from oasr.kernels import ctc_beam, jit

    gpu = torch.cuda.is_available()
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability(0)) if gpu else _ARCH
    if not jit.available():
        found = "cuda.core or NVRTC is not installed: "
        found += "the general path is taken" if gpu else "not needed without a GPU"
        mend = pip_install("cuda") if gpu else ""
        yield Finding("kernels", "warning" if gpu else "ok", found, mend)
        return
    try:
        code = jit.compiled(ctc_beam.device_code(_BEAM), arch)
    except OasrError as error:
        yield Finding("kernels", "warning", str(error), pip_install("cuda", "--force-reinstall"))
        return
    yield Finding("kernels", "ok", f"compiled for {arch} ({len(code)} bytes)")
