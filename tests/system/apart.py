# SPDX-License-Identifier: Apache-2.0
"""One whole-program test in a process of its own, with a bound on its time: it can leave nothing in the next one."""
import importlib
import pathlib
import signal
import subprocess
import sys
import traceback

import world

SKIPPED = 77


def run_here(module, name):
    """Runs one test in this process; returns its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what the test made is taken down
    # A caller in the background may have told us to ignore them; the test's programs shall not inherit that. (pytest itself may be in
    # no main thread, where xdist has started it.)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        getattr(importlib.import_module(module), name)()
    except world.Skip as skip:
        print(skip)
        return SKIPPED
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def end(process):
    """Has a test that is to stop take down what it made; returns its output."""
    process.terminate()
    try:
        return process.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def run(module, name, bound):
    """Runs one test in a new process; returns (exit code or None when it took too long, output)."""
    command = [sys.executable, "-B", str(pathlib.Path(__file__).resolve()), module, name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                               errors="replace", start_new_session=True)
    try:
        try:
            output, _ = process.communicate(timeout=bound)
        except subprocess.TimeoutExpired:
            output, _ = process.communicate(timeout=world.patient(bound) - bound)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, end(process)
    except BaseException:  # Ctrl-C at pytest
        end(process)
        raise


if __name__ == "__main__":
    sys.exit(run_here(*sys.argv[1:]))
