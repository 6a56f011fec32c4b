// SPDX-License-Identifier: Apache-2.0
// The proof: what was tested over a VF, which side judged it, and the figures. Values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

enum class Verdict { pass, fail, skip, not_applicable, pending };

enum class Judge { host, guest };

enum class TestPath { internal_switch, wire };

// How much is tested. quick: the proofs, with every byte checked. default: figures as well. deep:
// more of them, and longer.
enum class Profile { quick, default_, deep };

// A source of counters of lost packets: a queueing discipline (tc), statistics of a netdev,
// hw_counters of an RDMA device. In the order in which they explain a failed run.
enum class CounterSource { qdisc, netdev, rdma };

struct Counter {
    CounterSource source = CounterSource::netdev;
    std::string device;  // "enp1s0.100", "rxe0"
    std::string name;    // "rx_dropped"; for a qdisc its kind: "ingress", "tbf"
    std::uint64_t count = 0;
    bool operator==(Counter const&) const = default;
};

// A counter that grew during a run, on which side, and what that means.
struct Loss {
    Judge side = Judge::host;
    Counter counter;
    std::string detail;
    std::string remedy;
    bool operator==(Loss const&) const = default;
};

// A finding that needs attention although the test passed.
struct Warning {
    std::string test;  // "write_bandwidth"; empty: no single test
    std::string detail;
    std::string remedy;
    bool operator==(Warning const&) const = default;
};

struct TestResult {
    // Proofs: reachability, path_mtu, rc_ping, rdma_write, rdma_read. Figures: those of
    // verify::all_measurements().
    std::string name;
    Verdict verdict = Verdict::pending;
    Judge by = Judge::guest;
    std::uint64_t bytes_checked = 0;
    std::uint64_t mismatches = 0;
    std::map<std::string, double> figures;  // units in the names: bandwidth_mbps, p50_us
    std::string detail;
    std::string remedy;
    bool operator==(TestResult const&) const = default;
};

struct Verification {
    std::string run;  // unique; the nonce ties guest reports to it
    std::string attachment;
    Verdict verdict = Verdict::pending;
    std::vector<TestResult> tests;
    std::optional<std::string> peer_gid;  // as the QP reports it
    std::optional<MacAddress> vf_mac;
    std::optional<Guid> vf_guid{};  // of the VF's port, on InfiniBand instead of the MAC
    std::vector<Loss> losses;       // also for a run that passed
    std::vector<Warning> warnings;  // likewise
    std::optional<TestPath> path;   // absent: unknown
    // DSCP of the host's queue pair; absent: the network names none.
    std::optional<std::uint8_t> dscp{};
    std::optional<std::string> responder;  // "host:port" of another host's; absent: this host's own
    std::string detail;                    // why it failed, in one sentence
    std::string remedy;
    Time started_at{};
    std::optional<Time> finished_at;
    bool operator==(Verification const&) const = default;
};

extern template struct Json<Counter>;
extern template struct Json<TestResult>;
extern template struct Json<Verification>;

}  // namespace vfmgr
