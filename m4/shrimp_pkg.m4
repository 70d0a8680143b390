dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_PKG(VARIABLE, MODULES, DEBIAN PACKAGE, REASON)
dnl Looks for pkg-config MODULES ("name >= version"); VARIABLE_CFLAGS and
dnl VARIABLE_LIBS are substituted. A miss is noted, so that SHRIMP_MISSING can
dnl name all missing packages at once. $shrimp_have_VARIABLE is yes or no.
AC_DEFUN([SHRIMP_PKG],
[PKG_CHECK_MODULES([$1],[$2],[shrimp_have_$1=yes],
  [shrimp_have_$1=no
  AS_VAR_APPEND([shrimp_missing_text],["
  $2: $4
    Debian: apt install $3"])
  AS_VAR_APPEND([shrimp_missing_debs],[" $3"])])
])

dnl SHRIMP_MISSING
dnl Ends configure if a package that the library needs was not found.
AC_DEFUN([SHRIMP_MISSING],
[AS_IF([test -n "$shrimp_missing_debs"],
  [AC_MSG_ERROR([missing, or too old:
$shrimp_missing_text

Install all of them: apt install$shrimp_missing_debs])])
])
