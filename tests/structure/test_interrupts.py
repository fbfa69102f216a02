"""What the tests of interrupted commands rely on."""

import signal


def test_no_imported_module_handles_interrupts():
    """Some modules of other packages replace the handler of Ctrl-C when they are imported (dask_jobqueue)."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
