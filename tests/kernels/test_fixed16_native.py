"""The binding's own checks, its threads, and the instruction sets that must agree bit for bit."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading

import pytest
import torch
from oasr.kernels import fixed16
from oasr.native import extension

needs_kernels = pytest.mark.skipif(not fixed16.supports("cpu"), reason="this CPU has no AVX2")

SCENARIO = """
import hashlib, torch
from oasr.kernels import fixed16
from oasr.native import extension
torch.manual_seed(3)
torch.set_num_threads(2)
packed = fixed16.PackedLinear(torch.randn(336, 96), torch.randn(336))
x, norm, qkv = torch.randn(77, 96), torch.nn.LayerNorm(96), torch.randn(2, 61, 384)
with torch.no_grad():
    results = [packed(x), packed(x[:5], norm=norm, gelu=True), fixed16.self_attention(qkv, 2)]
digest = hashlib.sha256(b"".join(r.contiguous().numpy().tobytes() for r in results)).hexdigest()
print(extension().fixed16.instruction_set(), digest)
"""


def run(program: str, instruction_set: str | None = None) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if k != "OASR_INSTRUCTION_SET"}
    if instruction_set is not None:
        environment["OASR_INSTRUCTION_SET"] = instruction_set
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@needs_kernels
def test_instruction_sets_give_the_same_bits() -> None:
    best, digest = run(SCENARIO)
    assert best in {"avx2", "avx512_vnni"}
    assert run(SCENARIO, "avx2") == ["avx2", digest]


def test_without_the_instructions_every_function_says_so() -> None:
    program = """
from oasr.kernels import fixed16
from oasr.native import extension
native = extension().fixed16
assert native.instruction_set() == "none" and not fixed16.supports("cpu")
counts = {"pack": 5, "linear": 13, "feed_forward": 12, "self_attention": 6, "window_project": 10,
          "window_attention": 8, "step_attention": 9}
for name, count in counts.items():
    try:
        getattr(native, name)(*[0] * count)
    except RuntimeError as error:
        print("said" if "supported()" in str(error) else error)
"""
    assert run(program, "none") == ["said"] * 7


def test_other_devices_are_not_supported() -> None:
    assert not fixed16.supports("cuda") and not fixed16.supports(torch.device("meta"))


def memory() -> dict[str, torch.Tensor]:
    return {
        "packed": torch.zeros(32 * 32, dtype=torch.int16),
        "scales": torch.ones(32),
        "x": torch.zeros(8, 32),
        "out": torch.zeros(8, 32),
    }


@needs_kernels
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"n": 20}, "n: expected a positive multiple of 16, got 20"),
        ({"n": 0}, "n: expected a positive multiple of 16, got 0"),
        ({"k": 24}, "k: expected a positive multiple of 16, got 24"),
        ({"m": -1}, "m: expected >= 0"),
        ({"ldx": 0}, "ldx"),
        ({"ldo": 16}, "ldo: expected >= 32, got 16"),
        ({"mode": 3}, "mode"),
        ({"x": 0}, "x: expected the address of an array, got 0"),
        ({"out": 0}, "out"),
        ({"packed": 0}, "packed"),
        ({"packed": 96}, "packed: expected an address that is a multiple of 64"),
        ({"scales": 2}, "scales: expected an aligned address"),
        ({"ln_gain": 64}, "both or neither"),
    ],
)
def test_wrong_arguments_are_refused(change: dict[str, int], word: str) -> None:
    tensors = memory()
    address = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    arguments = {
        "x": address["x"],
        "ldx": 32,
        "m": 8,
        "ln_gain": 0,
        "ln_bias": 0,
        "n": 32,
        "k": 32,
        "packed": address["packed"],
        "scales": address["scales"],
        "bias": 0,
        "out": address["out"],
        "ldo": 32,
        "mode": 0,
    }
    extension().fixed16.linear(**arguments)
    with pytest.raises(ValueError, match=word):
        extension().fixed16.linear(**{**arguments, **change})


@needs_kernels
@pytest.mark.parametrize(("batch", "t", "heads"), [(-1, 4, 1), (1, -4, 1), (1, 4, 0), (1, 70000, 1)])
def test_wrong_shapes_of_attention_are_refused(batch: int, t: int, heads: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        extension().fixed16.self_attention(64, batch, t, heads, 0, 64)


@needs_kernels
def test_threads_follow_torch() -> None:
    packed, x = fixed16.PackedLinear(torch.randn(16, 16)), torch.randn(1, 16)
    for threads in (3, 1, 2):
        torch.set_num_threads(threads)
        packed(x)
        assert extension().fixed16.threads() == threads
    extension().fixed16.set_threads(-5)
    assert extension().fixed16.threads() == 1


def digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()


@needs_kernels
def test_two_python_threads_may_call_at_once() -> None:
    packed, x = fixed16.PackedLinear(torch.randn(512, 256)), torch.randn(300, 256)
    qkv = torch.randn(2, 90, 3 * 128)
    expected = [digest(packed(x)), digest(packed(x[:20])), digest(fixed16.self_attention(qkv, 2))]
    wrong: list[Exception | int] = []

    def work(threads: int) -> None:
        try:
            for i in range(25):
                extension().fixed16.set_threads(1 + (i + threads) % 3)
                found = [digest(packed(x)), digest(packed(x[:20])), digest(fixed16.self_attention(qkv, 2))]
                if found != expected:
                    wrong.append(i)
        except Exception as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert wrong == [] and not any(worker.is_alive() for worker in workers)


@needs_kernels
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_the_child_of_a_fork_has_threads_of_its_own() -> None:
    program = """
import os, torch
from oasr.kernels import fixed16
from oasr.native import extension
torch.set_num_threads(2)
packed, x = fixed16.PackedLinear(torch.randn(512, 256)), torch.randn(300, 256)
expected = packed(x)
child = os.fork()
if child == 0:
    extension().fixed16.set_threads(2)
    same = torch.empty(300, 512)
    packed._run(x, 256, (0, 0), same, 0)
    # Compared as bytes: torch's own OpenMP threads do not survive a fork.
    good = extension().fixed16.threads() == 2 and same.numpy().tobytes() == expected.numpy().tobytes()
    os._exit(0 if good else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(program) == ["0"]
