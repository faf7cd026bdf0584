#!/bin/bash
# Lockstep under SLURM: stops with a checkpoint before the time limit, and puts itself back into the queue.
#
#   sbatch examples/jobs/slurm.sh inputs/mvc.toml graph.path=FILE --out runs/mine
#
# Ask for what you need: nodes, ranks per node, and for GPUs also --gpus-per-node (one rank per GPU).
#SBATCH --job-name=lockstep
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=lockstep-%j.log

# SLURM sends SIGUSR1 to this shell five minutes before the limit (--signal=B:...); it passes it on to the
# ranks, which agree on a step, write a checkpoint and end with exit code 3. The job then runs again, and
# takes up where it stopped, on as many ranks as it then has: the result does not depend on their number.
set -u

# ---- your environment: module load ..., source .venv/bin/activate ----
# How srun tells ranks of each other (srun --mpi=list), where the site's default is not the one of your MPI:
# export SLURM_MPI_TYPE=pmix        # Open MPI; pmi2 for MPICH
# export MPIR_CVAR_CH4_NETMOD=ofi   # the MPICH of PyPI, where its ranks do not start under srun
PYTHON=${PYTHON:-python}
HERE=${LOCKSTEP_HOME:-${SLURM_SUBMIT_DIR:-.}}

# One thread for each core that a rank has; LOCKSTEP_THREADS is the only one that counts.
export LOCKSTEP_THREADS=${SLURM_CPUS_PER_TASK:-1}

# A job that runs again continues what it began, so nothing is overwritten; where there is no checkpoint yet
# it starts afresh.
ARGUMENTS=("$@")
if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
  ARGUMENTS=()
  for each in "$@"; do if [ "$each" != --overwrite ]; then ARGUMENTS+=("$each"); fi; done
  ARGUMENTS+=(--resume)
fi

# Each rank sees the GPU of its number on its node, and no other.
bind='trap "" USR1 # until Python listens
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
  IFS=, read -ra gpus <<< "$CUDA_VISIBLE_DEVICES"
  export CUDA_VISIBLE_DEVICES=${gpus[$((SLURM_LOCALID % ${#gpus[@]}))]}
fi
exec "$@"'

step= asking= asked=no signalled=no cancelled=no
tell() { if [ -n "$step" ]; then kill -s "$1" "$step" 2>/dev/null; fi; }
ask() { # the ranks to stop, again and again: while they are starting they do not hear it
  asked=yes signalled=yes
  if [ -n "$step" ] && [ -z "$asking" ]; then
    while sleep 2 && tell USR1; do :; done &
    asking=$!
  fi
}
trap 'tell USR1; ask' USR1
trap 'cancelled=yes; tell USR1; ask' TERM # which srun would make a SIGKILL of

# A rank that ends takes the others along after half a minute: those may be about to end, too, and srun ends
# with the code of a killed one.
srun --cpu-bind=cores --kill-on-bad-exit=0 --wait=30 \
  bash -c "$bind" lockstep "$PYTHON" "$HERE/run.py" "${ARGUMENTS[@]}" &
step=$!
if [ "$asked" = yes ]; then ask; fi # not at once: it would end srun, which is starting

# A signal ends `wait` before the ranks have ended: then their exit code is still to come.
wait "$step"
code=$?
while [ "$signalled" = yes ]; do
  signalled=no
  wait "$step"
  last=$?
  if [ "$last" -ne 127 ]; then code=$last; fi # 127: the first `wait` had it already
done

if [ -n "$asking" ]; then kill "$asking" 2>/dev/null; fi

# Whoever cancels a job does not want it back.
if [ "$code" -eq 3 ] && [ "$cancelled" = no ]; then
  echo "stopped with a checkpoint; back into the queue"
  scontrol requeue "$SLURM_JOB_ID" && exit 0
fi
exit "$code"
