"""What NCCL says of each fabric with `NCCL_DEBUG=INFO`, in excerpts: as the sources of NCCL and plugins print it."""

from __future__ import annotations

from collections.abc import Iterable

_VERSION = "NCCL version 2.28.9+cuda13.0"
_NO_PLUGIN = "NET/Plugin: Could not find: libnccl-net.so"
_SOCKET = ("NET/Socket : Using [0]eth0:10.8.0.12<0>", "Initialized NET plugin Socket", "Using network Socket")


def said(*lines: str) -> str:
    """Write lines as NCCL does, with host, process and thread before each."""
    return "".join(f"node-3:417:{431 + number} [0] NCCL INFO {line}\n" for number, line in enumerate(lines))


def adapters(link: str, numbers: Iterable[int]) -> str:
    listed = " ".join(f"[{index}]mlx5_{number}:1/{link}" for index, number in enumerate(numbers))
    return f"NET/IB : Using {listed} [RO]; OOB eth0:10.8.0.12<0>"


def verbs(link: str, count: int) -> str:
    return said(_VERSION, _NO_PLUGIN, adapters(link, range(count)), "Initialized NET plugin IB", "Using network IB")


def efa(count: int, provider: str = "efa") -> str:
    fabric = "efa-direct" if provider == "efa" else provider
    return said(
        _VERSION,
        "NET/Plugin: Loaded net plugin Libfabric (v10)",
        "NET/OFI Initializing aws-ofi-nccl 1.16.2",
        f"NET/OFI Selected provider is {provider}, fabric is {fabric} (found {count} nics)",
        "Using network Libfabric",
    )


TCPXO = said(
    _VERSION,
    "NET/Plugin: Loaded net plugin FasTrak (v7)",
    "Using network FasTrak",
    "Initializing network FasTrak, version: 1.0.17",
)
TCPX = said(_VERSION, "NET/Plugin : Plugin load (libnccl-net.so) returned 0", "Using network GPUDirectTCPX_v7")
# docs.cloud.google.com of 2026-04-06, AI Hypercomputer, Run NCCL on Compute Engine instances
GIB = said("NET/gIB : Initializing gIB v1.0.5", "Initialized NET plugin gIB", "Using network gIB")
# the plugin of NVIDIA's images, which came before NCCL's own
HPCX = said(
    "NET/Plugin: Loaded net plugin NCCL RDMA Plugin v8 (v8)", adapters("IB", range(8)), "Using network IBext_v8"
)
TCP = said(_VERSION, _NO_PLUGIN, "NET/IB : No device found.", *_SOCKET)
# how NCCL 2.18 to 2.22 says that the plugin is missing
TCP_OLD = said(
    "NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file or directory No plugin found"
    " (libnccl-net.so), using internal implementation",
    "NET/IB : No device found.",
    *_SOCKET,
)
EFA_OLD = said("NET/OFI Selected Provider is efa (found 4 nics)", "Using network AWS Libfabric")
