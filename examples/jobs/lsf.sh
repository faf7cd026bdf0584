#!/bin/bash
# Lockstep under LSF with jsrun: stops with a checkpoint before the time limit, and is run again.
#
#   bsub examples/jobs/lsf.sh inputs/mvc.toml graph.path=FILE --out runs/mine
#
#BSUB -J lockstep
#BSUB -nnodes 2
#BSUB -W 4:00
#BSUB -wa USR1
#BSUB -wt 5
#BSUB -r
#BSUB -o lockstep-%J.log

# LSF sends SIGUSR1 five minutes before the limit (-wa, -wt); this shell passes it on to the ranks, which
# agree on a step, write a checkpoint and end with exit code 3. `brequeue` then puts the job back into the
# queue, and it takes up where it stopped. The result does not depend on the number of ranks.
set -u

# ---- your environment: module load ..., source .venv/bin/activate ----
PYTHON=${PYTHON:-python}
HERE=${LOCKSTEP_HOME:-${LS_SUBCWD:-.}}
SETS=${LOCKSTEP_SETS:-12}          # resource sets of the whole job: one rank each
SETS_PER_HOST=${LOCKSTEP_SETS_PER_HOST:-6}
CORES=${LOCKSTEP_CORES:-7}         # of a resource set
GPUS=${LOCKSTEP_GPUS:-1}           # of a resource set; 0 on hosts without

export LOCKSTEP_THREADS=${LOCKSTEP_THREADS:-1}

# LSF says Y where a job runs again; it continues what it began, so nothing is overwritten; where there is no
# checkpoint yet it starts afresh.
ARGUMENTS=("$@")
if [ "${LSB_RESTART:-N}" = Y ]; then
  ARGUMENTS=()
  for each in "$@"; do if [ "$each" != --overwrite ]; then ARGUMENTS+=("$each"); fi; done
  ARGUMENTS+=(--resume)
fi

# A resource set has its GPU to itself: jsrun makes it the only one that the rank sees. Where the launcher
# shows all GPUs of a host to every rank, each takes the one of its number.
bind='trap "" USR1 # until Python listens
local_rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${PMIX_LOCAL_RANK:-0}}
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
  IFS=, read -ra gpus <<< "$CUDA_VISIBLE_DEVICES"
  export CUDA_VISIBLE_DEVICES=${gpus[$((local_rank % ${#gpus[@]}))]}
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
trap 'cancelled=yes signalled=yes; tell TERM' TERM

jsrun --nrs "$SETS" --rs_per_host "$SETS_PER_HOST" --tasks_per_rs 1 --cpu_per_rs "$CORES" \
  --gpu_per_rs "$GPUS" --bind packed:1 \
  bash -c "$bind" lockstep "$PYTHON" "$HERE/run.py" "${ARGUMENTS[@]}" &
step=$!
if [ "$asked" = yes ]; then ask; fi # not at once: it would end jsrun, which is starting
if [ "$cancelled" = yes ]; then tell TERM; fi

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
  brequeue "$LSB_JOBID" && exit 0
fi
exit "$code"
