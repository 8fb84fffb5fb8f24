# SPDX-License-Identifier: Apache-2.0
"""hvd.run(function): calls it on every rank of a job of its own, and returns what each returned."""
from __future__ import annotations

import io
import os
import pathlib
import pickle
import shutil
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from .._core import errors
from .job import Job

R = TypeVar("R")

# Keywords that make a job elastic.
_ELASTIC = {"min_num_proc": "--min-np", "max_num_proc": "--max-np", "min_np": "--min-np",
            "max_np": "--max-np", "host_discovery_script": "--host-discovery-script"}
_FLAGS = {"hosts": "-H", "hostfile": "--hostfile", "start_timeout": "--start-timeout",
          "ssh_port": "--ssh-port", "ssh_identity_file": "--ssh-identity-file",
          "output_filename": "--output-filename", "mpi_args": "--mpi-args",
          "network_interfaces": "--network-interfaces", "network_interface": "--network-interface",
          "slots": "--slots-per-host", "reset_limit": "--reset-limit",
          "elastic_timeout": "--elastic-timeout", **_ELASTIC}
_SWITCHES = {"disable_cache": "--disable-cache", "use_gloo": "--gloo", "use_mpi": "--mpi"}


def candidates() -> Iterator[str]:
    """Where hvdrun may be, best first: in the wheel, a source checkout's build folder, the bin of
    an installed tree, whose share/hvd/python has this package; then the PATH."""
    package = pathlib.Path(__file__).resolve().parent.parent
    yield str(package / "bin" / "hvdrun")
    yield str(package.parent.parent / "build" / "bin" / "hvdrun")
    if package.parent.parts[-3:] == ("share", "hvd", "python"):
        yield str(package.parents[3] / "bin" / "hvdrun")
    yield shutil.which("hvdrun") or "hvdrun"


def find_hvdrun() -> str:
    """LaunchError says where it was looked for."""
    looked = list(candidates())
    for path in looked:
        if os.access(path, os.X_OK) and "/" in path:
            return path
    raise errors.launch("there is no hvdrun: build it (scripts/build), or put it on the PATH. "
                        "Looked at:\n  " + "\n  ".join(looked))


def option_words(num_proc: int | None, options: Mapping[str, Any]) -> list[str]:
    """hvdrun's options for hvd.run's keywords. TypeError for an unknown one."""
    words = [] if num_proc is None else ["-np", str(num_proc)]
    for name, value in options.items():
        if name == "cooldown_range":
            if value is not None:
                words += ["--blacklist-cooldown-range", *(str(end) for end in _pair(value))]
        elif name in _FLAGS:
            many = [] if value is None else value
            for each in [many] if isinstance(many, (str, int, float)) else many:
                words += [_FLAGS[name], str(each)]
        elif name in _SWITCHES:
            words += [_SWITCHES[name]] if value else []
        elif name == "verbose":
            words += ["--verbose"] * min(int(value or 0), 2)
        elif name != "executable":
            raise TypeError(f"run() has no keyword {name!r}")
    return words


def _pair(value: object) -> Sequence[object]:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise ValueError(f"cooldown_range is two times, the shorter one first, not {value!r}")
    return value


def is_elastic(options: Mapping[str, object]) -> bool:
    """Whether members of the job may come and go."""
    return any(options.get(name) is not None for name in _ELASTIC)


def count_of(num_proc: int | None, np: int | None, options: Mapping[str, object]) -> int | None:
    """How many ranks it begins with; None: as many as min_num_proc says."""
    if num_proc is not None and np is not None and num_proc != np:
        raise ValueError(f"num_proc is {num_proc} and np, its old name, {np}; give one of them")
    for name, ranks in (("num_proc", num_proc), ("np", np)):
        if ranks is not None and ranks < 1:
            raise ValueError(f"{name} is {ranks}; a job has at least one rank")
    has_least = options.get("min_num_proc") is not None or options.get("min_np") is not None
    return num_proc or np or (None if has_least else 1)


def _pickler() -> types.ModuleType:
    try:
        import cloudpickle
    except ImportError:
        raise ImportError("hvd.run sends the function to the ranks with cloudpickle, and it is not "
                          f"there; {sys.executable} -m pip install cloudpickle, on every host"
                          ) from None
    found: types.ModuleType = cloudpickle
    return found


def _pickled(call: object) -> bytes:
    """By cloudpickle, but that code keeps the name of its file, which tracebacks show: it says
    "<dynamic-code>" from 3.1.3 on."""
    cloudpickle = _pickler()

    def reduce_code(code: types.CodeType) -> tuple[object, tuple[object, ...]]:
        make, parts = cloudpickle.CloudPickler.dispatch_table[types.CodeType](code)
        return make, tuple(code.co_filename if part == "<dynamic-code>" else part
                           for part in parts)

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc, name-defined]
        dispatch_table = cloudpickle.CloudPickler.dispatch_table.new_child(
            {types.CodeType: reduce_code})

    file = io.BytesIO()
    Pickler(file).dump(call)
    return file.getvalue()


def run(func: Callable[..., R], args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None, num_proc: int | None = None, *,
        np: int | None = None, **options: Any) -> list[R]:
    """Calls func(*args, **kwargs) on num_proc ranks (one, if it is not said) and returns what each
    returned, by rank. The ranks' output is shown as it comes.

    The other keywords are Horovod's: hosts ("host1:4,host2:4"), hostfile, start_timeout, ssh_port,
    ssh_identity_file, output_filename, verbose, network_interfaces, executable (the ranks' Python;
    else this one), and use_gloo, use_mpi, mpi_args and disable_cache, of which hvdrun says that
    they have no effect.

    min_num_proc, max_num_proc and host_discovery_script make the job elastic, for which slots,
    reset_limit, cooldown_range (two times) and elastic_timeout count, too. Then what those returned
    who were there at the end comes back, by the ranks that they had last: those of the last epoch,
    if func leaves hvd initialised, else those that they began with. The function and its arguments
    are then kept small (96 KiB, packed): members that come later find them in their environment.

    `import horovod` gives hvd in the ranks, as with hvdrun --compat horovod.

    RankError has the traceback of the rank that failed; JobError is raised when a job ended
    otherwise. A module that func needs is looked for in this process's sys.path, on every host."""
    call = _pickled((func, tuple(args), dict(kwargs or {})))
    count, elastic = count_of(num_proc, np, options), is_elastic(options)
    words = [find_hvdrun(), "--compat", "horovod", "--stdin", "all", *option_words(count, options),
             options.get("executable") or sys.executable, "-m", "hvd._run.worker"]
    path = [os.path.abspath(place) for place in sys.path]
    job = Job(words, {"call": call, "path": path}, by_environment=elastic)
    job.run()
    failure = job.failure()
    if failure is not None:
        raise failure
    results = {rank: said["result"] for rank, said in job.said.items() if "result" in said}
    expected = sorted(results) or [0] if count is None or elastic else range(count)
    lacking = [rank for rank in expected if rank not in results]
    if lacking:
        raise errors.job_failed(0, f"rank {lacking[0]} ended without returning from "
                                   f"{getattr(func, '__name__', 'the function')}")
    return [pickle.loads(results[rank]) for rank in expected]
