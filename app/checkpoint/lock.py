"""The lock of a run folder: two jobs must not write to it at the same time."""

import contextlib
import json
import os
import socket
import time
from typing import Any

from app.errors import CaseError
from app.text import printable

NAME = ".lock"
LARGEST = 1 << 14


def take(folder: str, force: bool = False) -> str:
    """Lock a folder for this process; what is to be said of an older lock that was taken over, or "".

    Raises CaseError where another job may still be at work.
    """
    path, said = os.path.join(folder, NAME), ""
    for _ in range(2):
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            said = _judge(path, force)
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
            continue
        try:
            with os.fdopen(handle, "w") as file:
                file.write(json.dumps(_this_process()) + "\n")
        except OSError:  # a lock that tells nobody would be taken for another job's
            os.remove(path)
            raise
        return said
    raise CaseError(f"{folder}: another job has just begun to write to it; name another folder by --out")


def refuse_held(folder: str, force: bool = False) -> None:
    """Raises CaseError where another job may be at work in a folder; takes nothing over."""
    path = os.path.join(folder, NAME)
    if os.path.lexists(path):
        _judge(path, force)


def release(folder: str) -> None:
    """Unlock a folder that this process has locked."""
    path = os.path.join(folder, NAME)
    holder = _read(path)
    if holder is not None and (holder.get("host"), holder.get("pid")) == (socket.gethostname(), os.getpid()):
        with contextlib.suppress(OSError):
            os.remove(path)


def _judge(path: str, force: bool) -> str:
    """Why the lock at hand may be taken over. Raises CaseError where it may not."""
    holder = _read(path) or {}
    who = printable(f"process {holder.get('pid', '?')} on {holder.get('host', '?')}")
    since = printable(str(holder.get("begun", "an unknown time")))
    if force:
        return f"the lock of {who} was removed, as --force-unlock asks"
    if _is_gone(holder):
        return f"{who}, which had locked the folder since {since}, is gone: its lock was removed"
    raise CaseError(
        f"{os.path.dirname(path)}: {who} has been writing to it since {since}; wait for it, or name another "
        "folder by --out. If that job is certainly gone, add --force-unlock"
    )


def _is_gone(holder: dict[str, Any]) -> bool:
    """Whether the holder certainly runs no more: on this host we can look; a requeued job is its own heir."""
    mine = _this_process()
    if holder.get("job") and holder.get("job") == mine["job"] and holder.get("restarts") != mine["restarts"]:
        return True
    pid = holder.get("pid")
    if holder.get("host") != mine["host"] or not isinstance(pid, int) or pid <= 0:
        return False
    if holder.get("boot") != mine["boot"]:
        return True
    if holder.get("space") != mine["space"]:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    if _fields(pid)[:1] in (["Z"], ["X"]):  # it has ended; who began it has not asked how
        return True
    return _started(pid) != holder.get("started")  # the number is another process's by now


def _this_process() -> dict[str, Any]:
    environment = os.environ
    return {
        "host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid()), "boot": _boot(),
        "space": _space(),
        "job": environment.get("SLURM_JOB_ID") or environment.get("LSB_JOBID") or "",
        "restarts": environment.get("SLURM_RESTART_COUNT") or environment.get("LSB_JOBRESTART") or "",
        "begun": time.strftime("%Y-%m-%d %H:%M:%S"),
    }  # fmt: skip


def _started(pid: int) -> str:
    """When a process began, in the system's ticks; "" where the system does not tell."""
    return (_fields(pid)[19:20] or [""])[0]


def _fields(pid: int) -> list[str]:
    """What the system tells of a process, from its state on (`man proc_pid_stat`); nothing where it does
    not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _boot() -> str:
    """What names this start of the system; "" where the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _space() -> str:
    """What names the space of process numbers: that of a container is not its host's."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _read(path: str) -> dict[str, Any] | None:
    """What a lock says; None where there is none or it says nothing."""
    try:
        with open(path) as file:
            holder = json.loads(file.read(LARGEST))
    except (OSError, ValueError):
        return None
    return holder if isinstance(holder, dict) else None
