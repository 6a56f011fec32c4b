// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/ib_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "api/os/file.hpp"

namespace vfmgr::guest {
namespace {

std::string line_of(std::filesystem::path const& file) {
    auto const text = read_file(file).value_or("");
    return text.substr(0, text.find('\n'));
}

// sysfs groups a GID's bytes by two: fe80:0000:0000:0000:0202:c9ff:fe11:0002.
std::string end_of_gid(Guid const& guid) {
    auto const v = guid.value;
    return fmt::format(":{:04x}:{:04x}:{:04x}:{:04x}", v >> 48U, v >> 32U & 0xffffU,
                       v >> 16U & 0xffffU, v & 0xffffU);
}

// By index: paths_in() sorts by name, so 10 comes before 2.
std::string pkeys_in(std::filesystem::path const& folder) {
    constexpr std::size_t fact_max = 200;  // the host refuses facts beyond 256 characters
    std::string text;
    for (unsigned index = 0; text.size() < fact_max; ++index) {
        auto const pkey = line_of(folder / std::to_string(index));
        if (pkey.empty()) break;
        if (pkey == "0x0000") continue;
        text += (text.empty() ? "" : " ") + pkey;
    }
    return text;
}

}  // namespace

std::optional<IbPort> find_ib_port(std::string const& sysfs, Guid const& port_guid) {
    auto const end = end_of_gid(port_guid);
    for (auto const& device : paths_in(sysfs + "/class/infiniband"))
        for (auto const& port : paths_in(device / "ports"))
            if (line_of(port / "gids/0").ends_with(end))
                return IbPort{device.filename().string(), pkeys_in(port / "pkeys")};
    return std::nullopt;
}

std::map<std::string, std::string> port_facts(std::string const& sysfs,
                                              GuestAttachment const& attachment) {
    auto const port = attachment.guid ? find_ib_port(sysfs, *attachment.guid) : std::nullopt;
    if (!port) return {};
    return {{"rdma_device", port->device}, {"pkeys", port->pkeys}};
}

}  // namespace vfmgr::guest
