dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_CHECK_NUMA
dnl 2.0.12: the first release with numa.pc.
dnl Substitutes NUMA_CFLAGS, NUMA_LIBS.
AC_DEFUN([SHRIMP_CHECK_NUMA],
[SHRIMP_PKG([NUMA],[numa >= 2.0.12],[libnuma-dev],
  [shared memory is placed on the node of its readers])
])
