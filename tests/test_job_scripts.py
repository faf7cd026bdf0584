"""examples/jobs through a scheduler that is played by shell scripts: signals, requeue, GPUs."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from jobs import ROOT

from run import main

pytestmark = pytest.mark.mpi_skip

# Starts ranks on one host, hands signals on, and ends with the largest exit code, as srun and jsrun do.
LAUNCHER = """\
#!/bin/bash
echo "launched $*" >> "$RECORD"
while [ "$1" != bash ]; do shift; done
trap 'kill -USR1 "${ranks[@]}"; again=yes' USR1
trap 'kill -TERM "${ranks[@]}"; again=yes' TERM
for rank in ${RANKS:-0 1}; do SLURM_LOCALID=$rank OMPI_COMM_WORLD_LOCAL_RANK=$rank "$@" & ranks+=($!); done
echo "all started" >> "$RECORD"
worst=0
for rank in "${ranks[@]}"; do
  again=yes
  while [ "$again" = yes ]; do again=no; wait "$rank"; code=$?; done
  if [ "$code" -gt "$worst" ]; then worst=$code; fi
done
exit "$worst"
"""

# A rank: says what it was given, then does as $PLAN says; a signal makes it stop with a checkpoint, once it
# listens: $DEAF_S seconds after its start.
PROGRAM = f"""\
#!{sys.executable} -S
import os, signal, sys, time
rank, gpu = os.environ["SLURM_LOCALID"], os.environ.get("CUDA_VISIBLE_DEVICES", "none")
def record(line):
    with open(os.environ["RECORD"], "a") as file:
        file.write(line + "\\n")
def stop(number, frame):
    record("checkpoint")
    os._exit(3)
record(f"rank {{rank}} gpu {{gpu}} threads {{os.environ['LOCKSTEP_THREADS']}}: {{' '.join(sys.argv[1:])}}")
time.sleep(float(os.environ.get("DEAF_S", "0")))
signal.signal(signal.SIGUSR1, stop)
signal.signal(signal.SIGTERM, stop)
record(f"rank {{rank}} listens")
if "--resume" in sys.argv:
    sys.exit(0)
if os.environ["PLAN"] != "wait":
    sys.exit(int(os.environ["PLAN"]))
