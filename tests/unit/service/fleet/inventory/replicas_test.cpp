// SPDX-License-Identifier: Apache-2.0
// Two replicas receive the same hosts' events at different times; a client follows one of them, is
// cut, and goes on at either. However that interleaves: it gets each event at least once and each
// host's in order, from where it began or last listed that host again.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>

#include "tests/unit/service/fleet/inventory/event_texts.hpp"
#include "tests/unit/service/fleet/inventory/host_texts.hpp"

namespace vfmgr::fleet {
namespace {

using namespace tests;
using Due = http::Stream::Due;

constexpr std::uint32_t hosts = 3;

struct Emitted {
    std::uint64_t number = 0;
    bool matches = true;
};

struct Replica {
    FleetEvents events;
    std::array<std::size_t, hosts + 1> received{};  // of the host's events
    std::array<bool, hosts + 1> follows{};
};

class Fleet {
  public:
    explicit Fleet(FleetEventLimits limits, bool filters) : limits_(limits), filters_(filters) {
        for (auto& replica : replicas_) start(replica);
    }
    void emit(std::uint32_t host, int count, bool matches) {
        for (int i = 0; i < count; ++i) {
            last_[host] += matches ? 1 : 2;  // numbers have gaps
            emitted_[host].push_back({last_[host], matches});
        }
    }
    // The replica's follower of the host takes what is on its way to it.
    void receive(std::size_t at, std::uint32_t host, std::size_t count) {
        auto& replica = replicas_[at];
        if (!replica.follows[host]) return follow(replica, host);
        auto& received = replica.received[host];
        for (; count > 0 && received < emitted_[host].size(); --count) {
            auto const& one = emitted_[host][received++];
            replica.events.append(host,
                                  host_event(one.number, one.matches ? "vm_started" : "drift"));
        }
    }
    // Heartbeats are in order with the events.
    void hear(std::size_t at, std::uint32_t host) {
        auto& replica = replicas_[at];
        if (!replica.follows[host]) return;
        replica.events.hear(host, number_at(host, replica.received[host]));
    }
    // Its follower was away for too long, or for a moment.
    void miss(std::size_t at, std::uint32_t host) { follow(replicas_[at], host); }
    void kill(std::size_t at) {
        start(replicas_[at]);
        if (at == serving_) connect(1 - at);
    }
    void connect(std::size_t at) {
        serving_ = at;
        FleetEventFilter filter;
        if (filters_) filter.kinds = {EventKind::vm_started};
        reader_.emplace(std::move(filter), client_.place());
    }
    void pass(int milliseconds) { now_ += std::chrono::milliseconds(milliseconds); }
    // False: nothing came.
    bool pull(Due due) {
        auto const& events = replicas_[serving_].events;
        auto const frames = reader_->next(events, due, now_);
        if (!frames) {
            connect(serving_);
            return true;
        }
        for (auto const& one : client_.take(*frames)) check(one, events);
        return !frames->empty();
    }
    // All has come everywhere.
    void settle() {
        for (std::size_t at = 0; at < replicas_.size(); ++at)
            for (std::uint32_t host = 1; host <= hosts; ++host) {
                receive(at, host, 0);
                receive(at, host, emitted_[host].size());
                hear(at, host);
            }
        while (pull(Due::more)) {
        }
        for (std::uint32_t host = 1; host <= hosts; ++host)
            RC_ASSERT(next_after(host, seen_[host]) == std::nullopt);
    }
    int resyncs = 0;

