// SPDX-License-Identifier: Apache-2.0
// The daemon's version and health, and the VMs that it knows.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "vfmgr/plan/drift.hpp"

namespace vfmgr {
namespace {

nlohmann::json about() {
    return {{"name", "vfmgr"},
            {"version", VFMGR_VERSION},
            {"api", "v1"},
            {"features", {"networks", "dry_run", "verification", "rxe", "rdma_links"}},
            {"links",
             {"/v1/pfs", "/v1/vms", "/v1/attachments", "/v1/rdma-links", "/v1/operations",
              "/v1/tokens"}}};
}

// Ready means that the host was observed and libvirt answers. Recovery may still run; it refuses
// changes to what it works on. Drift is reported separately and leaves the daemon ready.
http::Response ready(Engine& engine) {
    auto const now = engine.snapshot();
    auto reasons = nlohmann::json::array();
    if (now.host->hypervisor.stale) reasons.push_back("libvirt");
    if (now.host->hypervisor.observed_at == Time{}) reasons.push_back("not observed yet");
    for (auto const& [pci, pf] : now.host->kernel.pfs)
        if (pf.stale) reasons.push_back(to_string(pci));
    bool const well = reasons.empty();
    return json_response(well ? 200 : 503, {{"ready", well},
                                            {"not_ready", std::move(reasons)},
                                            {"drift", find_drift(*now.host, *now.desired).size()}});
}

}  // namespace

std::vector<Route> root_routes(Engine& engine) {
    return {
        {"GET", "/v1", Role::viewer,
         [](Call const&, http::Respond respond) { respond(json_response(200, about())); }},
        {"GET", "/livez", Role::viewer,
         [](Call const&, http::Respond respond) {
             respond(json_response(200, {{"alive", true}}));
         }},
        {"GET", "/readyz", Role::viewer,
         [&engine](Call const&, http::Respond respond) { respond(ready(engine)); }},
    };
}

std::vector<Route> vm_routes(Engine& engine) {
    return {
        {"GET", "/v1/vms", Role::viewer,
         [&engine](Call const&, http::Respond respond) {
             auto items = nlohmann::json::array();
             auto const host = engine.snapshot().host;
             for (auto const& [uuid, vm] : host->hypervisor.vms) items.push_back(vm);
             respond(list_response(std::move(items)));
         }},
        {"GET", "/v1/vms/{vm}", Role::viewer,
         [&engine](Call const& call, http::Respond respond) {
             auto const host = engine.snapshot().host;
             auto const* vm = find_vm(*host, call.ids.at("vm"));
             respond(
                 vm ? json_response(200, *vm)
                    : refusal(call, Error{Problem::not_found,
                                          fmt::format("libvirt knows no VM {}", call.ids.at("vm")),
                                          "virsh list --all shows the VMs of this host"}));
         }},
    };
}

}  // namespace vfmgr
