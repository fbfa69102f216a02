"""Work on lists in threads, in processes of this machine, or on a Dask cluster.

Open runner.py first: a Runner divides a list into shards, as in durations.py, and returns the results in order.
places.py and dask_cluster.py are the places where shards are worked on, worker.py is what happens there, processes.py
ends worker processes.  stop_signals.py says how a run is stopped.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
