// SPDX-License-Identifier: Apache-2.0
// Reads a libvirt domain XML, live or inactive, as far as attaching a VF needs it. Pure functions
// that own nothing; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/problem.hpp"
#include "api/types/vm_info.hpp"
#include "vfmgr/hypervisor/declared_vfs.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// A host PCI device that the domain takes: <hostdev>, <interface type='hostdev'>, NVMe <disk>.
struct DomainHostdev {
    PciAddress pci;                    // on the host
    std::optional<std::string> alias;  // inactive XML keeps only those that begin with "ua-"
    std::optional<PciAddress> guest;   // its address in the guest; absent: not assigned yet
    bool managed = false;              // libvirt binds it, and gives it the host's driver again
    bool operator==(DomainHostdev const&) const = default;
};

// A PCI(e) controller: the bus that it provides.
struct DomainBus {
    std::uint8_t bus = 0;
    std::string model;                   // "pcie-root-port"
    std::optional<PciAddress> at{};      // the controller's own address; absent for a root
    std::optional<std::uint8_t> root{};  // a root's number in the VM
};

struct DomainXml {
    std::string uuid;
    std::string name;
    std::optional<std::int32_t> start_id;  // libvirt's domain id; present in live XML only
    bool has_vsock = false;
    std::optional<std::uint32_t> vsock_cid;  // absent: libvirt chooses it when the domain starts
    std::vector<DomainHostdev> hostdevs;
    std::vector<VmInterface> interfaces;
    std::vector<std::string> networks;        // libvirt networks its interfaces name; once each
    std::vector<DomainBus> buses;             // by bus
    std::vector<PciAddress> guest_addresses;  // taken in the guest, ascending
    std::uint32_t unplaced_devices = 0;       // that will need a PCI place and have none yet
    std::vector<PciAddress> free_addresses;   // at which a device can be plugged in, ascending
    std::uint32_t free_ports = 0;             // that can take a hot-plugged device
    DeclaredXml declared;
    std::optional<GuestPcie> pcie{};
};

[[nodiscard]] Result<DomainXml> parse_domain_xml(std::string_view xml);

[[nodiscard]] DomainHostdev const* find_alias(DomainXml const& domain, std::string_view alias);
[[nodiscard]] DomainHostdev const* find_host_pci(DomainXml const& domain, PciAddress const& pci);
// As VmHostdev.in_guest, for an address in the domain's XML.
[[nodiscard]] std::optional<std::string> path_in_guest(DomainXml const& domain,
                                                       PciAddress const& guest);
// True when the bus exists in this domain and nothing is at the address: a device may be placed
// there.
[[nodiscard]] bool can_place(DomainXml const& domain, PciAddress const& guest);

// Returns a libvirt network's name if the network attaches VFs by itself (<forward
// mode='hostdev'>).
[[nodiscard]] Result<std::optional<std::string>> hostdev_pool_name(std::string_view network_xml);

// Combines both XMLs of one domain; `live` is null when it does not run, `config` when it is
// transient. One of them must be present. State and autostart are the caller's.
[[nodiscard]] VmInfo vm_info(DomainXml const* live, DomainXml const* config,
                             std::vector<std::string> const& hostdev_networks);

// Writes the <hostdev> that gives a VM its VF; without an address in the guest libvirt chooses one.
// managed='no': vfmgr alone binds and resets VFs, so a VM whose VF is not yet restored and checked
// can't start with another owner's. Not <interface type='hostdev'>: libvirt would set MAC and VLAN
// itself, and on InfiniBand it can't (LIBVIRT.md#hostdev-not-interface).
[[nodiscard]] std::string to_xml(DomainHostdev const& hostdev);
// Writes a <vsock> whose CID libvirt chooses at each start.
[[nodiscard]] std::string vsock_xml();

// Checks whether a domain already has an attachment's VF, or something that prevents adding it.
// Pure.

enum class Presence { absent, present };
// Which of a domain's two XMLs.
enum class XmlPart { live, config };

// present: what the step should achieve already holds. vf_in_use: the VF is there under another
// alias, so it is another owner's. conflict: our alias names another PCI device (the VF has moved
// since).
[[nodiscard]] Result<Presence> presence(DomainXml const& domain, XmlPart part,
                                        AttachHostdev const& step);

}  // namespace vfmgr
