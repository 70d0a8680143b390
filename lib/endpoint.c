/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * Endpoint: open, bind, enable, options, close.
 *
 * Exclusion: bind and enable are the client's to serialise (fi_endpoint(3));
 * what polling threads read is written under ep->lock. Close takes the
 * endpoint out of every list that others poll it by (agent, CQs, counters,
 * AV), each under that list's lock, before it frees anything. What a sleeper
 * waits on, and the agent's part in it, changes under domain.lock.
 */
#include "lib/endpoint.h"

#include <errno.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "lib/agent.h"
#include "lib/atomic.h"
#include "lib/av.h"
#include "lib/cntr.h"
#include "lib/cq.h"
#include "lib/domain.h"
#include "lib/eq.h"
#include "lib/fabric.h"
#include "lib/fid.h"
#include "lib/info.h"
#include "lib/local.h"
#include "lib/msg.h"
#include "lib/progress.h"
#include "lib/refs.h"
#include "lib/rma.h"
#include "lib/rx.h"
#include "lib/service.h"
#include "lib/stats.h"
#include "lib/tx.h"
#include "lib/window.h"
#include "shm/reader.h"
#include "shm/log.h"
#include "shm/proc.h"

enum {
	MIN_MULTI = 64,	       /* FI_OPT_MIN_MULTI_RECV unless set */
	LINGER_NAP_NS = 50000, /* between looks while a close lingers */
};

/* ---- waiting ---- */

static int add_fd(const struct shrimp_ep *ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return fd < 0 || !epoll_ctl(ep->epfd, EPOLL_CTL_ADD, fd, &ev)
		       ? 0
		       : -FI_ENOMEM;
}

/* The epoll set over everything that may end a sleep, made when needed. */
static int open_wait(struct shrimp_ep *ep)
{
	int ret;

	if (ep->epfd >= 0)
		return 0;
	ep->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (ep->epfd < 0)
		return -FI_EMFILE;
	ret = add_fd(ep, ep->place.wake_rd);
	if (!ret)
		ret = add_fd(ep, rnic_proc_epoll_fd());
	if (!ret)
		ret = add_fd(ep, ep->domain->dev.sock);
	if (ret) {
		close(ep->epfd);
		ep->epfd = -1;
	}
	return ret;
}

/* open_wait() while others may do the same. */
static int wait_ready(struct shrimp_ep *ep)
{
	int ret;

	shrimp_domain_lock(ep->domain);
	ret = open_wait(ep);
	shrimp_domain_unlock(ep->domain);
	return ret;
}

int shrimp_ep_wait_fd(const struct shrimp_ep *ep)
{
	return ep->epfd;
}

/* ---- bind ---- */

static int bind_av(struct shrimp_ep *ep, struct shrimp_av *av)
{
	int ret;

	if (ep->av || av->domain != ep->domain)
		return -FI_EINVAL;
	ret = shrimp_av_attach_ep(av, ep);
	if (!ret)
		ep->av = av;
	return ret;
}

