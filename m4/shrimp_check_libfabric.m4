dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_CHECK_LIBFABRIC
dnl 1.17: the oldest release whose headers and library the provider is tested
dnl with (Debian 12). It loads providers from FI_PROVIDER_PATH, installs the
dnl headers rdma/providers/fi_prov.h and fi_log.h, and has API 1.17.
dnl Substitutes LIBFABRIC_CFLAGS, LIBFABRIC_LIBS; sets libfabric_providerdir
dnl to where libfabric itself looks for providers.
AC_DEFUN([SHRIMP_CHECK_LIBFABRIC],
[SHRIMP_PKG([LIBFABRIC],[libfabric >= 1.17],[libfabric-dev],
  [the library that the provider plugs into])
AS_IF([test "$shrimp_have_LIBFABRIC" = yes],
  [libfabric_version=`$PKG_CONFIG --modversion libfabric`
  libfabric_providerdir=`$PKG_CONFIG --variable=libdir libfabric`/libfabric
  shrimp_saved_CPPFLAGS="$CPPFLAGS"
  CPPFLAGS="$CPPFLAGS $LIBFABRIC_CFLAGS"
  AC_CHECK_HEADER([rdma/providers/fi_prov.h],[],
    [AC_MSG_ERROR([rdma/providers/fi_prov.h is missing: this libfabric was installed without its provider headers (Debian: apt install libfabric-dev)])],
    [#include <stddef.h>
#include <sys/uio.h>])
  CPPFLAGS="$shrimp_saved_CPPFLAGS"])
])
