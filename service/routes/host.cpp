// SPDX-License-Identifier: Apache-2.0
// Reports whether this host is ready to attach VFs, and the facts behind the verdict.
#include "api/types/json.hpp"
#include "service/host_checks.hpp"
#include "service/routes/api.hpp"
#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/machine/rdma_names.hpp"

namespace vfmgr {

std::vector<Route> host_routes(HostChecks& checks) {
    return {
        {"GET", "/v1/host/checks", Role::viewer,
         [&checks](Call const&, http::Respond respond) {
             checks.ask([respond = std::move(respond)](HostChecks::Shared const& facts) {
                 respond(json_response(200, checks::diagnose(*facts)));
             });
         }},
        {"GET", "/v1/host/rdma", Role::viewer,
         [&checks](Call const&, http::Respond respond) {
             checks.ask([respond = std::move(respond)](HostChecks::Shared const& facts) {
                 auto items = nlohmann::json::array();
                 for (auto const& name : checks::rdma_names(checks::read_machine(*facts)))
                     items.push_back(name);
                 respond(list_response(std::move(items)));
             });
         }},
        // The facts that the checks read, without secrets: vfctl doctor --from reaches the same
        // verdicts from them on another machine. For admins only: they name VMs and addresses.
        {"GET", "/v1/host/bundle", Role::admin,
         [&checks](Call const&, http::Respond respond) {
             checks.ask([respond = std::move(respond)](HostChecks::Shared const& facts) {
                 respond({.body = checks::to_bundle(checks::without_secrets(*facts))});
             });
         }},
    };
}

}  // namespace vfmgr
