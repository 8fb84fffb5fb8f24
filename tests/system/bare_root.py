# SPDX-License-Identifier: Apache-2.0
"""A system of another release, as small as one can be: glibc, busybox and the names of folders, from packages that scripts/setup --bare
fetches. It shares this machine's kernel and nothing else: programs that run in it see no other file.

    bare_root.py ROOT USER COMMAND…    as process 1's parent does: enters it, for BareRoot.run
"""
import ctypes
import os
import pathlib
import subprocess
import sys

import world

PACKAGES = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hvd" / "bare-trixie"
DEVICES = ("full", "null", "random", "urandom", "zero")
MNT_DETACH = 2


class BareRoot:
    """Such a system in `folder`. Files that its programs are to find are put into it before they run."""

    def __init__(self, folder):
        if os.geteuid() != 0:
            raise world.Skip("a root of its own needs root")
        if not (PACKAGES / "made").exists():
            raise world.Skip(f"scripts/setup --bare has not fetched the packages of another release into {PACKAGES}")
        self.folder = pathlib.Path(folder)
        for package in sorted(PACKAGES.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, self.folder], check=True)

    def prepare(self, *command):
        """Runs a command of busybox in it, which may write."""
        subprocess.run(["chroot", self.folder, "/usr/bin/busybox", *map(str, command)], check=True)

    def run(self, *command, user=0, seconds=30):
        """Runs a command in it as that user, with namespaces of its own. Nothing can be written but in a fresh /tmp."""
        enter = ["unshare", "--mount", "--pid", "--ipc", "--net", "--uts", "--fork", "--kill-child", sys.executable, __file__, self.folder, user]
        made = subprocess.run([*map(str, enter), *map(str, command)], capture_output=True, text=True, timeout=world.patient(seconds),
                              stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})
        return world.Outcome(made.returncode, made.stdout, made.stderr, 0)


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def mount_all(root):
    mount("--bind", root, root)
    mount("-t", "proc", "proc", root / "proc")
    mount("-t", "tmpfs", "-o", "mode=1777", "tmp", root / "tmp")
    mount("-t", "tmpfs", "dev", root / "dev")
    for name in DEVICES:
        (root / "dev" / name).touch()
        mount("--bind", f"/dev/{name}", root / "dev" / name)
    mount("-o", "remount,bind,ro", root)


def enter(root, user, command):
    """Leaves this machine's files behind for good, not only as chroot does, which forbids user namespaces to those within."""
    mount_all(root)
    libc = ctypes.CDLL(None, use_errno=True)
    os.chdir(root)
    for done in (libc.pivot_root(b".", b"."), libc.umount2(b".", MNT_DETACH)):
        if done != 0:
            raise OSError(ctypes.get_errno(), "cannot change the root")
    os.chdir("/")
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.execve("/usr/bin/busybox", ["sh", "-c", '"$@"; exit', "sh", *command], {"PATH": "/usr/bin", "HOME": "/tmp"})


if __name__ == "__main__":
    enter(pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
