// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/tenants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace vfmgr {
namespace {

// Events whose sentence is about the attachment, the VM or the object that they name. Those of
// failures and of drift may quote whatever was in the way.
constexpr std::array plain_kinds{
    EventKind::operation_accepted,
    EventKind::attaching,
    EventKind::attached,
    EventKind::attachment_changed,
    EventKind::verified,
    EventKind::detaching,
    EventKind::detached,
    EventKind::network_changed,
    EventKind::network_removed,
    EventKind::partition_changed,
    EventKind::pool_changed,
    EventKind::pool_removed,
    EventKind::reservation_made,
    EventKind::reservation_released,
    EventKind::reservation_expired,
    EventKind::vm_appeared,
    EventKind::vm_started,
    EventKind::vm_stopped,
    EventKind::vm_disappeared,
    EventKind::declaration_refused,
};

bool lists(std::vector<std::string> const& names, std::optional<std::string> const& name) {
    return name && std::ranges::find(names, *name) != names.end();
}

bool is_of(Tenant const& tenant, Event const& event) {
    if (event.vm_uuid) return owns(tenant, *event.vm_uuid);
    if (event.reservation) return tenant_in(*event.reservation) == tenant.name;
    // What its readers list again: they miss what the host did before.
    if (event.kind == EventKind::vfmgrd_started) return true;
    return lists(tenant.networks, event.network) || lists(tenant.pools, event.pool);
}

}  // namespace

Snapshot seen_by(Tenant const& tenant, Snapshot const& now) {
    Snapshot seen;
    auto const own = std::make_shared<DesiredState const>(seen_by(tenant, *now.desired));
    seen.host = std::make_shared<HostView const>(seen_by(tenant, *now.host, *own));
    auto runs = std::make_shared<std::map<std::string, PendingRun>>();
    for (auto const& [attachment, run] : *now.runs)
        if (own->attachments.contains(attachment)) runs->emplace(attachment, run);
    seen.desired = own;
    seen.runs = std::move(runs);
    seen.tokens = std::make_shared<std::map<std::string, Token> const>();
    seen.store_refuses = now.store_refuses;
    return seen;
}

Operation for_tenants(Operation operation) {
    operation.steps.clear();
    operation.spans.clear();
    if (!operation.problem) return operation;
    auto& problem = *operation.problem;
    bool const of_run =
        problem.problem == Problem::guest_refused || problem.problem == Problem::timed_out;
    problem = for_tenants(problem);
    problem.remedy =
        of_run ? fmt::format(
                     "GET {}/verifications shows what was tested",
                     operation.attachments.empty() ? operation.subject : operation.subject + "/ID")
               : fmt::format("an admin of this host can read the reason: vfctl op show {}",
                             operation.id);
    return operation;
}

Result<Answer> for_tenants(Result<Answer> answer) {
    if (!answer) return fail(for_tenants(answer.error()));
    if (answer->operation) answer->operation = for_tenants(std::move(*answer->operation));
    if (answer->plan) answer->plan = for_tenants(std::move(*answer->plan));
    if (answer->attachment) answer->attachment = for_tenants(std::move(*answer->attachment));
    for (auto& one : answer->attachments) one = for_tenants(std::move(one));
    answer->changes.clear();
    return answer;
}

std::optional<Event> seen_by(Tenant const& tenant, Event const& event) {
    if (!is_of(tenant, event)) return std::nullopt;
    auto seen = event;
    if (std::ranges::find(plain_kinds, event.kind) == plain_kinds.end()) seen.detail.clear();
    return seen;
}

}  // namespace vfmgr
