/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * The models, one file each.
 */
#ifndef DOC_MODEL_MODELS_H
#define DOC_MODEL_MODELS_H

#include "doc/model/explorer.h"

extern const struct model model_bump;	     /* versions have two writers */
extern const struct model model_coalesce;    /* grace periods are shared */
extern const struct model model_contexts;    /* threads of one endpoint */
extern const struct model model_death;	     /* readers die inside */
extern const struct model model_late;	     /* a key beside the monitor */
extern const struct model model_litmus;	     /* the explorer itself */
extern const struct model model_owner_fence; /* the owner's fence */
extern const struct model model_index;	     /* keys that users chose */
extern const struct model model_paging;	     /* pages come at the first touch */
extern const struct model model_publish;     /* an entry of the table */
extern const struct model model_rebind;	     /* one key, two meanings */
extern const struct model model_reuse;	     /* one slot, several keys */
extern const struct model model_wake;	     /* parked lanes and doorbells */
extern const struct model model_window;	     /* windows on a region */

#endif /* DOC_MODEL_MODELS_H */
