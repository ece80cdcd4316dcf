"""Clusters that cannot be joined: found out at once, said in one line, and nothing is left behind."""

from __future__ import annotations

import socket
import sys

import pytest
from oasr.errors import LaunchError, OptionsError
from oasr.launch.cluster import connect


def test_an_address_where_nobody_answers():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(LaunchError, match=f"no Ray cluster answers at {address} .*ray start --head"):
        connect(address)


@pytest.mark.parametrize("address", ["6379", "host", "host:", ":1", "host:0", "host:99999", "host:x"])
def test_what_is_no_address(address):
    with pytest.raises(OptionsError, match="address: expected HOST:PORT or auto"):
        connect(address)


def test_ray_client_is_refused():
    with pytest.raises(OptionsError, match="Ray Client is not supported"):
        connect("ray://head:10001")


def test_the_variable_of_ray_counts(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(OptionsError, match="'nowhere'"):
        connect(None)


def test_without_ray_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OptionsError, match=r"launcher: ray needs Ray.*pip install .*\[ray\]'"):
        connect("local")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ray_data_still_has_the_settings_that_are_made():
    # A setting of another name would be taken without a word, and ten windows a second be all that pass.
    data = pytest.importorskip("ray.data")
    fresh = data.DataContext()
    assert {"target_max_block_size", "_max_num_blocks_in_streaming_gen_buffer"} <= vars(fresh).keys()
