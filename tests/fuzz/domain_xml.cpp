// SPDX-License-Identifier: Apache-2.0
// Any bytes as a domain's XML: no crash, and the result fulfils the parser's promises.
#include "vfmgr/hypervisor/domain_xml.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/require.hpp"
#include "vfmgr/hypervisor/domain_xml.hpp"

namespace {

// The XML that vfmgr writes for a parsed device parses as the same device.
void round_trip(vfmgr::DomainHostdev const& hostdev) {
    // XML can't carry control characters, and libvirt refuses such aliases.
    auto const alias = hostdev.alias.value_or("ua-vfmgr-00000000");
    for (char const c : alias)
        if (static_cast<unsigned char>(c) < 0x20) return;
    auto const again = vfmgr::parse_domain_xml("<domain><name>a</name><uuid>b</uuid><devices>" +
                                               vfmgr::to_xml({hostdev.pci, alias, hostdev.guest}) +
                                               "</devices></domain>");
    require(again && again->hostdevs.size() == 1 && again->hostdevs[0].pci == hostdev.pci &&
            again->hostdevs[0].alias == alias && again->hostdevs[0].guest == hostdev.guest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const domain = vfmgr::parse_domain_xml({reinterpret_cast<char const*>(data), size});
    if (!domain) {
        require(!domain.error().detail.empty() && !domain.error().remedy.empty());
        return 0;
    }
    require(!domain->name.empty() && !domain->uuid.empty());
    require(std::ranges::is_sorted(domain->guest_addresses));
    require(!domain->vsock_cid || domain->has_vsock);
    for (auto const& hostdev : domain->hostdevs) {
        require(vfmgr::find_host_pci(*domain, hostdev.pci) != nullptr);
        round_trip(hostdev);
    }
    for (auto const& guest : domain->guest_addresses) require(!vfmgr::can_place(*domain, guest));
    auto const vm = vfmgr::vm_info(&*domain, &*domain, domain->networks);
    require(vm.live.size() == domain->hostdevs.size() && vm.hostdev_networks == domain->networks);
    require(vm.interfaces == domain->interfaces);
    for (auto const& interface : vm.interfaces)
        require(!interface.pci || vfmgr::find_host_pci(*domain, *interface.pci) != nullptr);
    return 0;
}
