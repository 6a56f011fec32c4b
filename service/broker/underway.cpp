// SPDX-License-Identifier: Apache-2.0
#include "service/broker/underway.hpp"

#include <algorithm>

namespace vfmgr::broker {

StepSubject subject_of(Request const& request) {
    if (request.step) return vfmgr::subject_of(*request.step);
    if (request.vm_uuid) return *request.vm_uuid;
    if (request.host_network) return KernelSubject(HostNetwork{});
    if (request.pf) return KernelSubject(*request.pf);
    return {};
}

bool StepsUnderway::await_others(StepSubject const& subject, std::uint64_t connection,
                                 Deadline deadline) {
    std::unique_lock lock(mutex_);
    return ended_.wait_until(lock, deadline, [&] {
        auto const [first, last] = steps_.equal_range(subject);
        return std::all_of(first, last, [&](auto const& one) { return one.second == connection; });
    });
}

Held StepsUnderway::begin(StepSubject const& subject, std::uint64_t connection) {
    std::lock_guard const lock(mutex_);
    auto const place = steps_.emplace(subject, connection);
    return held([this, place] {
        std::lock_guard const ending(mutex_);
        steps_.erase(place);
        ended_.notify_all();
    });
}

}  // namespace vfmgr::broker
