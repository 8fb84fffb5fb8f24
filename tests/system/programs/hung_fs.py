#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hung_fs.py DIRECTORY: mounts a file system there that never answers, says "hung", and ends with its stdin; then the calls that
wait for it fail."""
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
if libc.mount(b"hung_fs", sys.argv[1].encode(), b"fuse", 0, options.encode()) != 0:
    sys.exit(f"cannot mount at {sys.argv[1]}: {os.strerror(ctypes.get_errno())}")
print("hung", flush=True)
sys.stdin.read()
