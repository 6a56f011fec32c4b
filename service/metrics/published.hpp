// SPDX-License-Identifier: Apache-2.0
// Metrics of what is published: the host as it was observed, and what is desired. Pure. Labels are
// PCI addresses, VF numbers, and values of enums, so the hardware bounds their number; VMs and
// attachments, which come and go, are no labels.
#pragma once

#include "service/metrics/families.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

[[nodiscard]] MetricFamilies published_metrics(Snapshot const& now);
// Returns counters of VFs' traffic and of PFs' RDMA devices; none for a PF that could not be read.
[[nodiscard]] MetricFamilies traffic_metrics(std::vector<PfTraffic> const& traffic);

}  // namespace vfmgr
