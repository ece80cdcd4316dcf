"""The connection to Ray: a cluster that runs already, or one of this machine alone."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any

from oasr.errors import LaunchError, OptionsError
from oasr.launch.feeder import MOST_AT_ONCE
from oasr.reinstall import pip_install

_REACHED_WITHIN_S = 5.0
_STORE_BYTES = 256 * 2**20
"""Object store of a cluster of one's own: what travels are rows and texts, never audio."""


def connect(address: str | None) -> ModuleType:
    """Join or start a cluster and return the module `ray`, whose `shutdown` ends what this began.

    Args:
        address: as in LaunchPlan.

    Raises:
        OptionsError: Ray is not installed, or the address is of a kind that cannot be used.
        LaunchError: no cluster answers at the address, or Ray cannot start.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    _check_address(address)
    shown = logging.getLogger().isEnabledFor(logging.INFO)
    ray = _import_ray(shown)
    # Not for a cluster that runs already: Ray refuses to be told the size of a store that is there.
    own = {"include_dashboard": False, "object_store_memory": _STORE_BYTES}
    before = signal.getsignal(signal.SIGTERM)
    try:
        with nullcontext() if shown else _silent_stderr():
            ray.init(
                address=address,
                log_to_driver=shown,
                logging_level="info" if shown else "critical",
                **(own if address == "local" else {}),
            )
    except Exception as error:
        reason = _first_line(error)
        if address == "local":
            raise LaunchError(f"Ray could not be started on this machine: {reason}") from error
        raise LaunchError(
            f"no Ray cluster could be joined at {address!r}: {reason}; is one running there (`ray status`), "
            "with the same versions of Ray and Python as here?"
        ) from error
    finally:
        # Ray takes SIGTERM for itself; a run finishes its batch first.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
    return ray


def _import_ray(shown: bool) -> ModuleType:
    """The modules `ray` and `ray.data`, which say nothing unless `shown`."""
    # By default Ray reports its use to its makers, and says so on stderr.
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if not shown:
        # Read when Ray is imported; its C++ half writes to stderr by itself.
        quiet |= {"RAY_BACKEND_LOG_LEVEL": "fatal"}
    for name, value in quiet.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray._private.worker as driver
        import ray.data
    except ImportError as error:
        raise OptionsError(
            f"launcher: ray needs Ray, which is not there ({error}): {pip_install('ray')}"
        ) from error
    # What processes of the cluster say would land on stdout, among the results.
    # Put in place before ray.init, which takes hold of the function that it finds.
    driver.print_to_stdstream = _to_the_log
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = shown
    # A block is passed on once it has this many bytes: each window and each result at once.
    context.target_max_block_size = 1
    # Ray Data takes this many windows from the list each time it looks, ten times a second when nothing else
    # happens. Its own 2 let one window through each time: ten a second, whatever the number of engines.
    context._max_num_blocks_in_streaming_gen_buffer = MOST_AT_ONCE
    # Ray Data keeps a log file as well, and may: only what goes to the terminal is silenced.
    for handler in [] if shown else logging.getLogger("ray.data").handlers:
        if not isinstance(handler, logging.FileHandler):
            handler.setLevel(logging.CRITICAL + 1)
    return ray


def _to_the_log(data: Mapping[str, Any], ignore_prefix: bool) -> None:
    """Lines that Ray would print, as records of the level info."""
    for line in data["lines"]:
        logging.getLogger("ray.cluster").info("%s: %s", data.get("pid"), line)


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Nothing goes to file descriptor 2: Ray's C++ half tells there that it was asked to be silent."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _check_address(address: str) -> None:
    """Find out fast what Ray itself takes a minute for, and may end the process over."""
    if "://" in address:
        raise OptionsError(
            f"address: {address}: Ray Client is not supported: run oasr on a machine of the cluster, or by "
            "`ray job submit`, and give HOST:PORT or auto"
        )
    if address in ("auto", "local"):
        return
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
        raise OptionsError(f"address: expected HOST:PORT or auto, got {address!r}")
    try:
        # An IPv6 address stands in brackets, which tell its own colons from that of the port.
        socket.create_connection((host.strip("[]"), int(port)), _REACHED_WITHIN_S).close()
    except OSError as error:
        raise LaunchError(
            f"no Ray cluster answers at {address} ({error.strerror or error}): start one with "
            "`ray start --head`, or give the address that it printed"
        ) from error


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
