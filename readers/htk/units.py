"""HTK's unit of time, 100 ns (HTK Book 3.4, section 5.10.1).  A number of such units is called ticks."""

TICKS_PER_SECOND = 10_000_000
TICKS_PER_FRAME = 100_000  # for the usual frame shift of 10 ms


def seconds(ticks: int) -> str:
    """Format a time in 100 ns units as seconds."""
    return f"{ticks / TICKS_PER_SECOND:.2f} s"
