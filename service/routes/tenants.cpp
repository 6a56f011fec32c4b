// SPDX-License-Identifier: Apache-2.0
// Tenants of the host. For admins only.
#include "api/types/json.hpp"
#include "api/types/tenant.hpp"
#include "service/routes/api.hpp"
#include "service/routes/named.hpp"

namespace vfmgr {
namespace {

Result<http::Response> list_tenants(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const vm, text_filter(call, "vm"));
    return page_of_named(call, now.desired->tenants, &DesiredTenant::tenant,
                         [&](Tenant const& one) { return vm.empty() || owns(one, vm); });
}

Result<http::Response> show_tenant(Call const& call, Snapshot const& now) {
    VFMGR_TRY(auto const* const found, named(call, "tenant", now.desired->tenants));
    return with_etag(json_response(200, found->tenant), found->revision);
}

Result<Change> put_tenant(Call const& call) {
    auto const& name = call.ids.at("name");
    if (!can_be_a_tenants(name))
        return fail(
            Problem::invalid_request,
            fmt::format("{} can't be the name of a tenant: it {}", name, rule_of_tenant_names),
            "choose another name");
    VFMGR_TRY(auto tenant, named_body<Tenant>(call, "tenant"));
    return Change{PutTenant{std::move(tenant)}, show_tenant};
}

Result<Change> remove_tenant(Call const& call) {
    return Change{RemoveTenant{call.ids.at("name")}, removed};
}

}  // namespace

std::vector<Route> tenant_routes() {
    auto const* const path = "/v1/tenants/{name}";
    return {
        {"GET", "/v1/tenants", Role::admin, list_tenants, list_parameters({"vm"})},
        {"GET", path, Role::admin, show_tenant},
        {"PUT", path, Role::admin, put_tenant, {"dry_run"}},
        {"DELETE", path, Role::admin, remove_tenant, {"dry_run"}},
    };
}

}  // namespace vfmgr
