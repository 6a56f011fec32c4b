// SPDX-License-Identifier: Apache-2.0
// Finds other programs that make or change VFs, in all configuration files of a machine: also those
// that will do so only at the next boot, or when a connection comes up. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/checks/machine.hpp"
#include "vfmgr/checks/sriov_owners.hpp"

namespace vfmgr::checks {

struct FoundOwner {
    std::string path;
    SriovOwner owner;
};

// True for a file, or a pattern of sources.hpp, that is searched for owners.
[[nodiscard]] bool is_owner_file(std::string_view path);
// Returns owners in the order of their files; services only if they run, where units can be read.
[[nodiscard]] std::vector<FoundOwner> find_owners(Machine const& machine);

// `device` holds all names of one device.
[[nodiscard]] bool means(DeviceSelector const& of, DeviceSelector const& device);

// "/etc/systemd/network/20-vf.link:5 makes 4 VFs", "NetworkManager's connection storage
// (/etc/NetworkManager/system-connections/s.nmconnection:7) makes 6 VFs".
[[nodiscard]] std::string sentence_of(FoundOwner const& found);
// Returns such sentences for the owners that mean `device`, or may mean any.
[[nodiscard]] std::vector<std::string> owners_of(Machine const& machine,
                                                 DeviceSelector const& device);

}  // namespace vfmgr::checks
