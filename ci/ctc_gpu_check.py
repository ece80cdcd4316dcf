"""Build, check and time CTC decoding on this machine's GPU, in one command.

    python ci/ctc_gpu_check.py [--cases 1500] [--skip-tests] [--torchaudio]

Builds the extension when this Python has none, runs the GPU tests of the CTC decoder, compares random
cases with the C++ search bit for bit, and prints a table: median milliseconds of a decode from the launch
to results on the host, and of the launch alone on the device; beside it, as scale, what reading the
log-probabilities once (argmax) and torch.topk cost, and the forward of a 12-layer Conformer of width 512
in half precision over as many frames.
`--torchaudio` also times its cuda_ctc_decoder at the first setting.
Exits with 1 when a test fails or a case differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "tests/kernels/test_ctc_beam_device.py",
    "tests/kernels/test_jit.py",
    "tests/engine/decode/test_ctc_gpu.py",
)
SETTINGS = (  # rows, frames, vocabulary, beam
    (32, 500, 500, 4),
    (32, 500, 5000, 10),
    (32, 500, 500, 10),
    (32, 500, 5000, 4),
    (32, 500, 5000, 1),
    (32, 500, 5000, 32),
    (32, 500, 32, 10),
    (1, 500, 5000, 10),
    (256, 500, 5000, 10),
    (32, 3000, 5000, 10),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1500)
    parser.add_argument("--skip-tests", action="store_true")
    parser.add_argument("--torchaudio", action="store_true")
    args = parser.parse_args()
    build()
    sys.path.insert(0, str(ROOT / "tests"))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Python {sys.version.split()[0]}")
    wrong = 0
    if not args.skip_tests:
        tests = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", *TESTS]
        wrong = subprocess.run(tests, cwd=ROOT, check=False).returncode
        print("tests:", wrong, flush=True)
    if args.cases:
        wrong += compare(args.cases)
    for setting in SETTINGS:
        measure(*setting)
    encoder_forward(32, 500)
    if args.torchaudio:
        torchaudio_decoder(*SETTINGS[0])
    return 1 if wrong else 0


def build() -> None:
    """Install the package from this checkout when Python cannot import its compiled part."""
    probe = [sys.executable, "-c", "from oasr.native import extension; extension().ctc"]
    if subprocess.run(probe, cwd="/", capture_output=True, check=False).returncode == 0:
        return
    start = time.perf_counter()
    install = ["-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "-e", str(ROOT)]
    subprocess.run([sys.executable, *install], check=True)
    print(f"built in {time.perf_counter() - start:.0f} s", flush=True)
    done = subprocess.run([sys.executable, *sys.argv], check=False)  # a new Python sees what was installed
    raise SystemExit(done.returncode)


def compare(cases: int) -> int:
    """Random cases on the GPU and on the CPU, of which every bit has to agree; how many differ."""
    from helpers.ctc import Case, random_case, same

    wrong, start = 0, time.perf_counter()
    for seed in range(100_000, 100_000 + cases):
        case = random_case(seed, most_frames=400 if seed % 10 == 0 else 40, sizes=(2, 3, 5, 33, 200, 5000))
        on_gpu = Case(case.log_probs.cuda(), case.lengths, case.search)
        if not same(on_gpu.decoded(), case.decoded()):
            wrong += 1
            print("differs:", seed, tuple(case.log_probs.shape), case.lengths.tolist(), case.search)
    print(
        f"{cases} random cases, {wrong} differ from the CPU ({time.perf_counter() - start:.0f} s)", flush=True
    )
    return wrong


def posteriors(rows: int, frames: int, vocab: int) -> torch.Tensor:
    """Peaky posteriors: mostly blank, a token with rivals every few frames."""
    torch.manual_seed(rows + frames + vocab)
    logits = torch.randn(rows, frames, vocab, device="cuda")
    logits[..., 0] += 9
    spoken = torch.rand(rows, frames, device="cuda") < 0.25
    for height in (18.0, 15.0, 13.0):
        tokens = torch.randint(1, vocab, (rows, frames, 1), device="cuda")
        logits.scatter_add_(2, tokens, (height * spoken)[..., None].float())
    return logits.log_softmax(-1)


def measure(rows: int, frames: int, vocab: int, beam: int) -> None:
    from oasr.decode.pending import Readback
    from oasr.kernels.ctc_beam import CtcSearch, decode

    # Several inputs in turn, so that none is in the cache when its turn comes.
    inputs = [posteriors(rows, frames, vocab) for _ in range(2 if rows * frames * vocab > 2e8 else 4)]
    lengths, search = torch.full((rows,), frames), CtcSearch(beam)
    whole = host_ms(lambda x: Readback([decode(x, lengths, search)]).wait(), inputs)
    kernel = device_ms(lambda x: decode(x, lengths, search), inputs)
    read, topk = (device_ms(f, inputs) for f in (lambda x: x.argmax(-1), lambda x: x.topk(min(22, vocab))))
    print(
        f"B {rows:3d}  T {frames:4d}  V {vocab:4d}  beam {beam:2d}: {whole:.3f} ms with the copy back, "
        f"{kernel:.3f} on the device ({1000 * kernel / frames:.2f} us a frame); "
        f"argmax {read:.3f}, topk(22) {topk:.3f}",
        flush=True,
    )


def device_ms(f: Callable[[torch.Tensor], object], inputs: list[torch.Tensor], repeats: int = 30) -> float:
    """Median time of a call on the stream, which is kept busy until the host has queued all of it."""
    times = []
    for i in range(repeats + 5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(2_000_000)
        begin.record()
        f(inputs[i % len(inputs)])
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times[5:])[repeats // 2]


def host_ms(f: Callable[[torch.Tensor], object], inputs: list[torch.Tensor], repeats: int = 30) -> float:
    """Median time that a caller waits for one call alone."""
    times = []
    for i in range(repeats + 5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        f(inputs[i % len(inputs)])
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times[5:])[repeats // 2]


@torch.inference_mode()
def encoder_forward(rows: int, frames: int) -> None:
    from oasr.models.conformer_config import ConvConfig, EncoderConfig
    from oasr.models.encoders.conformer import ConformerEncoder

    config = EncoderConfig("conformer", 80, 512, 8, 2048, 12, conv=ConvConfig(15))
    encoder = ConformerEncoder(config).cuda().half().eval()
    features = [torch.randn(rows, 4 * frames + 3, 80, device="cuda", dtype=torch.half) for _ in range(2)]
    lengths = torch.full((rows,), 4 * frames + 3)
    took = device_ms(lambda x: encoder(x, lengths), features)
    print(f"encoder, 12 layers of 512, B {rows}, {frames} frames: {took:.2f} ms")


def torchaudio_decoder(rows: int, frames: int, vocab: int, beam: int) -> None:
    from torchaudio.models.decoder import cuda_ctc_decoder

    peer = cuda_ctc_decoder([str(i) for i in range(vocab)], nbest=1, beam_size=beam)
    lengths = torch.full((rows,), frames, dtype=torch.int32, device="cuda")
    inputs = [posteriors(rows, frames, vocab) for _ in range(4)]
    took = host_ms(lambda x: peer(x, lengths), inputs)
    print(f"torchaudio's cuda_ctc_decoder at {rows, frames, vocab, beam}: {took:.2f} ms")


if __name__ == "__main__":
    sys.exit(main())
