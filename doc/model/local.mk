# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the shrimp authors

# Models of the protocols, all interleavings. They use nothing of the library.

EXTRA_PROGRAMS += doc/model/models
doc_model_models_SOURCES = \
	doc/model/bump.c \
	doc/model/coalesce.c \
	doc/model/contexts.c \
	doc/model/death.c \
	doc/model/explorer.c \
	doc/model/explorer.h \
	doc/model/fence.c \
	doc/model/index.c \
	doc/model/late.c \
	doc/model/litmus.c \
	doc/model/memory.c \
	doc/model/memory.h \
	doc/model/models.c \
	doc/model/models.h \
	doc/model/owner.c \
	doc/model/owner.h \
	doc/model/paging.c \
	doc/model/publish.c \
	doc/model/reader.c \
	doc/model/reader.h \
	doc/model/rebind.c \
	doc/model/reuse.c \
	doc/model/unmap.c \
	doc/model/unmap.h \
	doc/model/wake.c \
	doc/model/window.c
doc_model_models_LDADD =
CLEANFILES += doc/model/models$(EXEEXT)

# Some 6 s of CPU time; models.c has the limit. MODELS: only those.
MODELS =
check-model: doc/model/models$(EXEEXT)
	@SHRIMP_SRCDIR='$(abs_top_srcdir)' SHRIMP_SANITIZED='$(SAN_CFLAGS)' \
	$(top_srcdir)/tools/run-test doc/model/models$(EXEEXT) $(MODELS)

# Where time is short, and with sanitizers, which have little to find in one
# thread that shares nothing, a few.
check-local:
	@case '$(SAN_CFLAGS)$(SHRIMP_QUICK)' in \
	'') models= ;; \
	*) models='litmus publish index death' ;; \
	esac; \
	$(MAKE) $(AM_MAKEFLAGS) check-model MODELS="$$models"

.PHONY: check-model
