// SPDX-License-Identifier: Apache-2.0
// Prints the names as tables, with as few columns as the machine needs.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "vfmgr/checks/rdma_names.hpp"

namespace vfmgr::checks {
namespace {

using Row = std::vector<std::string>;

// Makes columns as wide as their longest text; leaves out columns that are empty in all rows.
std::string laid_out(std::vector<Row> const& rows) {
    std::vector<std::size_t> widths(rows.front().size());
    std::vector<bool> used(rows.front().size());
    for (auto const& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
            used[i] = used[i] || (&row != &rows.front() && !row[i].empty());
        }
    std::string text;
    for (auto const& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i)
            if (used[i]) line += fmt::format("{:<{}}  ", row[i].empty() ? "-" : row[i], widths[i]);
        text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    }
    return text;
}

std::string device_text(RdmaName const& name) {
    return name.rdma_device.empty() ? "" : fmt::format("{}/{}", name.rdma_device, name.port);
}

std::string netdev_text(RdmaName const& name) {
    if (!name.ifname) return {};
    auto const state = !name.netdev_up ? "" : *name.netdev_up ? " (up)" : " (down)";
    return fmt::format("{}{}{}", *name.ifname, name.master ? " in " + *name.master : "", state);
}

std::string vf_text(RdmaName const& name) {
    if (name.represents) return fmt::format("stands for {}", to_string(*name.represents));
    if (!name.vf) return {};
    return to_string(*name.vf) + (name.represented_by ? " by " + *name.represented_by : "");
}

std::string state_text(RdmaName const& name) {
    if (!name.state) return {};
    // ACTIVE and LinkUp mean the same.
    if (*name.state == "ACTIVE" || !name.phys_state) return *name.state;
    return fmt::format("{} ({})", *name.state, *name.phys_state);
}

Row row_of(RdmaName const& name) {
    auto const rate = name.kind == RdmaKind::software ? "" : name.rate.value_or("");
    return {device_text(name),
            netdev_text(name),
            name.pci ? to_string(*name.pci) : "",
            vf_text(name),
            state_text(name),
            name.link_layer ? std::string(enum_name(*name.link_layer)) : "",
            rate,
            name.kind == RdmaKind::software ? "software"
            : name.kind == RdmaKind::smi    ? "smi"
                                            : name.driver.value_or(""),
            name.numa_node ? fmt::format("{}", *name.numa_node) : "",
            name.hca_type.value_or(""),
            name.firmware.value_or(""),
            name.board_id.value_or("")};
}

std::string gids_table(std::vector<RdmaName> const& names) {
    std::vector<Row> rows{{"RDMA", "INDEX", "GID", "ADDRESS", "TYPE", "IFNAME"}};
    std::set<std::string> listed;  // RoCE LAG has a row for each of its PFs
    for (auto const& name : names) {
        if (!listed.insert(device_text(name)).second) continue;
        for (auto const& gid : name.gids)
            rows.push_back({device_text(name), fmt::format("{}", gid.index), gid.gid,
                            gid.address ? to_string(*gid.address) : "", gid.type,
                            gid.ifname.value_or("")});
    }
    return rows.size() == 1 ? "no RDMA port has a GID\n" : laid_out(rows);
}

}  // namespace

std::string rdma_table(std::vector<RdmaName> const& names, RdmaTable table) {
    if (table == RdmaTable::gids) return gids_table(names);
    if (names.empty()) return "no RDMA device and no NIC that could have one\n";
    std::vector<Row> rows{{"RDMA", "IFNAME", "PCI", "VF", "STATE", "LINK", "RATE", "DRIVER", "NUMA",
                           "TYPE", "FIRMWARE", "BOARD"}};
    for (auto const& name : names) rows.push_back(row_of(name));
    return laid_out(rows);
}

}  // namespace vfmgr::checks
