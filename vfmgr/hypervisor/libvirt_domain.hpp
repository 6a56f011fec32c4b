// SPDX-License-Identifier: Apache-2.0
// Owning pointers to libvirt's objects. Any thread; releasing a connection may block.
#pragma once

#include <libvirt/libvirt.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "api/os/handle.hpp"
#include "api/types/vm_info.hpp"
#include "vfmgr/hypervisor/domain_xml.hpp"

namespace vfmgr {

using VirConnect = Handle<virConnect, virConnectClose>;
using VirDomain = Handle<virDomain, virDomainFree>;
using VirNetwork = Handle<virNetwork, virNetworkFree>;
using VirText = Handle<char, std::free>;

// Reads one whole domain. Calls libvirt: only inside LibvirtSession::call().

struct LibvirtDomain {
    VmInfo info;
    std::optional<DomainXml> live;    // absent: it does not run
    std::optional<DomainXml> config;  // absent: transient
};

// All domains, or those that flags of virConnectListAllDomains() select.
[[nodiscard]] Result<std::vector<VirDomain>> list_domains(virConnectPtr connection, unsigned flags);

[[nodiscard]] std::string uuid_of(virDomainPtr domain);

// not_found when libvirt has no such domain.
[[nodiscard]] Result<VirDomain> find_domain(virConnectPtr connection, std::string const& uuid);

// One call each. The list of domains contains both for all of them.
[[nodiscard]] Result<bool> is_persistent(virDomainPtr domain);
[[nodiscard]] Result<bool> starts_itself(virDomainPtr domain);

// All but autostart. Makes as few calls as possible: on a host with many VMs their answers are what
// an observation waits for. not_found when the domain goes while it is read.
[[nodiscard]] Result<LibvirtDomain> read_domain(virDomainPtr domain, bool persistent,
                                                std::vector<std::string> const& hostdev_networks);

// read_domain() and autostart.
[[nodiscard]] Result<LibvirtDomain> describe_domain(
    virDomainPtr domain, std::vector<std::string> const& hostdev_networks);
// This libvirt accepts VFs that are bound to a variant of vfio-pci.
[[nodiscard]] Result<bool> takes_vfio_variants(virConnectPtr connection);

// Names of the networks that attach VFs by themselves. A libvirt without a network driver has none,
// nor has a modular one whose virtnetworkd does not run.
[[nodiscard]] Result<std::vector<std::string>> read_hostdev_pools(virConnectPtr connection);

}  // namespace vfmgr
