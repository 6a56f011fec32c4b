// SPDX-License-Identifier: Apache-2.0
// Replicas that schedule, the tests' etcd, and hosts that keep reservations as vfmgrd does, with
// answers that get lost.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "api/types/fleet.hpp"
#include "api/types/json.hpp"
#include "service/fleet/membership.hpp"
#include "service/fleet/placement/scheduler.hpp"
#include "tests/fakes/fake_etcd.hpp"
#include "tests/unit/service/fleet/placement/placed_host.hpp"

namespace vfmgr::fleet::tests {

// Real time, which can be moved on.
struct MovedClock final : Clock {
    std::atomic<std::int64_t> moved_ms{0};
    [[nodiscard]] std::chrono::milliseconds moved() const {
        return std::chrono::milliseconds(moved_ms.load());
    }
    [[nodiscard]] Time now() const override { return system_clock().now() + moved(); }
    [[nodiscard]] Deadline steady_now() const override {
        return system_clock().steady_now() + moved();
    }
    bool move_to(Deadline then) {
        auto const left =
            std::chrono::duration_cast<std::chrono::milliseconds>(then - steady_now());
        if (left.count() > 0) moved_ms += left.count();
        return true;
    }
};

// What goes wrong with the next requests to a host, in order; then nothing. lost_before: the answer
// is lost, and nothing was done. lost_after: it was done. refuses: the host has its reasons not to
// keep VFs. dies:
// the replica does, after the host has done it.
enum class HostFault { none, lost_before, lost_after, refuses, away, dies };

// Keeps reservations of its free VFs, and the highest fence.
struct KeepingHost {
    std::map<PciAddress, std::uint16_t> vfs;  // of each PF
    std::map<std::string, Reservation> kept;
    std::uint64_t fence = 0;
    std::deque<HostFault> faults;
    std::vector<http::Request> requests;  // that it has carried out or refused

    [[nodiscard]] std::set<VfId> taken() const {
        std::set<VfId> all;
        for (auto const& [name, one] : kept)
            for (auto const& vf : one.vfs)
                EXPECT_TRUE(all.insert(vf).second) << "VF given twice: " << to_string(vf);
        return all;
    }
    Result<http::Response> answer(http::Request const& request, Time now) {
        bool const spared =
            !faults.empty() && faults.front() == HostFault::refuses && request.method != "PUT";
        auto const fault = faults.empty() || spared ? HostFault::none : faults.front();
        if (!faults.empty() && !spared) faults.pop_front();
        auto const lost = fail(Problem::timed_out, "no answer came", "ask again");
        if (fault == HostFault::away) return fail(Problem::unavailable, "no connection", "wait");
        if (fault == HostFault::lost_before) return lost;
        requests.push_back(request);
        auto done = fault == HostFault::refuses
                        ? Result<http::Response>(fail(Problem::conflict, "it has its reasons"))
                        : carry_out(request, now);
        if (fault == HostFault::lost_after) return lost;
        if (fault == HostFault::dies) throw CrashNow{};
        return done ? std::move(*done) : http::problem_response(done.error(), request);
    }

  private:
    Result<http::Response> carry_out(http::Request const& request, Time now) {
        auto const shown = std::stoull(request.headers.at(fence_header));
        if (shown < fence)
            return fail(Problem::precondition_failed, "an older scheduler of the fleet");
        fence = shown;
        auto const name = request.path.substr(request.path.rfind('/') + 1);
        if (request.method == "PUT") return keep(name, request, now);
        if (!kept.contains(name)) return fail(Problem::not_found, "there is none");
        if (request.method == "GET") return http::json_response(200, kept.at(name));
        kept.erase(name);
        http::Response gone;
        gone.status = 204;
        return gone;
    }
    Result<http::Response> keep(std::string const& name, http::Request const& request, Time now) {
        VFMGR_TRY(auto const spec, from_json_text<ReservationSpec>(request.body));
        VFMGR_TRY(auto const on, parse_on_behalf_of(request.headers.at(on_behalf_of_header)));
        Reservation one{
            name, spec, {}, "fleet:" + on.who, now, now + std::chrono::seconds(spec.seconds)};
        auto without = kept;
        without.erase(name);
        for (auto const& [pf, count] : *spec.pfs) {
            std::uint16_t got = 0;
            for (std::uint16_t index = 0; index < vfs[pf] && got < count; ++index) {
                VfId const vf{pf, index};
                bool const free = std::ranges::none_of(without, [&](auto const& each) {
                    return std::ranges::find(each.second.vfs, vf) != each.second.vfs.end();
                });
                if (!free) continue;
                one.vfs.push_back(vf);
                ++got;
            }
            if (got < count)
                return fail(Problem::limit_exceeded, "VFs are in use", "request fewer");
        }
        kept[name] = one;
        return http::json_response(200, one);
    }
};

// Hosts and etcd, which outlive replicas.
struct PlacementWorld {
    MovedClock clock;
    FakeCluster cluster{static_cast<Clock const&>(system_clock())};
    std::map<std::string, KeepingHost> hosts;
    bool hosts_report = true;  // what they keep is in the inventory at once
    std::map<std::string, std::set<std::string>> reported;  // otherwise these, by host
    std::map<std::string, HostRecord> records;
    std::function<void()> before_host;  // what happens before a request reaches its host