static int bind_cq(struct shrimp_ep *ep, struct shrimp_cq *cq, uint64_t flags)
{
	bool tx = flags & FI_TRANSMIT, rx = flags & FI_RECV;
	int ret;

	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) ||
	    !(tx || rx) || (tx && ep->tx_cq) || (rx && ep->rx_cq) ||
	    cq->domain != ep->domain)
		return -FI_EINVAL;
	ret = wait_ready(ep);
	if (!ret)
		ret = shrimp_cq_attach_ep(cq, ep);
	if (ret)
		return ret;
	shrimp_ep_lock(ep);
	if (tx) {
		ep->tx_cq = cq;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	if (rx) {
		ep->rx_cq = cq;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	shrimp_ep_unlock(ep);
	return 0;
}

/* Counters of RMA; peers are told to send events for the remote ones. */
static void bind_rma_cntr(struct shrimp_ep *ep, struct shrimp_cntr *c,
			  uint64_t flags)
{
	uint32_t mask = 0;

	if (flags & FI_READ)
		ep->rma_cntr[0] = c;
	if (flags & FI_WRITE)
		ep->rma_cntr[1] = c;
	if (flags & FI_REMOTE_READ)
		ep->remote_cntr[0] = c;
	if (flags & FI_REMOTE_WRITE)
		ep->remote_cntr[1] = c;
	if (ep->remote_cntr[0])
		mask |= RNIC_EVENT_READ;
	if (ep->remote_cntr[1])
		mask |= RNIC_EVENT_WRITE;
	/* relaxed: counts from when a peer sees it */
	rnic_store32_relaxed(&ep->place.head->event_mask, mask);
}

static int bind_cntr(struct shrimp_ep *ep, struct shrimp_cntr *c,
		     uint64_t flags)
{
	int ret;

	if (!flags || c->domain != ep->domain ||
	    ep->ncntrs == SHRIMP_CNTRS_MAX ||
	    flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
		      FI_REMOTE_WRITE) ||
	    (flags & FI_SEND && ep->tx_cntr) ||
	    (flags & FI_RECV && ep->rx_cntr) ||
	    (flags & FI_READ && ep->rma_cntr[0]) ||
	    (flags & FI_WRITE && ep->rma_cntr[1]) ||
	    (flags & FI_REMOTE_READ && ep->remote_cntr[0]) ||
	    (flags & FI_REMOTE_WRITE && ep->remote_cntr[1]))
		return -FI_EINVAL;
	ret = wait_ready(ep);
	if (!ret)
		ret = shrimp_cntr_attach_ep(c, ep);
	if (ret)
		return ret;
	shrimp_ep_lock(ep);
	if (flags & FI_SEND)
		ep->tx_cntr = c;
	if (flags & FI_RECV)
		ep->rx_cntr = c;
	bind_rma_cntr(ep, c, flags);
	ep->cntrs[ep->ncntrs++] = c;
	shrimp_ep_unlock(ep);
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct shrimp_ep *ep = (struct shrimp_ep *)fid;

	if (ep->domain->inherited)
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_AV:
		return bind_av(ep, (struct shrimp_av *)bfid);
	case FI_CLASS_CQ:
		return bind_cq(ep, (struct shrimp_cq *)bfid, flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, (struct shrimp_cntr *)bfid, flags);
	case FI_CLASS_EQ:
		if (ep->eq)
			return -FI_EINVAL;
		ep->eq = (struct shrimp_eq *)bfid;
		shrimp_ref_get(&ep->eq->refs);
		return 0;
	default:
		return -FI_EINVAL;
	}
}

/* ---- enable ---- */

static int check_bound(const struct shrimp_ep *ep)
{
	if (!ep->av)
		return -FI_ENOAV;
	if (!ep->tx_cq && !ep->rx_cq && !ep->ncntrs)
		return -FI_ENOCQ;
	return 0;
}

int shrimp_ep_serve(struct shrimp_ep *ep)
{
	int ret;

	if (ep->agent)
		return 0;
	ret = open_wait(ep);
	if (!ret)
		ret = shrimp_agent_watch(ep->domain, ep->epfd);
	if (ret)
		return ret;
	shrimp_ep_lock(ep);
	ep->agent = true;
	shrimp_ep_unlock(ep);
	return 0;
}

static int start_agent(struct shrimp_ep *ep)
{
	struct shrimp_domain *d = ep->domain;
	int ret = 0;

	if (d->progress == FI_PROGRESS_AUTO)
		ret = shrimp_agent_start(d);
	if (ret)
		return ret;
	shrimp_domain_lock(d);
	/* relaxed: d->lock is held */
	if (d->progress == FI_PROGRESS_AUTO || rnic_load32_relaxed(&d->serves))
		ret = shrimp_ep_serve(ep);
	shrimp_domain_unlock(d);
	return ret;
}

/* Offers the service. Not again if it was only the agent that failed then. */
static int offer(struct shrimp_ep *ep)
{
	int ret;

	if (!*ep->service || ep->service_fd >= 0)
		return 0;
	ret = shrimp_service_bind(ep->service, &ep->service_fd);
	if (ret || ep->epfd < 0)
		return ret;
	ret = add_fd(ep, ep->service_fd);
	if (ret) {
		close(ep->service_fd);
		ep->service_fd = -1;
	}
	return ret;
}

static int ep_enable(struct shrimp_ep *ep)
{
	bool kick;
	int ret;

	if (ep->enabled)
		return 0;
	ret = check_bound(ep);
	if (!ret)
		ret = offer(ep);
	if (!ret)
		ret = start_agent(ep);
	if (ret)
		return ret;
	shrimp_ep_lock(ep);
	ep->deaths = rnic_proc_generation();
	ep->ready = ep->enabled = true;
	kick = ep->agent;
	shrimp_ep_unlock(ep);
	if (kick)
		shrimp_agent_kick(ep->domain);
	return 0;
}

