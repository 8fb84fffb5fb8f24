// SPDX-License-Identifier: Apache-2.0
#include "cli/front/check_build.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

LibraryReport Library() {
  return {"/x/libhvd.so",
          "",
          {{"version", HVD_VERSION},
           {"tcp", "built in"},
           {"ucx", "1.13.1"},
           {"nccl", ""},
           {"kernels", "avx2"}}};
}

PythonReport Python() {
  return {{"3.11.2", ""},
          "/x/python3",
          "/x/python/hvd",
          {{"NumPy", {"2.4.6", ""}},
           {"TensorFlow", {"2.21.0", ""}},
           {"Keras", {"", "not installed for /x/python3"}},
           {"PyTorch", {"2.13.0+cpu", ""}},
           {"torch.compile", {"", ""}},
           {"JAX", {"0.4.1", "hvd.jax needs JAX 0.10 or later"}}}};
}

TEST_CASE("what is there is crossed, what is not is blank") {
  const std::string text = FormatCheckBuild(Library(), Python(), "/x/python/hvd");
  CHECK_THAT(text, StartsWith("hvd v" HVD_VERSION ":\n"
                              "\n"
                              "Available Frameworks:\n"
                              "    [X] C\n"
                              "    [X] C++\n"
                              "    [X] Python 3.11.2\n"
                              "    [X] NumPy 2.4.6\n"
                              "    [X] TensorFlow 2.21.0\n"
                              "    [ ] Keras: not installed for /x/python3\n"
                              "    [ ] tf_keras\n"
                              "    [X] PyTorch 2.13.0+cpu\n"
                              "    [X] torch.compile\n"
                              "    [ ] JAX 0.4.1: hvd.jax needs JAX 0.10 or later\n"
                              "    [ ] MXNet\n"
                              "\n"
                              "Available Controllers:\n"
                              "    [X] gRPC\n"
                              "\n"
                              "Available Tensor Operations:\n"
                              "    [X] shared memory\n"
                              "    [X] TCP\n"
                              "    [X] UCX\n"
                              "    [ ] NCCL\n"
                              "    [ ] CUDA, by way of the host\n"
                              "\n"
                              "Versions:\n"
                              "    hvdrun " HVD_VERSION "\n"
                              "    libhvd " HVD_VERSION " (/x/libhvd.so)\n"
                              "    gRPC "));
  CHECK_THAT(text, Contains("    UCX 1.13.1\n    kernels avx2\n"
                            "    Python 3.11.2 (/x/python3)\n"
                            "    Python package (/x/python/hvd)\n"));
  CHECK_THAT(text, !Contains("another Python package"));
}

TEST_CASE("a Python without hvd, with another one, or without an answer is said plainly") {
  PythonReport without = Python();
  without.python.problem = "it finds no hvd";
  without.package = "";
  CHECK_THAT(FormatCheckBuild(Library(), without, "/x/python/hvd"),
             Contains("[ ] Python 3.11.2: it finds no hvd\n"));
  PythonReport other = Python();
  other.package = "/y/hvd";
  CHECK_THAT(
      FormatCheckBuild(Library(), other, "/x/python/hvd"),
      Contains("    another Python package (/y/hvd): that is the one which this Python imports\n"));
  PythonReport none;
  none.python.problem = "there is no python3 in PATH";
  CHECK_THAT(FormatCheckBuild(Library(), none, ""),
             Contains("[X] C++\n    [ ] Python: there is no python3 in PATH\n    [ ] NumPy\n    [ "
                      "] TensorFlow\n"));
}

// Returns what libhvd says of a machine with or without either.
LibraryReport OnMachine(bool driver, bool nccl) {
  LibraryReport library = {"/x", "", {{"version", HVD_VERSION}}};
  library.info["cuda"] = driver ? "13.0 (/x/libcuda.so.1)" : "";
  library.info["nccl"] = nccl ? "2.28.9 (/x/libnccl.so.2)" : "";
  if (!driver) library.info["cuda_problem"] = "libcuda.so.1: no such file";
  if (!nccl) library.info["nccl_problem"] = "libnccl.so.2: no such file";
  library.info["gpus"] = driver ? "8" : "0";
  library.info["gpu_operations"] = driver && nccl ? "nccl host" : driver ? "host" : "";
  return library;
}

TEST_CASE("GPUs are crossed where they can be used, and what is missing says why") {
  const bool driver = GENERATE(true, false), nccl = GENERATE(true, false);
  const std::string text = FormatCheckBuild(OnMachine(driver, nccl), {}, "");
  CHECK_THAT(text, Contains(driver ? "[X] CUDA, by way" : "[ ] CUDA, by way"));
  CHECK_THAT(text, Contains(driver && nccl ? "[X] NCCL" : "[ ] NCCL"));
  CHECK_THAT(text, Contains(driver ? "    CUDA driver 13.0 (/x/libcuda.so.1)\n"
                                   : "    no CUDA driver: libcuda.so.1: no such file\n"));
  CHECK_THAT(text, Contains(nccl ? "    NCCL 2.28.9 (/x/libnccl.so.2)\n"
                                 : "    no NCCL: libnccl.so.2: no such file\n"));
  CHECK((text.find("    GPUs 8\n") != std::string::npos) == driver);
}

TEST_CASE("a missing or another library is said plainly") {
  const std::string missing = FormatCheckBuild({"/x", "missing at /x", {}}, Python(), "/x");
  CHECK_THAT(missing, Contains("[ ] C++") && Contains("[ ] shared memory") &&
                          Contains("[ ] PyTorch 2.13.0+cpu: libhvd is missing or broken\n"));
  CHECK_THAT(missing,
             Contains("libhvd: missing at /x") && Contains("[ ] JAX 0.4.1: hvd.jax needs"));
  CHECK_THAT(FormatCheckBuild({"/x", "", {{"version", "9.9.9"}}}, {}, ""),
             Contains("libhvd 9.9.9 (/x): another version than hvdrun's"));
}

}  // namespace
}  // namespace hvd::cli
