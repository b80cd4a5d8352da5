"""The Lease of a release in every order that clocks, threads and the network can bring about.

A test's clock moves only when the test moves it, and the real API server answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from proxy import Proxy, proxy_to

from chartgen.errors import ChartgenError, MissingToolError
from chartgen.kube import LEASE, Cluster, Kind, Object, connect
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.releases.lock import DURATION, Lock, Pace, holder_of, lease_name, read_notes

RELEASE = "my-run"
NEVER = 1e6  # seconds between two renewals: those of the test only


@dataclass
class Time:
    """A clock that stands still until somebody moves or waits on it."""

    seconds: float = 1000.0
    meanwhile: list[Callable[[], object]] = field(default_factory=list)  # called at each wait, as often as it has items

    def __call__(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        if self.meanwhile:
            self.meanwhile.pop(0)()


@dataclass
class Room:
    """A namespace with the Lease of one release, and the commands that want it."""

    cluster: Cluster
    namespace: str
    time: Time = field(default_factory=Time)
    lines: list[str] = field(default_factory=list)

    def lock(self, action: str = "upgrade", *, cluster: Cluster | None = None, every: float = NEVER) -> Lock:
        return Lock(
            cluster or self.cluster,
            RELEASE,
            self.namespace,
            action,
            self.lines.append,
            Pace(self.time, self.time.wait, every),
        )

    def lease(self) -> Object:
        found = self.cluster.get(LEASE, lease_name(RELEASE), self.namespace)
        assert found
        return found

    def holder(self) -> str:
        return holder_of(self.lease())

    def write(self, holder: str, at: str, **spec: Any) -> None:
        """Renew the Lease as another host would whose clock shows this time."""
        spec = {"holderIdentity": holder, "renewTime": at, "leaseDurationSeconds": int(DURATION), **spec}
        name = {"name": lease_name(RELEASE), "namespace": self.namespace}
        if self.cluster.get(LEASE, lease_name(RELEASE), self.namespace) is None:
            head = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": name}
            self.cluster.create(LEASE, {**head, "spec": spec})
        else:
            self.cluster.patch(LEASE, lease_name(RELEASE), {"spec": spec}, namespace=self.namespace)


class Relay:
    """A connection whose writes a test holds back, or whose answers get lost, one after the other.

    Args:
        cluster: The real connection.
        before: Called before each patch.
        after: Called when the server has done it, before its answer is known.
    """

    def __init__(
        self, cluster: Cluster, before: Callable[[], None] | None = None, after: Callable[[], None] | None = None
    ) -> None:
        self._cluster, self._before, self._after = cluster, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def patch(self, kind: Kind, name: str, change: Object, **place: str) -> Object:
        if self._before:
            self._before()
        made = self._cluster.patch(kind, name, change, **place)
        if self._after:
            self._after()
        return made


def lost() -> pytest.RaisesExc[ChartgenError]:
    """Expect that a command is told that another one has its release."""
    return pytest.raises(ChartgenError, match=f"release {RELEASE}", check=lambda error: error.exit_code == 1)


@pytest.fixture
def room(request: pytest.FixtureRequest, plane: ControlPlane) -> Iterator[Room]:
    name = f"lock-{abs(hash(request.node.name)) % 10**8}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    plane.cluster.apply([body])
    yield Room(plane.cluster, name)
    plane.cluster.delete_object(body)


@pytest.fixture
def road(plane: ControlPlane, tmp_path: Path) -> Iterator[tuple[Proxy, Cluster]]:
    """A road that can be cut, and a connection on it."""
    with proxy_to(plane, tmp_path) as proxy, connect(kubeconfig=proxy.kubeconfig, timeout=2.0) as cluster:
        yield proxy, cluster


@pytest.mark.engines
def test_renewal_after_the_release_writes_nothing(room: Room) -> None:
    """A renewal that had to wait while the release was written comes after it."""
    with room.lock() as lock:
        assert room.holder()
    released = room.lease()
    lock.check(within=0)
    assert room.lease() == released
    assert room.holder() == ""


@pytest.mark.engines
def test_release_waits_for_a_renewal_on_its_way(room: Room) -> None:
    """The renewal's request is held back; the release follows it, and no thread is left."""
    renewing, go = threading.Event(), threading.Event()

    def hold() -> None:
        if threading.current_thread() is not threading.main_thread():
            renewing.set()
            assert go.wait(180)

    with room.lock(cluster=Relay(room.cluster, before=hold), every=0.01):  # type: ignore[arg-type]
        assert renewing.wait(180)
        assert [each.name for each in threading.enumerate() if RELEASE in each.name]
        threading.Timer(0.2, go.set).start()
    assert room.holder() == ""
    assert not [each.name for each in threading.enumerate() if RELEASE in each.name]


