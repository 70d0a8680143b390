# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
"""Buffers that Python's allocator and mmap give and take for each transfer.

Messages and one-sided operations; every byte is checked.
"""

import gc
import mmap
import os

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size
RIGHT, LEFT = (RANK + 1) % SIZE, (RANK - 1) % SIZE
QUICK = os.environ.get("SHRIMP_QUICK") == "1"
ROUNDS = 2 if QUICK else 8
LENGTHS = (1, 40, 4097, 65537, 300000, 1 << 20, 3000001)


def pattern(source, target, length, salt):
    """Bytes that depend on the two ranks, the place and the salt."""
    step = 2 * (source * 7 + target * 3 + salt) + 1
    piece = bytes((step * i + salt) % 251 for i in range(251))
    return (piece * (length // 251 + 1))[:length]


def check(condition, text):
    """Ends the whole job unless the condition holds."""
    if not condition:
        print(f"FAILED py_remap.py: rank {RANK} of {SIZE}: {text}", flush=True)
        WORLD.Abort(1)


def fresh(length, salt):
    """A new buffer: from the heap, grown by realloc, or mapped."""
    if salt % 3 == 0:
        return bytearray(length)
    if salt % 3 == 1:
        buffer = bytearray(length // 2)
        buffer.extend(bytes(length - length // 2))
        return buffer
    return mmap.mmap(-1, length)


def give_back(buffer):
    """At once, not when the collector comes by."""
    if isinstance(buffer, mmap.mmap):
        buffer.close()
    else:
        buffer.clear()


def message(length, salt):
    """Round the ring, from and to new memory."""
    sent, got = fresh(length, salt), fresh(length, salt + 1)
    sent[:] = pattern(RANK, RIGHT, length, salt)
    receive = WORLD.Irecv([got, MPI.BYTE], LEFT, salt)
    send = WORLD.Isend([sent, MPI.BYTE], RIGHT, salt)
    receive.Wait()
    send.Wait()
    # the requests hold the buffers
    del receive, send
    check(got[:] == pattern(LEFT, RANK, length, salt),
          f"message of {length} bytes")
    give_back(sent)
    give_back(got)


def window(length, salt):
    """A window over new memory: read, then written by the neighbours."""
    memory, got = fresh(length, salt), fresh(length, salt + 1)
    sent = fresh(length, salt + 2)
    memory[:] = pattern(RANK, RANK, length, salt)
    sent[:] = pattern(RANK, RIGHT, length, salt)
    win = MPI.Win.Create(memory, 1, comm=WORLD)
    win.Fence()
    win.Get([got, MPI.BYTE], RIGHT)
    win.Fence()
    check(got[:] == pattern(RIGHT, RIGHT, length, salt),
          f"get of {length} bytes")
    win.Put([sent, MPI.BYTE], RIGHT)
    win.Fence()
    check(memory[:] == pattern(LEFT, RANK, length, salt),
          f"put of {length} bytes")
    win.Free()
    del win
    gc.collect()
    for buffer in (memory, got, sent):
        give_back(buffer)


def main():
    """Everything, some rounds."""
    for salt in range(1, ROUNDS + 1):
        for length in LENGTHS:
            message(length, salt)
            if salt % 4 < 2:
                window(length, salt)
    WORLD.Barrier()
    if RANK == 0:
        print(f"ok mpi4py_remap: {SIZE} ranks", flush=True)


main()
