// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/tenants.hpp"

#include <fmt/format.h>

namespace vfmgr {

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

}  // namespace vfmgr