@pytest.mark.engines
def test_holder_that_was_cut_off_learns_of_the_new_one_before_it_goes_on(
    room: Room, road: tuple[Proxy, Cluster]
) -> None:
    proxy, far = road
    old = room.lock(cluster=far)
    with lost(), old:
        old.note(replacing=["a"])
        proxy.cut()
        with pytest.raises(MissingToolError):
            old.check(within=0)
        with room.lock("rollback") as new:
            assert new.notes == {"replacing": ["a"]}, "what the first one noted"
            proxy.mend()
            with lost():
                old.check()  # no renewal has told it
            new.check(within=0)
    assert room.time.seconds >= 1000 + DURATION
    assert read_notes(room.cluster, RELEASE, room.namespace) == {"replacing": ["a"]}


@pytest.mark.engines
def test_holder_that_is_cut_off_does_not_go_on(room: Room, road: tuple[Proxy, Cluster]) -> None:
    """Nobody knows whether another one has taken over; as soon as the server answers, the holder goes on."""
    proxy, far = road
    with room.lock(cluster=far) as lock:
        proxy.cut()
        lock.check()  # nobody can have it yet
        with pytest.raises(MissingToolError):
            lock.check(within=0)  # what comes next takes longer than a moment
        room.time.seconds += DURATION
        with pytest.raises(MissingToolError):
            lock.check()
        proxy.mend()
        lock.check()
        room.time.seconds += 1
        proxy.cut()
        lock.check()  # renewed a second ago
        proxy.mend()


@pytest.mark.engines
def test_lost_release_stays_lost(room: Room) -> None:
    """Also when the new holder has finished: what it made is not in the old one's plan."""
    with lost(), room.lock() as old:
        room.time.seconds += DURATION
        room.write("", "2026-01-01T00:00:00.000000Z")
        acts: list[Callable[[], None]] = [old.check, lambda: old.note(replacing=["x"]), old.remove]
        for act in acts:
            with lost():
                act()
    assert room.holder() == ""
    assert read_notes(room.cluster, RELEASE, room.namespace) == {}


@pytest.mark.engines
def test_answer_that_is_lost_is_no_other_holder(room: Room) -> None:
    """The server has written, and the answer did not arrive: the next write meets a version of its own."""
    lost = iter([True])

    def lose() -> None:
        if next(lost, False):
            raise MissingToolError("the connection is lost")

    with room.lock(cluster=Relay(room.cluster, after=lose)) as lock:  # type: ignore[arg-type]
        with pytest.raises(MissingToolError):
            lock.check(within=0)
        lock.note(replacing=["a"])
        lock.check(within=0)
        assert read_notes(room.cluster, RELEASE, room.namespace) == {"replacing": ["a"]}
    assert room.holder() == ""


@pytest.mark.engines
@pytest.mark.parametrize("year", [2001, 2101])
def test_living_holder_is_seen_alive_whatever_its_clock_shows(room: Room, year: int) -> None:
    room.write("eve@box", f"{year}-01-01T00:00:00.000000Z")
    room.time.meanwhile += [lambda: None] * 20
    room.time.meanwhile += [lambda: room.write("eve@box", f"{year}-01-01T00:00:04.000000Z")]
    with pytest.raises(ChartgenError, match="eve@box"):
        room.lock().__enter__()
    assert room.holder() == "eve@box"


@pytest.mark.engines
@pytest.mark.parametrize("year", [2001, 2101])
def test_dead_holder_is_waited_for_as_long_as_its_lease_says(room: Room, year: int) -> None:
    room.write("eve@box", f"{year}-01-01T00:00:00.000000Z", leaseDurationSeconds=40)
    with room.lock():
        assert "eve" not in room.holder()
    assert 1040 <= room.time.seconds < 1041
    assert len(room.lines) == 2
    assert all("eve@box" in line for line in room.lines)


@pytest.mark.engines
def test_a_lease_that_claims_years_is_waited_for_a_minute(room: Room) -> None:
    room.write("eve@box", "2026-01-01T00:00:00.000000Z", leaseDurationSeconds=2**31 - 1)
    with room.lock():
        assert "eve" not in room.holder()
    assert room.time.seconds < 1061


@pytest.mark.engines
def test_only_one_of_two_takes_a_dead_holders_release(room: Room) -> None:
    """The second one has looked for as long as the first, and writes a moment later."""
    room.write("eve@box", "2026-01-01T00:00:00.000000Z")
    winner: list[Lock] = []

    def overtake() -> None:
        first = Room(room.cluster, room.namespace).lock("first")
        first.__enter__()
        winner.append(first)

    relay = Relay(room.cluster, before=overtake)
    with lost():
        room.lock(cluster=relay).__enter__()  # type: ignore[arg-type]
    winner[0].check(within=0)
    assert "first" in room.holder()
    winner[0].__exit__(None)


@pytest.mark.engines
def test_released_lease_is_taken_at_once(room: Room) -> None:
    for _ in range(2):
        with room.lock():
            assert room.holder()
    assert room.time.seconds == 1000


@pytest.mark.engines
def test_uninstall_does_not_remove_another_ones_lease(room: Room) -> None:
    with lost(), room.lock("uninstall") as old:
        room.write("eve@box", "2026-01-01T00:00:00.000000Z")
        with lost():
            old.remove()
    assert room.holder() == "eve@box"
