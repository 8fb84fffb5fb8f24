# SPDX-License-Identifier: Apache-2.0
"""horovod.runner and horovod.data, which Horovod's programs and tests import besides its faces."""
import io
import os
import socket
import subprocess
import sys
import threading

import pytest

import hvd.compat

pytestmark = pytest.mark.apart


@pytest.fixture(scope="module", autouse=True)
def installed():
    hvd.compat.install()


def test_rank_and_size_come_from_the_environment(monkeypatch):
    from horovod.runner.common.util import env

    for words in env._LAUNCHERS:
        for word in words:
            monkeypatch.delenv(word, raising=False)
    assert env.get_env_rank_and_size() == (0, 1)
    monkeypatch.setenv("PMI_RANK", "2")
    with pytest.raises(RuntimeError, match="PMI_SIZE"):
        env.get_env_rank_and_size()
    monkeypatch.setenv("PMI_SIZE", "4")
    assert env.get_env_rank_and_size() == (2, 4)
    monkeypatch.setenv("HOROVOD_RANK", "1")
    monkeypatch.setenv("HOROVOD_SIZE", "3")
    assert env.get_env_rank_and_size() == (1, 3)
    assert env.is_exportable("HOME") and not env.is_exportable("CUDA_VISIBLE_DEVICES")


def test_hosts(tmp_path):
    from horovod.runner.common.util import hosts

    two = hosts.parse_hosts("a:2,b:3")
    assert [(one.hostname, one.slots) for one in two] == [("a", 2), ("b", 3)]
    assert hosts.parse_hosts_and_slots("a:2, b-1.c:3") == (["a", "b-1.c"], {"a": 2, "b-1.c": 3})
    with pytest.raises(ValueError, match="worker-0:2"):
        hosts.parse_hosts_and_slots("a:2,b")
    places = hosts.get_host_assignments(two, 2)
    assert [(p.hostname, p.rank, p.local_rank, p.cross_rank) for p in places] == [
        ("a", 0, 0, 0), ("a", 1, 1, 0), ("b", 2, 0, 1), ("b", 3, 1, 1), ("b", 4, 2, 0)]
    assert [p.cross_size for p in places] == [2, 2, 2, 2, 1]
    assert places[4].to_response_string() == "4,5,2,3,0,1"
    assert [p.local_size for p in hosts.get_host_assignments(two, 1, 3)] == [2, 2, 1]
    with pytest.raises(ValueError, match=r"\(6\).*\(5\)"):
        hosts.get_host_assignments(two, 6)
    file = tmp_path / "hosts"
    file.write_text("a slots=2\n\n# nothing\nb slots=3 # more\n")
    assert hosts.parse_host_files(str(file)) == "a:2,b:3"
    file.write_text("a slots=2\nb\n")
    with pytest.raises(ValueError, match=":2:"):
        hosts.parse_host_files(str(file))


def test_secrets_timeouts_and_texts(monkeypatch):
    from horovod.runner.common.util import codec, host_hash, secret, timeout

    key = secret.make_secret_key()
    digest = secret.compute_digest(key, b"words")
    assert len(key) == secret.SECRET_LENGTH and len(digest) == secret.DIGEST_LENGTH
    assert secret.check_digest(key, b"words", digest)
    assert not secret.check_digest(secret.make_secret_key(), b"words", digest)
    assert codec.loads_base64(codec.dumps_base64({"a": [1]})) == {"a": [1]}
    assert host_hash.host_hash() == host_hash.host_hash() != host_hash.host_hash("salt")
    never = timeout.Timeout(1000, "Waiting for {activity}")
    never.check_time_out_for("nothing")
    assert never.remaining() > 900 and not never.timed_out()
    with pytest.raises(timeout.TimeoutException, match=r"Waiting for you\. Timeout after 0 sec"):
        timeout.Timeout(0, "Waiting for {activity}").check_time_out_for("you")


class Asked(list):
    """A request that only this test's service knows."""


def service_and_client(key, client_key=None):
    from horovod.runner.common.util import network

    class Service(network.BasicService):
        def _handle(self, req, client_address):
            if isinstance(req, Asked):
                return network.AckStreamResponse(), io.StringIO("x" * 100_000 + "".join(req))
            return super()._handle(req, client_address)

    service = Service("test", key, None)
    try:
        return service, network.BasicClient("test", service.addresses(), client_key or key, 0,
                                            attempts=1)
    except BaseException:
        service.shutdown()
        raise


