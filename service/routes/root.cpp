// SPDX-License-Identifier: Apache-2.0
// The daemon's version and health, and the VMs that it knows.
#include <fmt/format.h>

#include <functional>

#include "api/types/daemon.hpp"
#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page.hpp"
#include "vfmgr/plan/drift.hpp"
#include "vfmgr/plan/guest_topology.hpp"

namespace vfmgr {
namespace {

http::Response about(Call const&, Snapshot const&) {
    return json_response(
        200, About{"vfmgr",
                   VFMGR_VERSION,
                   "v1",
                   {"networks", "dry_run", "verification", "rxe", "rdma_links", "events", "pages",
                    "filters", "tenants", "sessions"},
                   {"/v1/pfs", "/v1/vfs", "/v1/networks", "/v1/pools", "/v1/reservations",
                    "/v1/identities", "/v1/desired", "/v1/fleet", "/v1/vms", "/v1/attachments",
                    "/v1/rdma-links", "/v1/operations", "/v1/events", "/v1/tenants", "/v1/tokens",
                    "/v1/audit", "/v1/openapi.json"}});
}

http::Response alive(Call const&, Snapshot const&) {
    return json_response(200, {{"alive", true}});
}

// Ready means that the host was observed, libvirt answers, and the store takes changes. Recovery
// may still run; it refuses changes to what it works on. Drift is reported separately and leaves
// the daemon ready. Strangers may ask, and get names only.
http::Response ready(Call const& call, Snapshot const& now) {
    ReadinessView readiness;
    auto& reasons = readiness.not_ready;
    if (now.store_refuses) reasons.emplace_back("store");
    if (now.host->hypervisor.stale) reasons.emplace_back("libvirt");
    if (now.host->hypervisor.observed_at == Time{}) reasons.emplace_back("not observed yet");
    for (auto const& [pci, pf] : now.host->kernel.pfs)
        if (pf.stale) reasons.push_back(to_string(pci));
    readiness.ready = reasons.empty();
    if (!call.stranger && !call.who.tenant)
        readiness.drift = find_drift(*now.host, *now.desired).size();
    auto response = json_response(readiness.ready ? 200 : 503, readiness);
    if (!readiness.ready) response.headers["Retry-After"] = "5";
    return response;
}

Result<http::Response> list_vms(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const state, choice_filter<VmState>(call, "state"));
    return page_of_all(
        call, now.host->hypervisor.vms, [](auto const& entry) { return entry.first; },
        [&](auto const& entry) {
            return !state || *state == entry.second.state ? std::optional(entry.second)
                                                          : std::nullopt;
        });
}

Result<http::Response> show_vm(Call const& call, Snapshot const& now) {
    auto const& name = call.ids.at("vm");
    if (auto const* const vm = find_vm(*now.host, name)) return json_response(200, *vm);
    return fail(Problem::not_found, fmt::format("libvirt knows no VM {}", name),
                "virsh list --all shows the VMs of this host");
}

// Also of a VM that no VF is attached to.
Result<http::Response> show_vm_topology(Call const& call, Snapshot const& now) {
    VFMGR_TRY(VmInfo const* const vm, readable_vm(*now.host, call.ids.at("vm")));
    return json_response(200, vm_topology(*now.host, *vm));
}

Result<Change> place_in_vm(bool back, Call const& call) {
    return Change{PlaceInVm{call.ids.at("vm"), back}, [](Call const&, Snapshot const&) {
                      return dry_run_response({"the VM's devices are there already"});
                  }};
}

}  // namespace

std::vector<Route> root_routes() {
    return {
        {"GET", "/v1", Role::viewer, about, {}, for_tenants_too},
        {"GET", "/livez", anyone, alive},
        {"GET", "/readyz", anyone, ready},
    };
}

std::vector<Route> vm_routes() {
    auto const topology = "/v1/vms/{vm}/topology";
    return {
        {"GET", "/v1/vms", Role::viewer, Published{list_vms}, list_parameters({"state"}),
         for_tenants_too},
        {"GET", "/v1/vms/{vm}", Role::viewer, Published{show_vm}, {}, for_tenants_too},
        {"GET", topology, Role::viewer, Published{show_vm_topology}},
        {"POST", topology, Role::operator_, std::bind_front(place_in_vm, false), {"dry_run"}},
        {"DELETE", topology, Role::operator_, std::bind_front(place_in_vm, true), {"dry_run"}},
    };
}

}  // namespace vfmgr