static int get_flags(const struct shrimp_ep *ep, uint64_t *flags)
{
	if (*flags & FI_TRANSMIT)
		*flags = ep->tx_flags;
	else if (*flags & FI_RECV)
		*flags = ep->rx_flags;
	else
		return -FI_EINVAL;
	return 0;
}

static int set_flags(struct shrimp_ep *ep, uint64_t flags)
{
	uint64_t dir = flags & (FI_TRANSMIT | FI_RECV);

	flags &= ~dir;
	if (dir == FI_TRANSMIT)
		ep->tx_flags = flags;
	else if (dir == FI_RECV)
		ep->rx_flags = flags;
	else
		return -FI_EINVAL;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct shrimp_ep *ep = (struct shrimp_ep *)fid;

	if (ep->domain->inherited)
		return -FI_EOPBADSTATE;
	switch (command) {
	case FI_ENABLE:
		return ep_enable(ep);
	case FI_GETOPSFLAG:
		return get_flags(ep, arg);
	case FI_SETOPSFLAG:
		return set_flags(ep, *(uint64_t *)arg);
	default:
		return -FI_ENOSYS;
	}
}

/* ---- close ---- */

/* Gives what lies in our memory time to be fetched. */
static void linger(struct shrimp_ep *ep)
{
	const struct timespec nap = { .tv_nsec = LINGER_NAP_NS };
	uint64_t until = shrimp_now_ms() + ep->domain->set->linger_ms;
	bool more = ep->ready;

	while (more && shrimp_now_ms() < until) {
		shrimp_ep_lock(ep);
		more = shrimp_tx_lingers(ep);
		shrimp_ep_unlock(ep);
		if (!more)
			break;
		shrimp_ep_progress(ep, NULL);
		ep->slow_ms = 0;
		nanosleep(&nap, NULL);
	}
}

/* Out of every list by which another thread polls this endpoint. */
static void unlist(struct shrimp_ep *ep)
{
	struct shrimp_domain *d = ep->domain;

	shrimp_domain_lock(d);
	cds_list_del(&ep->in_dom);
	shrimp_stats_close_ep(d, ep->stats);
	shrimp_domain_unlock(d);
	if (ep->tx_cq)
		shrimp_cq_detach_ep(ep->tx_cq, ep);
	if (ep->rx_cq)
		shrimp_cq_detach_ep(ep->rx_cq, ep);
	for (size_t i = 0; i < ep->ncntrs; i++)
		shrimp_cntr_detach_ep(ep->cntrs[i], ep);
	if (ep->av)
		shrimp_av_detach_ep(ep->av, ep);
}

static void ep_free(struct shrimp_ep *ep)
{
	rnic_match_fini(&ep->tagged);
	rnic_match_fini(&ep->msg);
	shrimp_names_fini(&ep->in_names);
	shrimp_slab_fini(&ep->inbounds);
	shrimp_slab_fini(&ep->recvs);
	if (ep->epfd >= 0)
		close(ep->epfd);
	if (ep->service_fd >= 0)
		close(ep->service_fd);
	if (ep->eq)
		shrimp_ref_put(&ep->eq->refs);
	shrimp_ref_put(&ep->domain->refs);
	free(ep);
}

static int ep_close(struct fid *fid)
{
	struct shrimp_ep *ep = (struct shrimp_ep *)fid;

	if (ep->domain->inherited)
		return -FI_EOPBADSTATE;
	linger(ep);
	unlist(ep);
	shrimp_ep_lock(ep);
	ep->ready = false;
	/* what is still under way ends without a word: nobody reads it */
	ep->tx_cq = ep->rx_cq = NULL;
	ep->tx_cntr = ep->rx_cntr = NULL;
	memset(ep->rma_cntr, 0, sizeof(ep->rma_cntr));
	memset(ep->remote_cntr, 0, sizeof(ep->remote_cntr));
	shrimp_window_abandon(ep);
	shrimp_rx_drop(ep);
	shrimp_rx_fini(ep);
	shrimp_tx_fini(ep);
	if (ep->ctx)
		rnic_ctx_fini(ep->ctx);
	free(ep->ctx);
	shrimp_ep_unlock(ep);
	rnic_place_close(&ep->place);
	ep_free(ep);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = shrimp_no_ops_open,
	.tostr = shrimp_no_tostr,
	.ops_set = shrimp_no_ops_set,
};

