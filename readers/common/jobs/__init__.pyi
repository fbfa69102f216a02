from readers.common.jobs.places import Place as Place
from readers.common.jobs.runner import Runner as Runner
from readers.common.jobs.runner import cluster_runner as cluster_runner
from readers.common.jobs.runner import process_runner as process_runner
from readers.common.jobs.runner import thread_runner as thread_runner
from readers.common.jobs.worker import Answer as Answer
from readers.common.jobs.worker import kept as kept