    // `vfs`: of the host's one PF, which carries the network blue.
    void add_host(std::string const& name, std::uint16_t vfs) {
        auto const bus = 1;
        hosts[name].vfs[PciAddress::parse(pci_text(bus)).value()] = vfs;
        HostRecord record;
        record.number = static_cast<std::uint32_t>(hosts.size());
        record.url = "https://" + name + ":8470";
        record.state = FleetHostState::active;
        put_host(name, record);
    }
    void put_host(std::string const& name, HostRecord const& record) {
        records[name] = record;
        cluster.put(keys::of(keys::hosts, name), record_text(record));
    }
    [[nodiscard]] std::shared_ptr<InventoryView const> inventory() const {
        auto const view = std::make_shared<InventoryView>();
        for (auto const& [name, host] : hosts) {
            PlacedHost placed(name);
            std::vector<std::string> vfs;
            for (int index = 0; index < host.vfs.begin()->second; ++index)
                vfs.push_back(vf_text(1, index));
            placed.put(Collection::pfs, {pf_text(1, vfs)});
            std::vector<std::string> lines;
            for (auto const& [id, one] : host.kept) {
                auto const listed = reported.find(name);
                if (!hosts_report && (listed == reported.end() || !listed->second.contains(id)))
                    continue;
                std::vector<std::pair<int, int>> kept;
                for (auto const& vf : one.vfs) kept.emplace_back(1, vf.index);
                lines.push_back(reservation_text(id, kept));
            }
            placed.put(Collection::reservations, lines);
            view->hosts.push_back(std::make_shared<HostPart const>(placed.part));
        }
        return view;
    }
    // Another replica is elected. Returns its fence.
    Revision elect(std::string const& replica) {
        cluster.erase(std::string(keys::leader));
        return cluster.put(std::string(keys::leader),
                           record_text(LeaderRecord{replica, "https://" + replica}));
    }
    // Names of the reservations in etcd, with their hosts.
    [[nodiscard]] std::map<std::string, std::string> reserved() {
        std::map<std::string, std::string> all;
        for (auto const& [key, entry] : cluster.keys())
            if (key.starts_with(keys::reservations))
                all[key.substr(keys::reservations.size())] =
                    read_record<ReservationRecord>(entry.value).value().host;
        return all;
    }
    // What hosts keep, the same way; a name that two keep is a failure.
    [[nodiscard]] std::map<std::string, std::string> kept() const {
        std::map<std::string, std::string> all;
        for (auto const& [name, host] : hosts) {
            static_cast<void>(host.taken());
            for (auto const& [id, one] : host.kept)
                EXPECT_TRUE(all.emplace(id, name).second) << id << " is kept twice";
        }
        return all;
    }
};

// One process of vfmgr-fleetd, as far as it schedules.
struct PlacingReplica {
    PlacementWorld& world;
    FakeEtcd follows{world.cluster};
    FakeEtcd etcd{world.cluster};
    std::optional<Revision> fence;
    Registry registry{follows, system_clock(), [](auto const&) {}};
    Writer writer{etcd, registry, timing()};
    Scheduler scheduler{{[this] { return registry.state(); }, writer,
                         [this] { return world.inventory(); }, [this] { return fence; },
                         [this](Revision revision, Deadline deadline) {
                             return registry.wait_for(revision, deadline);
                         },
                         [this](HostRecord const& host, http::Request const& request, auto) {
                             if (auto const hook = std::exchange(world.before_host, {})) hook();
                             auto const name = host.url.substr(8, host.url.rfind(':') - 8);
                             return world.hosts.at(name).answer(request, world.clock.now());
                         },
                         timing()}};

    PlacingReplica(PlacementWorld& in, Revision its_fence) : world(in), fence(its_fence) {
        registry.start();
        EXPECT_TRUE(registry.wait_for(its_fence, system_clock().steady_now() + patience));
    }
    ~PlacingReplica() { registry.stop(); }
    PlacingReplica(PlacingReplica const&) = delete;
    PlacingReplica& operator=(PlacingReplica const&) = delete;

    [[nodiscard]] Timing timing() {
        return {world.clock, [this](Deadline then) { return world.clock.move_to(then); }};
    }
    // Until it knows everything that is in etcd now.
    void catch_up() {
        EXPECT_TRUE(
            registry.wait_for(world.cluster.revision(), system_clock().steady_now() + patience));
        while (registry.state()->stale_since) std::this_thread::yield();
    }
    static constexpr std::chrono::seconds patience{20};
};

}  // namespace vfmgr::fleet::tests
