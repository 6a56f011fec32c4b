// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/places.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr {

Result<void> Places::enter(std::string const& operation, PlaceRequest const& desired) {
    std::lock_guard const lock(mutex_);
    auto const count = [this](auto const& which) {
        return static_cast<std::size_t>(
            std::ranges::count_if(taken_, [&](auto const& one) { return which(one.second); }));
    };
    bool const detaches = desired.work == PlaceRequest::Work::detaches;
    auto const working = count([&](PlaceRequest const& one) { return one.work == desired.work; });
    if (desired.work != PlaceRequest::Work::none &&
        working >= (detaches ? limits_.detaching_max : limits_.changing_max))
        return fail(Problem::unavailable,
                    fmt::format("{} operations are already {}", working,
                                detaches ? "detaching VFs" : "running"),
                    "try again when some have ended");
    if (desired.vm) {
        auto const of_it = count([&](PlaceRequest const& one) { return one.vm == desired.vm; });
        if (of_it >= limits_.waiting_of_a_vm_max)
            return fail(Problem::unavailable,
                        fmt::format("{} operations already wait for VM {}", of_it, *desired.vm),
                        "try again when some have ended, and check in the VM why it does not "
                        "report: vf-guest status");
        auto const waiting = count([](PlaceRequest const& one) { return one.vm.has_value(); });
        if (waiting >= limits_.waiting_max)
            return fail(Problem::unavailable,
                        fmt::format("{} operations already wait for VMs", waiting),
                        "try again when some have ended");
    }
    taken_.emplace(operation, desired);
    return {};
}

void Places::set_work(std::string const& operation, PlaceRequest::Work work) {
    std::lock_guard const lock(mutex_);
    if (auto const found = taken_.find(operation); found != taken_.end()) found->second.work = work;
}

void Places::rest(std::string const& operation) {
    set_work(operation, PlaceRequest::Work::none);
}

void Places::resume(std::string const& operation) {
    set_work(operation, PlaceRequest::Work::changes);
}

void Places::leave(std::string const& operation) {
    std::lock_guard const lock(mutex_);
    taken_.erase(operation);
}

}  // namespace vfmgr
