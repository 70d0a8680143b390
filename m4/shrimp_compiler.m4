dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) 2026 the shrimp authors

dnl SHRIMP_TRY_CFLAG(FLAG, VARIABLE)
dnl Appends FLAG to VARIABLE if the compiler takes it without a warning.
AC_DEFUN([SHRIMP_TRY_CFLAG],
[AS_VAR_PUSHDEF([cache],[shrimp_cv_cflag_$1])
AC_CACHE_CHECK([whether $CC accepts $1],[cache],
  [shrimp_saved_CFLAGS="$CFLAGS"
  CFLAGS="$CFLAGS -Werror $1"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
    [AS_VAR_SET([cache],[yes])],[AS_VAR_SET([cache],[no])])
  CFLAGS="$shrimp_saved_CFLAGS"])
AS_VAR_IF([cache],[yes],[AS_VAR_APPEND([$2],[" $1"])])
AS_VAR_POPDEF([cache])
])

dnl SHRIMP_C11
dnl Fails unless the compiler has C11 with lock-free 64-bit atomics.
AC_DEFUN([SHRIMP_C11],
[AC_CACHE_CHECK([whether $CC has C11 with lock-free 64-bit atomics],
  [shrimp_cv_c11],
  [shrimp_saved_CFLAGS="$CFLAGS"
  CFLAGS="$CFLAGS -std=c11"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdatomic.h>
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "lock free");
static _Atomic unsigned long long word;]],
    [[return (int)atomic_fetch_add(&word, 1);]])],
    [shrimp_cv_c11=yes],[shrimp_cv_c11=no])
  CFLAGS="$shrimp_saved_CFLAGS"])
AS_IF([test "$shrimp_cv_c11" = no],
  [AC_MSG_ERROR([$CC lacks C11 with lock-free 64-bit atomics; gcc 8 or clang 7 will do (Debian: apt install gcc)])])
])

dnl SHRIMP_WARNINGS
dnl Substitutes WARN_CFLAGS, each flag probed by itself.
AC_DEFUN([SHRIMP_WARNINGS],
[WARN_CFLAGS=
m4_foreach_w([shrimp_flag],
  [-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
   -Wold-style-definition -Wpointer-arith -Wundef -Wvla
   -Wformat=2 -Wimplicit-fallthrough],
  [SHRIMP_TRY_CFLAG(shrimp_flag,[WARN_CFLAGS])])
AS_IF([test "$enable_werror" = yes],[AS_VAR_APPEND([WARN_CFLAGS],[" -Werror"])])
AC_SUBST([WARN_CFLAGS])
])

dnl SHRIMP_OPTIMISATION
dnl Substitutes OPT_CFLAGS. Two words written one by one and then copied as one
dnl vector cost a failed store forwarding, which is dear in a call of 10 ns; and
dnl where a function begins within a line moves an 8 B message by up to 7 ns.
AC_DEFUN([SHRIMP_OPTIMISATION],
[OPT_CFLAGS=
SHRIMP_TRY_CFLAG([-fno-tree-slp-vectorize],[OPT_CFLAGS])
SHRIMP_TRY_CFLAG([-falign-functions=64],[OPT_CFLAGS])
AC_SUBST([OPT_CFLAGS])
])

dnl SHRIMP_SANITIZERS
dnl Substitutes SAN_CFLAGS, for compiling and linking. A sanitizer that the
dnl compiler cannot link is an error here, not in make.
AC_DEFUN([SHRIMP_SANITIZERS],
[SAN_CFLAGS=
AS_IF([test "$enable_asan" = yes],[AS_VAR_APPEND([SAN_CFLAGS],[" -fsanitize=address"])])
AS_IF([test "$enable_ubsan" = yes],
  [AS_VAR_APPEND([SAN_CFLAGS],[" -fsanitize=undefined -fno-sanitize-recover=undefined"])])
AS_IF([test "$enable_tsan" = yes],[AS_VAR_APPEND([SAN_CFLAGS],[" -fsanitize=thread"])])
AS_IF([test -n "$SAN_CFLAGS"],
  [AC_MSG_CHECKING([whether $CC links with$SAN_CFLAGS])
  shrimp_saved_CFLAGS="$CFLAGS"
  CFLAGS="$CFLAGS $SAN_CFLAGS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM()],[shrimp_ok=yes],[shrimp_ok=no])
  CFLAGS="$shrimp_saved_CFLAGS"
  AC_MSG_RESULT([$shrimp_ok])
  AS_IF([test "$shrimp_ok" = no],
    [AC_MSG_ERROR([$CC cannot link with$SAN_CFLAGS: its sanitizer library is missing (Debian: apt install libgcc-12-dev, or libclang-rt-dev for clang)])])])
AC_SUBST([SAN_CFLAGS])
AM_CONDITIONAL([SANITIZER],[test -n "$SAN_CFLAGS"])
])
