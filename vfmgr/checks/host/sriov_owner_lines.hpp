// SPDX-License-Identifier: Apache-2.0
// Lines of configuration files, and owners found in them: for the parsers behind
// parse_sriov_owners() alone. Pure; any thread.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/checks/host/sriov_owners.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {

using Owners = std::vector<SriovOwner>;

struct SettingLine {
    std::string_view text;
    std::size_t number = 0;
};

inline SriovOwner owner_at(SettingLine const& line, OwnerKind kind, std::string does) {
    return {kind, std::move(does), std::string(trimmed(line.text)), line.number, {}, {}};
}

// Records the first line that shows it, or one that shows more.
inline void note(SriovOwner& owner, SettingLine const& line, std::string does) {
    owner.does = std::move(does);
    owner.line = trimmed(line.text);
    owner.line_number = line.number;
}

inline std::string makes_vfs(std::string_view count) {
    return fmt::format("makes {} VFs", count);
}

// Calls `take` with every line and its number.
template <class Take>
void each_line(std::string_view text, Take take) {
    for (std::size_t number = 1; !text.empty(); ++number)
        take(SettingLine{take_line(text), number});
}

// Returns what [Match] of systemd's file asks for; nothing if it asks for more than a selector
// holds, or for the opposite ("!").
[[nodiscard]] std::optional<DeviceSelector> parse_match(std::string_view text);

// A network of libvirt that hands out VFs: <forward mode='hostdev'>.
[[nodiscard]] Owners in_libvirt_network(std::string_view text);
// neutron's sriov_agent.ini, nova.conf.
[[nodiscard]] Owners in_openstack(std::string_view text);
// netplan(5).
[[nodiscard]] Owners in_netplan(std::string_view text);
// Kubernetes' SR-IOV network operator: sriov-interface-config.yaml, which its unit applies at boot;
// and pci/ADDRESS, the state that it last applied to a PF, and applies again.
[[nodiscard]] Owners in_operator_config(std::string_view text);
[[nodiscard]] Owners in_operator_state(std::string_view text);

}  // namespace vfmgr::checks
