#!/bin/bash
# A real SLURM of several hosts on one machine, to run examples/jobs/slurm.sh and tests/test_slurm.py with.
#
#   apt-get install slurmctld slurmd slurm-client munge iproute2     # Debian 12; as root, like all of this
#   tests/slurm_here.sh start FOLDER [NODES]     # 2 nodes, n1 and n2; FOLDER not below /tmp or /dev/shm
#   eval "$(tests/slurm_here.sh env FOLDER)"     # SLURM_CONF, for sbatch and srun; LOCKSTEP_SLURM, for tests
#   python -m pytest -q tests/test_slurm.py
#   tests/slurm_here.sh stop FOLDER
#
# A node is a slurmd in namespaces of its own: host name, network (a bridge; n1 is 10.77.0.11), processes,
# shared memory, /tmp and a monotonic clock that began at another time. All else is the machine's, so that the
# project's folder is the file system that nodes share. Nodes claim SLURM_HERE_CPUS (4) cores whatever there
# are, and pin nobody. Also:
#
#   tests/slurm_here.sh on FOLDER n2 COMMAND...  # a command on a node
#   tests/slurm_here.sh crash FOLDER n2          # its power fails: every process is gone at once
#   tests/slurm_here.sh boot FOLDER n2           # it comes back
#   tests/slurm_here.sh cut FOLDER n2            # its network fails; `mend` brings it back
#
# Limits are short: KillWait 5 s, a node that does not answer is down after 20 s, a job that was put back into
# the queue waits 15 s.
set -eu

BRIDGE=lockstep0 NET=10.77.0
SCHEDULER_PORT=16817
CPUS=${SLURM_HERE_CPUS:-4}

usage() { sed -n '2,24s/^# \{0,1\}//p' "$0" >&2; exit 2; }

number() { echo "${1#n}"; }

configure() { # the number of nodes
  local memory each
  memory=$(awk '/MemTotal/ { print int($2 / 1024 / 2) }' /proc/meminfo)
  cat > "$FOLDER/slurm.conf" <<END
ClusterName=here
SlurmctldHost=$(hostname)($NET.1)
SlurmctldPort=$SCHEDULER_PORT
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$FOLDER/munge/socket,cred_expire=15
CredType=cred/munge
StateSaveLocation=$FOLDER/state
SlurmdSpoolDir=$FOLDER/spool-%n
SlurmctldPidFile=$FOLDER/slurmctld.pid
SlurmdPidFile=$FOLDER/slurmd-%n.pid
SlurmctldLogFile=$FOLDER/slurmctld.log
SlurmdLogFile=$FOLDER/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,sched_min_interval=0
PriorityType=priority/basic
ReturnToService=2
MpiDefault=none
KillWait=5
SlurmdTimeout=20
SlurmctldTimeout=20
InactiveLimit=0
WaitTime=0
JobRequeue=1
MaxArraySize=100
END
  for each in $(seq "$1"); do
    echo "NodeName=n$each NodeAddr=$NET.$((10 + each)) CPUs=$CPUS RealMemory=$memory State=UNKNOWN"
  done >> "$FOLDER/slurm.conf"
  echo "PartitionName=all Nodes=n[1-$1] Default=YES MaxTime=60 State=UP OverSubscribe=NO" >> "$FOLDER/slurm.conf"
  { echo "127.0.0.1 localhost"
    echo "$NET.1 $(hostname)"
    for each in $(seq "$1"); do echo "$NET.$((10 + each)) n$each"; done
  } > "$FOLDER/hosts"
}

