// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/netdev_stack.hpp"

#include <string_view>

namespace vfmgr::verify {

namespace fs = std::filesystem;

std::vector<std::string> stack_of(fs::path const& sysfs, std::string const& ifname) {
    constexpr std::string_view lower = "lower_";
    std::vector<std::string> stack{ifname};
    std::error_code error;
    for (auto const& entry : fs::directory_iterator(sysfs / "class/net" / ifname, error))
        if (auto const name = entry.path().filename().string(); name.starts_with(lower))
            stack.push_back(name.substr(lower.size()));
    return stack;
}

fs::path pci_netdev(fs::path const& sysfs, std::string const& ifname) {
    std::error_code error;
    for (auto const& name : stack_of(sysfs, ifname))
        if (auto netdev = sysfs / "class/net" / name; fs::exists(netdev / "device", error))
            return netdev;
    return sysfs / "class/net" / ifname;
}

}  // namespace vfmgr::verify
