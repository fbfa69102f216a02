"""A device for networks: numpy with cupy's rules, and the first GPU for tests marked `gpu`."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from acoustic.kernels import backend
from tests.acoustic.devices import cuda_on_host, cupy_on_host

DEVICES = [pytest.param("stand-in", marks=cuda_on_host.needs_compiler)]
if importlib.util.find_spec("cupy"):
    DEVICES.append(pytest.param("gpu", marks=pytest.mark.gpu))


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """device(): a context in which networks are made on the device, whatever they ask for."""
    module = cupy_on_host.cupy
    if request.param == "gpu":
        import cupy as module  # optional: the extra `gpu`

        if not module.is_available():
            pytest.skip("no CUDA device")

    @contextlib.contextmanager
    def on_device() -> Iterator[Any]:
        with monkeypatch.context() as patch:
            patch.setattr(backend, "array_module", lambda name: module)
            yield module

    return on_device
