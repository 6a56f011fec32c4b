// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/find_vf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "api/types/pci_address.hpp"

namespace vfmgr::guest {
namespace {

namespace fs = std::filesystem;
constexpr std::uint16_t hardware_ethernet = 1;

std::string first_word(fs::path const& file) {
    std::ifstream in(file);
    std::string word;
    in >> word;
    return word;
}

std::vector<fs::path> entries(fs::path const& folder) {
    std::error_code ignored;
    std::vector<fs::path> found;
    for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end;
         it.increment(ignored))
        found.push_back(it->path());
    std::ranges::sort(found);
    return found;
}

bool is_network_class(std::string const& text) {  // 0x0200.. Ethernet, 0x0207.. InfiniBand
    return text.starts_with("0x0200") || text.starts_with("0x0207");
}

}  // namespace

Netdev const* find_vf(std::vector<Netdev> const& netdevs, MacAddress const& mac) {
    auto const is_vf = [&](Netdev const& netdev) {
        bool const on_pci =
            netdev.parent_device.empty() || PciAddress::parse(netdev.parent_device).has_value();
        return netdev.mac == mac && netdev.hardware_type == hardware_ethernet &&
               netdev.kind.empty() && on_pci;
    };
    auto const found = std::ranges::find_if(netdevs, is_vf);
    return found == netdevs.end() ? nullptr : &*found;
}

std::vector<std::string> driverless_functions(std::string const& sysfs) {
    std::vector<std::string> found;
    for (auto const& function : entries(fs::path(sysfs) / "bus/pci/devices")) {
        std::error_code ignored;
        if (!is_network_class(first_word(function / "class")) ||
            fs::exists(function / "driver", ignored))
            continue;
        auto const id = [&](char const* file) {
            auto const text = first_word(function / file);
            return text.starts_with("0x") ? text.substr(2) : text;
        };
        found.push_back(
            fmt::format("{} [{}:{}]", function.filename().string(), id("vendor"), id("device")));
    }
    return found;
}

bool expects_rdma_device(std::string const& sysfs, std::string const& ifname) {
    for (auto const& entry : entries(fs::path(sysfs) / "class/net" / ifname / "device")) {
        auto const name = entry.filename().string();
        for (auto const* part : {".rdma.", ".roce.", ".iwarp."})
            if (name.find(part) != std::string::npos) return true;
        if (name == "infiniband") return true;
    }
    return false;
}

}  // namespace vfmgr::guest
