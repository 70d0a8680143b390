/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Refresh: the pages behind a region are others by now (contract I5).
 *
 *   suspend (region, windows) -> fence -> pin, translate -> change (both)
 *
 * Nobody resolves the key, or that of a window onto it, between the first step
 * and the last; whoever had resolved it has finished before the second ends.
 * If the third fails the key stays as it is, without a meaning, until another
 * refresh or the close. Of a region on demand the third step only drops the
 * translations of what is to be refreshed: the pages come at their next touch.
 */
#include <errno.h>
#include <rdma/fi_errno.h>

#include "lib/agent.h"
#include "lib/domain.h"
#include "lib/local.h"
#include "lib/mr.h"
#include "lib/odp.h"
#include "lib/window.h"
#include "shm/grace.h"
#include "shm/pin.h"

/* True if @v lies in one of the ranges of @mr. */
static bool inside(const struct shrimp_mr *mr, const struct iovec *v)
{
	uintptr_t at = (uintptr_t)v->iov_base;

	for (size_t i = 0; i < mr->niov; i++) {
		uintptr_t off = at - (uintptr_t)mr->iov[i].iov_base;

		if (off < mr->iov[i].iov_len && v->iov_len &&
		    v->iov_len <= mr->iov[i].iov_len - off)
			return true;
	}
	return false;
}

static int check(const struct shrimp_mr *mr, const struct iovec *iov, size_t n)
{
	if (mr->window || mr->keeper || (n && !iov))
		return -FI_EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!inside(mr, &iov[i]))
			return -FI_EINVAL;
	return 0;
}

/* Makes keys and descriptor meaningless. *@grace: to wait for, 0: nothing. */
static int suspend(struct shrimp_mr *mr, uint64_t *grace)
{
	struct shrimp_domain *d = mr->domain;
	int ret = 0;

	*grace = 0;
	pthread_mutex_lock(&d->mr_lock);
	if (mr->changing || mr->leaving) {
		ret = -FI_EBUSY;
		goto out;
	}
	if (mr->live && !mr->broken)
		rnic_mpt_suspend(&d->mpt, mr->slot);
	shrimp_local_hide(mr);
	shrimp_windows_suspend(mr);
	if (mr->live && mr->region.rights & RNIC_MR_GIVEN)
		*grace = rnic_grace_want(&d->dev, mr->slot);
	mr->changing = mr->broken = true;
out:
	pthread_mutex_unlock(&d->mr_lock);
	return ret;
}

/* What is there now is looked at, and locked; its file is found. */
static int pin_again(struct shrimp_mr *mr, size_t i)
{
	struct iovec *v = &mr->iov[i];
	enum rnic_pin_policy policy = mr->domain->set->pin;
	struct rnic_vma map;
	int ret = rnic_pin_check_map(v->iov_base, v->iov_len,
				     shrimp_mr_prot(mr->access), &map);

	if (ret)
		return ret;
	shrimp_mr_unlocate(mr, i);
	if (!(mr->pinned >> i & 1))
		return shrimp_mr_pin_one(mr, i, &map);
	ret = rnic_pin_renew(v->iov_base, v->iov_len, policy);
	if (!ret && map.shared && mr->region.rights & RNIC_MR_GIVEN)
		rnic_space_get(&mr->domain->dev.spaces, &map,
			       (uintptr_t)v->iov_base, v->iov_len,
			       &mr->leaf[i]);
	return ret;
}

/* The new translation, in place of the old one, which nobody uses. */
static int translate_again(struct shrimp_mr *mr)
{
	struct shrimp_domain *d = mr->domain;
	struct rnic_region old = mr->region;
	int ret = 0;

	/* nobody is inside: another watch is begun for what is there now */
	shrimp_odp_leave(mr);
	mr->region.rights &= ~(uint32_t)RNIC_MR_WATCHED;
	for (size_t i = 0; i < mr->niov && !ret && !shrimp_mr_unseen(mr); i++)
		ret = pin_again(mr, i);
	if (!ret)
		ret = shrimp_mr_translate(mr);
	if (ret)
		return ret;
	ret = shrimp_mr_watch(mr);
	if (old.rights & RNIC_MR_LIST)
		rnic_mtt_list_free(&d->mtt, old.mtt, rnic_grace_now(&d->dev));
	else
		rnic_mtt_free(&d->mtt, old.mtt, rnic_grace_now(&d->dev));
	return ret;
}

/*
 * What is to be done while nobody is inside, neither a reader nor the monitor
 * with what windows were.
 */
static int renew(struct shrimp_mr *mr, const struct iovec *iov, size_t n)
{
	int ret;

	shrimp_odp_pass(mr->domain);
	if (mr->demand) {
		shrimp_odp_renew(mr, iov, n);
		return 0;
	}
	ret = translate_again(mr);
	if (!ret)
		shrimp_windows_watch(mr);
	return ret;
}

/* Ends suspend(): with @ret 0 keys and descriptor have a meaning again. */
static void resume(struct shrimp_mr *mr, int ret)
{
	struct shrimp_domain *d = mr->domain;

	pthread_mutex_lock(&d->mr_lock);
	mr->changing = false;
	mr->broken = ret;
	if (!ret && mr->live) {
		rnic_mpt_rewrite(&d->mpt, mr->slot, &mr->region);
		shrimp_odp_live(mr);
		rnic_mpt_show(&d->mpt, mr->slot);
	}
	if (!ret && mr->enabled)
		shrimp_local_show(mr);
	if (!ret)
		shrimp_windows_resume(mr);
	pthread_mutex_unlock(&d->mr_lock);
}

int shrimp_mr_refresh(struct shrimp_mr *mr, const struct iovec *iov, size_t n)
{
	struct shrimp_domain *d = mr->domain;
	uint64_t grace;
	int ret = check(mr, iov, n);

	if (!ret)
		ret = suspend(mr, &grace);
	if (ret)
		return ret;
	if (grace)
		ret = rnic_grace_wait(&d->dev, grace);
	if (!ret)
		ret = renew(mr, iov, n);
	/* what peers mapped may be reached by its address only now */
	if (!ret && mr->live && shrimp_mr_needs_agent(mr))
		ret = shrimp_agent_serve(d);
	resume(mr, ret);
	shrimp_domain_reap(d);
	return ret;
}
