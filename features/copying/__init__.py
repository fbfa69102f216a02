"""HTK feature files from audio files, as HTK's HCopy makes them: the job, and the work on many files.

Open job.py first.
"""
