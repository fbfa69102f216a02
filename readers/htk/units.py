"""HTK's unit of time, 100 ns (HTK Book, section 5.7.1)."""

TICKS_PER_SECOND = 10_000_000
TICKS_PER_FRAME = 100_000  # of the usual frame shift of 10 ms
