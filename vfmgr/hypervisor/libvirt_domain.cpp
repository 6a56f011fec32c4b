// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_domain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vfmgr/hypervisor/domain_xml.hpp"
#include "vfmgr/hypervisor/libvirt_error.hpp"
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"

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

Result<std::vector<VirDomain>> list_domains(virConnectPtr connection, unsigned flags) {
    virDomainPtr* domains = nullptr;
    int const count = virConnectListAllDomains(connection, &domains, flags);
    if (count < 0)
        return fail(libvirt_error("virConnectListAllDomains", "libvirt did not list its VMs"));
    VirText const array(reinterpret_cast<char*>(domains));
    return std::vector<VirDomain>(domains, domains + count);
}

std::string uuid_of(virDomainPtr domain) {
    std::array<char, VIR_UUID_STRING_BUFLEN> text{};
    return virDomainGetUUIDString(domain, text.data()) == 0 ? text.data() : "";
}

Result<VirDomain> find_domain(virConnectPtr connection, std::string const& uuid) {
    VirDomain domain(virDomainLookupByUUIDString(connection, uuid.c_str()));
    if (!domain)
        return fail(libvirt_error("virDomainLookupByUUIDString",
                                  fmt::format("libvirt can't find VM {}", uuid)));
    return domain;
}

Result<bool> is_persistent(virDomainPtr domain) {
    std::string const name = virDomainGetName(domain);
    int const persistent = virDomainIsPersistent(domain);
    if (persistent < 0) return fail(unreadable("virDomainIsPersistent", name));
    return persistent == 1;
}

Result<bool> starts_itself(virDomainPtr domain) {
    std::string const name = virDomainGetName(domain);
    int autostart = 0;
    if (virDomainGetAutostart(domain, &autostart) < 0)
        return fail(unreadable("virDomainGetAutostart", name));
    return autostart == 1;
}

Result<LibvirtDomain> read_domain(virDomainPtr domain, bool persistent,
                                  std::vector<std::string> const& hostdev_networks) {
    LibvirtDomain read;
    std::string const name = virDomainGetName(domain);
    // Without flags libvirt returns the live XML of a running domain, otherwise the config, which
    // then need not be read again; only the live one has a start id. The domain may start or stop
    // between any two calls.
    VFMGR_TRY(DomainXml now, read_xml(domain, 0, name));
    if (now.start_id) {
        read.live = std::move(now);
        if (persistent) {
            VFMGR_TRY(read.config, read_xml(domain, VIR_DOMAIN_XML_INACTIVE, name));
        }
    } else if (persistent) {
        read.config = std::move(now);
    }
    if (!read.live && !read.config)
        return fail(Problem::not_found, fmt::format("VM {} has stopped and is transient", name),
                    "list the VMs that libvirt knows: virsh list --all");
    read.info = vm_info(read.live ? &*read.live : nullptr, read.config ? &*read.config : nullptr,
                        hostdev_networks);
    int state = VIR_DOMAIN_SHUTOFF;  // without a live XML: that needs no call
    if (read.live && virDomainGetState(domain, &state, nullptr, 0) < 0)
        return fail(unreadable("virDomainGetState", name));
    read.info.state = vm_state(state);
    return read;
}

Result<LibvirtDomain> describe_domain(virDomainPtr domain, std::vector<std::string> const& pools) {
    VFMGR_TRY(bool const persistent, is_persistent(domain));
    VFMGR_TRY(auto read, read_domain(domain, persistent, pools));
    if (persistent) {
        VFMGR_TRY(read.info.autostart, starts_itself(domain));
    }
    return read;
}

// Since 10.0.0 libvirt recognises VFIO by the device; before, by the driver's name
// (LIBVIRT.md#variant-drivers). The daemon's version counts, not the library's.
Result<bool> takes_vfio_variants(virConnectPtr connection) {
    constexpr unsigned long first_version = 10'000'000;
    unsigned long version = 0;
    if (virConnectGetLibVersion(connection, &version) < 0)
        return fail(libvirt_error("virConnectGetLibVersion", "libvirt did not report its version"));
    return version >= first_version;
}

Result<std::vector<std::string>> read_hostdev_pools(virConnectPtr connection) {
    virNetworkPtr* networks = nullptr;
    int const count = virConnectListAllNetworks(connection, &networks, 0);
    if (count < 0) {
        // No VM gets a network's VF while virtnetworkd can't be asked for one.
        if (auto const* const last = virGetLastError(); last && lacks_other_daemon(*last))
            return std::vector<std::string>{};
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
