// SPDX-License-Identifier: Apache-2.0
#include "service/host_rules.hpp"

#include "service/host_rule_keys.hpp"

namespace vfmgr {
namespace {

// "default", or the PF's PCI address.
std::string set_pf_bounds(ConfigTables& tables, HostBounds& all, std::string const& name,
                          toml::node const& node) {
    auto const pf = PciAddress::parse(name);
    if (!pf && name != "default") return "must be a PF's PCI address, or default";
    if (!node.is_table()) return "must be a table";
    auto& bounds = pf ? all.pfs[*pf] : all.default_pf;
    tables.read_all(*node.as_table(), fmt::format("bounds.pfs.{}.", name),
                    {{"managed", given(bounds.managed, boolean)},
                     {"num_vfs_max", given(bounds.num_vfs_max, number_of_vfs)},
                     {"vlans", given(bounds.vlans, vlan_ranges)},
                     {"trust", given(bounds.trust, boolean)},
                     {"spoofchk_off", given(bounds.spoofchk_off, boolean)},
                     {"drivers", given(bounds.drivers, drivers)},
                     {"firmware", given(bounds.firmware, boolean)}});
    return {};
}

}  // namespace

Keys host_rule_keys(ConfigTables& tables, HostRules& rules) {
    auto const pf_bounds = [&tables, &all = rules.bounds](std::string const& name,
                                                          toml::node const& node) {
        return set_pf_bounds(tables, all, name, node);
    };
    return {
        {"libvirt_uri", text(rules.libvirt_uri)},
        {"rdma_links",
         tables.table("rdma_links.", {{"trusted_netdevs", netdevs(rules.trusted_netdevs)}})},
        {"bounds",
         tables.table("bounds.",
                      {{"addresses", given(rules.bounds.addresses, prefixes)},
                       {"external_holders",
                        tables.table("bounds.external_holders.",
                                     {{"allowed", boolean(rules.bounds.external_holders.allowed)},
                                      {"uids", uid_ranges(rules.bounds.external_holders.uids)}})},
                       {"pfs", tables.entries("bounds.pfs.", pf_bounds)}})}};
}

Result<HostRules> load_host_rules(ConfigPaths const& paths) {
    HostRules rules;
    auto violations =
        read_config_files(paths, [&rules](ConfigTables& tables, toml::table const& root) {
            tables.read_some(root, host_rule_keys(tables, rules));
        });
    VFMGR_CHECK(none_of(std::move(violations)));
    return rules;
}

}  // namespace vfmgr
