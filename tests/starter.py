"""Starts the program without loading its libraries each time, which takes longer than most runs of tests.

    python tests/starter.py listen PLACE [plots]          loads them once, then listens at the socket PLACE
    python -I -S tests/starter.py ask EVEN ODD ARGUMENTS  asks for `run.py ARGUMENTS`, ends as it does;
                                                          of `-c TEXT`, `-m MODULE` or a file's name for
                                                          what Python does with these

Each program is a fork of the process that listens, with the environment, the folder, the streams and, under
MPICH's mpirun, the line to the launcher of the process that asked. It is killed where that one is. MPI begins
in the fork. Ranks of odd numbers ask at another place: sets of strings have another order there.
"""

import json
import os
import socket
import sys

LAUNCHER_LINE = "PMI_FD"  # a number of a file: what MPICH's ranks talk to their launcher by
# What runs of one kind or another load.
LOADED = (
    "app.main", "app.output", "app.plots.runs", "app.problems.mvc", "app.rl.agent", "app.solver.pipeline",
    "app.tasks.classify", "app.tasks.levels.edges", "app.tasks.levels.links", "app.tasks.levels.nodes",
    "app.tasks.rgcn", "app.tasks.solve", "app.tasks.study", "app.tasks.train", "networkx", "highspy",
    "scipy.linalg", "scipy.optimize", "scipy.sparse.csgraph", "scipy.sparse.linalg", "scipy.spatial",
)  # fmt: skip


def ask(places, arguments):
    """Have the program run; returns how it ended, as os.waitpid says it."""
    number = os.environ.get(LAUNCHER_LINE)
    line = [] if number is None else [int(number)]
    place = places[int(os.environ.get("PMI_RANK", "0")) % 2]
    question = json.dumps([os.getcwd(), dict(os.environ), arguments]).encode()
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(place)
        socket.send_fds(asking, [len(question).to_bytes(8, "little")], [0, 1, 2, *line])
        asking.sendall(question)
        return int(asking.makefile("rb").read())


def end_as(status):
    """End this process as another one has ended."""
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def load(folder, plots):
    """Import what the program does, and have MPI begin where the program comes to it.

    plots   also what rank 0 alone imports, and the fonts that it looks for
    """
    import gc
    import importlib
    from contextlib import suppress

    sys.path[0] = folder
    from app import lean, threads

    threads.limit_threads()
    lean.import_sparse()
    import mpi4py

    mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
    for name in LOADED:
        with suppress(ImportError):  # some libraries need not be there
            importlib.import_module(name)
    from mpi4py import MPI

    import app.main
    from app.case.config import all_keys
    from app.tasks.context import software

    all_keys(), software()  # kept, once looked up

    def begun(function):
        def first(*given):
            if not MPI.Is_initialized():
                MPI.Init_thread()
            return function(*given)

        return first

    app.main.run, app.main.refuse = begun(app.main.run), begun(app.main.refuse)
    if plots:
        with suppress(ImportError):
            draw()
    gc.collect()
    gc.freeze()


def draw():
    """A first picture, which takes longer than the next ones; these are small, are not laid out, and have
    neither ticks nor legends, which take longer than all else.

    Whole pictures are test_pictures.py's.
    """
    import io

    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    figure, axes = pyplot.subplots()
    axes.set_title("a title")
    figure.savefig(io.BytesIO(), format="png")
    pyplot.close(figure)
    savefig = Figure.savefig
    Figure.savefig = lambda figure, file, dpi, **how: savefig(figure, file, dpi=dpi // 4, **how)
    Figure.tight_layout = lambda figure: None
    Axis.draw = Legend.draw = lambda drawn, renderer: None


def become(files, question, folder):
    """The program, in a fork of its own: runs run.py as Python does, to the end of the process."""
    import runpy

    where, environment, arguments = json.loads(question)
    more = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place not in sys.path]
    sys.path[1:1] = more
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(where)
    numbers = [0, 1, 2, *([int(environment[LAUNCHER_LINE])] if LAUNCHER_LINE in environment else [])]
    high = [os.dup2(file, 200 + k) for k, file in enumerate(files)]  # out of the way of all numbers
    for file, number in zip(high, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)
    for file in set(files) - set(numbers):
        os.close(file)
    if arguments[:1] == ["-c"]:
        return interpret(*arguments[1:])
    sys.argv = [os.path.join(folder, "run.py"), *arguments]
    try:
        if arguments[:1] == ["-m"]:
            begin_elsewhere(arguments[1:], where)
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        elif arguments[:1] == [os.path.join(folder, "tests", "skewed.py")]:
            begin_elsewhere(arguments, os.path.dirname(arguments[0]))
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as left:
        if isinstance(left.code, int):
            end(int(left.code))
        raise