/* ---- fi_ops_ep ---- */

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct shrimp_ep *ep = (struct shrimp_ep *)fid;
	int ret;

	shrimp_ep_lock(ep);
	ret = ep->ready ? shrimp_rx_cancel(ep, context) : -FI_EOPBADSTATE;
	if (ret == -FI_ENOENT)
		ret = shrimp_tx_cancel(ep, context);
	shrimp_ep_unlock(ep);
	return ret;
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval,
		     size_t *optlen)
{
	struct shrimp_ep *ep = (struct shrimp_ep *)fid;

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*optlen < sizeof(size_t))
		return -FI_ETOOSMALL;
	memcpy(optval, &ep->min_multi, sizeof(size_t));
	*optlen = sizeof(size_t);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval,
		     size_t optlen)
{
	struct shrimp_ep *ep = (struct shrimp_ep *)fid;

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (optlen != sizeof(size_t))
		return -FI_EINVAL;
	shrimp_ep_lock(ep);
	memcpy(&ep->min_multi, optval, sizeof(size_t));
	shrimp_ep_unlock(ep);
	return 0;
}

static int no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		     struct fid_ep **tx, void *context)
{
	(void)sep, (void)index, (void)attr, (void)tx, (void)context;
	return -FI_ENOSYS;
}

static int no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		     struct fid_ep **rx, void *context)
{
	(void)sep, (void)index, (void)attr, (void)rx, (void)context;
	return -FI_ENOSYS;
}

static ssize_t ep_rx_left(struct fid_ep *fid)
{
	return shrimp_ep_of(fid)->ready ? SHRIMP_RX_SIZE : -FI_EOPBADSTATE;
}

static ssize_t ep_tx_left(struct fid_ep *fid)
{
	struct shrimp_ep *ep = shrimp_ep_of(fid);
	ssize_t left;

	if (!ep->ready)
		return -FI_EOPBADSTATE;
	shrimp_ep_lock(ep);
	left = (ssize_t)(SHRIMP_QUEUE_MAX - ep->queued);
	shrimp_ep_unlock(ep);
	return left < SHRIMP_TX_SIZE ? left : SHRIMP_TX_SIZE;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = no_tx_ctx,
	.rx_ctx = no_rx_ctx,
	.rx_size_left = ep_rx_left,
	.tx_size_left = ep_tx_left,
};

/* ---- fi_ops_cm: names only ---- */

static int cm_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct shrimp_ep *ep = (struct shrimp_ep *)fid;
	size_t room = *addrlen;

	if (ep->domain->inherited)
		return -FI_EOPBADSTATE;
	*addrlen = sizeof(ep->addr);
	if (addr)
		memcpy(addr, &ep->addr,
		       room < sizeof(ep->addr) ? room : sizeof(ep->addr));
	return addr && room >= sizeof(ep->addr) ? 0 : -FI_ETOOSMALL;
}

static int cm_setname(fid_t fid, void *addr, size_t addrlen)
{
	(void)fid, (void)addr, (void)addrlen;
	return -FI_ENOSYS;
}

static int cm_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	(void)ep, (void)addr, (void)addrlen;
	return -FI_ENOSYS;
}

static int cm_connect(struct fid_ep *ep, const void *addr, const void *param,
		      size_t len)
{
	(void)ep, (void)addr, (void)param, (void)len;
	return -FI_ENOSYS;
}

static int cm_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

static int cm_accept(struct fid_ep *ep, const void *param, size_t len)
{
	(void)ep, (void)param, (void)len;
	return -FI_ENOSYS;
}

static int cm_reject(struct fid_pep *pep, fid_t handle, const void *param,
		     size_t len)
{
	(void)pep, (void)handle, (void)param, (void)len;
	return -FI_ENOSYS;
}

static int cm_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep, (void)flags;
	return -FI_ENOSYS;
}

