// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "vfmgr/plan/external.hpp"

namespace vfmgr {

void set_attachment(Event& event, Attachment const& attachment) {
    event.pf = attachment.vf.pf;
    event.vf = attachment.vf.index;
    event.attachment = attachment.id;
    event.vm = attachment.vm;
    event.vm_uuid = vm_uuid_of(attachment);
}

namespace {

// Returns what follows `prefix` up to the next '/', and removes both from `path`.
std::optional<std::string> take_id(std::string_view& path, std::string_view prefix) {
    if (!path.starts_with(prefix)) return std::nullopt;
    path.remove_prefix(prefix.size());
    std::string id(path.substr(0, path.find('/')));
    path.remove_prefix(id.size());
    return id;
}

// The attachment as the batch saves it, or as it was before.
Attachment const* find_attachment(std::string const& id, Batch const& batch,
                                  DesiredState const& before) {
    auto const saved = std::ranges::find(batch.save_attachments, id, &Attachment::id);
    if (saved != batch.save_attachments.end()) return &*saved;
    auto const known = before.attachments.find(id);
    return known == before.attachments.end() ? nullptr : &known->second;
}

// Sets what a subject names: "/v1/attachments/ID", "/v1/pfs/PF", "/v1/pfs/PF/vfs/3",
// "/v1/rdma-links/NAME".
void set_subject(Event& event, std::string_view subject) {
    if (auto attachment = take_id(subject, "/v1/attachments/")) {
        event.attachment = std::move(attachment);
    } else if (auto link = take_id(subject, "/v1/rdma-links/")) {
        event.rdma_link = std::move(link);
    } else if (auto const pf = take_id(subject, "/v1/pfs/")) {
        if (auto const pci = PciAddress::parse(*pf)) event.pf = *pci;
        std::uint16_t index = 0;
        auto const vf = take_id(subject, "/vfs/");
        if (vf && std::from_chars(vf->data(), vf->data() + vf->size(), index).ec == std::errc{})
            event.vf = index;
    }
}

Event about(Operation const& operation, Batch const& batch, DesiredState const& before) {
    Event event;
    event.operation = operation.id;
    set_subject(event, operation.subject);
    event.vm_uuid = operation.vm_uuid;
    if (!event.attachment) return event;
    if (auto const* const known = find_attachment(*event.attachment, batch, before))
        set_attachment(event, *known);
    return event;
}

Event made(EventKind kind, Event about, std::string detail) {
    about.kind = kind;
    about.detail = std::move(detail);
    return about;
}

std::string vf_of(Attachment const& attachment) {
    return fmt::format("VF {} of {}", attachment.vf.index, to_string(attachment.vf.pf));
}

std::optional<Event> change_of(Attachment const& now, Attachment const* before) {
    using State = AttachmentState;
    Event event;
    set_attachment(event, now);
    if (before && before->state == now.state) return std::nullopt;
    if (now.state == State::attaching)
        return made(EventKind::attaching, event,
                    fmt::format("{} is being attached to VM {}", vf_of(now), now.vm));
    if (now.state == State::detaching)
        return made(EventKind::detaching, event,
                    fmt::format("{} is being detached from VM {}", vf_of(now), now.vm));
    return std::nullopt;  // attached: the operation reports it, with the VF's settings
}

// A quarantine of the same attachment under another address was moved with its PF.
bool is_moved(Quarantine const& quarantine, Batch const& batch) {
    return std::ranges::any_of(batch.save_quarantines, [&](Quarantine const& saved) {
        return saved.attachment.id == quarantine.attachment.id;
    });
}

// An event of what no operation changes, named by one member.
Event named(EventKind kind, std::optional<std::string> Event::* member, std::string const& name,
            std::string detail) {
    Event event;
    event.*member = name;
    return made(kind, std::move(event), std::move(detail));
}

void add_links(std::vector<Event>& events, Batch const& batch, DesiredState const& before) {
    for (auto const& [link, revision] : batch.save_rdma_links) {
        auto const known = before.rdma_links.find(link.name);
        if (known != before.rdma_links.end() && known->second.link == link) continue;
        events.push_back(
            named(EventKind::rdma_link_configured, &Event::rdma_link, link.name,
                  fmt::format("{} link {} on {}", enum_name(link.type), link.name, link.ifname)));
    }
    for (auto const& name : batch.erase_rdma_links)
        if (before.rdma_links.contains(name))
            events.push_back(named(EventKind::rdma_link_removed, &Event::rdma_link, name,
                                   fmt::format("link {} is no longer desired", name)));
}

void add_networks(std::vector<Event>& events, Batch const& batch, DesiredState const& before) {
    for (auto const& [network, revision] : batch.save_networks) {
        auto const* const known = find_network(before.networks, network.name);
        if (known && *known == network) continue;
        events.push_back(
            named(EventKind::network_changed, &Event::network, network.name,
                  fmt::format("network {}, {}, {}", network.name, to_string(network.prefix),
                              known ? "has changed" : "is new")));
    }
    for (auto const& name : batch.erase_networks)
        if (before.networks.contains(name))
            events.push_back(named(EventKind::network_removed, &Event::network, name,
                                   fmt::format("network {} was removed", name)));
}

// The line that the subnet manager needs for the attachment; empty: none.
std::string line_of(Networks const& networks, Attachment const& attachment) {
    auto const* const network =
        attachment.spec.network ? find_network(networks, *attachment.spec.network) : nullptr;
    if (!network || !network->pkey || !attachment.settings.port_guid) return {};
    return partition_line(*network->pkey, *attachment.settings.port_guid, network->mtu);
}

// vfmgr sets no P_Key: whoever runs the subnet manager learns here what it needs now. A network's
// own lines are those of its PFs.
void add_partitions(std::vector<Event>& events, Batch const& batch, DesiredState const& before) {
    auto const changed = [&](Attachment const& attachment, std::string const& line, bool needed) {
        Event event;
        set_attachment(event, attachment);
        event.network = attachment.spec.network;
        events.push_back(made(EventKind::partition_changed, std::move(event),
                              fmt::format("the subnet manager {} the line {}",
                                          needed ? "needs" : "no longer needs", line)));
    };
    for (auto const& saved : batch.save_attachments) {
        auto const line = line_of(before.networks, saved);
        auto const known = before.attachments.find(saved.id);
        auto const had = known == before.attachments.end()
                             ? std::string()
                             : line_of(before.networks, known->second);
        if (line == had) continue;
        if (!had.empty()) changed(known->second, had, false);
        if (!line.empty()) changed(saved, line, true);
    }
    for (auto const& id : batch.erase_attachments)
        if (auto const known = before.attachments.find(id); known != before.attachments.end())
            if (auto const line = line_of(before.networks, known->second); !line.empty())
                changed(known->second, line, false);
    for (auto const& [network, revision] : batch.save_networks) {
        auto const* const known = find_network(before.networks, network.name);
        if ((known && known->pkey == network.pkey && known->pfs == network.pfs) ||
            !(network.pkey || (known && known->pkey)))
            continue;
        events.push_back(named(EventKind::partition_changed, &Event::network, network.name,
                               fmt::format("the lines that network {} needs of the subnet manager "
                                           "have changed: vfctl ib partitions",
                                           network.name)));
    }
}

void add_pools(std::vector<Event>& events, Batch const& batch, DesiredState const& before) {
    for (auto const& [pool, revision] : batch.save_pools) {
        auto const known = before.pools.find(pool.name);
        bool const is_new = known == before.pools.end();
        if (!is_new && known->second.pool == pool) continue;
        events.push_back(
            named(EventKind::pool_changed, &Event::pool, pool.name,
                  fmt::format("pool {} {}", pool.name, is_new ? "is new" : "has changed")));
    }
    for (auto const& name : batch.erase_pools)
        if (before.pools.contains(name))
            events.push_back(named(EventKind::pool_removed, &Event::pool, name,
                                   fmt::format("pool {} was removed", name)));
    auto const& identities = batch.save_handed_out;
    if (identities && identities->identities != before.handed_out.identities)
        events.push_back(made(EventKind::identities_changed, {},
                              "the ranges of identities that this host hands out have changed"));
}

void add_tenants(std::vector<Event>& events, Batch const& batch, DesiredState const& before) {
    for (auto const& [tenant, revision] : batch.save_tenants)
        events.push_back(
            named(EventKind::tenant_changed, &Event::tenant, tenant.name,
                  fmt::format("tenant {} {}", tenant.name,
                              before.tenants.contains(tenant.name) ? "has changed" : "is new")));
    for (auto const& name : batch.erase_tenants)
        if (before.tenants.contains(name))
            events.push_back(named(EventKind::tenant_removed, &Event::tenant, name,
                                   fmt::format("tenant {} was removed", name)));
}

// A higher fence is no news: each scheduler of the fleet has another.
bool is_news(FleetMembership now, std::optional<FleetMembership> const& before) {
    if (!before) return true;
    now.fence = before->fence;
    now.contacted_at = before->contacted_at;
    return now != *before;
}

void add_fleet(std::vector<Event>& events, Batch const& batch, DesiredState const& before) {
    auto const& joined = batch.save_fleet;
    if (joined && is_news(*joined, before.fleet))
        events.push_back(
            made(EventKind::fleet_joined, {},
                 before.fleet
                     ? fmt::format("what this host knows of fleet {} has changed", joined->fleet)
                     : fmt::format("this host is {} in fleet {}", joined->host, joined->fleet)));
    if (batch.erase_fleet && before.fleet)
        events.push_back(made(EventKind::fleet_left, {},
                              fmt::format("this host has left fleet {}", before.fleet->fleet)));
}

// One whose VFs are all attached has done its work.
Event end_of(Reservation const& reservation, DesiredState const& before, Time now) {
    auto const& name = reservation.name;
    if (reservation.expires_at <= now)
        return named(EventKind::reservation_expired, &Event::reservation, name,
                     fmt::format("reservation {} of {} expired", name, reservation.requested_by));
    bool const used = std::ranges::all_of(reservation.vfs,
                                          [&](VfId const& vf) { return is_attached(before, vf); });
    return named(EventKind::reservation_released, &Event::reservation, name,
                 fmt::format("reservation {} of {} ended: {}", name, reservation.requested_by,
                             used ? "all its VFs are attached" : "it was released"));
}

// A reservation from which an attachment takes a VF is still the same.
void add_reservations(std::vector<Event>& events, Batch const& batch, DesiredState const& before,
                      Time now) {
    for (auto const& saved : batch.save_reservations) {
        auto const known = before.reservations.find(saved.name);
        if (known != before.reservations.end() && known->second.created_at == saved.created_at)
            continue;
        events.push_back(
            named(EventKind::reservation_made, &Event::reservation, saved.name,
                  fmt::format("{} reserved {} VF{} until {}", saved.requested_by, saved.vfs.size(),
                              saved.vfs.size() == 1 ? "" : "s", to_rfc3339(saved.expires_at))));
    }
    for (auto const& name : batch.erase_reservations)
        if (auto const known = before.reservations.find(name); known != before.reservations.end())
            events.push_back(end_of(known->second, before, now));
}

// Events of what the batch changes in the desired state.
std::vector<Event> changes_of(Batch const& batch, DesiredState const& before, Time now) {
    std::vector<Event> events;
    for (auto const& attachment : batch.save_attachments) {
        auto const known = before.attachments.find(attachment.id);
        auto event =
            change_of(attachment, known == before.attachments.end() ? nullptr : &known->second);
        if (event) events.push_back(std::move(*event));
    }
    for (auto const& vf : batch.erase_quarantines) {
        auto const known = before.quarantine.find(vf);
        if (known == before.quarantine.end() || is_moved(known->second, batch)) continue;
        Event event;
        set_attachment(event, known->second.attachment);
        events.push_back(
            made(EventKind::quarantine_lifted, std::move(event),
                 fmt::format("{} is no longer in quarantine", vf_of(known->second.attachment))));
    }
    add_links(events, batch, before);
    add_networks(events, batch, before);
    add_partitions(events, batch, before);
    add_pools(events, batch, before);
    add_tenants(events, batch, before);
    add_fleet(events, batch, before);
    add_reservations(events, batch, before, now);
    // A batch with the state of one operation was made by it.
    if (batch.save_operations.size() == 1)
        for (auto& event : events) event.operation = batch.save_operations.front().id;
    return events;
}

Event accepted(Operation const& operation, Event about) {
    return made(EventKind::operation_accepted, std::move(about),
                fmt::format("{} requested {} of {}", operation.requested_by,
                            enum_name(operation.kind), operation.subject));
}

Event ended(Operation const& operation, Event about) {
    auto const what = fmt::format("{} of {}", enum_name(operation.kind), operation.subject);
    if (operation.state == OperationState::succeeded)
        return made(EventKind::operation_succeeded, std::move(about), what + " succeeded");
    return made(
        EventKind::operation_failed, std::move(about),
        fmt::format("{} failed: {}", what, operation.problem ? operation.problem->detail : ""));
}

}  // namespace

Recorder::Recorder(std::vector<UnfinishedOperation> const& unfinished,
                   DesiredState const& desired) {
    for (auto const& one : unfinished)
        under_way_[one.operation.id] = about(one.operation, {}, desired);
}

std::vector<Event> Recorder::events_of(Batch const& batch, DesiredState const& before,
                                       Time now) const {
    std::vector<Event> events;
    std::vector<Event> ends;
    for (auto const& operation : batch.save_operations) {
        auto const known = under_way_.find(operation.id);
        bool const is_new = known == under_way_.end();
        if (is_new && !finished(operation))
            events.push_back(accepted(operation, about(operation, batch, before)));
        else if (!is_new && finished(operation))
            ends.push_back(ended(operation, known->second));
    }
    std::ranges::move(changes_of(batch, before, now), std::back_inserter(events));
    for (auto& event : events) event.at = now;
    for (auto& event : ends) event.at = now;
    std::ranges::copy(batch.save_events, std::back_inserter(events));
    std::ranges::move(ends, std::back_inserter(events));
    return events;
}

// An attachment that ends takes along what is known of it, so an operation's event keeps that.
void Recorder::saved(Batch const& batch, DesiredState const& before) {
    for (auto const& operation : batch.save_operations) {
        if (finished(operation)) {
            under_way_.erase(operation.id);
            continue;
        }
        auto& known = under_way_[operation.id];
        if (!known.operation || (known.attachment && !known.vf))
            known = about(operation, batch, before);
    }
}

}  // namespace vfmgr
