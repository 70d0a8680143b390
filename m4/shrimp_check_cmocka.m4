dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_CHECK_CMOCKA
dnl 1.1.2: cmocka_set_test_filter(), with which one test of a program can be
dnl run. Optional: without it all builds, and make check says what is missing.
dnl Substitutes CMOCKA_CFLAGS, CMOCKA_LIBS; conditional HAVE_CMOCKA.
AC_DEFUN([SHRIMP_CHECK_CMOCKA],
[PKG_CHECK_MODULES([CMOCKA],[cmocka >= 1.1.2],[have_cmocka=yes],[have_cmocka=no])
AM_CONDITIONAL([HAVE_CMOCKA],[test "$have_cmocka" = yes])
])
