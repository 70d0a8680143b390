dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_ENABLE(NAME, HELP)
dnl Defines --enable-NAME, off by default; $enable_NAME is yes or no, and the
dnl Makefile gets the conditional ENABLE_NAME.
AC_DEFUN([SHRIMP_ENABLE],
[AC_ARG_ENABLE([$1],[AS_HELP_STRING([--enable-$1],[$2])],
  [AS_CASE([$enableval],[yes|no],[],
    [AC_MSG_ERROR([--enable-$1 takes yes or no, not "$enableval"])])],
  [enable_$1=no])
AM_CONDITIONAL(m4_toupper([ENABLE_$1]),[test "$enable_$1" = yes])
])

dnl SHRIMP_DEFAULT_CFLAGS
dnl Chooses CFLAGS if the user gave none. What the user gave is never touched.
AC_DEFUN([SHRIMP_DEFAULT_CFLAGS],
[AS_IF([test "$enable_tsan" = yes && test "$enable_asan$enable_ubsan" != nono],
  [AC_MSG_ERROR([--enable-tsan excludes --enable-asan and --enable-ubsan])])
AS_IF([test "$enable_asan$enable_ubsan$enable_tsan" != nonono],
  [: ${CFLAGS="-g -O1 -fno-omit-frame-pointer"}],
  [test "$enable_debug" = yes],
  [: ${CFLAGS="-g3 -Og"}],
  [: ${CFLAGS="-g -O2"}])
])

dnl SHRIMP_WITH_PROVIDERDIR
dnl --with-providerdir; sets and substitutes providerdir.
AC_DEFUN([SHRIMP_WITH_PROVIDERDIR],
[AC_ARG_WITH([providerdir],
  [AS_HELP_STRING([--with-providerdir=DIR],
    [where to install the provider @<:@LIBDIR/libfabric@:>@])],
  [AS_CASE([$withval],
    [/*|'${'*],[],
    [AC_MSG_ERROR([--with-providerdir needs an absolute path, not "$withval"])])],
  [with_providerdir='${libdir}/libfabric'])
AC_SUBST([providerdir],["$with_providerdir"])
])

dnl SHRIMP_WITH_BREAK
dnl --with-break; substitutes BREAK_CPPFLAGS. The names are in shm/breakage.h.
AC_DEFUN([SHRIMP_WITH_BREAK],
[AC_ARG_WITH([break],
  [AS_HELP_STRING([--with-break=NAME],
    [for tests only: a build that breaks guarantee NAME of shm/breakage.h])],
  [],[with_break=no])
BREAK_CPPFLAGS=
AS_CASE([$with_break],
  [no],[],
  [AS_IF([grep -q "^	RNIC_BREAK_$with_break," "$srcdir/shm/breakage.h"],
    [BREAK_CPPFLAGS="-DRNIC_BREAK=RNIC_BREAK_$with_break"],
    [AC_MSG_ERROR([--with-break=$with_break: no such name in shm/breakage.h])])])
AC_SUBST([BREAK_CPPFLAGS])
])
