// SPDX-License-Identifier: Apache-2.0
// Metrics of what the daemon itself has to do, and of what it takes from the host. Values; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "service/guest/messages.hpp"
#include "service/metrics/families.hpp"

namespace vfmgr {

// In bytes; absent: it could not be read.
struct StoreSize {
    std::optional<std::uint64_t> used;  // the database with its log
    std::optional<std::uint64_t> free;  // in its file system, for vfmgrd
};
[[nodiscard]] StoreSize store_size(std::string const& store_file);

struct ServiceLoad {
    std::optional<guestd::Load> guests;  // absent: vfmgr-guestd does not answer
    StoreSize store;
};
// Also of this process, by the names that Prometheus' client libraries give them.
[[nodiscard]] MetricFamilies load_metrics(ServiceLoad const& load);

}  // namespace vfmgr
