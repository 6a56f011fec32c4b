// SPDX-License-Identifier: Apache-2.0
// Reports whether this host is ready to attach VFs, the facts behind the verdict, and what goes
// through its VFs.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "api/types/json.hpp"
#include "service/host_checks.hpp"
#include "service/routes/api.hpp"
#include "service/routes/page.hpp"
#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/checks/host/host_tree.hpp"
#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/machine/rdma_names.hpp"

namespace vfmgr {
namespace {

using Facts = HostChecks::Shared;

Result<http::Response> show_checks(Facts const& facts) {
    return json_response(200, checks::diagnose(*facts, checks::all_rules()));
}

Result<http::Response> show_topology(Facts const& facts) {
    return json_response(200, checks::host_tree(checks::read_machine(*facts)));
}

// By PCI address, rows without one last.
std::string key_of(RdmaName const& name) {
    return fmt::format("{} {} {:03}", name.pci ? to_string(*name.pci) : "~", name.rdma_device,
                       name.port);
}

Result<http::Response> list_rdma(Call const& call, Facts const& facts) {
    auto names = checks::rdma_names(checks::read_machine(*facts));
    std::ranges::sort(names, {}, key_of);
    return page_of_all(call, names, key_of,
                       [](RdmaName const& name) { return std::optional(name); });
}

// By PCI address: workers list PFs in that order.
Result<http::Response> list_traffic(Call const& call, TrafficQuery::Shared const& traffic) {
    if (!*traffic) return fail(traffic->error());
    VFMGR_TRY(auto const pf, pf_filter(call));
    return page_of_all(call, **traffic, &PfTraffic::pf, [&](PfTraffic const& of) {
        return !pf || *pf == of.pf ? std::optional(of) : std::nullopt;
    });
}

// The facts that the checks read, without secrets: vfctl doctor --from reaches the same verdicts
// from them on another machine. For admins only: they name VMs and addresses.
Result<http::Response> show_bundle(Facts const& facts) {
    return http::Response{.body = checks::to_bundle(checks::without_secrets(*facts))};
}

}  // namespace

std::vector<Route> host_routes(HostChecks& checks, TrafficQuery& traffic) {
    auto const on_facts = [&checks](auto answer) {
        return
            [&checks, answer](Call const&, Snapshot const&) { return checks.query().then(answer); };
    };
    return {
        {"GET", "/v1/host/checks", Role::viewer, on_facts(show_checks)},
        {"GET", "/v1/host/topology", Role::viewer, on_facts(show_topology)},
        {"GET", "/v1/host/rdma", Role::viewer,
         [&checks](Call const& call, Snapshot const&) {
             return checks.query().then(std::bind_front(list_rdma, call));
         },
         list_parameters()},
        {"GET", "/v1/host/traffic", Role::viewer,
         [&traffic](Call const& call, Snapshot const&) {
             return traffic.query().then(std::bind_front(list_traffic, call));
         },
         list_parameters({"pf"})},
        {"GET", "/v1/host/bundle", Role::admin, on_facts(show_bundle)},
    };
}

}  // namespace vfmgr
