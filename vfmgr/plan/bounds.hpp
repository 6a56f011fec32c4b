// SPDX-License-Identifier: Apache-2.0
// What root lets vfmgr do to this host, whatever its API is asked for: [bounds] of vfmgr.toml,
// which only root can write. Values and a pure check; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/problem.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// Written "100-199", or "100".
struct VlanRange {
    std::uint16_t first = 0;  // 0: untagged
    std::uint16_t last = 4094;

    [[nodiscard]] static Result<VlanRange> parse(std::string_view text);
    auto operator<=>(VlanRange const&) const = default;
};
[[nodiscard]] std::string to_string(VlanRange const& range);

// Of one PF. What is absent is allowed.
struct PfBounds {
    std::optional<bool> managed{};  // false: neither the PF nor its VFs are touched
    std::optional<std::uint16_t> num_vfs_max{};
    std::optional<std::vector<VlanRange>>
        vlans{};                         // of VFs, and of the host's interfaces on the PF
    std::optional<bool> trust{};         // false: no VF is trusted
    std::optional<bool> spoofchk_off{};  // false: no VF sends from any MAC
    std::optional<std::vector<std::string>> drivers{};  // that VFs may get
    std::optional<bool> firmware{};  // false: the card's settings are not changed
    bool operator==(PfBounds const&) const = default;
};

struct HostBounds {
    PfBounds default_pf{};  // of every PF, as far as its own do not say otherwise
    std::map<PciAddress, PfBounds> pfs{};
    // The host's own addresses on its PFs lie in these; absent: any.
    std::optional<std::vector<IpPrefix>> addresses{};
    bool operator==(HostBounds const&) const = default;
};

// Fails with forbidden at the first step beyond the bounds, and names what it asks for and what is
// allowed. Not for what restores a state: an undo, or a detach.
[[nodiscard]] Result<void> within(HostBounds const& bounds, Plan const& plan);

}  // namespace vfmgr
