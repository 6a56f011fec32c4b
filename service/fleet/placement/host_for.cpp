// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/placement/host_for.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "service/fleet/membership.hpp"
#include "service/fleet/placement/holding.hpp"

namespace vfmgr::fleet {
namespace {

void add_text(std::vector<std::string>& all, nlohmann::json const& object, char const* key) {
    auto const found = object.find(key);
    if (found == object.end() || !found->is_string()) return;
    auto text = found->get<std::string>();
    if (!text.empty() && std::ranges::find(all, text) == all.end()) all.push_back(std::move(text));
}

bool may_see_vm(Principal const& who, VmFacts const& vm) {
    return !who.tenant ||
           std::ranges::find(who.tenant->tenant.vms, vm.uuid) != who.tenant->tenant.vms.end();
}

// What a host that is off had may run elsewhere.
std::vector<std::string> hosts_with_vm(std::string const& vm, InventoryView const& view,
                                       State const& state, Principal const& who) {
    std::vector<std::string> on;
    std::vector<std::string> off;
    for (auto const& part : view.hosts) {
        auto const& items = part->documents.vms->items;
        bool const has = std::ranges::any_of(items, [&](auto const& item) {
            return (item.facts.name == vm || item.facts.uuid == vm) && may_see_vm(who, item.facts);
        });
        if (!has) continue;
        auto const* const record = find_record(state.hosts, part->host.name);
        (record && record->record.fenced ? off : on).push_back(part->host.name);
    }
    return on.empty() ? off : on;
}

std::vector<std::string> hosts_with_reservation(std::string const& name, InventoryView const& view,
                                                State const& state, Principal const& who) {
    if (auto const* const record = find_record(state.reservations, name);
        record && may_see(record->record, who))
        return {record->record.host};
    std::vector<std::string> all;
    for (auto const& part : view.hosts) {
        auto const* const one = part->documents.reservations->find(name);
        if (one && (!who.tenant || one->facts.tenant == who.tenant->tenant.name))
            all.push_back(part->host.name);
    }
    return all;
}

Result<std::string> only_one(std::vector<std::string> const& hosts, std::string_view what,
                             std::string const& name, std::string_view list) {
    if (hosts.size() == 1) return hosts.front();
    if (hosts.empty())
        return fail(discreetly({Problem::not_found,
                                fmt::format("no host of the fleet has {} {}", what, quoted(name)),
                                fmt::format("GET /v1/{} lists those of all hosts", list)}));
    auto const detail = fmt::format("{} hosts have {} {}", hosts.size(), what, quoted(name));
    auto const remedy = "name the one that is meant: \"host\": \"…\"";
    return fail(discreetly(
        {Problem::conflict, fmt::format("{}: {}", detail, fmt::join(hosts, ", ")), remedy}, detail,
        remedy));
}

Result<void> check_takes_new(State const& state, std::string const& host) {
    VFMGR_TRY(auto const* const record, known_host(state, host));
    auto const refuse = [&](std::string const& why, char const* remedy) {
        return fail(discreetly(
            {Problem::conflict,
             fmt::format("host {} is {}, so nothing new is attached there", host, why), remedy}));
    };
    if (record->record.state == FleetHostState::quarantined)
        return refuse("quarantined", "check the host; then: vfctl host confirm");
    if (record->record.fenced) return refuse("fenced", "if it serves again: vfctl host unfence");
    if (record->record.cordoned)
        return refuse("cordoned", "attach elsewhere, or: vfctl host uncordon");
    return {};
}

}  // namespace

Result<AttachPlaces> read_attach_places(std::string_view body) {
    VFMGR_TRY(auto document, parse_json(body));
    if (!document.is_object())
        return fail(Problem::invalid_request, "the body is no JSON object",
                    R"(send {"vm": "vm1", "network": "train"})");
    AttachPlaces places;
    std::vector<std::string> hosts;
    add_text(hosts, document, "host");
    if (!hosts.empty()) places.host = hosts.front();
    if (hosts.empty() && document.contains("host"))
        return fail(Problem::invalid_request, "host is no name of a host", "leave it out");
    document.erase("host");
    places.body = to_json_text(document);
    auto const several = document.find("attachments");
    auto const add = [&](nlohmann::json const& one) {
        if (!one.is_object()) return;
        add_text(places.vms, one, "vm");
        add_text(places.reservations, one, "reservation");
    };
    if (several != document.end() && several->is_array())
        for (auto const& one : *several) add(one);
    else
        add(document);
    return places;
}

Result<std::string> host_for(AttachPlaces const& places, InventoryView const& view,
                             State const& state, Principal const& who) {
    auto host = places.host;
    std::string because = "the request names";
    auto const settle_on = [&](std::string const& other, std::string why) -> Result<void> {
        if (!host.empty() && host != other)
            return fail(
                discreetly({Problem::conflict,
                            fmt::format("{} host {}, and {} host {}", because, host, why, other),
                            "attach on one host in one request"}));
        host = other;
        because = std::move(why);
        return {};
    };
    for (auto const& name : places.reservations) {
        auto const hosts = hosts_with_reservation(name, view, state, who);
        if (!places.host.empty() && std::ranges::find(hosts, places.host) != hosts.end()) continue;
        VFMGR_TRY(auto const one, only_one(hosts, "reservation", name, "reservations"));
        VFMGR_CHECK(settle_on(one, fmt::format("reservation {} is of", name)));
    }
    for (auto const& vm : places.vms) {
        auto const hosts = hosts_with_vm(vm, view, state, who);
        // A host that was not read lately may have it all the same, and says if not.
        if (!host.empty() && (hosts.empty() || std::ranges::find(hosts, host) != hosts.end()))
            continue;
        VFMGR_TRY(auto const one, only_one(hosts, "VM", vm, "vms"));
        VFMGR_CHECK(settle_on(one, fmt::format("VM {} is on", quoted(vm))));
    }
    if (host.empty())
        return fail(discreetly({Problem::invalid_request,
                                "neither a host, a VM nor a reservation says where to attach",
                                R"(add "host": "…" to the request)"}));
    if (places.reservations.empty()) VFMGR_CHECK(check_takes_new(state, host));
    return host;
}

Result<std::string> host_of_attachment(std::string const& id, InventoryView const& view) {
    std::vector<std::string> hosts;
    for (auto const& part : view.hosts)
        if (part->documents.attachments->find(id)) hosts.push_back(part->host.name);
    return only_one(hosts, "attachment", id, "attachments");
}

}  // namespace vfmgr::fleet
