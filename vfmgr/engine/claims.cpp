// SPDX-License-Identifier: Apache-2.0
// Decides who may go on, and when: claims on what an operation changes, places for operations,
// turns of clients, and the gate of kernel steps. Any thread.
#include "vfmgr/engine/claims.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/engine/timing.hpp"

namespace vfmgr {
namespace {

struct KeyText {
    std::string operator()(PciAddress const& pf) const { return "pf " + to_string(pf); }
    std::string operator()(VfId const& vf) const { return "vf " + to_string(vf); }
    std::string operator()(VmKey const& vm) const { return "vm " + vm.uuid; }
    std::string operator()(RdmaLinkKey const& link) const { return "rdma link " + link.name; }
    std::string operator()(NetdevKey const& netdev) const { return "netdev " + netdev.ifname; }
};

std::string sentence(ClaimKeys const& keys) {
    std::vector<std::string> names;
    for (auto const& key : keys) names.push_back(to_string(key));
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string to_string(ClaimKey const& key) {
    return std::visit(KeyText{}, key);
}

ClaimKeys claims_on(Attachment const& attachment) {
    ClaimKeys keys{attachment.vf.pf};
    if (!attachment.holder) keys.insert(VmKey{attachment.vm_uuid});
    return keys;
}

Held Claims::take(ClaimKeys keys) {
    return *take(std::move(keys), [] { return false; });
}

std::optional<Held> Claims::take(ClaimKeys keys, std::function<bool()> const& give_up) {
    auto const span = timed(SpanKind::claim, sentence(keys));
    std::unique_lock lock(mutex_);
    bool given_up = false;
    freed_.wait(lock, [&] {
        given_up = give_up();
        return given_up || std::ranges::none_of(
                               keys, [&](ClaimKey const& key) { return taken_.contains(key); });
    });
    if (given_up) return std::nullopt;
    taken_.insert(keys.begin(), keys.end());
    meanwhile_.insert(keys.begin(), keys.end());
    lock.unlock();  // if there is no memory, held() frees the keys at once
    return held([this, keys = std::move(keys)] { free(keys); });
}

void Claims::look_again() {
    // Under the lock: a thread that has just asked `give_up` must not miss this.
    std::lock_guard const lock(mutex_);
    freed_.notify_all();
}

void Claims::observation_begins() {
    std::lock_guard const lock(mutex_);
    meanwhile_ = taken_;
}

ClaimKeys Claims::taken_meanwhile() const {
    std::lock_guard const lock(mutex_);
    return meanwhile_;
}

void Claims::free(ClaimKeys const& keys) {
    {
        std::lock_guard const lock(mutex_);
        for (auto const& key : keys) taken_.erase(key);
    }
    freed_.notify_all();
    notify_freed_();
}

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

void Cancellations::begin(std::string const& operation) {
    std::lock_guard const lock(mutex_);
    underway_.emplace(operation, false);
}

void Cancellations::end(std::string const& operation) {
    std::lock_guard const lock(mutex_);
    underway_.erase(operation);
}

bool Cancellations::request(std::string const& operation) {
    std::lock_guard const lock(mutex_);
    auto const found = underway_.find(operation);
    if (found == underway_.end()) return false;
    found->second = true;
    return true;
}

bool Cancellations::requested(std::string const& operation) const {
    std::lock_guard const lock(mutex_);
    auto const found = underway_.find(operation);
    return found != underway_.end() && found->second;
}

Held StepGate::enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !shut_; });
    ++underway_;
    lock.unlock();  // as in Claims::take()
    return held([this] {
        std::lock_guard const leaving(mutex_);
        --underway_;
        changed_.notify_all();
    });
}

void StepGate::shut() {
    std::unique_lock lock(mutex_);
    shut_ = true;
    changed_.wait(lock, [this] { return underway_ == 0; });
}

void StepGate::open() {
    std::lock_guard const lock(mutex_);
    shut_ = false;
    changed_.notify_all();
}

}  // namespace vfmgr
