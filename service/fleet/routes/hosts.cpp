// SPDX-License-Identifier: Apache-2.0
// The fleet's hosts: what is known of each, and what admins say of them.
#include <fmt/format.h>

#include <algorithm>

#include "api/types/fleet_info.hpp"
#include "api/types/json.hpp"
#include "service/fleet/keeper/admin_acts.hpp"
#include "service/fleet/keeper/use.hpp"
#include "service/fleet/membership.hpp"
#include "service/fleet/routes/routes.hpp"
#include "service/routes/page.hpp"

namespace vfmgr::fleet {
namespace {

FleetHostView observed_of(HostPart const& part, Reach const& reach) {
    auto const& documents = part.documents;
    FleetHostView view;
    view.observed_at = documents.pfs->observed_at;
    view.version = reach.version;
    view.pfs = static_cast<std::uint32_t>(documents.pfs->items.size());
    view.vfs = static_cast<std::uint32_t>(documents.vfs->items.size());
    view.free_vfs = static_cast<std::uint32_t>(std::ranges::count_if(
        documents.vfs->items,
        [](Item<VfFacts> const& vf) { return vf.facts.state == VfStatus::free; }));
    view.attachments = static_cast<std::uint32_t>(documents.attachments->items.size());
    view.vms = static_cast<std::uint32_t>(documents.vms->items.size());
    return view;
}

// One look at all that is known of hosts.
class Known {
  public:
    explicit Known(Parts const& parts)
        : state_(parts.registry.state()),
          view_(parts.inventory.snapshot()),
          reaches_(parts.followers.reaches()) {}

    [[nodiscard]] Records<HostRecord> const& hosts() const { return *state_->hosts; }
    [[nodiscard]] FleetHost host(std::string const& name, HostRecord const& record) const {
        auto host = view_of(name, record);
        auto const reach = reaches_->find(name);
        if (reach == reaches_->end()) return host;
        host.unreachable_since = reach->second.unreachable_since;
        if (host.unreachable_since) host.unreachable_why = reach->second.unreachable_why;
        auto const* const part = view_->find(name);
        if (part && part->documents.pfs->observed_at != Time{})
            host.observed = observed_of(*part, reach->second);
        return host;
    }

  private:
    std::shared_ptr<State const> state_;
    std::shared_ptr<InventoryView const> view_;
    std::shared_ptr<Reaches const> reaches_;
};

Result<http::Response> list_hosts(Parts const& parts, Call const& call) {
    Known const known(parts);
    VFMGR_TRY(auto const rack, text_filter(call, "rack"));
    VFMGR_TRY(auto const state, choice_filter<FleetHostState>(call, "state"));
    return page_of_all(
        call, known.hosts(), [](auto const& entry) { return entry.first; },
        [&](auto const& entry) -> std::optional<FleetHost> {
            auto const& record = entry.second.record;
            if (!rack.empty() && record.rack != rack) return std::nullopt;
            if (state && record.state != *state) return std::nullopt;
            return known.host(entry.first, record);
        });
}

Result<http::Response> show_host(Parts const& parts, Call const& call) {
    Known const known(parts);
    auto const& name = call.ids.at("host");
    auto const found = known.hosts().find(name);
    if (found == known.hosts().end()) return fail(no_such_host(name));
    return with_etag(json_response(200, known.host(name, found->second.record)),
                     static_cast<std::uint64_t>(found->second.mod_revision));
}

Request request_of(Parts const& parts, Call const& call) {
    return {call.who.name, new_act(), parts.clock.now()};
}

// Writes what `decide` says, and answers with the host as it is then.
template <class Change>
Result<http::Response> change_host(Parts const& parts, Call const& call, Change const& decide) {
    auto const by = request_of(parts, call);
    auto const& name = call.ids.at("host");
    VFMGR_TRY(auto const state,
              parts.writer.write(
                  [&](State const& now) -> Result<std::optional<GuardedTransaction>> {
                      VFMGR_TRY(auto guarded, decide(now, name, by));
                      return std::optional(std::move(guarded));
                  },
                  etcd_deadline(parts)));
    return show_host(parts, call);
}

Result<http::Response> patch(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto const body, body_of<FleetHostPatch>(call));
    return change_host(parts, call, [&](State const& state, auto const& name, auto const& by) {
        return patch_host(state, name, body, by);
    });
}

Result<http::Response> fence(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto const body, body_of<FencedRequest>(call));
    return change_host(parts, call, [&](State const& state, auto const& name, auto const& by) {
        return fence_host(state, name, body, by);
    });
}

