// SPDX-License-Identifier: Apache-2.0
// Networks and pools that hosts are to have, brought to them in waves: the document rollouts/<id>
// in etcd, and how it goes on. Pure: the leader writes each document before it asks for what the
// document says, and PUT and DELETE can be asked twice, so a crash or a lost answer changes
// nothing.
//
//   planning > planned > running > done
//                          |  ^
//                          v  | resumed
//                        halted > reverting > reverted
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/json_fwd.hpp"
#include "api/types/network.hpp"
#include "api/types/pool.hpp"
#include "service/fleet/drain/host_call.hpp"

namespace vfmgr::fleet {

// Each that is given must hold; of a list, one of its values. An empty one holds for every host.
struct HostSelector {
    std::vector<std::string> names;
    std::map<std::string, std::string> labels;  // all of them
    std::vector<std::string> racks;
    bool operator==(HostSelector const&) const = default;
};

// A rail of a host: NetworkPf with a JSON of its own.
struct HostRail {
    PciAddress pf;
    IpAddress host_address;
    bool operator==(HostRail const&) const = default;
};
struct FleetNetwork {
    Network network;  // without PFs
    HostSelector select;
    // By host. A host that is not named keeps the PFs that it has in the network.
    std::map<std::string, std::vector<HostRail>> pfs;
    bool operator==(FleetNetwork const&) const = default;
};
struct FleetPool {
    Pool pool;
    HostSelector select;
    bool operator==(FleetPool const&) const = default;
};
struct FleetAbsent {
    std::string name;
    HostSelector select;
    bool operator==(FleetAbsent const&) const = default;
};

// So many hosts, or so much of all that change: "1", "10%"; at least one.
struct WaveSize {
    std::uint32_t number = 1;
    bool percent = false;
    [[nodiscard]] static Result<WaveSize> parse(std::string_view text);
    bool operator==(WaveSize const&) const = default;
};
[[nodiscard]] std::string to_string(WaveSize const& size);

struct RolloutSpec {
    std::vector<FleetNetwork> networks;
    std::vector<FleetPool> pools;
    std::vector<FleetAbsent> absent_networks;
    std::vector<FleetAbsent> absent_pools;
    std::vector<WaveSize> waves;     // empty: 1, then 10%; what is left after the last is one more
    std::uint32_t failures_max = 0;  // so many hosts may fail; one more halts it
    bool operator==(RolloutSpec const&) const = default;
};

enum class RolloutHostState {
    planning,   // its dry runs are not all answered
    pending,    // for its wave
    unchanged,  // it is as desired
    changing,
    done,
    failed,   // refused its dry run or a call; `detail` says why. What was done before stays.
    skipped,  // by an admin
    reverting,
    reverted,
};

// What a call changes, as it was when the rollout was planned.
struct RolloutChange {
    std::string path;                    // "/v1/networks/train"
    std::optional<std::uint32_t> was{};  // in Rollout::bodies; absent: there was none
    bool operator==(RolloutChange const&) const = default;
};

struct RolloutHost {
    std::string host;
    std::uint32_t wave = 0;
    RolloutHostState state = RolloutHostState::planning;
    std::vector<RolloutChange> changes;  // in the order of the calls
    std::uint32_t planned = 0;           // so many of them need no dry run any more
    std::uint32_t applied = 0;           // so many of them are done
    std::vector<std::string> hit;        // what its plans interrupt: sentences, a few
    std::string detail;
    bool operator==(RolloutHost const&) const = default;
};

enum class RolloutState { planning, planned, running, halted, done, reverting, reverted };

struct Rollout {
    std::string id;
    RolloutSpec spec;
    RolloutState state = RolloutState::planning;
    std::vector<RolloutHost> hosts;   // by wave, then in the order in which they were chosen
    std::vector<std::string> bodies;  // of what was there before, each once
    std::uint32_t waves = 0;
    std::uint32_t wave = 0;  // the one that runs
    bool back = false;       // it is being reverted, or halted while it was
    std::string detail;      // why it halted
    std::string requested_by;
    Time started_at{};
    std::string act;  // of the transaction that wrote this
    bool operator==(Rollout const&) const = default;
};

// What a host has now, from a current report.
struct HostHas {
    std::string host;
    std::string rack;
    std::map<std::string, std::string> labels;
    std::vector<Network> networks;
    std::vector<Pool> pools;
};
[[nodiscard]] bool selects(HostSelector const& select, HostHas const& host);

struct RolloutOrder {
    std::string id;
    RolloutSpec spec;
    std::string requested_by;
    Time started_at{};
};
// What etcd takes of one value, less what the document grows by while it goes on.
inline constexpr std::size_t rollout_bytes_max = 1'200'000;
// Hosts of a wave are of different racks where possible. not_found: a selector names a host that
// the fleet does not have. limit_exceeded: the document would be too large.
[[nodiscard]] Result<Rollout> planned_rollout(RolloutOrder order,
                                              std::vector<HostHas> const& hosts);

// The calls that bring the host there, and those that undo them, last first. For the order of
// RolloutHost::changes, of which `applied` are done.
[[nodiscard]] std::vector<HostCall> calls_of(Rollout const& rollout, RolloutHost const& host);
[[nodiscard]] std::vector<HostCall> undo_calls_of(Rollout const& rollout, RolloutHost const& host);

// Whether a host can plan that change as it is now: not a pool whose network comes with the same
// rollout, nor the end of a network that a pool uses until the same rollout removes it.
[[nodiscard]] bool can_be_tried(Rollout const& rollout, RolloutHost const& host,
                                std::size_t change);

// What to do now, one call of each host at most. While it is planning they are dry runs.
[[nodiscard]] std::vector<HostCall> asks_of(Rollout const& rollout);

struct RolloutAnswer {
    std::string host;
    Outcome outcome = Outcome::unknown;
    std::optional<Error> error{};    // of a refusal
    std::vector<std::string> hit{};  // of a dry run: the blast radius of its plan
};
[[nodiscard]] Rollout after(Rollout rollout, RolloutAnswer const& answer, std::string const& act);

// conflict: its plan is not complete, or more hosts refused it than may fail.
[[nodiscard]] Result<Rollout> run_planned(Rollout rollout, std::string const& act);
// By an admin: no call is begun any more.
[[nodiscard]] Result<Rollout> halted(Rollout rollout, std::string const& because,
                                     std::string const& act);
// Those that failed are tried again; conflict: it is not halted.
[[nodiscard]] Result<Rollout> resumed(Rollout rollout, std::string const& act);
// A host that does not answer is left as it is. conflict: its turn has ended.
[[nodiscard]] Result<Rollout> skipped(Rollout rollout, std::string const& host,
                                      std::string const& act);
// All that was changed is to be as it was before. conflict: it is running; halt it first, and wait
// until the calls that were begun have ended, or a late one undoes what is reverted.
[[nodiscard]] Result<Rollout> reverted(Rollout rollout, std::string const& act);

// "3 waves of 1, 10 and 89 hosts", who is hit, and where it stands.
[[nodiscard]] std::vector<std::string> sentences_of(Rollout const& rollout);

}  // namespace vfmgr::fleet

namespace vfmgr {
extern template struct Json<fleet::RolloutSpec>;
extern template struct Json<fleet::Rollout>;
}  // namespace vfmgr
