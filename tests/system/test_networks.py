# SPDX-License-Identifier: Apache-2.0
"""Jobs over hosts with several network cards, of which some lead nowhere: by which of them ranks find one another."""
import pathlib
import subprocess

import world
from world import BIN

HELLO = BIN / "hello"


class Cards:
    """Lays further cards into the hosts of a world."""

    def __init__(self, here):
        self.tag = (here.directory / "tag").read_text().strip()
        self.count = len(here.hosts)

    def ip(self, place, *words):
        """`ip` of a host, or of the namespace of the cables ("net")."""
        subprocess.run(["ip", "-n", f"{self.tag}.{place}", *map(str, words)], check=True)

    def lay(self, host, name, address, far=None, bridge=None):
        """A card of `host` whose cable ends in a bridge, or with the address `far` at a machine that passes nothing on."""
        end = f"{name}-{host}"
        self.ip("net", "link", "add", end, "type", "veth", "peer", "name", name, "netns", f"{self.tag}.{host}")
        if bridge:
            self.ip("net", "link", "set", end, "master", bridge)
        if far:
            self.ip("net", "addr", "add", far, "dev", end)
        self.ip("net", "link", "set", end, "up")
        self.ip(host, "addr", "add", address, "dev", name, *(["nodad"] if ":" in address else []))
        self.ip(host, "link", "set", name, "up")

    def lay_nat(self, host, name="nat0", net="10.0.2"):
        """As a virtual machine's card to the world: with the default route, and never a way to another host."""
        self.lay(host, name, f"{net}.15/24", far=f"{net}.2/24")
        self.ip(host, "route", "add", "default", "via", f"{net}.2", "dev", name)

    def lay_private(self):
        """A net between the hosts, beside the one of ssh."""
        self.ip("net", "link", "add", "br1", "type", "bridge", "forward_delay", "0")
        self.ip("net", "link", "set", "br1", "up")
        for host in range(self.count):
            self.lay(host, "priv0", f"10.78.0.{10 + host}/24", bridge="br1")

    def admit_ssh_only(self, device, target="DROP"):
        """A firewall: by this card nobody connects to anything of IPv4 but sshd."""
        for host in range(self.count):
            subprocess.run(["nsenter", f"--net=/run/netns/{self.tag}.{host}", "iptables", "-I", "INPUT", "-i", device, "-p", "tcp", "--syn",
                            "!", "--dport", "22", "-j", target], check=True)


def must_meet(here, *words, hosts="host0:1,host1:1", count=2):
    outcome = here.hvdrun("-np", count, "-H", hosts, *words, HELLO, seconds=60).must(0)
    assert outcome.out.count(f" of {count}") >= count, outcome
    return outcome


def test_one_host_with_a_nat_card_that_has_the_default_route():
    with world.hosts(2) as here:
        cards = Cards(here)
        cards.lay_nat(0)
        must_meet(here)
        must_meet(here, hosts="host1:1,host0:1")
        cards.lay_nat(1, "out0", "198.51.100")  # from there packets to the other card go, and are lost
        must_meet(here)
        must_meet(here, hosts="host1:1,host0:1")
        here.must_be_clean()


@world.bound(90)
def test_every_host_has_the_same_nat_address():
    with world.hosts(3) as here:
        cards = Cards(here)
        for host in range(3):
            cards.lay_nat(host)
        must_meet(here)
        must_meet(here, hosts="host2:2,host1:1,host0:1", count=4)
        here.must_be_clean()


def test_a_private_net_where_the_other_card_lets_in_ssh_alone():
    with world.hosts(2) as here:
        cards = Cards(here)
        cards.lay_private()
        for target in ("DROP", "REJECT"):
            cards.admit_ssh_only("eth0", target)
            must_meet(here)
        must_meet(here, "--network-interfaces", "priv0")
        here.must_be_clean()


def test_ipv6_where_the_cards_ipv4_lets_in_ssh_alone():
    with world.hosts(2) as here:
        if not pathlib.Path("/proc/sys/net/ipv6").exists():
            raise world.Skip("this machine has no IPv6")
        cards = Cards(here)
        for host in range(2):
            cards.ip(host, "addr", "add", f"fd77::{10 + host}/64", "dev", "eth0", "nodad")
        cards.admit_ssh_only("eth0")
        must_meet(here)
        here.must_be_clean()


def test_cards_that_are_down_or_have_no_cable():
    with world.hosts(2) as here:
        cards = Cards(here)
        cards.lay_private()
        cards.ip(0, "link", "set", "priv0", "down")
        must_meet(here)
        cards.ip(0, "link", "set", "priv0", "up")
        cards.ip("net", "link", "set", "priv0-0", "down")  # so the card of host0 is up, and nothing is at the other end
        must_meet(here)
        must_meet(here, hosts="host1:1,host0:1")
        here.must_be_clean()


@world.bound(150)
def test_hosts_without_a_way_are_told_which_cards_and_what_to_do():
    with world.hosts(2) as here:
        cards = Cards(here)
        for host in range(2):
            cards.lay_nat(host)
        began = here.hvdrun("-np", 2, "-H", "host0:1,host1:1", "--network-interfaces", "nat0", HELLO, seconds=120).must(1)
        for words in ("cannot connect from host1 to rank 0 on host0 at 10.0.2.15:", "(its nat0; from nat0 here): connecting: Connection refused",
                      "other interfaces than nat0 may do: --network-interfaces"):
            assert words in began.err, began
        cards.admit_ssh_only("eth0")
        outcome = here.hvdrun("-np", 2, "-H", "host0:1,host1:1", HELLO, seconds=120).must(1)
        for words in (" at 10.77.0.10:", "(its eth0; from eth0 here): no answer; ", "(its nat0; from nat0 here): connecting: Connection refused",
                      "--network-interfaces names the interfaces to use"):
            assert words in outcome.err, outcome
        here.must_be_clean()