time.sleep(30)
sys.exit(9)
"""
QUEUE = '#!/bin/bash\necho "queue $(basename "$0") $*" >> "$RECORD"\n'

SCRIPTS = {
    "slurm": (
        {"SLURM_JOB_ID": "77", "SLURM_CPUS_PER_TASK": "2"},
        {"SLURM_RESTART_COUNT": "1"},
        "scontrol requeue 77",
    ),
    "lsf": ({"LSB_JOBID": "78", "LOCKSTEP_THREADS": "2"}, {"LSB_RESTART": "Y"}, "brequeue 78"),
}


class Scheduler:
    """A folder of commands that play the scheduler, and the record of what happened."""

    def __init__(self, folder, name):
        self.record = folder / "record"
        for command, text in {
            "srun": LAUNCHER, "jsrun": LAUNCHER, "program": PROGRAM, "scontrol": QUEUE, "brequeue": QUEUE,
        }.items():  # fmt: skip
            (folder / command).write_text(text)
            (folder / command).chmod(0o755)
        self.script = ROOT / "examples" / "jobs" / f"{name}.sh"
        first, self.restarted, self.requeued = SCRIPTS[name]
        self.variables = {
            "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": str(folder / "program"),
            "RECORD": str(self.record), "LOCKSTEP_HOME": str(ROOT), "CUDA_VISIBLE_DEVICES": "4,5,6", **first,
        }  # fmt: skip

    def submit(self, arguments, plan="", again=False, sent=None, when=None):
        """Run the script to its end; returns its exit code.

        sent   a signal for the script, once `when` says so (default: once both ranks do)
        """
        variables = {**self.variables, "PLAN": str(plan), **(self.restarted if again else {})}
        with open(f"{self.record}.out", "ab") as printed:
            job = subprocess.Popen(
                ["bash", self.script, *map(str, arguments)], env=variables, stdout=printed, stderr=printed
            )
        try:
            if sent is not None:
                wait_for(when or (self.both_run))
                job.send_signal(sent)
            return job.wait(timeout=60)
        finally:
            job.kill()
            job.wait()

    def both_begin(self):
        return all(text in self.lines() for text in ("rank 0 gpu", "rank 1 gpu", "all started"))

    def both_run(self):
        return all(text in self.lines() for text in ("rank 0 listens", "rank 1 listens", "all started"))

    def lines(self):
        return self.record.read_text() if self.record.exists() else ""


def wait_for(happened, limit_s=30):
    """Until something has happened."""
    end = time.monotonic() + limit_s
    while not happened() and time.monotonic() < end:
        time.sleep(0.02)
    assert happened()


@pytest.fixture(params=SCRIPTS)
def scheduler(request, tmp_path):
    return Scheduler(tmp_path, request.param)


def test_a_signal_ends_with_a_checkpoint_and_the_job_comes_back(scheduler):
    arguments = ["inputs/mvc.toml", "graph.path=a b.txt", "--overwrite"]
    assert scheduler.submit(arguments, "wait", sent=signal.SIGUSR1) == 0
    text = scheduler.lines()
    assert text.count("checkpoint") == 2 and f"queue {scheduler.requeued}\n" in text
    assert "--resume" not in text
    assert scheduler.submit(arguments, "wait", again=True) == 0
    again = scheduler.lines().removeprefix(text)
    assert (
        again.count("run.py inputs/mvc.toml graph.path=a b.txt --resume\n") == 3
    )  # the launcher and two ranks
    assert "queue" not in again and "--overwrite" not in again


def test_every_rank_has_its_own_gpu_and_threads(scheduler):
    assert scheduler.submit(["case.toml"], 0) == 0
    for rank in (0, 1):
        assert f"rank {rank} gpu {4 + rank} threads 2: {ROOT}/run.py case.toml\n" in scheduler.lines()


def test_without_gpus_none_is_named(scheduler):
    scheduler.variables.pop("CUDA_VISIBLE_DEVICES")
    assert scheduler.submit(["case.toml"], 0) == 0
    assert scheduler.lines().count("gpu none") == 2


def test_a_signal_to_ranks_that_are_starting_is_sent_again(scheduler):
    """They would die of it, and hear only the next one."""
    scheduler.variables["DEAF_S"] = "1"
    arguments = ["case.toml"]
    assert scheduler.submit(arguments, "wait", sent=signal.SIGUSR1, when=scheduler.both_begin) == 0
    assert scheduler.lines().count("checkpoint") == 2 and f"queue {scheduler.requeued}\n" in scheduler.lines()


def test_a_rank_that_ends_first_leaves_the_others_time():
    """srun must not kill ranks that are about to end with exit code 3: it would end with another."""
    text = (ROOT / "examples" / "jobs" / "slurm.sh").read_text()
    assert "--kill-on-bad-exit=0 --wait=30" in text


@pytest.mark.parametrize("code", [0, 1, 2])
def test_other_ends_are_passed_on_and_not_queued_again(scheduler, code):
    assert scheduler.submit(["case.toml"], code) == code
    assert "queue" not in scheduler.lines()


def test_a_stop_before_the_limit_is_queued_again(scheduler):
    """As --max-hours makes one, without any signal."""
    assert scheduler.submit(["case.toml"], 3) == 0
    assert f"queue {scheduler.requeued}\n" in scheduler.lines()


def test_a_cancelled_job_does_not_come_back(scheduler):
    assert scheduler.submit(["case.toml"], "wait", sent=signal.SIGTERM) == 3
    assert "queue" not in scheduler.lines() and scheduler.lines().count("checkpoint") == 2


def test_the_program_itself_stops_and_comes_back_with_the_same_bits(tmp_path):
    """One rank of run.py in the middle of its training, which ends where an undisturbed one does."""
    scheduler = Scheduler(tmp_path, "slurm")
    scheduler.variables.update(PYTHON=sys.executable, RANKS="0", PYTHONPATH=str(ROOT))
    scheduler.variables.pop("CUDA_VISIBLE_DEVICES")
    case = [
        ROOT / "inputs" / "gcn.toml",
        "graph.nodes=600",
        "gnn.epochs=300",
        "output.plots=false",
        "--device=cpu",
    ]
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"

    def trained():
        path = stopped / "metrics.csv"
        return path.exists() and path.read_text().count("train,") > 5

    arguments = [*case, "--out", stopped, "--overwrite"]
    assert scheduler.submit(arguments, sent=signal.SIGUSR1, when=trained) == 0
    assert f"queue {scheduler.requeued}\n" in scheduler.lines() and not (stopped / "result.json").exists()
    assert scheduler.submit(arguments, again=True) == 0
    assert main([*map(str, case), f"--out={whole}"]) == 0
    found = [json.loads((folder / "result.json").read_text())["digest"] for folder in (stopped, whole)]
    assert found[0] == found[1]