static int cm_join(struct fid_ep *ep, const void *addr, uint64_t flags,
		   struct fid_mc **mc, void *context)
{
	(void)ep, (void)addr, (void)flags, (void)mc, (void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cm_setname,
	.getname = cm_getname,
	.getpeer = cm_getpeer,
	.connect = cm_connect,
	.listen = cm_listen,
	.accept = cm_accept,
	.reject = cm_reject,
	.shutdown = cm_shutdown,
	.join = cm_join,
};

/* ---- open ---- */

/* The service an info of fi_getinfo(node, service, FI_SOURCE) names. */
static void take_service(struct shrimp_ep *ep, const struct fi_info *info)
{
	const struct rnic_addr *a = info->src_addr;

	if (!a || info->src_addrlen != sizeof(*a) ||
	    a->magic != RNIC_MAGIC_ADDR || a->kind != RNIC_ADDR_SERVICE)
		return;
	memcpy(ep->service, a->service, sizeof(ep->service) - 1);
}

static void fill(struct shrimp_ep *ep, struct shrimp_domain *d,
		 const struct fi_info *info, void *context)
{
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &fid_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &shrimp_msg_ops;
	ep->fid.tagged = &shrimp_tagged_ops;
	ep->fid.rma = &shrimp_rma_ops;
	ep->fid.atomic = &shrimp_atomic_ops;
	ep->fid.collective = &shrimp_collective_ops;
	if (d->mr_mode & FI_MR_LOCAL)
		shrimp_local_protect(&ep->fid);
	ep->domain = d;
	ep->caps = info->caps;
	ep->directed = info->caps & FI_DIRECTED_RECV;
	ep->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->min_multi = MIN_MULTI;
	ep->spin = d->set->spin;
	ep->src_id = RNIC_SRC_ANY;
	ep->cq_max = d->set->cq_max;
	ep->epfd = ep->service_fd = ep->nap_fd = -1;
	rnic_spin_init(&ep->lock);
	take_service(ep, info);
}

static void init_lists(struct shrimp_ep *ep)
{
	ep->ops.size = sizeof(struct shrimp_op);
	ep->recvs.size = sizeof(struct shrimp_recv);
	ep->inbounds.size = sizeof(struct shrimp_inbound);
	CDS_INIT_LIST_HEAD(&ep->active);
	CDS_INIT_LIST_HEAD(&ep->claimed);
	CDS_INIT_LIST_HEAD(&ep->pulls);
	CDS_INIT_LIST_HEAD(&ep->fencing);
}

static void leave_dead_lanes(struct shrimp_domain *d, void *arg)
{
	struct shrimp_ep *ep;

	(void)arg;
	shrimp_domain_lock(d);
	cds_list_for_each_entry (ep, &d->eps, in_dom) {
		shrimp_ep_lock(ep);
		if (ep->ready)
			shrimp_tx_reap(ep);
		shrimp_ep_unlock(ep);
	}
	shrimp_domain_unlock(d);
}

/*
 * Opens a place. If all are taken, some may be closed ones that their senders
 * have not yet left: makes those of this process look, and gives the others,
 * who look by themselves, some time.
 */
static int open_place(struct shrimp_ep *ep)
{
	static const struct timespec step = { .tv_nsec = 5000000 };
	struct rnic_device *dev = &ep->domain->dev;
	int ret = rnic_place_open(dev, &ep->place);

	/* a sender that does not progress ends no wait: this one has an end */
	for (int n = 0; ret == -ENOSPC && n < 60; n++) {
		if (n) {
			if (!rnic_device_rests(dev))
				break;
			nanosleep(&step, NULL);
		}
		shrimp_domain_each(leave_dead_lanes, NULL);
		ret = rnic_place_open(dev, &ep->place);
	}
	if (ret == -ENOSPC)
		rnic_log(RNIC_LOG_WARN,
			 "endpoint: all %d places of the device are in use, "
			 "or closed and not yet left by their senders",
			 RNIC_EP_MAX);
	return ret;
}

int shrimp_ep_open(struct fid_domain *domain, struct fi_info *info,
		   struct fid_ep **out, void *context)
{
	struct shrimp_domain *d = shrimp_domain_of(domain);
	struct shrimp_ep *ep;
	int ret;

	if (d->inherited)
		return -FI_EOPBADSTATE;
	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_RDM ||
	    (info->tx_attr && info->tx_attr->inject_size > SHRIMP_INJECT_SIZE))
		return -FI_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	fill(ep, d, info, context);
	init_lists(ep);
	ret = rnic_match_init(&ep->tagged);
	if (!ret)
		ret = rnic_match_init(&ep->msg);
	if (!ret)
		ret = open_place(ep);
	if (ret) {
		rnic_match_fini(&ep->tagged);
		rnic_match_fini(&ep->msg);
		free(ep);
		return ret;
	}
	rnic_place_addr(&ep->place, &ep->addr);
	ep->stats = ep->place.stats;
	shrimp_ref_get(&d->refs);
	shrimp_domain_lock(d);
	cds_list_add_tail(&ep->in_dom, &d->eps);
	shrimp_domain_unlock(d);
	*out = &ep->fid;
	return 0;
}

void shrimp_ep_forget(struct shrimp_ep *ep, fi_addr_t a)
{
	shrimp_ep_lock(ep);
	if (a < ep->ntx)
		ep->tx[a] = NULL;
	shrimp_ep_unlock(ep);
}
