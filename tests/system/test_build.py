# SPDX-License-Identifier: Apache-2.0
"""The built programs and libraries: what they need, what they export, that the public headers stand alone."""
import os
import re
import shutil
import subprocess
import tempfile

import world

LIBRARY = world.REPOSITORY / "build" / "lib" / "libhvd.so"


def output_of(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def test_libhvd_brings_nothing_foreign():
    needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", LIBRARY))
    assert needed, "readelf shows no libraries"
    own = r"(libc|libm|libstdc\+\+|libgcc_s|ld-linux-x86-64)\.so\.\d+"
    assert not [name for name in needed if not re.fullmatch(own, name)], needed
    found = re.findall(r"^\s*(\S+\.so\S*)", output_of("ldd", LIBRARY), re.MULTILINE)
    others = [name for name in found if not re.fullmatch(own + r"|linux-vdso\.so\.\d+", name.rpartition("/")[2])]
    assert found and not others, others


def test_libhvd_exports_only_its_abi():
    names = [line.split()[-1].partition("@")[0] for line in output_of("nm", "-D", "--defined-only", LIBRARY).splitlines()]
    names = [name for name in names if not name.startswith("HVD_")]  # the version itself
    assert "hvd_init" in names
    assert all(name.startswith("hvd_") for name in names), sorted(name for name in names if not name.startswith("hvd_"))


def test_libhvd_torch_needs_of_torch_only_its_stable_abi():
    library = LIBRARY.parent / "libhvd_torch.so"
    if not library.exists():
        raise world.Skip("libhvd_torch.so is not built: there was no torch")
    needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", library))
    assert set(needed) <= {"libhvd.so.0", "libtorch_cpu.so", "libstdc++.so.6", "libgcc_s.so.1", "libc.so.6"}, needed
    assert re.findall(r"R(?:UN)?PATH.*\[(.*)\]", output_of("readelf", "-d", library)) == ["$ORIGIN"]
    names = [line.split()[-1] for line in output_of("nm", "-D", "--undefined-only", library).splitlines()]
    foreign = [name for name in names if "@GLIBC" not in name and "@CXXABI" not in name and "@GCC" not in name]
    foreign = [name for name in foreign if not re.match("aoti_torch_|torch_|hvd_|_ITM_|__gmon_start__", name)]
    assert "torch_library_impl" in names and not foreign, foreign


def test_libhvd_mxnet_needs_nothing_of_mxnet_to_load():
    library = LIBRARY.parent / "libhvd_mxnet.so"
    needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", library))
    assert set(needed) <= {"libhvd.so.0", "libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, needed
    names = [line.split()[-2:] for line in output_of("nm", "-D", "--defined-only", library).splitlines()]
    functions = [name for kind, name in names if kind == "T"]
    assert "hvd_mxnet_push" in functions and all(name.startswith("hvd_mxnet_") for name in functions), functions


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


# Code that is refused, and a part of what the compiler must say.
REFUSED = {
    "std::vector<long double> v(3); hvd::broadcast(v);": "hvd has no elements of this type",
    "std::vector<char32_t> v(3); hvd::allgather(v);": "hvd has no elements of this type",
    "std::string* s = nullptr; hvd::allreduce(s, 1);": "hvd has no elements of this type",
    "hvd::Gradients<char16_t> gradients({3});": "hvd has no elements of this type",
    "const std::vector<float> v(3); hvd::allreduce(v);": "the data is const",
    "const std::vector<float> v(3); hvd::broadcast(v.data(), 3);": "the data is const",
    "std::vector<bool> v(3); hvd::allreduce(v, hvd::Op::kMax);": "std::vector<bool> is packed bits",
    "std::vector<bool> v(3); hvd::allgather(v);": "std::vector<bool> is packed bits",
    "std::vector<float> v(3); hvd::broadcast(v, 3, 0);": "deleted function",
    "std::vector<float> v(3); hvd::allreduce(v, hvd::Op::kSum, nullptr);": "deleted function",
}


@world.bound(120)
def test_what_hvd_cannot_do_does_not_compile_and_says_why():
    include = world.REPOSITORY / "runtime" / "include"
    for statements, why in REFUSED.items():
        source = f"#include <hvd/hvd.hpp>\nint main() {{ {statements} }}\n"
        result = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", f"-I{include}", "-xc++", "-"], input=source, capture_output=True, text=True)
        errors = [line for line in result.stderr.splitlines() if " error: " in line]
        assert result.returncode != 0 and len(errors) == 1 and why in errors[0], f"{statements}\n{result.stderr}"


def test_checks_of_the_sources():
    result = subprocess.run([world.REPOSITORY / "scripts" / "check-includes"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_check_build_and_version():
    header = (world.REPOSITORY / "runtime" / "include" / "hvd" / "hvd.h").read_text()
    version = ".".join(re.findall(r"^#define HVD_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.MULTILINE))
    assert version.count(".") == 2, header
    for program in (world.HVDRUN, world.BIN / "hvdd"):
        assert output_of(program, "--version").split()[-1] == version, program
    report = output_of(world.HVDRUN, "--check-build")
    for word in ("Available", "[X] TCP", "[X] UCX"):
        assert word in report, report
    assert output_of(world.HVDRUN, "-cb") == report


def test_check_build_says_what_a_python_has():
    """The report has each framework, with a reason where it is not usable, as `import hvd` in that Python would find it."""
    python = shutil.which("python3") or "python3"
    package = str(world.REPOSITORY / "python")
    for path, usable in ((package, "X"), ("", " ")):
        report = subprocess.run([world.HVDRUN, "--check-build"], check=True, capture_output=True, text=True,
                                env={**os.environ, "HVD_PYTHON": python, "PYTHONPATH": path}).stdout
        assert f"[{usable}] Python 3." in report, report
        assert ("finds no hvd; with PYTHONPATH=" + package in report) == (not path), report
        frameworks = report.partition("Available Frameworks:\n")[2].partition("\n\n")[0].splitlines()
        for name in ("NumPy", "TensorFlow", "Keras", "tf_keras", "PyTorch", "torch.compile", "JAX", "MXNet"):
            line = next(line.strip() for line in frameworks if re.search(rf"\] {re.escape(name)}\b", line))
            assert re.fullmatch(r"\[X\] \S+( \d\S*)?|\[ \] \S+( \d\S*)?: .+", line), line
            assert path or line.startswith("[ ]"), line
