# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors
"""Python's view of MPI: objects and buffers, every one of them checked.

mpi4py asks for MPI_THREAD_MULTIPLE; two threads talk at once in threads().
"""

import os
import threading

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size
QUICK = os.environ.get("SHRIMP_QUICK") == "1"
ROUNDS = 2 if QUICK else 20
LENGTHS = (0, 1, 40, 41, 4097, 65537, 1000003)


def pattern(source, target, length, salt=0):
    """Bytes that depend on the two ranks, the place and the salt."""
    step = 2 * (source * 7 + target * 3 + salt) + 1
    piece = bytes((step * i + salt) % 251 for i in range(251))
    return (piece * (length // 251 + 1))[:length]


def check(condition, text):
    """Ends the whole job unless the condition holds."""
    if not condition:
        print(f"FAILED py_data.py: rank {RANK} of {SIZE}: {text}", flush=True)
        WORLD.Abort(1)


def buffers(comm, salt):
    """Raw bytes round the ring, nonblocking."""
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for length in LENGTHS:
        got = bytearray(length)
        sent = pattern(RANK, right, length, salt)
        receive = comm.Irecv([got, MPI.BYTE], left, salt)
        send = comm.Isend([sent, MPI.BYTE], right, salt)
        status = MPI.Status()
        receive.Wait(status)
        send.Wait()
        check(status.Get_count(MPI.BYTE) == length, f"count of {length}")
        check(got == pattern(left, RANK, length, salt), f"{length} bytes")


def objects(salt):
    """Pickled objects: Mprobe and Mrecv inside mpi4py."""
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for length in LENGTHS:
        sent = {"from": RANK, "data": pattern(RANK, right, length, salt)}
        got = WORLD.sendrecv(sent, right, 5, None, left, 5)
        check(got["from"] == left, "sender of an object")
        check(got["data"] == pattern(left, RANK, length, salt), "object")


def collectives(salt):
    """Collectives of objects and of buffers."""
    for root in range(SIZE):
        text = WORLD.bcast(f"{root} {salt}" if RANK == root else None, root)
        check(text == f"{root} {salt}", "bcast")
        ranks = WORLD.gather(RANK * salt, root)
        check(RANK != root or ranks == [r * salt for r in range(SIZE)],
              "gather")
    got = WORLD.alltoall([pattern(RANK, r, 3000, salt) for r in range(SIZE)])
    check(got == [pattern(r, RANK, 3000, salt) for r in range(SIZE)],
          "alltoall")
    total = WORLD.allreduce((RANK + 1) * salt)
    check(total == SIZE * (SIZE + 1) // 2 * salt, "allreduce")


def threads():
    """Two threads, each on a communicator of its own."""
    comms = [WORLD.Dup(), WORLD.Dup()]
    errors = []

    def work(number):
        try:
            for i in range(ROUNDS):
                buffers(comms[number], number * 100 + i + 1)
        except Exception as error:  # pylint: disable=broad-except
            errors.append(error)

    pool = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    check(not errors, f"in a thread: {errors}")
    for comm in comms:
        comm.Free()


def main():
    """Everything, some rounds."""
    for salt in range(1, ROUNDS + 1):
        buffers(WORLD, salt)
        objects(salt)
        collectives(salt)
    if MPI.Query_thread() == MPI.THREAD_MULTIPLE:
        threads()
    WORLD.Barrier()
    if RANK == 0:
        print(f"ok mpi4py: {SIZE} ranks", flush=True)


main()
