// SPDX-License-Identifier: Apache-2.0
// Who else makes or changes VFs: systemd-networkd, NetworkManager, netplan, ifupdown, udev rules,
// units, module parameters, Kubernetes' SR-IOV network operator; as their configuration files say
// it. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfmgr::checks {

// Devices, by what a file calls them: of each kind that it names one must fit. A file that names
// none may mean any.
struct DeviceSelector {
    std::vector<std::string> netdevs;  // names and patterns
    std::vector<std::string> macs;     // as they stand there
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
    std::string line;             // where it says so
    std::size_t line_number = 0;  // in its file, from 1; 0: in none
    std::string name;             // what its own tools call it: a connection's id, a module
    DeviceSelector of;
    bool operator==(SriovOwner const&) const = default;
};

// By the path is known in which language the text is.
[[nodiscard]] std::vector<SriovOwner> parse_sriov_owners(std::string_view path,
                                                         std::string_view text);

}  // namespace vfmgr::checks
