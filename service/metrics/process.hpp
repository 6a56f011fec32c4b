// SPDX-License-Identifier: Apache-2.0
// Metrics of this process, by the names that Prometheus' client libraries give them. Any thread.
#pragma once

#include "service/metrics/families.hpp"

namespace vfmgr {

void add_process_metrics(MetricFamilies& all);

}  // namespace vfmgr
