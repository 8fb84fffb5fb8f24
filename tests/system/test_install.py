# SPDX-License-Identifier: Apache-2.0
"""The installed tree: moved elsewhere it still works, and programs build against it."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import world

SOURCE = """
#include <cstdio>
#include <hvd/hvd.hpp>
int main() {
  hvd::Session session;
  int one = 1;
  hvd::allreduce(&one, 1, hvd::Op::kSum);
  std::printf("sum %d\\n", one);
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(user CXX)
find_package(hvd 0.1 REQUIRED)
add_executable(program program.cc)
target_link_libraries(program PRIVATE hvd::hvd)
"""


def output_of(*command, **how):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, **how)
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


@world.bound(120)
def test_a_moved_installation_works_and_serves_builds():
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="hvd-test."))
    try:
        output_of("cmake", "--install", world.REPOSITORY / "build", "--prefix", scratch / "first")
        prefix = scratch / "moved"
        (scratch / "first").rename(prefix)
        assert "rank 1 of 2" in output_of(prefix / "bin/hvdrun", "-np", 2, prefix / "bin/hello")
        assert "epoch   1/1" in output_of(prefix / "bin/train_digits", "--epochs", 1)
        assert str(world.REPOSITORY) not in output_of("readelf", "-d", prefix / "bin/hello")

        (scratch / "program.cc").write_text(SOURCE)
        (scratch / "CMakeLists.txt").write_text(CMAKE)
        output_of("cmake", "-S", scratch, "-B", scratch / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
        output_of("cmake", "--build", scratch / "build")
        assert output_of(prefix / "bin/hvdrun", "-np", 2, scratch / "build/program").count("sum 2") == 2

        flags = output_of("pkg-config", "--cflags", "--libs", "hvd",
                          env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}).split()
        output_of("g++", "-std=c++17", scratch / "program.cc", "-o", scratch / "by_pkg_config", *flags)
        assert output_of(scratch / "by_pkg_config") == "sum 1\n"

        page = (world.REPOSITORY / "docs/cpp.md").read_text()
        (scratch / "page.c").write_text(page.partition("```c\n")[2].partition("```\n")[0])
        output_of("gcc", "-std=c99", "-Wall", "-Werror", scratch / "page.c", "-o", scratch / "page", *flags)
        assert output_of(prefix / "bin/hvdrun", "-np", 2, scratch / "page").count("of 2: 1 2 3") == 2
        assert (prefix / "share/hvd/LICENSE").read_text() == (world.REPOSITORY / "LICENSE").read_text()
    finally:
        shutil.rmtree(scratch)
