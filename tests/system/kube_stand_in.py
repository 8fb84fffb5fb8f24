# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' API as far as `kubectl exec -i` needs it, for tests: kube_stand_in.py KUBECONFIG POD=HOST ...

It listens on a free port of 127.0.0.1, which KUBECONFIG tells kubectl. A pod is a host that ssh reaches. Nobody may run anything
in a pod called "locked". SIGUSR1 cuts all connections, as a proxy does that has waited too long."""
import asyncio
import base64
import hashlib
import json
import pathlib
import shlex
import signal
import struct
import sys
import urllib.parse

PODS = dict(word.split("=") for word in sys.argv[2:])
STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255  # channels of v5.channel.k8s.io
OPEN = set()


def status(code, reason, message):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}


def answer(path):
    """(code, body) of a GET that is no exec."""
    name = path.rpartition("/")[2]
    if "/pods/" in path:
        if name not in PODS and name != "locked":
            return 404, status(404, "NotFound", f'pods "{name}" not found')
        return 200, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"},
                     "spec": {"containers": [{"name": "worker"}]}, "status": {"phase": "Running"}}
    if path == "/api":
        return 200, {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
    if path == "/api/v1":
        return 200, {"kind": "APIResourceList", "groupVersion": "v1",
                     "resources": [{"name": "pods", "namespaced": True, "kind": "Pod", "verbs": ["get"]}]}
    return 404, status(404, "NotFound", "the server could not find the requested resource")


async def reply(writer, code, body):
    text = json.dumps(body).encode()
    writer.write(f"HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
    await writer.drain()


def frame(channel, data, opcode=2):
    body = bytes([channel]) + data
    if len(body) < 126:
        size = bytes([len(body)])
    elif len(body) < 1 << 16:
        size = b"\x7e" + struct.pack("!H", len(body))
    else:
        size = b"\x7f" + struct.pack("!Q", len(body))
    return bytes([0x80 | opcode]) + size + body


async def read_frame(reader):
    """(opcode, data) of a client's frame."""
    first, second = await reader.readexactly(2)
    size = second & 127
    if size == 126:
        size, = struct.unpack("!H", await reader.readexactly(2))
    elif size == 127:
        size, = struct.unpack("!Q", await reader.readexactly(8))
    mask = await reader.readexactly(4)
    data = await reader.readexactly(size)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return first & 15, (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")


async def feed(reader, child):
    """Until the client has gone: its stdin to the child's."""
    try:
        while True:
            opcode, data = await read_frame(reader)
            if opcode == 8:
                break
            if data[:1] == bytes([STDIN]):
                child.stdin.write(data[1:])
                await child.stdin.drain()
            elif data[:1] == bytes([CLOSE]):
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    child.stdin.close()


async def pump(stream, channel, writer):
    while data := await stream.read(1 << 16):
        writer.write(frame(channel, data))
        await writer.drain()


async def execute(pod, command, key, reader, writer):
    accept = base64.b64encode(hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
    writer.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n").encode())
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec("ssh", "-T", PODS[pod], shlex.join(command), stdin=pipe, stdout=pipe, stderr=pipe)
    feeding = asyncio.create_task(feed(reader, child))
    OPEN.add(writer)
    try:
        await asyncio.gather(pump(child.stdout, STDOUT, writer), pump(child.stderr, STDERR, writer))
        code = await child.wait()
        end = {"status": "Success", "metadata": {}}
        if code != 0:
            end = status(500, "NonZeroExitCode", f"command terminated with non-zero exit code: exit status {code}")
            end["details"] = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
        writer.write(frame(ERROR, json.dumps(end).encode()) + b"\x88\x02\x03\xe8")
        await writer.drain()
    finally:
        OPEN.discard(writer)
        feeding.cancel()
        child.stdin.close()


async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            request, *lines = head.decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            url = urllib.parse.urlsplit(request.split()[1])
            if not url.path.endswith("/exec"):
                await reply(writer, *answer(url.path))
                continue
            pod = url.path.split("/")[-2]
            if pod == "locked":
                await reply(writer, 403, status(403, "Forbidden", 'pods "locked" is forbidden: User "train" cannot create resource "pods/exec"'))
                continue
            command = urllib.parse.parse_qs(url.query)["command"]
            return await execute(pod, command, headers["sec-websocket-key"], reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def cut():
    for writer in list(OPEN):
        writer.transport.abort()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, cut)
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
              "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
              "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "default"}}]}
    pathlib.Path(sys.argv[1]).write_text(json.dumps(config))
    print("serving", flush=True)
    await server.serve_forever()


asyncio.run(main())
