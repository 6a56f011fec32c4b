// SPDX-License-Identifier: Apache-2.0
// One change of the host. A Step is a value with JSON. The journal's records and the messages to
// workers contain this same type, and so will the broker's list of permitted operations. Each
// step's name in JSON is permanent: old journals hold it.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/firmware.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/pf_state.hpp"
#include "api/types/rdma.hpp"
#include "api/types/vm_info.hpp"

namespace vfmgr {

// All of the host's network devices and RDMA links, on any NIC or on none, such as a bond.
struct HostNetwork {
    auto operator<=>(HostNetwork const&) const = default;
};
// What a kernel step changes, and one worker serves: the host's network, or a PF with its VFs.
using KernelSubject = std::variant<HostNetwork, PciAddress>;
[[nodiscard]] std::string to_string(KernelSubject const& subject);

// --- steps of the kernel -------------------------------------------------------------------

// Goes through 0 when the count is neither 0 nor unchanged: every VF of the PF is made anew,
// unbound (autoprobe off, restored after).
struct SetNumVfs {
    static constexpr std::string_view step_name = "set_num_vfs";
    PciAddress pf;
    std::uint16_t count = 0;
    bool operator==(SetNumVfs const&) const = default;
};
// All attribute changes of a PF's VFs: one step, one journal record. Read back after.
struct ConfigureVfs {
    static constexpr std::string_view step_name = "configure_vfs";
    PciAddress pf;
    std::vector<VfChange> changes;
    std::vector<std::string> best_effort;  // members that the driver may refuse
    bool operator==(ConfigureVfs const&) const = default;
};
// Binds each VF to this driver, from whatever driver it has; absent: unbind. One check of their
// users covers all of them, and any user is named before the first VF is touched.
struct BindVfs {
    static constexpr std::string_view step_name = "bind_vfs";
    PciAddress pf;
    std::vector<std::uint16_t> vfs;
    std::optional<std::string> driver;
    bool operator==(BindVfs const&) const = default;
};
// Function level reset.
struct ResetVf {
    static constexpr std::string_view step_name = "reset_vf";
    VfId vf;
    bool operator==(ResetVf const&) const = default;
};
// State that other steps change while they run. It is part of their undo, because a process that
// dies in the middle of such a step leaves it changed. No plan contains this step.
struct SetPciValues {
    static constexpr std::string_view step_name = "set_pci_values";
    PciAddress pf;
    std::optional<bool> drivers_autoprobe{};
    std::vector<std::uint16_t> no_override{};  // VFs whose driver_override is to be cleared
    std::vector<VfResetMethods> reset_methods{};
    bool operator==(SetPciValues const&) const = default;
};
struct SetLink {
    static constexpr std::string_view step_name = "set_link";
    InterfaceId interface;
    bool up = false;
    std::uint32_t mtu = 1500;
    bool operator==(SetLink const&) const = default;
};
// Nothing on the host changes: waits until the interface, which is up, has carrier. A step of its
// own, because others need not wait for the link's training (links.hpp).
struct AwaitCarrier {
    static constexpr std::string_view step_name = "await_carrier";
    InterfaceId interface;
    bool operator==(AwaitCarrier const&) const = default;
};
struct AddVlanInterface {
    static constexpr std::string_view step_name = "add_vlan_interface";
    InterfaceId interface;  // with a vlan; the netdev's ifalias marks it as ours
    bool operator==(AddVlanInterface const&) const = default;
};
struct RemoveVlanInterface {
    static constexpr std::string_view step_name = "remove_vlan_interface";
    InterfaceId interface;
    bool operator==(RemoveVlanInterface const&) const = default;
};
// The host's own address, /32 or /128: it never routes a whole prefix to a tenant's VLAN. Before
// the address exists, it is closed to everything but the responder's traffic.
struct AddAddress {
    static constexpr std::string_view step_name = "add_address";
    InterfaceId interface;
    IpAddress address;
    bool operator==(AddAddress const&) const = default;
};
struct RemoveAddress {
    static constexpr std::string_view step_name = "remove_address";
    InterfaceId interface;
    IpAddress address;
    bool operator==(RemoveAddress const&) const = default;
};
// A /32 route to one VF's address and a permanent neighbour entry with the VF's MAC: what the host
// sends to that address reaches that VF or nothing.
struct AddPeer {
    static constexpr std::string_view step_name = "add_peer";
    InterfaceId interface;
    IpAddress address;
    MacAddress mac;
    IpAddress source;          // the host's address on the interface
    bool guest_plane = false;  // opens guest_plane_port there for exactly this MAC and address
    bool operator==(AddPeer const&) const = default;
};
struct RemovePeer {
    static constexpr std::string_view step_name = "remove_peer";
    InterfaceId interface;
    IpAddress address;
    bool operator==(RemovePeer const&) const = default;
};
// SoftRoCE on the PF's netdev (a VLAN device refuses it; the VLAN's GID appears on the parent's).
struct AddRdmaLink {
    static constexpr std::string_view step_name = "add_rdma_link";
    PciAddress pf;
    bool operator==(AddRdmaLink const&) const = default;
};
struct RemoveRdmaLink {
    static constexpr std::string_view step_name = "remove_rdma_link";
    PciAddress pf;
    bool operator==(RemoveRdmaLink const&) const = default;
};
// A link that was requested by name, on a netdev of any kind.
struct AddSoftRdmaLink {
    static constexpr std::string_view step_name = "add_soft_rdma_link";
    SoftRdmaLink link;
    bool operator==(AddSoftRdmaLink const&) const = default;
};
// Its users are checked once more right before; `force`: removed despite any user, except
// processes.
struct RemoveSoftRdmaLink {
    static constexpr std::string_view step_name = "remove_soft_rdma_link";
    std::string name;
    bool force = false;
    bool operator==(RemoveSoftRdmaLink const&) const = default;
};

// Settings that the card of this function takes over at its next reset. Nothing is reset.
struct SetFirmware {
    static constexpr std::string_view step_name = "set_firmware";
    PciAddress pf;
    FirmwareSettings settings;
    FirmwareSettings was;  // the same members, as observed before it
    bool operator==(SetFirmware const&) const = default;
};
// The VF becomes an external holder's; `uid` gets its VFIO nodes, which who performs the step finds
// by the VF's IOMMU group. Refuses a VF that a process holds open.
struct AttachExternal {
    static constexpr std::string_view step_name = "attach_external";
    VfId vf;
    std::string holder;  // its name
    std::optional<std::uint32_t> uid{};
    bool operator==(AttachExternal const&) const = default;
};
// `owner` gets the nodes back at once, so that nobody else opens them. Done only when no process
// holds the VF; nothing is waited for, and nothing killed.
struct DetachExternal {
    static constexpr std::string_view step_name = "detach_external";
    VfId vf;
    std::string holder;
    std::optional<std::uint32_t> owner{};
    bool operator==(DetachExternal const&) const = default;
};

// --- steps of the hypervisor ---------------------------------------------------------------

struct AttachHostdev {
    static constexpr std::string_view step_name = "attach_hostdev";
    std::string vm_uuid;
    std::string attachment;  // id; the alias is hostdev_alias(id)
    VfId vf;
    PciAddress pci;
    std::optional<MacAddress> mac;
    bool live = false;
    bool config = false;
    std::string vm{};                           // for people; the UUID decides
    std::optional<PciAddress> guest_address{};  // absent: libvirt chooses
    bool operator==(AttachHostdev const&) const = default;
};
// Done only when the live XML no longer has it and no process holds the VF's group.
struct DetachHostdev {
    static constexpr std::string_view step_name = "detach_hostdev";
    std::string vm_uuid;
    std::string attachment;
    VfId vf;
    PciAddress pci;
    bool live = false;
    bool config = false;
    std::string vm{};
    // An adopted VF: a running VM has it under the alias that it had before, until it stops.
    std::optional<bool> by_address{};
    bool operator==(DetachHostdev const&) const = default;
};
// Names the <hostdev> that the VM has at `pci` in its persistent XML, and says who binds it. The
// running VM keeps what it has: nothing is plugged in or unplugged.
struct MarkHostdev {
    static constexpr std::string_view step_name = "mark_hostdev";
    std::string vm_uuid;
    std::string attachment;
    VfId vf;
    PciAddress pci;
    bool config = false;  // false: the persistent XML does not have it, and stays as it is
    std::optional<std::string> alias{};  // of the attachment; in the undo, the one before
    bool managed = false;
    std::string vm{};
    bool operator==(MarkHostdev const&) const = default;
};
// Gives the VM a vsock device, over which it reports. Nothing takes it away again: not the end of
// the attachment, because the next one needs it too, and not an undo, because a running VM would
// have to release it.
struct AddVsock {
    static constexpr std::string_view step_name = "add_vsock";
    std::string vm_uuid;
    VfId vf;  // that is to be verified
    bool live = false;
    bool config = false;
    std::string vm{};
    bool operator==(AddVsock const&) const = default;
};

// Puts host devices of a VM that is shut off at these places of its PCI tree, in its persistent
// XML. What an earlier such step placed goes back to where it was; with no devices, all of it.
struct PlaceHostdevs {
    static constexpr std::string_view step_name = "place_hostdevs";
    std::string vm_uuid;
    std::vector<PlacedHostdev> hostdevs;
    std::string vm;
    bool operator==(PlaceHostdevs const&) const = default;
};

// --- a step of the guest -------------------------------------------------------------------

// Nothing on the host changes: waits until the guest has proved RDMA, or the deadline.
struct AwaitVerification {
    static constexpr std::string_view step_name = "await_verification";
    std::string attachment;
    std::uint32_t timeout_seconds = 120;
    bool operator==(AwaitVerification const&) const = default;
};

using KernelStep =
    std::variant<SetNumVfs, ConfigureVfs, BindVfs, ResetVf, SetLink, AddVlanInterface,
                 RemoveVlanInterface, AddAddress, RemoveAddress, AddPeer, RemovePeer, AddRdmaLink,
                 RemoveRdmaLink, SetFirmware, AddSoftRdmaLink, RemoveSoftRdmaLink, SetPciValues,
                 AwaitCarrier, AttachExternal, DetachExternal>;
using HypervisorStep =
    std::variant<AttachHostdev, DetachHostdev, MarkHostdev, AddVsock, PlaceHostdevs>;
using Step = std::variant<KernelStep, HypervisorStep, AwaitVerification>;

// Returns the step if it is an S, otherwise null.
template <class S>
[[nodiscard]] S const* as(Step const& step) {
    return std::visit(
        []<class Part>(Part const& part) -> S const* {
            if constexpr (std::is_same_v<Part, S>)
                return &part;
            else if constexpr (std::is_constructible_v<Part, S>)
                return std::get_if<S>(&part);
            else
                return nullptr;
        },
        step);
}
// Calls `f` with the step itself: a SetNumVfs, a DetachHostdev, …
template <class F>
decltype(auto) visit_step(F&& f, Step const& step) {
    return std::visit(
        [&]<class Part>(Part const& part) -> decltype(auto) {
            if constexpr (std::is_same_v<Part, AwaitVerification>)
                return f(part);
            else
                return std::visit(f, part);
        },
        step);
}

[[nodiscard]] KernelSubject subject_of(KernelStep const& step);
// The subject of one kind of KernelStep.
template <class S>
[[nodiscard]] KernelSubject subject_in(S const& step) {
    if constexpr (std::is_same_v<S, AddSoftRdmaLink> || std::is_same_v<S, RemoveSoftRdmaLink>)
        return HostNetwork{};
    else if constexpr (requires { step.vf.pf; })
        return step.vf.pf;
    else if constexpr (requires { step.interface.pf; })
        return step.interface.pf;
    else
        return step.pf;
}

// "bind_vfs": the kind of step, as in JSON.
[[nodiscard]] inline std::string_view name_of(Step const& step) {
    return visit_step([](auto const& one) { return one.step_name; }, step);
}
// One sentence for people, in the imperative: "create 7 VFs on 0000:01:00.0".
[[nodiscard]] std::string sentence(Step const& step);
// "vlan 100 qos 0 802.1q, mac 52:54:00:11:22:33, trust on".
[[nodiscard]] std::string settings_sentence(VfSpec const& settings);

// {"step": "reset_vf", "vf": …}
void to_json(nlohmann::json& out, Step const& step);
void append_json(std::string& text, VfChange const& change);
void append_json(std::string& text, Step const& step);
void read(JsonReader& reader, Step& step);

}  // namespace vfmgr
