// SPDX-License-Identifier: Apache-2.0
// In place of counted.cpp in portable programs: no distribution but Debian's family has
// prometheus-cpp, and Debian has it as a shared library only.
#include "service/metrics/counted.hpp"

namespace vfmgr {

struct Metrics::Counted {};

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

void Metrics::operation_ended(Operation const&) {}
void Metrics::emitted(std::vector<Event> const&) {}
void Metrics::answered(Endpoint const*, std::string const&, unsigned) {}

Result<std::string> Metrics::text(MetricFamilies const&) const {
    return fail({Problem::unsupported, "this vfmgrd is built without metrics",
                 "install vfmgr's package for Debian; the portable one has no metrics"});
}

}  // namespace vfmgr
