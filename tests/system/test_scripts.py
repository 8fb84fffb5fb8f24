# SPDX-License-Identifier: Apache-2.0
"""The scripts: what the demo builds, and that none leaves anything that git would see."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import world

SCRIPTS = world.REPOSITORY / "scripts"


def run(*command, **how):
    return subprocess.run(list(map(str, command)), cwd=world.REPOSITORY, capture_output=True, text=True, stdin=subprocess.DEVNULL, **how)


def output_of(*command, **how):
    done = run(*command, **how)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def put_programs(folder, bodies):
    """Shell scripts by those names."""
    for name, body in bodies.items():
        program = folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)


def test_the_demo_builds_what_it_runs_and_no_test():
    ask = "import demo, json; print(' '.join(demo.TARGETS))"
    targets = output_of(sys.executable, "-B", "-c", ask, env={**os.environ, "PYTHONPATH": str(SCRIPTS)}).split()
    inputs = output_of("ninja", "-C", "build", "-t", "inputs", *targets).splitlines()
    assert any(line.endswith("libhvd.so") or "libhvd.so." in line for line in inputs), inputs
    assert not [line for line in inputs if line.startswith(("tests/", "../tests/"))], inputs
    everything = output_of("ninja", "-C", "build", "-t", "inputs", "all").splitlines()
    objects = [sum(line.endswith(".o") for line in lines) for lines in (inputs, everything)]
    assert objects[0] < 0.7 * objects[1], objects


def test_setup_shows_how_far_it_is():
    """With an apt-get and a dpkg-query of the test's own."""
    with tempfile.TemporaryDirectory(prefix="hvd-test.") as place:
        put_programs(pathlib.Path(place), {
            "dpkg-query": "exit 1",
            "apt-get": "echo Reading lists; echo dlstatus:1:37.25:Retrieving; echo pmstatus:g++:61.5:Unpacking; exit ${APT_CODE:-0}",
            "sudo": "exec \"$@\""})
        env = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
        shown = output_of("script", "-qec", SCRIPTS / "setup", "/dev/null", env=env)
        assert "downloading: 37 %" in shown and "installing: 61 %" in shown and "Reading" not in shown, shown
        piped = output_of(SCRIPTS / "setup", env=env)
        assert "installing ccache" in piped and "%" not in piped and "\x1b" not in piped, piped
        failed = run(SCRIPTS / "setup", env={**env, "APT_CODE": "1"})
        assert failed.returncode == 1 and "Reading lists" in failed.stderr and "pmstatus" not in failed.stderr, failed


def test_sanitize_builds_what_the_tests_that_are_asked_for_need():
    """With a ninja and a ctest of the test's own, in a tree that has nothing else."""
    with tempfile.TemporaryDirectory(prefix="hvd-test.") as place:
        tree = pathlib.Path(place)
        put_programs(tree, {
            "scripts/setup": "", "build-asan/build.ninja": "",
            "build-asan/tests/planted_leak": "echo LeakSanitizer; exit 1",
            "build-asan/tests/planted_overflow": "echo signed integer overflow; exit 1",
            "tools/ninja": f"echo \"$@\" >{place}/built",
            "tools/ctest": "case \"$*\" in *-N*) echo '  Test  #3: unit.gpu';; *nothing*) exit 8;; esac"})
        shutil.copy(SCRIPTS / "sanitize", tree / "scripts")
        env = {**os.environ, "PATH": f"{place}/tools:{os.environ['PATH']}"}
        for words, built in ((("-k", "gpu"), "planted_leak planted_overflow test_gpu"), ((), "")):
            output_of(tree / "scripts" / "sanitize", "asan", *words, env=env)
            told = (tree / "built").read_text().split("--quiet")[1].strip()
            assert told == built, told
        assert run(tree / "scripts" / "sanitize", "asan", "-k", "nothing", env=env).returncode == 1


def test_the_frameworks_are_those_of_setup():
    """Each has tests, and a name without a version means the last one."""
    names = output_of(SCRIPTS / "frameworks", "--list").split()
    assert names == output_of(SCRIPTS / "setup", "--list-frameworks").split(), names
    ask = ("import runpy, sys; found = runpy.run_path(sys.argv[1]); "
           "print(*(name for name in found['SUITES'] if all((found['TESTS'] / suite[0]).is_dir() for suite in found['SUITES'][name])))")
    tested = output_of(sys.executable, "-B", "-c", ask, SCRIPTS / "frameworks").split()
    assert {name.rpartition("-")[0] for name in names} == set(tested), (names, tested)
    versions = output_of(SCRIPTS / "frameworks", "--list", "tensorflow").split()
    assert len(versions) > 1 and all(name.startswith("tensorflow-") for name in versions), versions
    assert output_of(SCRIPTS / "frameworks", "--list", versions[0]).split() == versions[:1]
    for script, option in (("frameworks", ()), ("setup", ("--framework",))):
        refused = run(SCRIPTS / script, *option, "chainer")
        assert refused.returncode != 0 and "there is no framework 'chainer'" in refused.stderr, refused


@world.bound(240)
def test_no_script_leaves_anything_that_git_sees():
    if not shutil.which("git") or run("git", "rev-parse", "--git-dir").returncode != 0:
        raise world.Skip("this is no git checkout")
    seen = ("git", "status", "--porcelain", "--untracked-files=all")
    before = output_of(*seen)
    scripts = [("check-includes",), ("check-python",), ("setup",), ("simulate", "1", "2", "2"), ("build", "--", "hvdrun"), ("bench", "--help"), ("demo",),
               ("count-tests",)]
    if shutil.which("clang-format"):
        scripts.append(("format", "--check"))
    # As anybody runs them: without a word to Python that it shall not keep what it has compiled.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for name, *words in scripts:
        done = run(SCRIPTS / name, *words, env=env)
        assert done.returncode == 0 or name in ("check-python", "count-tests", "format"), f"{name}: {done.stdout}{done.stderr}"
        assert output_of(*seen) == before, f"after scripts/{name}"
    with world.hosts():
        pass
    with tempfile.TemporaryDirectory(prefix="hvd-test.") as place:
        output_of("cmake", "--install", "build", "--prefix", place)
    output_of(sys.executable, world.REPOSITORY / "tests" / "system" / "run", "--list", env=env)
    assert output_of(*seen) == before
