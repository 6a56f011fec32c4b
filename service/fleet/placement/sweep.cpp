// SPDX-License-Identifier: Apache-2.0
// What the scheduler does by itself: reservations that nobody works on are compared with their
// hosts' word.
#include "service/fleet/placement/scheduler.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::chrono::seconds sweep_every{1};
// A host that does not list one is asked about it again after this time.
constexpr std::chrono::seconds ask_again{10};
constexpr std::size_t settled_at_once_max = 64;

}  // namespace

// One look at all that is known.
struct Scheduler::Known {
    std::shared_ptr<State const> state;
    std::shared_ptr<InventoryView const> view;
};

void Scheduler::start() {
    thread_ = std::make_unique<OwnThread>(
        [this] {
            sweep();
            return seams_.timing.clock.steady_now() + sweep_every;
        },
        [] {});
}

void Scheduler::stop() {
    thread_.reset();
}

// What its host lists goes on. A host that does not answer is not asked, but one whose time is over
// for long does not keep anything.
bool Scheduler::is_due(Known const& known, std::string const& name,
                       ReservationRecord const& record) {
    auto const now = seams_.timing.clock.now();
    bool const over = record.expires_at + expiry_margin <= now;
    if (!over) {
        if (listed(*known.view, record.host, name)) return false;
        auto const* const part = known.view->find(record.host);
        bool const silent = part && part->stale && part->stale->why == StaleWhy::unreachable;
        if (silent && known.state->hosts->contains(record.host)) return false;
    }
    if (in_use_.contains(name)) return false;
    std::lock_guard const lock(mutex_);
    auto const steady = seams_.timing.clock.steady_now();
    auto const [at, first] = asked_at_.try_emplace(name, steady);
    if (!first && steady - at->second < ask_again) return false;
    at->second = steady;
    return true;
}

void Scheduler::settle_one(Revision fence, Known const& known, std::string const& name,
                           ReservationRecord const& record) {
    NamesInUse::Use const use(in_use_, name);
    if (!use.check()) return;
    bool const over = record.expires_at + expiry_margin <= seams_.timing.clock.now();
    if (!over && known.state->hosts->contains(record.host)) {
        auto const word = ask(record.host, show_request(name, fence));
        auto const* const refusal = std::get_if<HostRefusal>(&word);
        if (!refusal || refusal->why.problem != Problem::not_found) return;
    }
    if (erase_record(fence, name, record.act)) forget(name);
}

void Scheduler::sweep() {
    auto const fence = seams_.fence();
    if (!fence) return;
    if (!follow_fence(*fence)) return;
    Known const known{seams_.state(), seams_.inventory()};
    if (known.state->stale_since) return;
    std::size_t settled = 0;
    for (auto const& [name, stored] : *known.state->reservations) {
        if (settled == settled_at_once_max) break;
        if (!is_due(known, name, stored.record)) continue;
        settle_one(*fence, known, name, stored.record);
        ++settled;
    }
    std::lock_guard const lock(mutex_);
    forget_reported(*known.view, *known.state);
    std::erase_if(asked_at_, [&](auto const& each) {
        return !known.state->reservations->contains(each.first);
    });
}

}  // namespace vfmgr::fleet
