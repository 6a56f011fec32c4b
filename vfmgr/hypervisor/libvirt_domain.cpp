// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_domain.hpp"

#include <fmt/format.h>

#include "vfmgr/hypervisor/libvirt_error.hpp"

namespace vfmgr {
namespace {

VmState vm_state(int state) {
    switch (state) {
        case VIR_DOMAIN_RUNNING:
        case VIR_DOMAIN_BLOCKED:
            return VmState::running;
        case VIR_DOMAIN_PAUSED:
        case VIR_DOMAIN_PMSUSPENDED:
            return VmState::paused;
        case VIR_DOMAIN_SHUTOFF:
            return VmState::shut_off;
        default:
            return VmState::other;
    }
}

// Every libvirt call clears the last error, virDomainGetName() too: names are read first.
Result<DomainXml> read_xml(virDomainPtr domain, unsigned flags, std::string const& name) {
    VirText const xml(virDomainGetXMLDesc(domain, flags));
    if (!xml)
        return fail(libvirt_error("virDomainGetXMLDesc",
                                  fmt::format("libvirt returned no XML of VM {}", name)));
    return parse_domain_xml(xml.get());
}

Error unreadable(std::string call, std::string const& name) {
    return libvirt_error(std::move(call),
                         fmt::format("libvirt did not report the state of VM {}", name));
}

}  // namespace

Result<VirDomain> find_domain(virConnectPtr connection, std::string const& uuid) {
    VirDomain domain(virDomainLookupByUUIDString(connection, uuid.c_str()));
    if (!domain)
        return fail(libvirt_error("virDomainLookupByUUIDString",
                                  fmt::format("libvirt can't find VM {}", uuid)));
    return domain;
}

Result<LibvirtDomain> read_domain(virDomainPtr domain,
                                  std::vector<std::string> const& hostdev_networks) {
    LibvirtDomain read;
    std::string const name = virDomainGetName(domain);
    int const persistent = virDomainIsPersistent(domain);
    if (persistent < 0) return fail(unreadable("virDomainIsPersistent", name));
    // Without flags libvirt returns the live XML of a running domain, otherwise the config, which
    // then need not be read again; only the live one has a start id. The domain may start or stop
    // between any two calls.
    VFMGR_TRY(DomainXml now, read_xml(domain, 0, name));
    if (now.start_id) {
        read.live = std::move(now);
        if (persistent == 1) {
            VFMGR_TRY(read.config, read_xml(domain, VIR_DOMAIN_XML_INACTIVE, name));
        }
    } else if (persistent == 1) {
        read.config = std::move(now);
    }
    if (!read.live && !read.config)
        return fail(Problem::not_found, fmt::format("VM {} has stopped and is transient", name),
                    "list the VMs that libvirt knows: virsh list --all");
    read.info = vm_info(read.live ? &*read.live : nullptr, read.config ? &*read.config : nullptr,
                        hostdev_networks);

    int state = VIR_DOMAIN_NOSTATE;
    if (virDomainGetState(domain, &state, nullptr, 0) < 0)
        return fail(unreadable("virDomainGetState", name));
    read.info.state = vm_state(state);
    int autostart = 0;
    if (read.config && virDomainGetAutostart(domain, &autostart) < 0)
        return fail(unreadable("virDomainGetAutostart", name));
    read.info.autostart = autostart == 1;
    return read;
}

Result<std::vector<std::string>> read_hostdev_pools(virConnectPtr connection) {
    virNetworkPtr* networks = nullptr;
    int const count = virConnectListAllNetworks(connection, &networks, 0);
    if (count < 0) {
        auto error =
            libvirt_error("virConnectListAllNetworks", "libvirt did not list its networks");
        if (is_libvirt_code(error, "VIR_ERR_NO_SUPPORT")) return std::vector<std::string>{};
        return fail(std::move(error));
    }
    std::vector<VirNetwork> owned(networks, networks + count);
    VirText const array(reinterpret_cast<char*>(networks));
    std::vector<std::string> pools;
    for (auto const& network : owned) {
        std::string const name = virNetworkGetName(network.get());
        VirText const xml(virNetworkGetXMLDesc(network.get(), 0));
        if (!xml) {
            auto error = libvirt_error("virNetworkGetXMLDesc",
                                       fmt::format("libvirt returned no XML of network {}", name));
            if (is_libvirt_code(error, "VIR_ERR_NO_NETWORK")) continue;
            return fail(std::move(error));
        }
        VFMGR_TRY(std::optional<std::string> const pool, hostdev_pool_name(xml.get()));
        if (pool) pools.push_back(*pool);
    }
    return pools;
}

}  // namespace vfmgr
