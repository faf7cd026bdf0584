"""run.py of a rank whose clock goes at another speed than the first one's.

python tests/skewed.py SPEED ARGUMENTS OF run.py: seconds of rank r pass SPEED^r times as fast as those of
rank 0, so that whatever a rank decides by its own clock it decides otherwise than the others.
"""

import runpy
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
CLOCKS = ("perf_counter", "monotonic")


def skew(speed):
    """From now on the clocks of this process go at such a speed."""
    for name in CLOCKS:
        setattr(time, name, _skewed(getattr(time, name), speed))


def _skewed(clock, speed):
    begun = clock()
    return lambda: begun + speed * (clock() - begun)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from app.cli import launcher_rank

    skew(float(sys.argv[1]) ** launcher_rank())
    sys.argv = ["run.py", *sys.argv[2:]]
    runpy.run_path(str(ROOT / "run.py"), run_name="__main__")