start() { # the number of nodes
  case "$FOLDER/" in /tmp/* | /dev/shm/*) echo "$FOLDER: nodes have a /tmp of their own" >&2; exit 2 ;; esac
  mkdir -p "$FOLDER"/{state,munge}
  configure "$1"
  chmod 711 "$FOLDER" "$FOLDER/munge"
  (umask 077 && head -c 1024 /dev/urandom > "$FOLDER/munge/key")
  munged --force --socket="$FOLDER/munge/socket" --key-file="$FOLDER/munge/key" \
    --log-file="$FOLDER/munge/log" --pid-file="$FOLDER/munge/pid" --seed-file="$FOLDER/munge/seed"
  ip link add "$BRIDGE" type bridge
  ip addr add "$NET.1/24" dev "$BRIDGE"
  ip link set "$BRIDGE" up
  SLURM_CONF=$FOLDER/slurm.conf slurmctld -c
  for each in $(seq "$1"); do boot "n$each"; done
  for _ in $(seq 60); do
    if [ "$(SLURM_CONF=$FOLDER/slurm.conf sinfo -h -N -t idle -o %N | wc -l)" -eq "$1" ]; then return; fi
    sleep 0.5
  done
  echo "not all nodes are ready: see $FOLDER/*.log" >&2
  exit 1
}

boot() { # a node: its namespaces, its network, its slurmd
  local node=$1 n
  n=$(number "$node")
  mkdir -p "$FOLDER/spool-$node"
  rm -f "$FOLDER/$node.ready"
  # The first process of the node: when it ends, so does all that runs there.
  FOLDER=$FOLDER NODE=$node setsid unshare --net --uts --mount --ipc --pid --fork --mount-proc --time \
    --monotonic "$((100000 * n))" --kill-child bash -c '
    hostname "$NODE"
    mount -t tmpfs tmpfs /tmp
    mount -t tmpfs tmpfs /dev/shm
    mount --bind "$FOLDER/hosts" /etc/hosts
    ip link set lo up
    for _ in $(seq 100); do if ip link show eth0 up 2>/dev/null | grep -q eth0; then break; fi; sleep 0.1; done
    export SLURM_CONF=$FOLDER/slurm.conf
    slurmd -N "$NODE" -c
    trap "exit 0" TERM
    while :; do sleep 3600 & wait $!; done
  ' > "$FOLDER/$node.out" 2>&1 < /dev/null &
  echo $! > "$FOLDER/$node.unshare"
  for _ in $(seq 100); do if inner "$node" > "$FOLDER/$node.pid"; then break; fi; sleep 0.1; done
  ip link add "lockstep-$node" type veth peer name eth0 netns "$(cat "$FOLDER/$node.pid")"
  ip link set "lockstep-$node" master "$BRIDGE" up
  on "$node" ip addr add "$NET.$((10 + n))/24" dev eth0
  on "$node" ip link set eth0 up
}

inner() { # the number of a node's first process, as this machine counts
  local found
  found=$(cat "/proc/$(cat "$FOLDER/$1.unshare")/task/$(cat "$FOLDER/$1.unshare")/children" 2>/dev/null)
  [ -n "$found" ] && echo "${found%% *}"
}

on() { # a node, a command
  local node=$1
  shift
  nsenter --target "$(cat "$FOLDER/$node.pid")" --net --uts --mount --ipc --pid --time --wd="$PWD" \
    env SLURM_CONF="$FOLDER/slurm.conf" "$@"
}

crash() { kill -9 "$(cat "$FOLDER/$1.pid")"; }
cut() { ip link set "lockstep-$1" down; }
mend() { ip link set "lockstep-$1" up; }

stop() {
  local each
  for each in "$FOLDER"/n*.pid; do if [ -e "$each" ]; then kill -9 "$(cat "$each")" 2>/dev/null || true; fi; done
  for each in "$FOLDER/slurmctld.pid" "$FOLDER/munge/pid"; do kill "$(cat "$each")" 2>/dev/null || true; done
  for _ in $(seq 50); do if [ -e "$FOLDER/slurmctld.pid" ]; then sleep 0.2; fi; done # it saves its state
  ip link del "$BRIDGE" 2>/dev/null || true
  rm -rf "$FOLDER"/{state,munge,spool-n*,n*.pid,n*.unshare,slurmctld.pid}
}

if [ $# -lt 2 ]; then usage; fi
WHAT=$1
mkdir -p "$2"
FOLDER=$(cd "$2" && pwd -P)
shift 2
case $WHAT in
  start) start "${1:-2}" ;;
  env) echo "export LOCKSTEP_SLURM=1 SLURM_CONF='$FOLDER/slurm.conf'" ;;
  on | crash | boot | cut | mend) "$WHAT" "$@" ;;
  stop) stop ;;
  *) usage ;;
esac
