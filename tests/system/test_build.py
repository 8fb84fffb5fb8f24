"""What was built: what it needs, what it exports, that the public headers stand alone."""
import re
import subprocess
import tempfile

import world

LIBRARY = world.REPOSITORY / "build" / "lib" / "libhvd.so"


def output_of(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def test_libhvd_brings_nothing_foreign():
    needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", LIBRARY))
    assert needed, "readelf shows no libraries"
    # absl is the exception: Debian's archives of it are not position-independent, so libhvd shares it.
    foreign = [name for name in needed if re.search("grpc|protobuf|spdlog|fmt|ucp|nccl|cuda", name)]
    assert not foreign, foreign
    assert "grpc" not in output_of("ldd", LIBRARY)


def test_libhvd_exports_only_its_abi():
    names = [line.split()[-1].partition("@")[0] for line in output_of("nm", "-D", "--defined-only", LIBRARY).splitlines()]
    names = [name for name in names if not name.startswith("HVD_")]  # the version itself
    assert "hvd_init" in names
    assert all(name.startswith("hvd_") for name in names), sorted(name for name in names if not name.startswith("hvd_"))


def test_hvdrun_and_hvdd_hold_grpc_within():
    for program in ("hvdrun", "hvdd"):
        assert not re.search("grpc|protobuf", output_of("ldd", world.BIN / program)), program


def test_public_headers_compile_alone():
    include = world.REPOSITORY / "runtime" / "include"
    cases = [("gcc", "c11", "hvd.h"), ("g++", "c++20", "hvd.hpp")]
    cases += [("g++", "c++17", path.name) for path in sorted((include / "hvd").glob("*.hpp"))]
    for compiler, standard, header in cases:
        language = "c" if compiler == "gcc" else "c++"
        with tempfile.NamedTemporaryFile("w", suffix=".c" if language == "c" else ".cc") as source:
            source.write(f'#include "hvd/{header}"\n')
            source.flush()
            output_of(compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", f"-I{include}", source.name)


def test_checks_of_the_sources():
    result = subprocess.run([world.REPOSITORY / "scripts" / "check-includes"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_check_build_and_version():
    assert output_of(world.HVDRUN, "--version").strip().endswith("0.1.0")
    report = output_of(world.HVDRUN, "--check-build")
    for word in ("Available", "[X]", "UCX"):
        assert word in report, report
    assert output_of(world.HVDRUN, "-cb") == report
