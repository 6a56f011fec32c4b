// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/refresh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/types/event.hpp"
#include "api/types/json.hpp"

namespace vfmgr::fleet {
namespace {

enum class About { nothing, vf, pf, pfs, vm, vms, network, pool, identities, reservation, all };

// What events of VFs and PFs are about; absent: it is another kind.
std::optional<About> about_device(EventKind kind) {
    using enum EventKind;
    constexpr std::array of_vf{attaching,   attached,          attach_failed, attachment_changed,
                               verified,    detaching,         detached,      detach_failed,
                               quarantined, quarantine_lifted, drift,         settled,
                               lost,        repaired,          repair_failed};
    constexpr std::array of_pf{pf_configured,        pf_here,          pf_unbound, pf_stuck,
                               pf_answers,           link_up,          link_down,  num_vfs_changed,
                               rdma_link_configured, rdma_link_removed};
    // One PF fewer, or at another address; and what hinders all of them.
    constexpr std::array of_pfs{pf_forgotten, pf_rekeyed, pf_renumbered,
                                pf_gone,      pci_busy,   pci_free};
    if (std::ranges::find(of_vf, kind) != of_vf.end()) return About::vf;
    if (std::ranges::find(of_pf, kind) != of_pf.end()) return About::pf;
    if (std::ranges::find(of_pfs, kind) != of_pfs.end()) return About::pfs;
    return std::nullopt;
}

// What kinds of events are about. Everything, of a kind that nobody has decided about.
About about(EventKind kind) {
    if (auto const device = about_device(kind)) return *device;
    using enum EventKind;
    switch (kind) {
        // The attachment's own events follow.
        case operation_accepted:
        case operation_succeeded:
        case operation_failed:
        case firmware_configured:
        case partition_changed:
        case tenant_changed:
        case tenant_removed:
        case token_created:
        case token_rotated:
        case token_revoked:
        case declaration_refused:
        case store_read_only:
        case store_writable:
            return About::nothing;
        case vm_appeared:
        case vm_started:
        case vm_stopped:
        case vm_disappeared:
            return About::vm;
        case libvirt_lost:
        case libvirt_found:
            return About::vms;
        case network_changed:
        case network_removed:
            return About::network;
        case pool_changed:
        case pool_removed:
            return About::pool;
        case identities_changed:
            return About::identities;
        case reservation_made:
        case reservation_released:
        case reservation_expired:
            return About::reservation;
        default:
            return About::all;
    }
}

void add_vf(Refresh& refresh, Event const& event) {
    if (event.pf && event.vf)
        refresh.add({Collection::vfs, fmt::format("{}/{}", to_string(*event.pf), *event.vf)});
    else if (event.pf)
        refresh.add({Collection::pfs, to_string(*event.pf)});
    if (event.attachment) refresh.add({Collection::attachments, *event.attachment});
    if (event.vm_uuid) refresh.add({Collection::vms, *event.vm_uuid});
}

void add(Refresh& refresh, Event const& event) {
    switch (about(event.kind)) {
        case About::nothing:
            return;
        case About::vf:
            return add_vf(refresh, event);
        case About::pf:
            return refresh.add({Collection::pfs, event.pf ? to_string(*event.pf) : std::string()});
        case About::pfs:
            return refresh.add({Collection::pfs});
        case About::vm:
            return refresh.add({Collection::vms, event.vm_uuid.value_or("")});
        case About::vms:
            return refresh.add({Collection::vms});
        case About::network:
            refresh.add({Collection::networks});
            return refresh.add({Collection::pfs});
        case About::pool:
            return refresh.add({Collection::pools});
        case About::identities:
            return refresh.add({Collection::identities});
        case About::reservation:
            refresh.add({Collection::reservations});
            return refresh.add({Collection::pfs});
        case About::all:
            return refresh.all();
    }
}

}  // namespace

std::string path_of(Get const& get) {
    auto const& [collection, id] = get;
    if (collection == Collection::identities) return "/v1/identities";
    if (collection == Collection::vfs) {
        auto const slash = id.find('/');
        return fmt::format("/v1/pfs/{}/vfs/{}", id.substr(0, slash), id.substr(slash + 1));
    }
    auto const list = fmt::format("/v1/{}", enum_name(collection));
    return id.empty() ? list : fmt::format("{}/{}", list, id);
}

bool is_list(Get const& get) {
    return get.id.empty() && get.collection != Collection::identities;
}

void Refresh::note(std::string_view event) {
    auto const document = parse_json(event);
    auto const read = document ? from_json_document<Event>(*document, UnknownKeys::ignored)
                               : Result<Event>(fail(document.error()));
    if (!read) return all();
    fleet::add(*this, *read);
}

void Refresh::all() {
    for (auto const collection :
         {Collection::pfs, Collection::vms, Collection::attachments, Collection::networks,
          Collection::pools, Collection::reservations, Collection::identities})
        add({collection});
}

void Refresh::add(Get get) {
    gets_.insert(std::move(get));
}

std::optional<Get> Refresh::next() {
    if (gets_.empty()) return std::nullopt;
    auto const first = gets_.begin();
    auto get = *first;
    gets_.erase(first);
    return get;
}

}  // namespace vfmgr::fleet
