// SPDX-License-Identifier: Apache-2.0
// Other programs that make or change VFs: systemd-networkd, NetworkManager, netplan, ifupdown, udev
// rules, units, module parameters, Kubernetes' SR-IOV network operator; as found in their
// configuration files. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfmgr::checks {

// Devices by the names that a file uses: one of each kind that it names must match. A file that
// names none may mean any.
struct DeviceSelector {
    std::vector<std::string> netdevs;  // names and patterns
    std::vector<std::string> macs;     // as the file writes them
    std::vector<std::string> drivers;
    std::vector<std::string> pci;     // addresses
    std::vector<std::string> ibdevs;  // RDMA devices
    [[nodiscard]] bool any() const;
    bool operator==(DeviceSelector const&) const = default;
};

enum class OwnerKind {
    networkd,
    udev,
    network_manager,
    netplan,
    ifupdown,
    unit,
    module,
    sriov_operator,
    other
};

struct SriovOwner {
    OwnerKind kind = OwnerKind::other;
    std::string does;             // "makes 4 VFs", follows the file's name
    std::string line;             // the line that shows it
    std::size_t line_number = 0;  // in its file, from 1; 0: in none
    std::string name;             // its name in its own tools: a connection's id, a module
    DeviceSelector of;
    bool operator==(SriovOwner const&) const = default;
};

// The path decides the language of the text.
[[nodiscard]] std::vector<SriovOwner> parse_sriov_owners(std::string_view path,
                                                         std::string_view text);

}  // namespace vfmgr::checks
