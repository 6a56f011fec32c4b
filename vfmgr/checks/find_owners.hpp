// SPDX-License-Identifier: Apache-2.0
// Who else makes or changes VFs, by all configuration files of a machine: also who has not done so
// yet, and will at the next boot, or when a connection comes up. Pure; any thread.
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

// A file, or a pattern of wanted.hpp, in which owners are looked for.
[[nodiscard]] bool is_owner_file(std::string_view path);
// In the order of their files; of services that run, where units can be seen.
[[nodiscard]] std::vector<FoundOwner> find_owners(Machine const& machine);

// `device`: all names that one device has.
[[nodiscard]] bool means(DeviceSelector const& of, DeviceSelector const& device);

// "/etc/systemd/network/20-vf.link:5 makes 4 VFs", "NetworkManager's connection storage
// (/etc/NetworkManager/system-connections/s.nmconnection:7) makes 6 VFs".
[[nodiscard]] std::string sentence_of(FoundOwner const& found);
// Such sentences of those that mean a device, or may mean any.
[[nodiscard]] std::vector<std::string> owners_of(Machine const& machine,
                                                 DeviceSelector const& device);

}  // namespace vfmgr::checks
