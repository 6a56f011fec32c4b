// SPDX-License-Identifier: Apache-2.0
// What an InfiniBand subnet manager needs of this host: the partitions of its ports. vfmgr sets no
// P_Keys, so these lines are for whoever configures the subnet manager.
#include "service/cli/ib.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {

template <class F, Of<PartitionLine> V>
void fields(F& f, V& line) {
    f.value("network", line.network);
    f.value("pkey", line.pkey);
    f.value("port_guid", line.port_guid);
    f.value("of", line.of);
    f.value("line", line.line);
}

std::vector<PartitionLine> partition_lines(std::vector<Network> const& networks,
                                           std::vector<PfView> const& pfs,
                                           std::vector<Attachment> const& attachments) {
    std::vector<PartitionLine> lines;
    for (auto const& network : networks) {
        if (!network.pkey) continue;
        auto const add = [&](Pkey const& pkey, Guid const& port, std::string of) {
            lines.push_back(
                {network.name, pkey, port, std::move(of), partition_line(pkey, port, network.mtu)});
        };
        for (auto const& on : network.pfs)
            for (auto const& pf : pfs)
                if (pf.pf.info.pci == on.pf && pf.pf.info.port_guid)
                    add({network.pkey->key, PkeyMembership::full}, *pf.pf.info.port_guid,
                        "PF " + display_name(pf.pf.info));
        for (auto const& each : attachments)
            if (each.spec.network == network.name && each.settings.port_guid)
                add(*network.pkey, *each.settings.port_guid, "VM " + each.vm);
    }
    return lines;
}

namespace {

Table partition_table(std::vector<PartitionLine> const& lines) {
    Table table{{"NETWORK", "P_KEY", "PORT_GUID", "OF", "LINE"}, {}};
    for (auto const& each : lines)
        table.rows.push_back({cell(each.network), to_string(each.pkey), cell(each.port_guid),
                              cell(each.of), each.line});
    return table;
}

// As it goes into the file: OpenSM takes what follows '#' as a comment.
std::string partition_file(std::vector<PartitionLine> const& lines) {
    std::string text;
    for (auto const& each : lines)
        text += fmt::format("{} # network {}, {}\n", each.line, each.network, printable(each.of));
    return text;
}

Result<void> partitions(Options const& options) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const networks, get_list<Network>(connection, "/v1/networks"));
    VFMGR_TRY(auto const pfs, get_list<PfView>(connection, "/v1/pfs"));
    VFMGR_TRY(auto const attachments, get_list<Attachment>(connection, "/v1/attachments"));
    auto const lines = partition_lines(networks, pfs, attachments);
    return print(partition_table(lines), partition_file(lines),
                 to_json_text(nlohmann::json(ItemList<PartitionLine>{lines})), options);
}

}  // namespace

void add_ib_commands(CLI::App& app, Session& session) {
    auto* const ib = add_group(app, "ib", "InfiniBand: what its subnet manager needs");
    add_command(*ib, session, "partitions",
                "print the lines of OpenSM's partitions.conf that this host's networks need",
                partitions);
}

}  // namespace vfmgr
