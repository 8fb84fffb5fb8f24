// SPDX-License-Identifier: Apache-2.0
#include "hvd/hvd.h"

const char* hvd_build_info(void) { return "version=9.8.7\nucx=1.13.1\nnccl=\nkernels=avx2\n"; }
