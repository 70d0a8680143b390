dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_CHECK_LIBURCU
dnl 0.13: the oldest release the tests are run with (Debian 12). The bp flavour
dnl ("bulletproof": threads need no registration, so threads of the client may
dnl read) and the cds containers; both came as separate pkg-config modules
dnl with flavour-prefixed symbols in 0.11.
dnl Substitutes LIBURCU_CFLAGS, LIBURCU_LIBS.
AC_DEFUN([SHRIMP_CHECK_LIBURCU],
[SHRIMP_PKG([LIBURCU],[liburcu-bp >= 0.13 liburcu-cds >= 0.13],[liburcu-dev],
  [address tables are read without locks])
])