def test_a_service_answers_who_knows_its_key():
    from horovod.runner.common.util import network

    service, client = service_and_client(b"k" * 32)
    try:
        assert client._send(network.PingRequest()).service_name == "test"
        assert client.source_address and list(client.addresses())[0] in service.addresses()
        heard = io.StringIO()
        assert isinstance(client._send(Asked("ab"), heard), network.AckStreamResponse)
        assert heard.getvalue() == "x" * 100_000 + "ab"
        assert isinstance(client._send("what?"), NotImplementedError)
        # A client that says nothing, or gives no challenge's answer, holds nobody up.
        silent = socket.create_connection(("127.0.0.1", service.get_port()))
        with socket.create_connection(("127.0.0.1", service.get_port())) as stranger:
            stranger.sendall(b"\x80\x05GET / HTTP/1.0\r\n\r\n" * 100)
        assert client._send(network.PingRequest()).service_name == "test"
        silent.close()
    finally:
        service.shutdown()
    with pytest.raises(OSError):
        client._send(network.PingRequest())


def test_another_key_is_refused():
    from horovod.runner.common.util import network

    with pytest.raises(network.NoValidAddressesFound, match="is its key this one's"):
        service_and_client(b"k" * 32, b"l" * 32)
    with pytest.raises(network.NoValidAddressesFound, match="nowhere0"):
        network.BasicService("test", b"k", ["nowhere0"])


def test_the_compute_service():
    from horovod.runner.common.service.compute_service import ComputeClient, ComputeService
    from horovod.runner.common.util.timeout import TimeoutException

    key = b"k" * 32
    service = ComputeService(2, 2, key)
    client = ComputeClient(service.addresses(), key)
    found = []
    waits = [threading.Thread(target=lambda: found.append(
                client.wait_for_dispatcher_registration(1, 600))),
             threading.Thread(target=lambda: found.append(
                client.wait_for_dispatcher_worker_registration(1, 600))),
             threading.Thread(target=lambda: found.append(client.wait_for_shutdown()))]
    for wait in waits:
        wait.start()
    client.register_dispatcher(1, "grpc://there:1")
    client.register_dispatcher(1, "grpc://there:1")
    waits[0].join()
    assert found == ["grpc://there:1"]
    with pytest.raises(ValueError, match="grpc://there:1: grpc://here:2"):
        client.register_dispatcher(1, "grpc://here:2")
    for dispatcher in (-1, 2):
        with pytest.raises(IndexError):
            client.register_dispatcher(dispatcher, "grpc://there:1")
        with pytest.raises(IndexError):
            client.register_worker_for_dispatcher(dispatcher, 0)
    # A worker counts once, and for its own dispatcher.
    for dispatcher, worker in ((1, 0), (1, 0), (0, 1)):
        client.register_worker_for_dispatcher(dispatcher, worker)
    with pytest.raises(TimeoutException, match="workers for dispatcher 1 to register"):
        client.wait_for_dispatcher_worker_registration(1, 0.1)
    client.register_worker_for_dispatcher(1, 1)
    waits[1].join()
    client.shutdown()
    waits[2].join()
    assert found == ["grpc://there:1", None, None]
    service.shutdown()


def loader_of(epochs):
    from horovod.data import AsyncDataLoaderMixin, BaseDataLoader

    class Loader(BaseDataLoader):
        def __len__(self):
            return 3

        def _iterate(self):
            for batch in next(epochs):
                if isinstance(batch, Exception):
                    raise batch
                yield batch

        def _process_batch(self, batch):
            return batch * 10

    class Ahead(AsyncDataLoaderMixin, Loader):
        pass

    return Loader, Ahead


@pytest.mark.parametrize("room", [0, 1, 64])
def test_data_loaders(room):
    plain, ahead = loader_of(iter([[1, 2, 3], [4], [], [5, KeyError("six")], [7, 8]] +
                                  1000 * [[9]]))
    loader = ahead(room)
    assert [list(loader) for _ in range(3)] == [[10, 20, 30], [40], []]
    with pytest.raises(KeyError, match="six"):
        list(loader)
    assert list(loader) == [70, 80]
    assert loader.started == (room > 0)
    loader.close_async_loader()
    loader.close_async_loader()
    assert not loader.started
    loader = plain()
    assert list(loader) == [90]


def test_horovodrun_is_there(rank):
    if rank:
        return
    alone = {name: value for name, value in os.environ.items()
             if name == "HVD_LIBRARY" or not name.startswith(("HVD_", "HOROVOD_"))}
    where = os.path.dirname(os.path.dirname(hvd.__file__))
    done = subprocess.run([sys.executable, "-m", "hvd.compat", "-m", "horovod.runner.launch",
                           "-np", "2", sys.executable, "-c",
                           "import os; print(os.environ['HVD_SIZE'])"],
                          capture_output=True, text=True,
                          env={**alone, "HVD_STANDALONE": "1", "PYTHONPATH": where})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2") >= 2
