// SPDX-License-Identifier: Apache-2.0
// Any text as each kind of configuration file: an owner has an effect, and a line that states it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "vfmgr/checks/host/sriov_owner_lines.hpp"
#include "vfmgr/checks/host/sriov_owners.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::checks;
    auto const require = [](bool promise) {
        if (!promise) std::abort();
    };
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    for (auto const path :
         {"/etc/systemd/network/a.link", "/etc/systemd/network/a.network",
          "/etc/NetworkManager/system-connections/a", "/etc/sysconfig/network-scripts/ifcfg-a",
          "/etc/netplan/a.yaml", "/etc/modprobe.d/a.conf", "/etc/udev/rules.d/a.rules",
          "/etc/systemd/system/a@.service", "/etc/network/interfaces", "/etc/crontab",
          "/etc/sriov-operator/sriov-interface-config.yaml", "/etc/sriov-operator/pci/a",
          "/etc/libvirt/qemu/networks/a.xml", "/etc/neutron/plugins/ml2/sriov_agent.ini",
          "/etc/nova/nova.conf"})
        for (auto const& owner : parse_sriov_owners(path, text)) {
            require(!owner.does.empty() && !owner.line.empty());
            require(text.find(owner.line) != text.npos);
            auto const lines = 1 + std::ranges::count(text, '\n');
            require(owner.line_number >= 1 && std::cmp_less_equal(owner.line_number, lines));
            auto const& of = owner.of;
            require(of.any() == (of.netdevs.size() + of.macs.size() + of.drivers.size() +
                                     of.pci.size() + of.ibdevs.size() ==
                                 0));
        }
    // Which devices a file of systemd is for: nothing that its text does not have.
    if (auto const match = parse_match(text))
        for (auto const& name : match->netdevs) require(text.find(name) != text.npos);
    return 0;
}
