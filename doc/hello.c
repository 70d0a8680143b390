/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The first MPI program of README.md: each rank sends its number to the next
 * one.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, size, from;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT,
		     (rank + size - 1) % size, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	printf("rank %d of %d heard from %d\n", rank, size, from);
	MPI_Finalize();
	return 0;
}
