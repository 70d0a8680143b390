/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) 2026 the shrimp authors */
/*
 * What libfabric finds when it loads the library: the one exported symbol.
 */
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "lib/fabric.h"
#include "lib/fork.h"
#include "lib/info.h"
#include "lib/settings.h"
#include "shm/log.h"

struct fi_provider shrimp_prov = {
	.version = SHRIMP_PROVIDER_VERSION,
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "shrimp",
	.getinfo = shrimp_getinfo,
	.fabric = shrimp_fabric_open,
	.cleanup = shrimp_cleanup,
};

/* The device's messages go where libfabric's go. */
static void to_fi_log(enum rnic_log_level level, const char *msg)
{
	switch (level) {
	case RNIC_LOG_WARN:
		FI_WARN(&shrimp_prov, FI_LOG_CORE, "%s\n", msg);
		break;
	case RNIC_LOG_INFO:
		FI_INFO(&shrimp_prov, FI_LOG_CORE, "%s\n", msg);
		break;
	default:
		FI_DBG(&shrimp_prov, FI_LOG_CORE, "%s\n", msg);
	}
}

/* Called by libfabric when it loads us; fi_provider(7). No side effects. */
__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	rnic_log_sink(to_fi_log);
	shrimp_settings_define();
	return &shrimp_prov;
}