Result<http::Response> unfence(Parts const& parts, Call const& call) {
    return change_host(parts, call, unfence_host);
}

// The host's own word is taken for what it has from now on, so it has to be reached.
Result<http::Response> confirm(Parts const& parts, Call const& call) {
    auto const& name = call.ids.at("host");
    auto const reaches = parts.followers.reaches();
    auto const reach = reaches->find(name);
    if (reach == reaches->end()) return fail(no_such_host(name));
    if (!reach->second.contact || reach->second.unreachable_since)
        return fail(Problem::unavailable, fmt::format("host {} does not answer", name),
                    "confirm it when it does: vfctl host show says so");
    auto const& contact = *reach->second.contact;
    MarkRecord mark;
    mark.store = contact.store;
    mark.event = contact.last_event;
    return change_host(parts, call, [&](State const& state, auto const& host, auto const& by) {
        return confirm_host(state, host, mark, by);
    });
}

// Waits until nothing is left that the host has, or is to give up.
Result<void> wait_until_free(Parts const& parts, std::string const& name, Deadline deadline) {
    for (;;) {
        auto const state = parts.registry.state();
        auto const held = held_by_host(*state, name);
        if (held == 0 || !find_record(state->hosts, name)) return {};
        if (!parts.registry.wait_for(state->revision + 1, deadline))
            return fail(Problem::unavailable,
                        fmt::format("host {} still has {} blocks and claims of identities; it is "
                                    "asked to give them up until it has",
                                    name, held),
                        "send the request again; vfctl host uncordon keeps the host; if it is off "
                        "for good, say so: vfctl host fence");
    }
}

// What the fleet gave it comes back first: by its own word, or because it is fenced. The host
// itself learns nothing else of it: its admin has it leave.
Result<http::Response> expel(Parts const& parts, Call const& call) {
    auto const& name = call.ids.at("host");
    auto const now = parts.registry.state();
    if (!find_record(now->hosts, name)) return fail(no_such_host(name));
    auto const deadline = etcd_deadline(parts);
    if (held_by_host(*now, name) > 0) {
        auto const by = request_of(parts, call);
        auto const held = held_by_all(*parts.inventory.snapshot());
        VFMGR_TRY(auto const leaving,
                  parts.writer.write(
                      [&](State const& state) { return begin_leaving(state, held, name, by); },
                      deadline));
        VFMGR_CHECK(wait_until_free(parts, name, deadline));
    }
    VFMGR_TRY(auto const state,
              parts.writer.write(
                  [&](State const& now) -> Result<std::optional<GuardedTransaction>> {
                      if (!find_record(now.hosts, name)) return std::nullopt;
                      VFMGR_TRY(auto guarded, expel_host(now, name));
                      return std::optional(std::move(guarded));
                  },
                  etcd_deadline(parts)));
    return no_content();
}

}  // namespace

std::vector<FleetRoute> host_routes(Parts const& parts, Workers& workers) {
    auto const host = "/v1/hosts/{host}";
    auto const reading = [parts](auto answer) {
        return at_once([parts, answer](Call const& call) { return answer(parts, call); });
    };
    auto const working = [&](Answer answer) { return work(parts, workers, answer); };
    auto const fenced = "/v1/hosts/{host}/fenced";
    return {
        {{"GET", "/v1/hosts", Role::viewer, list_parameters({"rack", "state"})},
         reading(list_hosts)},
        {{"GET", host, Role::viewer}, reading(show_host)},
        {{"PATCH", host, Role::admin}, working(patch)},
        {{"DELETE", host, Role::admin}, working(expel)},
        {{"POST", fenced, Role::admin}, working(fence)},
        {{"DELETE", fenced, Role::admin}, working(unfence)},
        {{"POST", "/v1/hosts/{host}/confirm", Role::admin}, working(confirm)},
    };
}

}  // namespace vfmgr::fleet
