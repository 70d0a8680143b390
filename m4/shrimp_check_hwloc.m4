dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_CHECK_HWLOC
dnl 2.0: hwloc_topology_set_io_types_filter(), so that the topology of the
dnl CPUs is read without probing I/O devices.
dnl Substitutes HWLOC_CFLAGS, HWLOC_LIBS.
AC_DEFUN([SHRIMP_CHECK_HWLOC],
[SHRIMP_PKG([HWLOC],[hwloc >= 2.0],[libhwloc-dev],
  [sizes of the caches choose how data is copied])
])
