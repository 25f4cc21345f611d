"""Messages about asynchronous units, mbarriers and clusters."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import Act, Space
from tir_schedules.machines.cpu.faults import Fault

COPY, PRODUCT, BARRIER = "tma", "wgmma", "mbarrier"
"""Classes of instructions in the counters' mix."""

NO_WAIT = {
    COPY: "wait for it with cp.async.bulk.wait_group.read, and let the writer know",
    PRODUCT: "wait for it with wgmma.wait_group, and let the writer know",
}


def operation(fault: Fault, line: int) -> str:
    """What the unit does: "the wgmma of main.cu:7"."""
    name = {COPY: "bulk copy", PRODUCT: "wgmma"}.get(fault.sources.mix(line), "asynchronous operation")
    place = fault.sources(line)
    return f"the {name} of {place.place if fault.short and place.place else place}"


def slot_in_use(fault: Fault) -> str:
    line = int(fault.record["other_line"])
    message = f"{fault.act} {fault.where}, which {operation(fault, line)} may still be reading"
    remedy = NO_WAIT.get(fault.sources.mix(line), "")
    return message if fault.short or not remedy else f"{message}: {remedy}"


def in_flight(fault: Fault) -> str:
    line = int(fault.record["other_line"])
    if fault.sources.mix(line) not in (COPY, PRODUCT):
        return f"{fault.act} {fault.where}, where a cp.async is still under way"
    message = f"{fault.act} {fault.where}, where {operation(fault, line)} may still be under way"
    if fault.short:
        return message
    waits = (
        "with cp.async.bulk.wait_group" if int(fault.record["space"]) == Space.GLOBAL else "at its mbarrier"
    )
    return f"{message}: wait for it {waits} first"


def unfenced_proxy(fault: Fault) -> str:
    if int(fault.record["act"]) == Act.ATOMIC:
        return (
            f"tells the mbarrier {fault.where} of its bytes, which {fault.other} has initialised,"
            " with no fence.mbarrier_init or fence.proxy.async between"
        )
    return f"{fault.act} {fault.where}, which {fault.other} has written, with no fence.proxy.async between"


def missing_barrier(fault: Fault) -> str:
    """Of a race between a unit and a thread, or about an mbarrier itself; empty for others."""
    mixes = {fault.sources.mix(int(fault.record[name])) for name in ("line", "other_line")}
    if fault.record["other_block"] or mixes.isdisjoint((COPY, PRODUCT, BARRIER)):
        return ""
    return "no barrier or mbarrier between"


def deadlock(fault: Fault) -> str:
    """Of lanes that wait for an mbarrier, other blocks of the cluster, or warps of their warpgroup."""
    if int(fault.record["act"]) == Act.WRITE:
        return (
            "waits at the barrier of the cluster, which not all threads of its blocks reach",
            "waits for products that not all four warps of the warpgroup have committed",
        )[int(fault.record["detail"])]
    arrivals, missing = int(fault.record["extent_bytes"]), signed(fault.record["bytes"])
    lacks = [f"{arrivals} arrival{'s' * (arrivals != 1)}"] if arrivals else []
    lacks += [f"{missing} bytes"] if missing > 0 else []
    needs = (
        f"{' and '.join(lacks)} {'are' if arrivals != 1 or missing > 0 else 'is'} missing" if lacks else ""
    )
    if missing < 0:
        more = f"{-missing} bytes came that nobody has told it to expect"
        needs = f"{needs}, and {more}" if needs else more
    missed = int(fault.record["other_lane"])
    also = f"; phase {missed} is over, and this thread has not waited for it" if missed else ""
    role = int(fault.record["role"])
    named = f"{('empty', 'full')[(role - 1) % 2]} {(role - 1) // 2}, " if role else ""
    return (
        f"waits for phase {int(fault.record['detail'])} of {named}the mbarrier {fault.where}: {needs}{also}"
    )


def signed(number: int) -> int:
    return int(number) - (int(number) >> 31 << 32)


def barrier_misuse(fault: Fault) -> str:
    value, what = int(fault.record["extent_bytes"]), f"the mbarrier {fault.where}"
    most = (1 << 20) - 1
    return (
        f"uses {what}, which is not initialised",
        f"uses {what}, which has to be at a multiple of 8 bytes in the block's own shared memory",
        f"{what} is given a count of {value}; it can be 1 to {most}",
        f"initialises {what}, which is in use: threads have arrived, or bytes are expected",
        f"arrives at {what} more often than the {value} times that a phase takes",
        f"{what} is told of {value} bytes: more than the {most} that it can count",
        f"{fault.act} {fault.bytes} of {fault.where}, where an mbarrier is: mbarrier.inval first",
        f"waits for a phase of {what} by a state that is older than the phase before this one",
        f"{what}: .noComplete, and this arrival completes the phase",
        "arrives at the barrier of the cluster again, without a barrier.cluster.wait between",
        "waits at the barrier of the cluster, where it has not arrived",
        f"{what} is in another block than what is copied to",
    )[int(fault.record["detail"])]


def cluster_exit(fault: Fault) -> str:
    return (
        f"{fault.act} {fault.where}, which may have left: let it wait for this, with barrier.cluster or at an"
        " mbarrier"
    )


def left_in_flight(fault: Fault) -> str:
    return (
        "the thread leaves while this copy may still read shared memory: wait for it with"
        " cp.async.bulk.wait_group.read 0",
        "the warp leaves while this product is under way: wait for it with wgmma.wait_group 0",
        "the block leaves while this copy may be under way: nobody has waited for the mbarrier"
        f" {fault.where}",
        f"the block leaves while the mbarrier {fault.where} expects {signed(fault.record['bytes'])} more"
        " bytes",
    )[int(fault.record["detail"])]
