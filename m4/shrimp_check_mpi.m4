dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_CHECK_MPI
dnl Open MPI 4.1, for mpi-tests/ only; older ones lack the selection of
dnl providers by mtl_ofi_provider_include for both of its libfabric users.
dnl Optional: without it mpi-tests/ is left out. Not MPICH: Debian's is built
dnl on UCX and never calls libfabric.
dnl MPICC may name the compiler wrapper; --without-mpi forgoes it.
dnl Substitutes MPICC, MPI_CFLAGS, MPI_LIBS; conditional HAVE_MPI.
AC_DEFUN([SHRIMP_CHECK_MPI],
[AC_ARG_VAR([MPICC],[Open MPI's compiler wrapper, for mpi-tests/])
AC_ARG_WITH([mpi],
  [AS_HELP_STRING([--without-mpi],[leave out mpi-tests/])],
  [AS_CASE([$withval],[yes|no],[],
    [AC_MSG_ERROR([--with-mpi takes yes or no; name the wrapper by MPICC=])])],
  [with_mpi=check])
have_mpi=no
AS_IF([test "$with_mpi" != no],
  [AC_PATH_PROGS([MPICC],[mpicc.openmpi mpicc])
  AC_MSG_CHECKING([for Open MPI])
  AS_IF([MPI_CFLAGS=`"$MPICC" --showme:compile 2>/dev/null` &&
      MPI_LIBS=`"$MPICC" --showme:link 2>/dev/null`],
    [shrimp_saved_CPPFLAGS="$CPPFLAGS"
    shrimp_saved_LIBS="$LIBS"
    CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
    LIBS="$LIBS $MPI_LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
_Static_assert(OMPI_MAJOR_VERSION > 4 ||
  (OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION >= 1), "too old");]],
      [[return MPI_Init(0, 0);]])],[have_mpi=yes])
    CPPFLAGS="$shrimp_saved_CPPFLAGS"
    LIBS="$shrimp_saved_LIBS"])
  AC_MSG_RESULT([$have_mpi])
  AS_IF([test "$with_mpi$have_mpi" = yesno],
    [AC_MSG_ERROR([Open MPI >= 4.1 not found by MPICC="$MPICC" (Debian: apt install libopenmpi-dev openmpi-bin)])])])
AC_SUBST([MPI_CFLAGS])
AC_SUBST([MPI_LIBS])
AM_CONDITIONAL([HAVE_MPI],[test "$have_mpi" = yes])
])

dnl SHRIMP_CHECK_MPICH
dnl 4.0, for one program of bench/ only: the oldest that it was built with.
dnl Optional. Substitutes MPICH_CFLAGS, MPICH_LIBS; conditional HAVE_MPICH.
AC_DEFUN([SHRIMP_CHECK_MPICH],
[have_mpich=no
AS_IF([test "$with_mpi" != no],
  [PKG_CHECK_MODULES([MPICH],[mpich >= 4.0],[have_mpich=yes],[have_mpich=no])])
AM_CONDITIONAL([HAVE_MPICH],[test "$have_mpich" = yes])
])
