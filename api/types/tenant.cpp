// SPDX-License-Identifier: Apache-2.0
#include "api/types/tenant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/text.hpp"
#include "api/types/vf.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t tenant_name_max = 16;
constexpr std::size_t tenant_vms_max = 1024;
constexpr std::size_t tenant_names_max = 64;  // of networks, and of pools
constexpr std::array other_fields{"address", "best_effort", "responder"};
constexpr std::array fields_by_default{"address", "link_state"};

template <class Rule>
void check_each(JsonReader& reader, std::string const& key, std::vector<std::string> const& values,
                std::size_t most, Rule const& wrong) {
    if (values.size() > most) return reader.complain(key, fmt::format("must be at most {}", most));
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto const pointer = reader.member_of(key, i);
        if (std::string const rule = wrong(values[i]); !rule.empty())
            reader.complain(pointer, rule);
        else if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i),
                           values[i]) != values.begin() + static_cast<std::ptrdiff_t>(i))
            reader.complain(pointer, "is listed twice");
    }
}

}  // namespace

bool can_be_a_tenants(std::string_view name) {
    return !name.empty() && name.size() <= tenant_name_max &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == name.npos;
}

std::vector<std::string> tenant_fields() {
    std::vector<std::string> all(other_fields.begin(), other_fields.end());
    for (auto const& [attribute, name] : enum_names<VfAttribute>) all.emplace_back(name);
    return all;
}

bool may_set(Tenant const& tenant, std::string_view field) {
    if (tenant.fields) return std::ranges::find(*tenant.fields, field) != tenant.fields->end();
    return std::ranges::find(fields_by_default, field) != fields_by_default.end();
}

std::string_view tenant_in(std::string_view reservation) {
    auto const dash = reservation.find('-');
    return dash == reservation.npos ? std::string_view() : reservation.substr(0, dash);
}

template <class F, Of<TenantQuota> V>
void fields(F& f, V& quota) {
    f.maybe("attachments", quota.attachments);
    f.maybe("reserved_vfs", quota.reserved_vfs);
    f.maybe("verification_minutes", quota.verification_minutes);
}

template <class F, Of<Tenant> V>
void fields(F& f, V& tenant) {
    f.own_name(tenant.name);
    f.defaulted("vms", tenant.vms);
    f.defaulted("networks", tenant.networks);
    f.defaulted("pools", tenant.pools);
    f.maybe("fields", tenant.fields);
    f.defaulted("quota", tenant.quota);
}

void check(JsonReader& reader, Tenant const& tenant) {
    if (!tenant.name.empty() && !can_be_a_tenants(tenant.name))
        reader.complain("name", rule_of_tenant_names);
    auto const network = [](std::string const& name) {
        return can_be_a_networks(name) ? "" : rule_of_network_names;
    };
    if (reader.clean("vms"))
        // Attachments are compared with libvirt's.
        check_each(reader, "vms", tenant.vms, tenant_vms_max, [](std::string const& uuid) {
            return is_uuid(uuid) ? "" : "must be the UUID of a VM, in small letters";
        });
    if (reader.clean("networks"))
        check_each(reader, "networks", tenant.networks, tenant_names_max, network);
    if (reader.clean("pools")) check_each(reader, "pools", tenant.pools, tenant_names_max, network);
    if (!tenant.fields || !reader.clean("fields")) return;
    auto const known = tenant_fields();
    check_each(reader, "fields", *tenant.fields, known.size(), [&](std::string const& field) {
        if (std::ranges::find(known, field) != known.end()) return std::string();
        return fmt::format("must be one of {}", fmt::join(known, ", "));
    });
}

template struct Json<Tenant>;

}  // namespace vfmgr
