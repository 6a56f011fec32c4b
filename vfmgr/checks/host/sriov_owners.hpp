// SPDX-License-Identifier: Apache-2.0
// Other programs that make or change VFs: systemd-networkd, NetworkManager, netplan, ifupdown, udev
// rules, units, module parameters, Kubernetes' SR-IOV network operator; as found in their
// configuration files. Any thread; pure, but for collect_owners().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/machine/machine.hpp"

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
    libvirt_network,
    openstack,
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

// Finds other programs that make or change VFs, in all configuration files of a machine: also those
// that will do so only at the next boot, or when a connection comes up.

struct FoundOwner {
    std::string path;
    SriovOwner owner;
};

// True for a file that is searched for owners.
[[nodiscard]] bool is_owner_file(std::string_view path);
// Returns owners in the order of their files; services only if they run, where units can be read.
[[nodiscard]] std::vector<FoundOwner> find_owners(Machine const& machine);

// `device` holds all names of one device.
[[nodiscard]] bool means(DeviceSelector const& of, DeviceSelector const& device);

// True for a file of systemd-networkd or udev that never applies to the device, because another one
// comes first and matches it. Unknown if that one could not be read.
[[nodiscard]] Known<bool> is_overridden(Machine const& machine, std::string_view path,
                                        DeviceSelector const& device);

// "/etc/systemd/network/20-vf.link:5 makes 4 VFs", "NetworkManager's connection storage
// (/etc/NetworkManager/system-connections/s.nmconnection:7) makes 6 VFs".
[[nodiscard]] std::string sentence_of(FoundOwner const& found);
// Reads only these files, on a machine or below `root`; on this machine, also whether the services
// that own them run: it asks systemctl, and waits for that at most two seconds.
[[nodiscard]] Facts collect_owners(std::string const& root);
// Returns such sentences for the owners that mean `device`, or may mean any.
[[nodiscard]] std::vector<std::string> owners_of(Machine const& machine,
                                                 DeviceSelector const& device);

}  // namespace vfmgr::checks
