// SPDX-License-Identifier: Apache-2.0
// A tenant: one of several users of a host, who knows nothing of the others. What it may use, and
// how much of it. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/json_fwd.hpp"

namespace vfmgr {

// Absent: no limit but the host's own.
struct TenantQuota {
    std::optional<std::uint32_t> attachments;
    std::optional<std::uint32_t> reserved_vfs;
    std::optional<std::uint32_t> verification_minutes;  // begun or ended in the last 24 hours
    bool operator==(TenantQuota const&) const = default;
};

struct Tenant {
    std::string name;                   // unique on the host; [a-z0-9], at most 16
    std::vector<std::string> vms;       // UUIDs; a VM has one tenant at most
    std::vector<std::string> networks;  // by name; tenants may share them
    std::vector<std::string> pools;     // the same
    // What its requests may set beside what every request does; absent: tenant_fields_default.
    std::optional<std::vector<std::string>> fields{};
    TenantQuota quota{};
    bool operator==(Tenant const&) const = default;
};

inline constexpr char const* rule_of_tenant_names = "must be 1 to 16 of a-z and 0-9";
[[nodiscard]] bool can_be_a_tenants(std::string_view name);

// Whether its requests may set the field: a member of settings, "address", "best_effort" or
// "responder". Neither a pool's limits nor a network's separation can be set aside by default.
[[nodiscard]] bool may_set(Tenant const& tenant, std::string_view field);
// All fields that a tenant can be allowed.
[[nodiscard]] std::vector<std::string> tenant_fields();

// The tenant whose reservations have names like this one: "blue" of "blue-training". Names of
// reservations are unique on the host, so those of different tenants must differ, or one would
// learn of the other's by trying.
[[nodiscard]] std::string_view tenant_in(std::string_view reservation);

extern template struct Json<Tenant>;

}  // namespace vfmgr
