// SPDX-License-Identifier: Apache-2.0
// Reports whether this host is ready to attach VFs, and the facts behind the verdict.
#include "api/types/json.hpp"
#include "service/host_checks.hpp"
#include "service/routes/api.hpp"
#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/machine/rdma_names.hpp"

namespace vfmgr {
namespace {

using Facts = HostChecks::Shared;

Result<http::Response> show_checks(Facts const& facts) {
    return json_response(200, checks::diagnose(*facts, checks::all_rules()));
}

Result<http::Response> list_rdma(Facts const& facts) {
    return list_response(checks::rdma_names(checks::read_machine(*facts)));
}

// The facts that the checks read, without secrets: vfctl doctor --from reaches the same verdicts
// from them on another machine. For admins only: they name VMs and addresses.
Result<http::Response> show_bundle(Facts const& facts) {
    return http::Response{.body = checks::to_bundle(checks::without_secrets(*facts))};
}

}  // namespace

std::vector<Route> host_routes(HostChecks& checks) {
    auto const on_facts = [&checks](auto answer) {
        return
            [&checks, answer](Call const&, Snapshot const&) { return checks.query().then(answer); };
    };
    return {
        {"GET", "/v1/host/checks", Role::viewer, on_facts(show_checks)},
        {"GET", "/v1/host/rdma", Role::viewer, on_facts(list_rdma)},
        {"GET", "/v1/host/bundle", Role::admin, on_facts(show_bundle)},
    };
}

}  // namespace vfmgr
