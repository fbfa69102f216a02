import sys

from benchmarks.experiment import main

if __name__ == "__main__":
    sys.exit(main("stress"))