def begin_elsewhere(arguments, first):
    """Another program than run.py, with a folder where its modules are; MPI begins before, since whatever is
    imported may ask for ranks.
    """
    from mpi4py import MPI

    MPI.Init_thread()
    sys.path[0], sys.argv = first, list(arguments)


def interpret(text, *arguments):
    """Runs `python -c TEXT ARGUMENTS`."""
    import types

    begin_elsewhere(["-c", *arguments], "")
    own = sys.modules["__main__"] = types.ModuleType("__main__")  # without the names of this file
    exec(compile(text, "<string>", "exec"), vars(own))
    end(0)


def end(code):
    """End the process without taking apart what was loaded, which takes longer than to begin it."""
    import atexit
    import ctypes
    import threading

    from mpi4py import MPI

    from app.cli import end_output

    threading._shutdown()
    atexit._run_exitfuncs()
    if MPI.Is_initialized() and not MPI.Is_finalized():
        MPI.Finalize()
    end_output()
    ctypes.PyDLL(None).exit(code)  # not os._exit: with what libraries of C do last, MPI among them


def serve(place, folder):
    """Fork for whoever asks, until standard input ends."""
    import selectors
    import signal
    from contextlib import suppress

    waiting = selectors.DefaultSelector()
    door = socket.socket(socket.AF_UNIX)
    door.bind(place)
    door.listen(64)
    os.write(1, b".")  # to be asked from now on
    running = {}  # process -> (the file that says when it ends, who asked)
    waiting.register(0, selectors.EVENT_READ, "end")
    waiting.register(door, selectors.EVENT_READ, "door")
    while True:
        for key, _ in waiting.select():
            kind, process = key.data if isinstance(key.data, tuple) else (key.data, None)
            if kind == "end":
                for process in running:
                    os.kill(process, signal.SIGKILL)
                os.unlink(place)
                os.rmdir(os.path.dirname(place))
                os._exit(0)
            elif kind == "door":
                asking, _ = door.accept()
                head, files, *_ = socket.recv_fds(asking, 8, 4)
                size = int.from_bytes(head, "little")
                question = asking.makefile("rb").read(size)
                if not size or len(question) < size:  # killed while it asked
                    for each in files:
                        os.close(each)
                    asking.close()
                    continue
                process = os.fork()
                if not process:
                    waiting.close()
                    for each in (door, asking, *(who for _, who in running.values())):
                        each.close()
                    for file, _ in running.values():
                        os.close(file)
                    return become(files, question, folder)
                for file in files:
                    os.close(file)
                running[process] = os.pidfd_open(process), asking
                waiting.register(running[process][0], selectors.EVENT_READ, ("ended", process))
                waiting.register(asking, selectors.EVENT_READ, ("left", process))
            elif kind == "left" and process in running:
                waiting.unregister(key.fileobj)  # it says nothing more, and does so where it was killed
                os.kill(process, signal.SIGKILL)
            elif kind == "ended":
                file, asking = running.pop(process)
                _, status = os.waitpid(process, 0)
                waiting.unregister(file)
                os.close(file)
                if asking.fileno() in waiting.get_map():
                    waiting.unregister(asking)
                    with suppress(OSError):  # killed just now
                        asking.sendall(b"%d" % status)
                asking.close()


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        end_as(ask(sys.argv[2:4], sys.argv[4:]))
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    load(root, "plots" in sys.argv[3:])
    serve(sys.argv[2], root)
