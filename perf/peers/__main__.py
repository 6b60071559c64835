"""What does a stream cost, beside other libraries?

python -m perf.peers mlp        # or cifar
"""

import argparse

from perf.asking.answer import lines_of
from perf.peers.compare import measure

if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("shape", nargs="?", choices=("mlp", "cifar"), default="mlp")
    options.add_argument("--repetitions", type=int)
    chosen = options.parse_args()
    print("\n".join(lines_of(measure(chosen.shape, repetitions=chosen.repetitions))))
