// SPDX-License-Identifier: Apache-2.0
// An event: one change on this host, in the store and on the wire. Events are numbered in the order
// in which they became durable, and outlive what they are about. A value; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/types/addresses.hpp"
#include "api/types/attachment.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

enum class EventKind {
    operation_accepted,
    operation_succeeded,
    operation_failed,
    attaching,
    attached,
    attach_failed,
    attachment_changed,
    verified,  // a run ended, with this verdict
    detaching,
    detached,
    detach_failed,  // the VM kept the VF
    quarantined,
    quarantine_lifted,
    drift,    // the host differs from the desired state, and no vfmgr operation caused that
    settled,  // it matches the desired state again
    lost,     // drift that left a running VM without its VF
    repaired,
    repair_failed,  // what mode enforce did about drift
    pf_configured,
    pf_forgotten,
    pf_rekeyed,
    firmware_configured,
    pf_here,  // as the Standing of the same name, as are the next three
    pf_unbound,
    pf_renumbered,
    pf_gone,
    pf_stuck,
    pf_answers,  // it was stuck before
    pci_busy,
    pci_free,
    link_up,
    link_down,
    num_vfs_changed,
    rdma_link_configured,
    rdma_link_removed,
    network_changed,  // or it is new, as with the next
    network_removed,
    partition_changed,  // the lines that an InfiniBand subnet manager needs: vfctl ib partitions
    pool_changed,
    pool_removed,
    tenant_changed,
    tenant_removed,
    identities_changed,  // what this host may hand out
    reservation_made,    // or made again, of other VFs or for another time
    reservation_released,
    reservation_expired,
    fleet_joined,  // or what it knows of its fleet has changed
    fleet_left,
    token_created,
    token_rotated,
    token_revoked,
    vm_appeared,
    vm_started,
    vm_stopped,
    vm_disappeared,
    declaration_refused,  // a VM gets none of the VFs that its metadata declares
    libvirt_lost,
    libvirt_found,
    store_read_only,
    store_writable,
    vfmgrd_started  // what the host did meanwhile has no events: list again what you follow
};

// A member that the event is not about is absent.
struct Event {
    std::uint64_t number = 0;  // rises with time on this host; assigned by the store
    Time at{};
    EventKind kind = EventKind::drift;
    std::optional<PciAddress> pf{};
    std::optional<std::uint16_t> vf{};  // absent: the PF, and with it all of its VFs
    std::optional<std::string> attachment{};
    std::optional<std::string> vm{};  // its name
    std::optional<std::string> vm_uuid{};
    std::optional<std::string> rdma_link{};
    std::optional<std::string> network{};  // by name, as the next two: what changed itself
    std::optional<std::string> pool{};
    std::optional<std::string> reservation{};
    std::optional<std::string> tenant{};
    std::optional<std::string> token{};         // its id
    std::optional<std::string> operation{};     // the one that caused it; has the details
    std::optional<Verdict> verdict{};           // of the run that ended
    std::optional<std::uint64_t> because_of{};  // number of the event that caused it
    std::string detail{};                       // one sentence
    std::optional<Certificate> certificate{};   // of the detached VF
    bool operator==(Event const&) const = default;
};

extern template struct Json<Event>;
void append_json(std::string& text, Event const& event);

}  // namespace vfmgr
