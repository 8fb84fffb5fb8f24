// SPDX-License-Identifier: Apache-2.0
// Loads, but is not hvd's library.
extern "C" __attribute__((visibility("default"))) int other() { return 0; }
