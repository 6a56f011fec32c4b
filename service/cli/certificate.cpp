// SPDX-License-Identifier: Apache-2.0
#include "service/cli/certificate.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/vf.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;

// Returns "2026-01-31T12:30:00.000Z, requested by uid:0 (operation 01hkz3vb4m)".
std::string mark_text(json const& certificate, std::string const& mark) {
    return fmt::format("{}, requested by {} (operation {})", cell(certificate, mark + "/at"),
                       cell(certificate, mark + "/requested_by"),
                       cell(certificate, mark + "/operation"));
}

std::string setting_text(json const& settings, std::string const& name) {
    if (name != "vlan") return cell(settings, "/" + name);
    auto const id = cell(settings, "/vlan/id");
    auto const qos = cell(settings, "/vlan/qos");
    return qos == "-" || qos == "0" ? id : id + ":" + qos;
}

Table settings_table(json const& certificate) {
    Table table{{"SETTING", "BEFORE THE DETACH", "NOW"}, {}};
    auto const restored = certificate.value("restored", json::object());
    auto const was = restored.value("was", json::object());
    auto const is = restored.value("is", json::object());
    for (auto const& [attribute, name] : enum_names<VfAttribute>) {
        std::string const member(name);
        if (was.contains(member) || is.contains(member))
            table.rows.push_back({member, setting_text(was, member), setting_text(is, member)});
    }
    return table;
}

Table address_table(json const& certificate) {
    Table table{{"ADDRESS", "WHILE ATTACHED", "NOW"}, {}};
    for (std::string const name : {"mac", "node_guid", "port_guid"}) {
        auto const at = "/rotated/" + name;
        if (cell(certificate, at) != "-")
            table.rows.push_back(
                {name, cell(certificate, at + "/was"), cell(certificate, at + "/is")});
    }
    return table;
}

Table counter_table(json const& certificate) {
    Table table{{"COUNTER", "BEFORE THE RESET"}, {}};
    for (std::string const name : {"rx_packets", "rx_bytes", "rx_dropped", "tx_packets", "tx_bytes",
                                   "tx_dropped", "multicast", "broadcast"}) {
        auto const value = cell(certificate, "/counters/" + name);
        if (value != "-") table.rows.push_back({name, value});
    }
    return table;
}

}  // namespace

Table certificate_table(json const& certificate) {
    return {
        {"ATTACHMENT", "VM", "PF", "VF", "ATTACHED", "ATTACHED BY", "DETACHED", "DETACHED BY",
         "RESET", "RESET DONE", "CLEAN AT", "MAC WAS", "MAC"},
        {{cell(certificate, "/attachment"), cell(certificate, "/vm"), cell(certificate, "/vf/pf"),
          cell(certificate, "/vf/index"), cell(certificate, "/attached/at"),
          cell(certificate, "/attached/requested_by"), cell(certificate, "/detached/at"),
          cell(certificate, "/detached/requested_by"), cell(certificate, "/reset/method"),
          cell(certificate, "/reset/done_at"), cell(certificate, "/observed_at"),
          cell(certificate, "/rotated/mac/was"), cell(certificate, "/settings/mac")}}};
}

std::string certificate_page(json const& certificate, Options const& options) {
    auto const headers = options.no_headers ? Headers::hidden : Headers::shown;
    auto const vf = fmt::format("{}/{} ({})", cell(certificate, "/vf/pf"),
                                cell(certificate, "/vf/index"), cell(certificate, "/vf_pci"));
    auto const reset = fmt::format("{}, done {}", cell(certificate, "/reset/method"),
                                   cell(certificate, "/reset/done_at"));
    Table const facts{{"", ""},
                      {{"VF:", vf},
                       {"attachment:", cell(certificate, "/attachment")},
                       {"VM:", cell(certificate, "/vm")},
                       {"attached:", mark_text(certificate, "/attached")},
                       {"detached:", mark_text(certificate, "/detached")},
                       {"reset:", reset},
                       {"verified clean:", cell(certificate, "/observed_at")},
                       {"driver now:", cell(certificate, "/driver")}}};
    auto page = as_table(facts, Headers::hidden);
    for (auto const& table :
         {settings_table(certificate), address_table(certificate), counter_table(certificate)})
        if (!table.rows.empty()) page += "\n" + as_table(table, headers);
    return page;
}

}  // namespace vfmgr
