dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_PROVIDER_PATH
dnl Expands the provider directory into shrimp_dir. Substitutes
dnl libfabric_providerdir, where libfabric looks by itself, and
dnl provider_path_rest, what must follow our directory in FI_PROVIDER_PATH:
dnl that variable replaces the directory of libfabric, which may be in use.
AC_DEFUN([SHRIMP_PROVIDER_PATH],
[shrimp_saved_prefix="$prefix"
shrimp_saved_exec_prefix="$exec_prefix"
test "$prefix" = NONE && prefix="$ac_default_prefix"
test "$exec_prefix" = NONE && exec_prefix="$prefix"
shrimp_dir="$providerdir"
# Each round expands one level: providerdir, libdir, exec_prefix, prefix.
for shrimp_level in 1 2 3 4; do
  eval "shrimp_dir=\"$shrimp_dir\""
done
prefix="$shrimp_saved_prefix"
exec_prefix="$shrimp_saved_exec_prefix"
AC_SUBST([libfabric_providerdir])
provider_path_rest=
AS_IF([test -d "$libfabric_providerdir"],
  [provider_path_rest=":$libfabric_providerdir"])
AC_SUBST([provider_path_rest])
])

dnl SHRIMP_SUMMARY
dnl Prints what was configured, and how the provider will be found.
AC_DEFUN([SHRIMP_SUMMARY],
[AS_IF([test "$have_cmocka" = yes],[shrimp_cmocka=yes],
  [shrimp_cmocka="no, make check will not run (Debian: apt install libcmocka-dev)"])
AS_IF([test "$have_mpi" = yes],[shrimp_mpi="yes, $MPICC"],
  [test "$with_mpi" = no],[shrimp_mpi="no, by --without-mpi"],
  [shrimp_mpi="no, mpi-tests/ are left out (Debian: apt install libopenmpi-dev openmpi-bin)"])
AS_ECHO(["
shrimp $PACKAGE_VERSION
  compiler            $CC
  CFLAGS              $CFLAGS
  sanitizers         ${SAN_CFLAGS:- none}
  debug checks        $enable_debug
  warnings are errors $enable_werror
  libfabric           $libfabric_version
  unit tests          $shrimp_cmocka
  MPI tests           $shrimp_mpi
  MPICH beside it     $have_mpich (benchmark only)
  provider directory  $shrimp_dir
"])
AS_IF([test "$with_break" != no],
  [AS_ECHO(["This build breaks \"$with_break\" on purpose. It is for tests only.
"])])
AS_IF([test "$shrimp_dir" != "$libfabric_providerdir"],
  [AS_ECHO(["libfabric does not look there by itself. After make install, use
  export FI_PROVIDER_PATH=$shrimp_dir$provider_path_rest
"])])
])
