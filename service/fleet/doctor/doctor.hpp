// SPDX-License-Identifier: Apache-2.0
// Judges a fleet: the etcd that it is in, its replicas and its hosts. Pure; any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/types/check.hpp"
#include "service/fleet/etcd/etcd.hpp"
#include "service/fleet/hosts/followers.hpp"
#include "service/fleet/state.hpp"

namespace vfmgr::fleet {

struct CertificateTime {
    std::string file;
    Result<Time> expires_at;
};

// What a replica sees when it is asked.
struct Observed {
    Time now{};
    std::string replica;                // its name
    std::vector<MemberStatus> members;  // of etcd
    Revision revision = 0;  // etcd's own; what the replica knows, while etcd does not answer
    // Whether etcd still has what was `old_by` revisions ago; an Error: not known.
    Result<bool> has_old = fail(Error{Problem::unavailable, "it was not asked for", ""});
    std::shared_ptr<State const> state = std::make_shared<State const>();
    std::optional<Error> not_followed{};  // why `state` is stale
    std::shared_ptr<Reaches const> reaches = std::make_shared<Reaches const>();
    std::shared_ptr<InventoryView const> inventory = std::make_shared<InventoryView const>();
    std::vector<CertificateTime> certificates{};  // that this replica uses
};

// At 1,000 hosts, whose marks are written once a minute, a few hours.
inline constexpr Revision old_by = 300'000;
// What etcd takes unless --quota-backend-bytes says otherwise; before 3.6 it tells nobody.
inline constexpr std::int64_t default_quota_bytes = std::int64_t{2} << 30;
inline constexpr std::chrono::days expires_soon{30};
// How long a host may take to become active before it is worth a warning.
inline constexpr std::chrono::minutes joins_within{10};

[[nodiscard]] CheckReport judge(Observed const& observed);

// Its parts, each with at least one finding.
[[nodiscard]] std::vector<Finding> judge_etcd(Observed const& observed);
[[nodiscard]] std::vector<Finding> judge_replicas(Observed const& observed);
[[nodiscard]] std::vector<Finding> judge_hosts(Observed const& observed);

// A finding, without a remedy for `ok`. Commands are for a root shell.
[[nodiscard]] Finding found(CheckResult result, std::string rule, std::string subject,
                            std::string detail, std::vector<std::string> commands = {},
                            std::string note = {});

}  // namespace vfmgr::fleet
