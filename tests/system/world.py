# SPDX-License-Identifier: Apache-2.0
"""Worlds to run hvdrun in: simulated hosts made for one test and taken away after it, and what may be asked of them.

Every test has hosts of its own, also for jobs of one host: so a host's processes, /tmp, /dev/shm, sockets and mounts are the
test's alone, and "nothing is left" can be checked exactly.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = REPOSITORY / "build" / "bin"
HVDRUN = str(BIN / "hvdrun")
PROGRAMS = REPOSITORY / "build" / "tests" / "programs"
SIM_HOSTS = str(REPOSITORY / "scripts" / "sim-hosts")


class Skip(Exception):
    """This machine cannot do what the test needs; says what."""


ALL = os.environ.get("HVD_TEST_ALL") == "1"  # scripts/test --all: what takes longer than .ci/run may
ROUNDS = int(os.environ.get("HVD_TEST_ROUNDS", "20" if ALL else "5"))  # how often a test that kills at random moments does so
DEFAULT_BOUND_S = 60


def bound(seconds):
    """Decorator: the test may take this long, instead of a minute."""
    def mark(function):
        function.seconds = seconds
        return function
    return mark


def bound_of(function):
    """How many seconds the test may take on an idle machine."""
    return getattr(function, "seconds", DEFAULT_BOUND_S)


def alone(function):
    """Decorator: the test counts cores or times, so no other runs beside it."""
    function.alone = True
    return function


def only_with_all(function):
    """Decorator: the test takes long, or its proof stands nearly so in a shorter one: it is one of scripts/test --all alone."""
    return function if ALL else None


def rows(*always, with_all=()):
    """The rows of a test's table: those of each run, and those that only scripts/test --all has."""
    return always + (tuple(with_all) if ALL else ())


def is_named(module, name, pattern):
    """Whether the pattern matches a part of the test's name, "test_file.test_name" or without its first test_."""
    return re.search(pattern, f"{module}.{name}") or re.search(pattern, f"{module[5:]}.{name[5:]}")


def patient(seconds):
    """Returns how long work of less than `seconds` on an idle machine may take now, beside all others who want its cores."""
    running = int(pathlib.Path("/proc/stat").read_text().partition("procs_running ")[2].split()[0])
    wanted = max(os.getloadavg()[0], running) / len(os.sched_getaffinity(0))
    return seconds * min(max(2 * wanted, 1), 20)


def wait_until(condition, seconds, what):
    """Returns condition()'s first true value; fails after patient(seconds), naming `what` it waited for."""
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        took = time.monotonic() - began
        assert took < seconds or took < patient(seconds), f"waited {took:.1f} s for {what}"
        time.sleep(0.005)


