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
// The ranges or subnets of a bound, for a message.
template <class T>
[[nodiscard]] std::vector<std::string> texts_of(std::vector<T> const& values) {
    std::vector<std::string> texts;
    for (auto const& one : values) texts.push_back(to_string(one));
    return texts;
}

// The bounds of one PF. They allow what they do not name.
struct PfBounds {
    std::optional<bool> managed{};  // false: neither the PF nor its VFs are touched
    std::optional<std::uint16_t> num_vfs_max{};
    // The VLANs of VFs that VMs have, and of the host's addresses and VLAN interfaces on the PF.
    std::optional<std::vector<VlanRange>> vlans{};
    std::optional<bool> trust{};                        // false: no VF is trusted
    std::optional<bool> spoofchk_off{};                 // false: no VF sends from any MAC
    std::optional<std::vector<std::string>> drivers{};  // VFs are bound to these only
    std::optional<bool> firmware{};                     // false: the card's settings stay
    bool operator==(PfBounds const&) const = default;
};

// Calls f(name, member) for each bound of a PF, with its key in vfmgr.toml.
template <class F>
void for_each_pf_bound(F f) {
    f("managed", &PfBounds::managed);
    f("num_vfs_max", &PfBounds::num_vfs_max);
    f("vlans", &PfBounds::vlans);
    f("trust", &PfBounds::trust);
    f("spoofchk_off", &PfBounds::spoofchk_off);
    f("drivers", &PfBounds::drivers);
    f("firmware", &PfBounds::firmware);
}

// Written "64055", or "100000-165535".
struct UidRange {
    std::uint32_t first = 0;
    std::uint32_t last = 0;

    [[nodiscard]] static Result<UidRange> parse(std::string_view text);
    auto operator<=>(UidRange const&) const = default;
};
[[nodiscard]] std::string to_string(UidRange const& range);

// Unlike the other bounds, these allow nothing that they do not name: with them processes get
// devices that libvirt knows nothing of.
struct HolderBounds {
    bool allowed = false;
    std::vector<UidRange> uids{};  // that may get a VF's VFIO nodes
    bool operator==(HolderBounds const&) const = default;
};

struct HostBounds {
    PfBounds default_pf{};  // every PF has these, unless its own say otherwise
    std::map<PciAddress, PfBounds> pfs{};
    // The host's own addresses on its PFs must lie in these; absent: any address may be used.
    std::optional<std::vector<IpPrefix>> addresses{};
    HolderBounds external_holders{};
    bool operator==(HostBounds const&) const = default;
};

// Fails with forbidden at the first step beyond the bounds, and names what it asks for and what is
// allowed. A VF that a VM gets is judged as it will be: settings that the plan leaves alone are
// those of `host`, which the plan was made from. Do not call it for what restores a state, such as
// an undo or a detach.
[[nodiscard]] Result<void> within(HostBounds const& bounds, HostView const& host, Plan const& plan);

}  // namespace vfmgr
