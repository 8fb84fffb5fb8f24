# SPDX-License-Identifier: Apache-2.0
"""The bundle of scripts/bundle: it runs in a system of another release that has nothing but glibc, and on hosts reached by ssh, from a
folder whose name is not plain; and scripts/check-bundle finds what would keep it from running elsewhere."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

import bare_root
import world

CHECK = world.REPOSITORY / "scripts" / "check-bundle"
PLACE = "it's a plåce $HOME"  # no shell may take it for anything else
GUEST = 64198  # of the simulated hosts, too


@contextlib.contextmanager
def scratch(**where):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hvd-test.", **where))
    os.chmod(folder, 0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def make_bundle(folder):
    """The tarball of what is built, in `folder`."""
    made = subprocess.run([world.REPOSITORY / "scripts" / "bundle", "--no-build", folder], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return next(folder.glob("hvd-*.tar.gz"))


def top_of(tarball):
    return tarball.name.removesuffix(".tar.gz")


def must_run(root, place, user):
    """That all programs of the bundle at `place` in a bare root run there, as that user."""
    assert root.run("/usr/bin/hvdrun", "--version", user=user).must(0).out.startswith("hvdrun ")
    report = root.run("/usr/bin/hvdrun", "--check-build", user=user).must(0).out
    for words in ("[X] TCP", "[ ] UCX", "[ ] CUDA", f"({place}/lib/libhvd.so.0)"):
        assert words in report, report
    trained = root.run("/usr/bin/hvdrun", "-np", 2, f"{place}/bin/train_digits", "--epochs", 1, user=user).must(0)
    assert "epoch   1/1" in trained.out, trained
    measured = root.run(f"{place}/bin/hvdrun", "-np", 2, f"{place}/bin/hvd-bench", "allreduce", "--sizes", "64K", user=user).must(0)
    assert re.search(r"\b65536 ", measured.out), measured
    assert "rank 1 of 2" in root.run(f"{place}/bin/horovodrun", "-np", 2, f"{place}/bin/hello", user=user).must(0).out


def must_find_libraries_within(root, place):
    """That the loader of the bare root finds all that the bundle needs in the bundle, or beside the C library."""
    files = [f"bin/{name}" for name in ("hvdrun", "hvdd", "hvd-bench", "hello", "train_digits")] + ["lib/libhvd.so.0"]
    for name in files:
        listed = root.run("/usr/lib64/ld-linux-x86-64.so.2", "--list", f"{place}/{name}").must(0).out
        found = re.findall(r"=> (.*) \(0x", listed)
        assert "/lib/x86_64-linux-gnu/libc.so.6" in found, listed
        foreign = [path for path in found if not re.match(r"/(usr/)?lib(64)?/(x86_64-linux-gnu/)?[^/]*$", path)]
        assert [os.path.normpath(path) for path in foreign] in ([], [f"{place}/lib/libhvd.so.0"]), listed
        assert not re.search("cuda|nccl|not found", listed), listed


@world.bound(90)
def test_the_bundle_runs_where_there_is_nothing_but_glibc_of_another_release():
    with scratch() as folder:
        root = bare_root.BareRoot(folder / "root")
        tarball = make_bundle(folder)
        shutil.copy(tarball, root.folder / "bundle.tar.gz")
        place = f"/opt/{PLACE}/{top_of(tarball)}"
        root.prepare("mkdir", "-p", f"/opt/{PLACE}")
        root.prepare("tar", "-C", f"/opt/{PLACE}", "-xzf", "/bundle.tar.gz")
        root.prepare("ln", "-s", f"{place}/bin/hvdrun", "/usr/bin/hvdrun")
        must_find_libraries_within(root, place)
        for user in (0, GUEST):
            must_run(root, place, user)


@world.bound(90)
def test_the_bundle_runs_on_hosts_reached_by_ssh():
    # Simulated hosts see this machine's files, but for /tmp.
    with scratch(dir="/var/tmp") as folder, world.hosts(2) as here:
        tarball = make_bundle(folder)
        place = unpack(tarball, folder / PLACE)
        (folder / "link").symlink_to(place / "bin" / "hvdrun")
        for user in (None, GUEST):
            trained = here.run(folder / "link", "-np", 2, "-H", "host0:1,host1:1", place / "bin" / "train_digits", "--epochs", 1, user=user)
            assert "epoch   1/1" in trained.must(0).out, trained
        here.must_be_clean()


def unpack(tarball, folder):
    """Returns the folder at the top."""
    folder.mkdir()
    subprocess.run(["tar", "-C", folder, "-xzf", tarball], check=True)
    return folder / top_of(tarball)


def link_library(path, *words):
    """Makes a shared library of nothing."""
    subprocess.run(["gcc", "-shared", "-o", path, "-xc", "/dev/null", "-xnone", *map(str, words)], check=True)


def planted_gpu(top):
    link_library(top / "lib" / "libnccl.so.2", "-Wl,-soname,libnccl.so.2")
    link_library(top / "lib" / "libmore.so", "-Wl,--no-as-needed", top / "lib" / "libnccl.so.2", "-Wl,-rpath,$ORIGIN")


def planted_library(top):
    link_library(top / "lib" / "libmore.so", "-Wl,--no-as-needed", "-lstdc++")


def planted_path(top):
    link_library(top / "lib" / "libmore.so", "-Wl,-rpath,/home/builder/lib")


def planted_forgotten_path(top):
    link_library(top / "lib" / "libmore.so", "-Wl,--no-as-needed", top / "lib" / "libhvd.so.0")


def planted_glibc(top):
    """A library that asks for something which only a C library of the future has; here this is one of ours by its name."""
    future = top.parent / "libc.so.6"
    words = ["gcc", "-shared", "-nostdlib", "-xc", "-", "-o"]
    script = top.parent / "map"
    script.write_text("GLIBC_2.99 { late; };\n")
    subprocess.run([*words, future, "-Wl,-soname,libc.so.6", f"-Wl,--version-script={script}"], input=b"int late;", check=True)
    subprocess.run([*words, top / "lib" / "libmore.so", "-xnone", future], input=b"extern int late; int* use = &late;", check=True)


def planted_link(top):
    (top / "bin" / "more").symlink_to("/usr/bin/env")


def planted_loss(top):
    (top / "bin" / "hvdd").unlink()


FAULTS = {
    planted_gpu: "lib/libmore.so needs libnccl.so.2, which hosts without a GPU lack",
    planted_library: "lib/libmore.so needs libstdc++.so.6, which is neither in the bundle's lib nor a part of glibc",
    planted_path: "lib/libmore.so looks for libraries in /home/builder/lib;",
    planted_forgotten_path: "lib/libmore.so needs libhvd.so.0 of the bundle, and has no run path",
    planted_glibc: "lib/libmore.so needs glibc 2.99;",
    planted_link: "bin/more is a link to what is not in the bundle",
    planted_loss: "there is no bin/hvdd",
}


def must_refuse(bundle, words):
    told = subprocess.run([CHECK, bundle], capture_output=True, text=True)
    assert told.returncode == 1 and words in told.stderr and told.stderr.count("\n") == 1, f"it must say only {words!r}: {told}"


@world.bound(90)
def test_bundles_are_alike_and_checked_for_what_would_not_run_elsewhere():
    with scratch() as folder:
        tarball = make_bundle(folder)
        (folder / "again").mkdir()
        assert make_bundle(folder / "again").read_bytes() == tarball.read_bytes(), "the same build gives another bundle"
        good = unpack(tarball, folder / "good")
        libraries = {path.name.partition(".so")[0] for path in (good / "lib").glob("*.so*")}
        assert libraries == {"libhvd"}, f"those of the frameworks are the wheel's: {libraries}"
        for plant, words in FAULTS.items():
            bad = folder / plant.__name__ / "hvd"
            shutil.copytree(good, bad, symlinks=True, copy_function=os.link)
            plant(bad)
            must_refuse(bad, words)
        subprocess.run([CHECK, good], check=True)
        (good / "ballast").write_bytes(bytes(60 << 20))
        with tarfile.open(folder / "large", "w:gz", compresslevel=0) as large:
            large.add(good, "hvd")
        must_refuse(folder / "large", "60 MiB are the most")
