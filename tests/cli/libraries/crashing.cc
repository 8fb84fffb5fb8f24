// SPDX-License-Identifier: Apache-2.0
#include <csignal>

namespace {
const int crash = raise(SIGSEGV);
}  // namespace
