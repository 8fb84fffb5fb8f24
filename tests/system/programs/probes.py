# SPDX-License-Identifier: Apache-2.0
"""Says what strangers say to the ports of a job: probes.py COUNT HOST:PORT... Prints how many of the probes were connected.

Each probe is another of: nothing, one byte, rubbish, framed rubbish (also of the right length for the handshake), what UCX takes for
a peer of its own, much more than anybody reads, a reset, and one that stays until the end, saying a byte now and then.
"""
import os
import socket
import struct
import sys

UCX_MAGIC = struct.pack("<Q", 0xCAFEBABE12345678)


def frame(kind, length, body=b""):
    """As hvd frames messages, and as many others do."""
    return struct.pack("<HHIQQQ", kind, 0, 1, length, 0, 0) + body


WORDS = [
    b"",
    b"h",
    os.urandom(16),
    UCX_MAGIC + bytes(8),
    UCX_MAGIC + os.urandom(8) + os.urandom(4096),
    b"hvd-tcp1" + os.urandom(72),  # as long as an answer to a challenge
    os.urandom(80) + frame(1, 2**64 - 1),
    frame(1, 4, b"abcd") * 100,
    frame(4, 2**40),
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    os.urandom(1 << 20),
]


def main():
    count = int(sys.argv[1])
    places = [word.rsplit(":", 1) for word in sys.argv[2:]]
    connected, staying = 0, []
    for number in range(count):
        host, port = places[number % len(places)]
        try:
            probe = socket.create_connection((host, int(port)), timeout=1)
        except OSError:
            continue
        connected += 1
        probe.settimeout(0.2)
        try:
            for each in staying:
                each.send(b"x")
            probe.send(WORDS[number % len(WORDS)])
            probe.recv(4096)
        except OSError:
            pass
        if number % 5 == 0:
            staying.append(probe)
        elif number % 5 == 1:  # a reset
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            probe.close()
        else:
            probe.close()
    print(f"{connected} of {count} connected")


main()
