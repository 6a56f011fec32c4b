// SPDX-License-Identifier: Apache-2.0
// A virtual machine as libvirt describes it, limited to what attaching a VF needs. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/verification.hpp"

namespace vfmgr {

enum class VmState { running, paused, shut_off, other };

// A PCI device in a domain's XML, from <hostdev> and <interface type='hostdev'> alike.
struct VmHostdev {
    PciAddress pci;
    std::optional<std::string> alias;  // "ua-vfmgr-…" for ours
    // Where the VM finds it, independent of the firmware's bus numbers: the root bus number, then
    // slot and function of each port on the path, and its own, as in sysfs: "00/02.1/00.0". Absent:
    // libvirt has not placed it yet.
    std::optional<std::string> in_guest{};
    // libvirt binds it to VFIO when the VM gets it, and to the host's driver when it loses it.
    bool managed = false;
    bool operator==(VmHostdev const&) const = default;
};

// The device at this address of the host; nullptr: there is none.
[[nodiscard]] VmHostdev const* find_hostdev(std::vector<VmHostdev> const& hostdevs,
                                            PciAddress const& pci);
// Whether it is named after an attachment, by hostdev_alias().
[[nodiscard]] bool is_ours(VmHostdev const& hostdev);

// An <interface> of a domain's XML.
struct VmInterface {
    MacAddress mac;
    std::string type;               // "network", "bridge", "direct", "hostdev"
    std::optional<PciAddress> pci;  // the host's device, of a hostdev
    bool standby = false;           // a VF with its MAC takes its place: teaming of type persistent
    bool operator==(VmInterface const&) const = default;
};

// VFs that a VM's XML declares in its metadata, to be attached at each start.
struct DeclaredVfs {
    std::string pool;
    std::uint32_t count = 1;                  // at most 32, of all that a VM declares
    std::optional<Profile> verify_profile{};  // absent: the pool's
    bool operator==(DeclaredVfs const&) const = default;
};

// Where vfmgr puts a host device into a VM's PCI tree, so that the VM finds near what is near.
struct PlacedHostdev {
    PciAddress pci;                       // on the host
    std::optional<std::uint32_t> cell{};  // the VM's NUMA cell that it is at; absent: none
    std::vector<std::uint32_t>
        switches{};  // that it is below, from the root down; numbers are free
    bool operator==(PlacedHostdev const&) const = default;
};

// What placing can use of a VM's persistent XML; what an earlier placing added counts as free.
struct GuestPcie {
    std::uint32_t next_bus = 1;             // libvirt's number of the next controller
    std::vector<std::uint32_t> free_slots;  // of the PCIe root, for ports
    // By NUMA cell of the VM: the host's one node that its memory is bound to (<memnode>); -1: to
    // none, or to several. Empty also for a VM that has expander buses of its own.
    std::vector<std::int32_t> cell_nodes;
    std::vector<PlacedHostdev> placed;  // by vfmgr, now
    bool operator==(GuestPcie const&) const = default;
};

struct VmInfo {
    std::string uuid;
    std::string name;
    VmState state = VmState::other;
    bool persistent = false;
    bool autostart = false;
    std::optional<std::int32_t> start_id;    // libvirt's domain id; changes with each start
    std::optional<std::uint32_t> vsock_cid;  // live; absent: no vsock device, or not running
    bool has_vsock = false;                  // in the persistent XML, or live if transient
    std::uint32_t free_pcie_ports = 0;       // root or downstream ports that can take a hot-plug
    // Guest addresses, as in libvirt's <address type='pci'>, at which a device can be put: into the
    // running VM, or into its persistent XML.
    std::vector<PciAddress> free_live, free_config;
    std::vector<VmHostdev> live;                // empty when not running
    std::vector<VmHostdev> config;              // empty when transient
    std::vector<VmInterface> interfaces;        // of live and persistent XML, each once
    std::vector<std::string> hostdev_networks;  // hostdev-mode libvirt networks that it uses
    std::vector<DeclaredVfs> declared;          // in the XML that it runs with, or will
    std::optional<std::string> declared_wrong;  // why that can't be read; then `declared` is empty
    std::optional<GuestPcie> pcie;              // absent: transient, or its machine has no PCIe
    bool operator==(VmInfo const&) const = default;
};

// One run of a VM, from start to stop. Includes the start id: CIDs are reused at once when a VM
// stops (vfmgr/hypervisor/LIBVIRT.md#vsock-cids).
struct VmIdentity {
    std::string uuid;
    std::string name;
    std::int32_t start_id = 0;
    bool operator==(VmIdentity const&) const = default;
};

extern template struct Json<VmInterface>;
extern template struct Json<DeclaredVfs>;
extern template struct Json<PlacedHostdev>;
extern template struct Json<GuestPcie>;
extern template struct Json<VmInfo>;
extern template struct Json<VmIdentity>;

}  // namespace vfmgr
