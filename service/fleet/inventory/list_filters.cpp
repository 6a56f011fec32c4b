// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/list_filters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/text.hpp"
#include "vfmgr/plan/tenants.hpp"

namespace vfmgr::fleet {
namespace {

bool is(std::string const& wanted, std::optional<std::string> const& actual) {
    return wanted.empty() || actual == wanted;
}

bool lists(std::vector<std::string> const& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

template <class E>
bool is_state(ListFilter const& filter, std::optional<E> const& wanted,
              std::optional<E> const& actual) {
    return filter.state.empty() || (wanted && wanted == actual);
}

Error no_word(std::string_view name, std::string_view given, std::string const& choices) {
    return {Problem::invalid_request, fmt::format("{} has no value {}", name, quoted(given)),
            fmt::format("use one of: {}", choices)};
}

Result<std::string> text_of(http::Request const& request, std::string const& name) {
    auto const given = request.query.find(name);
    if (given == request.query.end()) return std::string();
    if (!given->second.empty()) return given->second;
    return fail(Problem::invalid_request, fmt::format("{} has no value", name),
                "give the value that it has to be, or leave it out");
}

template <class E>
Result<void> check_word(std::string_view name, std::string const& given) {
    if (given.empty() || enum_value<E>(given)) return {};
    return fail(no_word(name, given, enum_choices<E>()));
}

Result<void> check_state(FleetList list, std::string const& state) {
    if (list == FleetList::vfs) return check_word<VfStatus>("state", state);
    if (list == FleetList::vms) return check_word<VmState>("state", state);
    return check_word<AttachmentState>("state", state);
}

}  // namespace

bool HostFilter::matches(HostEntry const& entry) const {
    if (!host.empty() && host != entry.name) return false;
    if (!rack.empty() && rack != entry.rack) return false;
    if (!label) return true;
    auto const at = entry.labels.find(label->first);
    return at != entry.labels.end() && at->second == label->second;
}

std::vector<std::string> host_filter_parameters() {
    return {"host", "rack", "label"};
}

Result<HostFilter> read_host_filter(http::Request const& request) {
    HostFilter filter;
    VFMGR_TRY(filter.host, text_of(request, "host"));
    VFMGR_TRY(filter.rack, text_of(request, "rack"));
    VFMGR_TRY(auto const label, text_of(request, "label"));
    if (label.empty()) return filter;
    std::string_view value = label;
    auto const key = take_until(value, '=');
    if (!key || key->empty())
        return fail(Problem::invalid_request, fmt::format("label is {}", quoted(label)),
                    "write label=KEY=VALUE, such as label=row=3");
    filter.label.emplace(*key, value);
    return filter;
}

std::vector<std::string> list_filter_parameters(FleetList list) {
    auto names = host_filter_parameters();
    auto const also = [&](std::initializer_list<char const*> own) {
        names.insert(names.end(), own.begin(), own.end());
        return names;
    };
    switch (list) {
        case FleetList::pfs:
            return names;
        case FleetList::vfs:
            return also({"pf", "vm", "state", "network", "attachment"});
        case FleetList::vms:
            return also({"state"});
        case FleetList::attachments:
            return also({"vm", "pf", "network", "pool", "reservation", "state"});
        case FleetList::verifications:
            return also({"vm", "pf", "network", "pool", "attachment", "verdict"});
        case FleetList::networks:
            return also({"pf"});
        case FleetList::pools:
            return also({"network"});
        case FleetList::reservations:
            return also({"pf", "pool", "network"});
    }
    return names;
}

Result<ListFilter> read_list_filter(FleetList list, http::Request const& request,
                                    Tenant const* viewer) {
    ListFilter filter;
    filter.viewer = viewer;
    VFMGR_TRY(filter.of, read_host_filter(request));
    VFMGR_TRY(auto const pf, text_of(request, "pf"));
    if (!pf.empty()) {
        VFMGR_TRY(filter.pf, PciAddress::parse(pf));
    }
    VFMGR_TRY(filter.state, text_of(request, "state"));
    VFMGR_CHECK(check_state(list, filter.state));
    VFMGR_TRY(filter.attachment, text_of(request, "attachment"));
    VFMGR_TRY(filter.vm, text_of(request, "vm"));
    VFMGR_TRY(filter.network, text_of(request, "network"));
    VFMGR_TRY(filter.pool, text_of(request, "pool"));
    VFMGR_TRY(filter.reservation, text_of(request, "reservation"));
    VFMGR_TRY(auto const verdict, text_of(request, "verdict"));
    VFMGR_CHECK(check_word<Verdict>("verdict", verdict));
    filter.verdict = enum_value<Verdict>(verdict);
    return filter;
}

HostFilterState::HostFilterState(ListFilter const& filter, HostPart const& part)
    : filter_(filter),
      vf_state_(enum_value<VfStatus>(filter.state)),
      vm_state_(enum_value<VmState>(filter.state)),
      attachment_state_(enum_value<AttachmentState>(filter.state)) {
    if (!needs_attachments()) return;
    for (auto const& item : part.documents.attachments->items) {
        auto const& one = item.facts;
        if ((filter.vm.empty() || filter.vm == one.vm || filter.vm == one.vm_uuid) &&
            is(filter.network, one.network) && is(filter.attachment, one.id) &&
            (!filter.viewer || owns(*filter.viewer, one.vm_uuid)))
            attachments_.push_back(one.id);
    }
}

bool HostFilterState::needs_attachments() const {
    return filter_.viewer || !filter_.attachment.empty() || !filter_.vm.empty() ||
           !filter_.network.empty();
}

// Of a tenant's VFs and attachments most hosts have none.
bool HostFilterState::can_pass(FleetList list) const {
    bool const of_attachments = list == FleetList::vfs || list == FleetList::attachments ||
                                list == FleetList::verifications;
    if (list == FleetList::pfs) return !filter_.viewer;
    return !of_attachments || !needs_attachments() || !attachments_.empty();
}

bool HostFilterState::passes(PfFacts const&) const {
    return !filter_.viewer;
}

bool HostFilterState::passes(VfFacts const& vf) const {
    if (filter_.pf && *filter_.pf != vf.id.pf) return false;
    if (!is_state(filter_, vf_state_, vf.state)) return false;
    if (!needs_attachments()) return true;
    return vf.attachment &&
           std::ranges::binary_search(attachments_, std::string_view(*vf.attachment));
}

bool HostFilterState::passes(VmFacts const& vm) const {
    return is_state(filter_, vm_state_, vm.state) &&
           (!filter_.viewer || owns(*filter_.viewer, vm.uuid));
}

bool HostFilterState::passes(AttachmentFacts const& attachment) const {
    if (filter_.pf && *filter_.pf != attachment.vf.pf) return false;
    if (!is_state(filter_, attachment_state_, attachment.state)) return false;
    if (filter_.verdict && filter_.verdict != attachment.verdict) return false;
    if (!is(filter_.pool, attachment.pool)) return false;
    if (!is(filter_.reservation, attachment.reservation)) return false;
    if (!needs_attachments()) return true;
    return std::ranges::binary_search(attachments_, std::string_view(attachment.id));
}

// A filter must not tell a tenant what the item does not show it: which PFs carry a network, which
// network of others a pool has.
bool HostFilterState::passes(NetworkFacts const& network) const {
    if (filter_.viewer) return !filter_.pf && lists(filter_.viewer->networks, network.name);
    return !filter_.pf || std::ranges::find(network.pfs, *filter_.pf) != network.pfs.end();
}

bool HostFilterState::passes(PoolFacts const& pool) const {
    if (!is(filter_.network, pool.network)) return false;
    if (!filter_.viewer) return true;
    return lists(filter_.viewer->pools, pool.name) &&
           (filter_.network.empty() || lists(filter_.viewer->networks, filter_.network));
}

bool HostFilterState::passes(ReservationFacts const& reservation) const {
    auto const& vfs = reservation.vfs;
    return (!filter_.pf || std::ranges::find(vfs, *filter_.pf, &VfId::pf) != vfs.end()) &&
           is(filter_.pool, reservation.pool) && is(filter_.network, reservation.network) &&
           (!filter_.viewer || reservation.tenant == filter_.viewer->name);
}

}  // namespace vfmgr::fleet