  private:
    void start(Replica& replica) const {
        replica = {FleetEvents(limits_), {}, {}};
        for (std::uint32_t number = 1; number <= hosts; ++number)
            replica.events.put_host(host("h" + std::to_string(number), number));
    }
    void follow(Replica& replica, std::uint32_t host) {
        replica.follows[host] = true;
        replica.received[host] = emitted_[host].size();
        replica.events.begin(host, last_[host]);
    }
    [[nodiscard]] std::uint64_t number_at(std::uint32_t host, std::size_t received) const {
        return received == 0 ? 0 : emitted_[host][received - 1].number;
    }
    // The first event after this one that the client is to get.
    [[nodiscard]] std::optional<std::uint64_t> next_after(std::uint32_t host,
                                                          std::uint64_t number) const {
        for (auto const& one : emitted_[host])
            if (one.number > number && (one.matches || !filters_)) return one.number;
        return std::nullopt;
    }
    void check(std::string const& got, FleetEvents const& events) {
        if (got == "current") {
            for (auto const& [number, host] : events.hosts()) seen_[number] = host.last;
            return;
        }
        if (got.starts_with("resync ")) {
            ++resyncs;
            auto const number = static_cast<std::uint32_t>(got.back() - '0');
            // It lists what the replica has now.
            seen_[number] = events.find(number)->last;
            return;
        }
        auto const host = static_cast<std::uint32_t>(got[1] - '0');
        auto const number = std::stoull(got.substr(3));
        if (number <= seen_[host]) return;  // once more
        RC_ASSERT(next_after(host, seen_[host]) == number);
        seen_[host] = number;
    }

    FleetEventLimits limits_;
    bool filters_;
    std::array<std::vector<Emitted>, hosts + 1> emitted_;
    std::array<std::uint64_t, hosts + 1> last_{};
    std::array<Replica, 2> replicas_;
    std::size_t serving_ = 0;
    std::optional<FleetEventReader> reader_;
    FleetClient client_;
    Deadline now_{};
    std::array<std::uint64_t, hosts + 1> seen_{};
};

std::uint32_t any_host() {
    return static_cast<std::uint32_t>(*rc::gen::inRange(1, static_cast<int>(hosts) + 1));
}

std::size_t any_replica() {
    return *rc::gen::inRange<std::size_t>(0, 2);
}

void move(Fleet& fleet, int what) {
    if (what <= 3) fleet.emit(any_host(), *rc::gen::inRange(1, 20), *rc::gen::inRange(0, 4) > 0);
    if (what >= 4 && what <= 9)
        fleet.receive(any_replica(), any_host(), *rc::gen::inRange<std::size_t>(1, 30));
    if (what == 10) fleet.pass(*rc::gen::inRange(0, 1500));
    if (what >= 11 && what <= 14) fleet.pull(Due::more);
    if (what == 15) fleet.pull(Due::beat);
    if (what == 16) fleet.connect(any_replica());
}

RC_GTEST_PROP(Replicas, LoseNoEvent, ()) {
    bool const small = *rc::gen::arbitrary<bool>();
    FleetEventLimits const limits =
        small ? FleetEventLimits{20 * event_overhead, 40 * event_overhead} : FleetEventLimits{};
    Fleet fleet(limits, *rc::gen::arbitrary<bool>());
    fleet.connect(0);
    auto const moves = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 20));
    for (int const what : moves) {
        move(fleet, what);
        if (what == 17) fleet.hear(any_replica(), any_host());
        if (what == 18) fleet.miss(any_replica(), any_host());
        if (what == 19) fleet.kill(any_replica());
    }
    fleet.settle();
    RC_TAG(fleet.resyncs > 0 ? "resync" : "no resync");
}

// While both replicas live, follow and have room, no client is told to list anything again.
RC_GTEST_PROP(Replicas, ASwitchBetweenThemIsNoResync, ()) {
    Fleet fleet({}, *rc::gen::arbitrary<bool>());
    for (std::size_t at = 0; at < 2; ++at)
        for (std::uint32_t host = 1; host <= hosts; ++host) fleet.receive(at, host, 0);
    fleet.connect(0);
    fleet.pull(Due::more);
    auto const moves = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 17));
    for (int const what : moves) move(fleet, what);
    fleet.settle();
    RC_ASSERT(fleet.resyncs == 0);
}

}  // namespace
}  // namespace vfmgr::fleet