def state_and_time(process):
    """Returns a Process's state as ps has it, and the clock ticks of processor that it has used."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()
    return fields[0], int(fields[11]) + int(fields[12])


def await_still(process):
    """Until the process has slept, and used no processor, for a third of a second: it waits for somebody."""
    since, used = time.monotonic(), None

    def rests():
        nonlocal since, used
        state, now_used = state_and_time(process)
        if state not in "ST" or now_used != used:
            since, used = time.monotonic(), now_used
        return time.monotonic() >= since + 0.33
    wait_until(rests, 20, f"process {process.pid} to come to rest")


class Outcome:
    """How a command ended: code (128 + signal when killed), out, err, seconds."""

    def __init__(self, code, out, err, seconds):
        self.code = code if code >= 0 else 128 - code
        self.out, self.err, self.seconds = out, err, seconds

    def __str__(self):
        return f"exit code {self.code} after {self.seconds:.2f} s\n--- stdout\n{self.out}--- stderr\n{self.err}"

    def must(self, code, *in_err):
        """Checks the exit code and that stderr holds each of the texts."""
        assert self.code == code, f"expected exit code {code}: {self}"
        for text in in_err:
            assert text in self.err, f"stderr must say {text!r}: {self}"
        return self


class Running:
    """A command under way. Its output goes to files, so that nobody has to read it meanwhile."""

    def __init__(self, command, scratch, stdin=None, env=None):
        self.out_path = tempfile.mktemp(prefix="out.", dir=scratch)
        self.err_path = tempfile.mktemp(prefix="err.", dir=scratch)
        self.began = time.monotonic()
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL if stdin is None else stdin, stdout=out, stderr=err,
                                            cwd=REPOSITORY, env={**os.environ, **(env or {})}, start_new_session=True)

    def out(self):
        return pathlib.Path(self.out_path).read_text(errors="replace")

    def err(self):
        return pathlib.Path(self.err_path).read_text(errors="replace")

    def wait_for(self, text, count=1, seconds=20):
        """Until stdout holds `text` at least `count` times."""
        wait_until(lambda: self.out().count(text) >= count or self.process.poll() is not None, seconds, f"{text!r} in:\n{self.out()}")
        assert self.out().count(text) >= count, f"ended before saying {text!r}: {self.wait()}"
        return self

    def wait(self, seconds=30):
        seconds = patient(seconds)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"still running after {seconds} s\n--- stdout\n{self.out()}--- stderr\n{self.err()}") from None
        return Outcome(code, self.out(), self.err(), time.monotonic() - self.began)


class Process:
    """A process of a host, as this machine sees it."""

    def __init__(self, pid, parent, command):
        self.pid, self.parent, self.command = pid, parent, command

    @property
    def name(self):
        return os.path.basename(self.command[0]) if self.command else ""

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    def __repr__(self):
        return f"{self.pid} ({' '.join(self.command)[:120]})"


def read_process(pid):
    """None when it is gone or a zombie."""
    try:
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        state, parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[:2]
    except OSError:
        return None
    return None if state in "ZX" else Process(pid, int(parent), command)


class Host:
    """One simulated host, seen from this machine."""

    def __init__(self, directory, index):
        self.index = index
        self.init = int((directory / f"host{index}" / "pid").read_text())
        self.network = os.readlink(f"/proc/{self.init}/ns/net")
        self.root = pathlib.Path(f"/proc/{self.init}/root")
        self.own = {self.init, read_process(self.init).parent}  # process 1, and the unshare that holds it from outside
        self.own |= {process.pid for process in self.processes()}  # a scheduler's daemons
        self.clean = self.belongings()

    def processes(self):
        """All but the host's own."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) in self.own:
                continue
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{entry}/ns/net") == self.network:
                    found.append(read_process(int(entry)))
        return [process for process in found if process]

    def belongings(self):
        """Returns what a job may leave on a host besides processes."""
        files = {f"/{place}/{name}" for place in ("tmp", "dev/shm", "run", "root") for name in os.listdir(self.root / place)}
        sockets = {line.split()[7] for line in (pathlib.Path(f"/proc/{self.init}/net/unix").read_text().splitlines()[1:])
                   if len(line.split()) > 7}
        mounts = {line.split()[4] for line in pathlib.Path(f"/proc/{self.init}/mountinfo").read_text().splitlines()}
        groups = {str(path) for path in pathlib.Path("/sys/fs/cgroup").glob("**/hvd*")}
        return files | sockets | mounts | groups

    def left(self):
        """Returns what is there now and was not at first; nothing of a host that is off, or is going off."""
        try:
            return [repr(process) for process in self.processes()] + sorted(self.belongings() - self.clean)
        except (FileNotFoundError, ProcessLookupError):
            return []


