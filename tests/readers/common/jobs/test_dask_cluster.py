"""Addresses of schedulers."""

import gc

import pytest

from readers.common.jobs.dask_cluster import address_of
from readers.common.jobs.runner import cluster_runner
from readers.errors import ConfigError


def test_an_address_is_used_as_it_is_and_a_file_is_read(tmp_path):
    assert address_of("tcp://head:8786") == "tcp://head:8786"
    (tmp_path / "scheduler.json").write_text('{"type": "Scheduler", "address": "tcp://10.0.0.1:8786"}')
    assert address_of(str(tmp_path / "scheduler.json")) == "tcp://10.0.0.1:8786"


@pytest.mark.parametrize("content", [b"", b"tcp://head:8786", b"[]", b"{}", b'{"address": 1}', b"\xff\xfe"])
def test_a_file_without_an_address_is_refused(content, tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "scheduler.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"^scheduler .*scheduler\.json: no address in this file; expected tcp://"):
        cluster_runner(str(tmp_path / "scheduler.json"), print)


@pytest.mark.parametrize(
    ("address", "reason"),
    [("scheduler.json", "missing port number"), ("http://head:8786", "unknown address scheme")],
)
def test_a_client_that_cannot_connect_is_not_closed_which_would_take_a_minute(address, reason, monkeypatch):
    distributed = pytest.importorskip("distributed")
    closed = []
    monkeypatch.setattr(distributed.Client, "close", lambda self, *arguments, **options: closed.append(address))
    with pytest.raises(ConfigError, match=f"^scheduler {address}: {reason}.*; expected tcp://HOST:PORT"):
        cluster_runner(address, print)
    gc.collect()
    assert closed == []
