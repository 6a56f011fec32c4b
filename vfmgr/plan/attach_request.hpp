// SPDX-License-Identifier: Apache-2.0
// What plans of an attachment and of its change have in common. Pure. Defined in
// plan_attachment.cpp and, where it is about the VM, in place_in_vm.cpp; plan_change.cpp uses it,
// too.
#pragma once

#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/select.hpp"

namespace vfmgr {

// All inputs of the decisions about the attachment, gathered once.
struct AttachRequest {
    HostView const& host;
    DesiredState const& desired;
    Resolved const& request;
    AttachmentSpec const& spec;  // the request's
    PfState const& pf;
    PfSpec const& pf_spec;
    VmInfo const& vm;
    Network const* network;  // nullptr: none requested
};

// Refuses a PF that vfmgr only observes. Points into `desired`.
[[nodiscard]] Result<DesiredPf const*> managed_pf(DesiredState const& desired, PfState const& pf);
// The network that the spec names, which the PF must carry; nullptr: none.
[[nodiscard]] Result<Network const*> named_network(PfState const& pf, Networks const& networks,
                                                   AttachmentSpec const& spec);
// Refuses a network whose VLAN device another program keeps unfit, and one where the VM would reach
// programs of the host.
[[nodiscard]] Result<void> check_network(AttachRequest const& ask);
// vfio-pci or the PF's variant of it; says why not the variant.
[[nodiscard]] std::string choose_vfio_driver(AttachRequest const& ask, Plan& plan);
// Decides where the device goes: into the running VM, its persistent XML, or both; sets `live` and
// `config`.
[[nodiscard]] Result<void> place(AttachRequest const& ask, Attachment& attachment, Plan& plan);
// What the placed attachment's VM lacks of a vsock device, if the request adds one.
[[nodiscard]] std::optional<AddVsock> vsock_to_add(AttachRequest const& ask,
                                                   Attachment const& attachment);
// Whether the verification that the request names can be made.
[[nodiscard]] Result<void> check_verification(AttachRequest const& ask,
                                              Attachment const& attachment);
// Refuses a guest on TCP that the host could not tell from others, and holds the VF to its MAC.
[[nodiscard]] Result<void> fit_to_guest_plane(AttachRequest const& ask, VfState const& vf,
                                              VfSpec& settings, Plan& plan);
// True when the host knows the VM's packets by its MAC alone, so that the MAC must stay.
[[nodiscard]] bool is_closed_by_mac(AttachRequest const& ask);
// Gives settings what the network decides: its VLAN, and a spoof check where the host is closed by
// MAC. Refuses those that contradict it.
[[nodiscard]] Result<void> fit_to_network(AttachRequest const& ask, VfState const& vf,
                                          VfSpec& settings, Plan& plan);

// Plans the attachment of a VF of that PF.
[[nodiscard]] Result<AttachmentPlan> plan_on(HostView const& host, DesiredState const& desired,
                                             std::string const& id, Resolved const& request,
                                             PciAddress const& pci, std::string_view host_seed);
// Why a request that leaves the PF to vfmgr gets none; `refused`: the first plan that was refused.
[[nodiscard]] Error none_suits(HostView const& host, DesiredState const& desired,
                               Resolved const& request, std::vector<Candidate> const& candidates,
                               std::optional<Error> refused);

}  // namespace vfmgr