class World:
    """Hosts with hvdrun on host 0."""

    def __init__(self, directory, scratch, count):
        self.directory, self.scratch = directory, scratch
        self.hosts = [Host(directory, index) for index in range(count)]
        self.hostfile = str(directory / "hostfile")
        self.own = None  # a directory on host 0

    def start(self, *command, host=0, user=None, stdin=None, env=None):
        """Starts a command on a host; see Running."""
        words = [str(word) for word in command]
        if user:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "env", "HOME=/home/guest", "USER=guest", *words]
        enter = [SIM_HOSTS, "--dir", str(self.directory), "exec", str(host)]
        return Running(enter + words, self.scratch, stdin, env)

    def run(self, *command, seconds=30, **how):
        return self.start(*command, **how).wait(seconds)

    def hvdrun(self, *words, seconds=30, **how):
        """Runs hvdrun on host 0."""
        return self.run(HVDRUN, *words, seconds=seconds, **how)

    def place(self, name):
        """Where a file of this name can lie on host 0: in a directory that this run alone has. It must be taken away again."""
        if not self.own:
            self.own = self.run("mktemp", "-d", "/tmp/hvd-test.XXXXXXXX").must(0).out.strip()
            self.hosts[0].clean.add(self.own)
        return f"{self.own}/{name}"

    def placed(self):
        """Returns the names of what lies there."""
        return sorted(path.name for path in (self.hosts[0].root / self.own.lstrip("/")).iterdir()) if self.own else []

    def start_hvdrun(self, *words, **how):
        return self.start(HVDRUN, *words, **how)

    def sim_hosts(self, *words):
        subprocess.run([SIM_HOSTS, "--dir", str(self.directory), *map(str, words)], check=True, capture_output=True)

    def must_be_clean(self, within=2.0):
        """Every host that is on holds what it held at first, patient(within) from now at the latest."""
        within = patient(within)
        hosts = [host for host in self.hosts if os.path.exists(f"/proc/{host.init}")]
        deadline = time.monotonic() + within
        while True:
            left = {host.index: host.left() for host in hosts}
            if not any(left.values()) and not self.placed():
                return
            if time.monotonic() >= deadline:
                raise AssertionError(f"left behind after {within} s: {left} {self.placed()}")
            time.sleep(0.01)


def tree(processes, root):
    """The processes below `root`."""
    below, grown = {root}, True
    while grown:
        more = {process.pid for process in processes if process.parent in below} - below
        below |= more
        grown = bool(more)
    return [process for process in processes if process.pid in below and process.pid != root]


def roles(host):
    """The processes of the one job on a host by what they are: console, driver, spawner, hvdd, shim, ssh, and the rest."""
    found = {}
    processes = host.processes()
    by_pid = {process.pid: process for process in processes}
    for process in processes:
        parent = by_pid.get(process.parent)
        parent_name = parent.name if parent else ""
        if process.name == "hvdrun":
            children = [child.name for child in processes if child.parent == process.pid]
            role = "console" if parent_name != "hvdrun" else "spawner" if {"hvdd", "ssh"} & set(children) else "driver"
        elif process.name == "hvdd":
            role = "shim" if parent_name == "hvdd" else "hvdd"
        else:
            role = process.name
        found.setdefault(role, []).append(process)
    return found


def console_of(here):
    """The hvdrun that the shell of host 0 sees."""
    return wait_until(lambda: roles(here.hosts[0]).get("console"), 10, "hvdrun")[0]


@contextlib.contextmanager
def hosts(count=1, slots=2, rate=None, slurm=False, sge=False):
    """A World of fresh simulated hosts; with `slurm` or `sge` a cluster of Slurm's or Grid Engine's."""
    if os.geteuid() != 0:
        raise Skip("simulated hosts need root")
    scratch = tempfile.mkdtemp(prefix="hvd-test.")
    os.chmod(scratch, 0o755)
    directory = pathlib.Path(scratch) / "hosts"
    command = [SIM_HOSTS, "up", str(count), "--slots", str(slots), "--dir", str(directory)] + (["--rate", rate] if rate else [])
    command += (["--slurm"] if slurm else []) + (["--sge"] if sge else [])
    try:
        made = subprocess.run(command, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        try:
            yield World(directory, scratch, count)
        finally:
            down = subprocess.run([SIM_HOSTS, "--dir", str(directory), "down"], capture_output=True, text=True)
        assert down.returncode == 0, down.stderr
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
