// SPDX-License-Identifier: Apache-2.0
#include "service/cli/show.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "api/types/test_lines.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;

json list_at(json const& document, std::string const& pointer) {
    json::json_pointer const at(pointer);
    if (!document.contains(at) || !document.at(at).is_array()) return json::array();
    return document.at(at);
}

Table rows_of(json const& items, std::vector<std::pair<std::string, std::string>> const& columns) {
    Table table;
    for (auto const& [title, pointer] : columns) table.columns.push_back(title);
    for (auto const& item : items) {
        std::vector<std::string> row;
        for (auto const& [title, pointer] : columns) row.push_back(cell(item, pointer));
        table.rows.push_back(std::move(row));
    }
    return table;
}

std::string vlan_text(json const& settings) {
    auto const id = cell(settings, "/vlan/id");
    auto const qos = cell(settings, "/vlan/qos");
    return qos == "-" || qos == "0" ? id : id + ":" + qos;
}

// Returns "RATE 100-1000" or "max 1000": the VF's send rate, in Mbit/s.
std::string rate_text(json const& settings) {
    auto const most = cell(settings, "/max_tx_rate_mbps");
    auto const least = cell(settings, "/min_tx_rate_mbps");
    if (least == "-" || least == "0") return most == "0" ? "-" : most;
    return least + "-" + most;
}

std::string every_text(json const& attachment) {
    auto const seconds = cell(attachment, "/spec/verify_every_seconds");
    return seconds == "-" || seconds == "0" ? "-" : seconds + " s";
}

// Returns "bandwidth_mbps=941.2 p50_us=18.3".
std::string figures_text(json const& test) {
    std::string text;
    if (!test.contains("figures") || !test["figures"].is_object()) return "-";
    for (auto const& [name, value] : test["figures"].items()) {
        if (!value.is_number()) continue;
        text += fmt::format("{}{}={:.6g}", text.empty() ? "" : " ", printable(name),
                            value.get<double>());
    }
    return text.empty() ? "-" : text;
}

// Reads leniently: a newer vfmgrd may send more.
std::vector<TestResult> tests_of(json const& verification) {
    std::vector<TestResult> tests;
    for (auto const& one : list_at(verification, "/tests")) {
        std::vector<Violation> ignored;
        JsonReader reader(one, "", ignored);
        auto& test = tests.emplace_back();
        Json<TestResult>::read(reader, test);
        for (auto* const text : {&test.name, &test.detail, &test.remedy}) *text = printable(*text);
    }
    return tests;
}

// Returns "key:  value" lines with the values in one column.
std::string facts(std::vector<std::pair<std::string, std::string>> const& lines) {
    Table table{{"", ""}, {}};
    for (auto const& [key, value] : lines) table.rows.push_back({key + ":", value});
    return as_table(table, Headers::hidden);
}

std::string section(std::string const& title, Table const& table, Options const& options) {
    if (table.rows.empty()) return {};
    auto const headers = options.no_headers ? Headers::hidden : Headers::shown;
    return "\n" + title + ":\n" + as_table(table, headers);
}

std::string bullets(std::string const& title, json const& lines) {
    std::string out;
    for (auto const& line : lines) out += "  - " + cell(line) + "\n";
    return out.empty() ? out : title + ":\n" + out;
}

}  // namespace

Table pf_table(json const& items) {
    auto table = rows_of(items, {{"PF", "/info/pci"},
                                 {"IFNAME", "/info/ifname"},
                                 {"DRIVER", "/info/driver"},
                                 {"VFS", "/info/num_vfs"},
                                 {"MAX", "/info/total_vfs"},
                                 {"MODE", "/spec/mode"},
                                 {"STANDING", "/standing/is"},
                                 {"UP", "/info/up"},
                                 {"CARRIER", "/info/carrier"},
                                 {"MTU", "/info/mtu"},
                                 {"RDMA", "/info/rdma_device"},
                                 {"DEVICE", "/info/device_name"}});
    return table;
}

Table vm_table(json const& items) {
    return rows_of(items, {{"VM", "/name"},
                           {"UUID", "/uuid"},
                           {"STATE", "/state"},
                           {"PERSISTENT", "/persistent"},
                           {"VSOCK", "/has_vsock"},
                           {"FREE PORTS", "/free_pcie_ports"}});
}

Table attachment_table(json const& items) {
    return rows_of(items, {{"ID", "/id"},
                           {"VM", "/vm"},
                           {"PF", "/vf/pf"},
                           {"VF", "/vf/index"},
                           {"PCI", "/vf_pci"},
                           {"MAC", "/settings/mac"},
                           {"VLAN", "/settings/vlan/id"},
                           {"NETWORK", "/spec/network"},
                           {"ADDRESS", "/address"},
                           {"STATE", "/state"},
                           {"VERIFIED", "/verification/verdict"}});
}

Table operation_table(json const& items) {
    return rows_of(items, {{"ID", "/id"},
                           {"KIND", "/kind"},
                           {"STATE", "/state"},
                           {"SUBJECT", "/subject"},
                           {"BY", "/requested_by"},
                           {"CREATED", "/created_at"},
                           {"PROBLEM", "/problem/code"}});
}

Table history_table(json const& items) {
    return rows_of(items, {{"EVENT", "/number"},
                           {"AT", "/at"},
                           {"KIND", "/kind"},
                           {"VM", "/vm"},
                           {"ATTACHMENT", "/attachment"},
                           {"BECAUSE OF", "/because_of"},
                           {"DETAIL", "/detail"}});
}

Table audit_table(json const& items) {
    return rows_of(items, {{"AT", "/at"},
                           {"WHO", "/who"},
                           {"ACTION", "/action"},
                           {"OUTCOME", "/outcome"},
                           {"REQUESTS", "/requests"},
                           {"REQUEST ID", "/request_id"}});
}

Table token_table(json const& items) {
    return rows_of(items, {{"ID", "/id"},
                           {"ROLE", "/role"},
                           {"DESCRIPTION", "/description"},
                           {"CREATED", "/created_at"},
                           {"EXPIRES", "/expires_at"}});
}

Table interop_table(json const& clients) {
    return rows_of(json::array({clients}), {{"ATTACHMENT", "/attachment"},
                                            {"ADDRESS", "/address"},
                                            {"TEST", "/test"},
                                            {"BYTES", "/message_bytes"},
                                            {"UNTIL", "/open_until"},
                                            {"SERVED", "/served"},
                                            {"REFUSED", "/refused"}});
}

Table vf_table(json const& pfs) {
    Table table{{"VF", "PF", "IFNAME", "INDEX", "PCI", "DRIVER", "MAC", "VLAN", "SPOOFCHK", "TRUST",
                 "LINK", "RATE", "VM", "STATE"},
                {}};
    for (auto const& pf : pfs) {
        auto const pci = cell(pf, "/info/pci");
        for (auto const& vf : list_at(pf, "/vfs")) {
            auto const settings = vf.value("settings", json::object());
            auto const index = cell(vf, "/index");
            auto const state = cell(vf, "/quarantine") != "-"   ? "quarantined"
                               : cell(vf, "/attachment") != "-" ? "attached"
                                                                : "free";
            table.rows.push_back(
                {fmt::format("{}/{}", pci, index), pci, cell(pf, "/info/ifname"), index,
                 cell(vf, "/pci"), cell(vf, "/driver"), cell(settings, "/mac"), vlan_text(settings),
                 cell(settings, "/spoofchk"), cell(settings, "/trust"),
                 cell(settings, "/link_state"), rate_text(settings), cell(vf, "/vm"), state});
        }
    }
    return table;
}

Table test_table(json const& verification) {
    Table table{{"TEST", "VERDICT", "BY", "BYTES", "MISMATCHES", "FIGURES", "DETAIL"}, {}};
    for (auto const& test : list_at(verification, "/tests"))
        table.rows.push_back({cell(test, "/name"), cell(test, "/verdict"), cell(test, "/by"),
                              cell(test, "/bytes_checked"), cell(test, "/mismatches"),
                              figures_text(test), cell(test, "/detail")});
    return table;
}

Table step_table(json const& operation) {
    return rows_of(list_at(operation, "/steps"), {{"STATE", "/state"}, {"STEP", "/sentence"}});
}

std::string pf_page(json const& pf, Options const& options) {
    auto out =
        facts({{"PF", cell(pf, "/info/pci")},
               {"ifname", cell(pf, "/info/ifname")},
               {"device", cell(pf, "/info/vendor_name") + " " + cell(pf, "/info/device_name")},
               {"driver", cell(pf, "/info/driver")},
               {"MAC", cell(pf, "/info/mac")},
               {"standing", cell(pf, "/standing/is")},
               {"VFs", cell(pf, "/info/num_vfs") + " of " + cell(pf, "/info/total_vfs")},
               {"mode", cell(pf, "/spec/mode")},
               {"VFs configured", cell(pf, "/spec/num_vfs")},
               {"VF driver", cell(pf, "/spec/vf_driver")},
               {"variant", cell(pf, "/info/vfio_variant/module")},
               {"switch", cell(pf, "/info/eswitch_mode")},
               {"up", cell(pf, "/info/up")},
               {"carrier", cell(pf, "/info/carrier")},
               {"part of", cell(pf, "/info/controller")},
               {"MTU", cell(pf, "/info/mtu")},
               {"NUMA node", cell(pf, "/info/numa_node")},
               {"RDMA device", cell(pf, "/info/rdma_device")},
               {"RDMA driver", cell(pf, "/info/rdma_driver")},
               {"observed", cell(pf, "/observed_at")}});
    if (cell(pf, "/standing/detail") != "-")
        out += fmt::format("{}: {}: {}\n", cell(pf, "/standing/is"), cell(pf, "/standing/detail"),
                           cell(pf, "/standing/remedy"));
    if (pf.contains("stuck") && pf["stuck"].is_string())
        out += "stuck: " + cell(pf, "/stuck") + "\n";
    if (cell(pf, "/stale") == "yes")
        out += "can't be read now: " + cell(pf, "/stale_reason") + "\n";
    out += section("networks",
                   rows_of(list_at(pf, "/spec/networks"), {{"NETWORK", "/name"},
                                                           {"VLAN", "/vlan"},
                                                           {"PREFIX", "/prefix"},
                                                           {"HOST", "/host_address"},
                                                           {"MTU", "/mtu"},
                                                           {"RDMA", "/rdma"},
                                                           {"DSCP", "/dscp"}}),
                   options);
    out += section("host's interfaces",
                   rows_of(list_at(pf, "/host_interfaces"), {{"IFNAME", "/ifname"},
                                                             {"VLAN", "/vlan"},
                                                             {"UP", "/up"},
                                                             {"MTU", "/mtu"},
                                                             {"ADDRESSES", "/addresses"},
                                                             {"OURS", "/ours"}}),
                   options);
    return out + section("VFs", vf_table(json::array({pf})), options);
}

std::string verification_page(json const& verification, Options const& options) {
    auto const responder = cell(verification, "/responder");
    auto const path = cell(verification, "/path");
    auto out = facts({{"verification", cell(verification, "/run")},
                      {"verdict", cell(verification, "/verdict")},
                      {"responder", responder == "-" ? "this host" : responder},
                      {"path", path == "-" ? "not known" : path},
                      {"DSCP", cell(verification, "/dscp")},
                      {"peer GID", cell(verification, "/peer_gid")},
                      {"VF's MAC", cell(verification, "/vf_mac")}});
    if (cell(verification, "/detail") != "-") out += cell(verification, "/detail") + "\n";
    if (cell(verification, "/remedy") != "-")
        out += "remedy: " + cell(verification, "/remedy") + "\n";
    for (auto const& loss : list_at(verification, "/losses"))
        out += fmt::format("warning: {}\n  remedy: {}\n", cell(loss, "/detail"),
                           cell(loss, "/remedy"));
    for (auto const& warning : list_at(verification, "/warnings"))
        out += fmt::format("warning: {}\n  remedy: {}\n", cell(warning, "/detail"),
                           cell(warning, "/remedy"));
    auto const tests = tests_of(verification);
    if (tests.empty()) return out;
    auto const shown = options.verbose ? Figures::all : Figures::important;
    return out + "\ntests:\n" + test_lines(tests, shown);
}

std::string interop_page(json const& clients) {
    auto out = facts({{"attachment", cell(clients, "/attachment")},
                      {"served until", cell(clients, "/open_until")},
                      {"perftest's test", cell(clients, "/test")},
                      {"message bytes", cell(clients, "/message_bytes")},
                      {"served", cell(clients, "/served")},
                      {"refused", cell(clients, "/refused")}});
    if (cell(clients, "/rping") != "-")
        out += facts({{"rping is not served", cell(clients, "/rping")}});
    out += "\nIn the VM:\n";
    for (auto const& command : list_at(clients, "/commands"))
        out += "  " + command.get<std::string>() + "\n";
    return out;
}

std::string attachment_page(json const& attachment, Options const& options) {
    auto out = facts({{"attachment", cell(attachment, "/id")},
                      {"state", cell(attachment, "/state")},
                      {"VM", cell(attachment, "/vm") + " (" + cell(attachment, "/vm_uuid") + ")"},
                      {"VF", cell(attachment, "/vf/pf") + "/" + cell(attachment, "/vf/index") +
                                 " (" + cell(attachment, "/vf_pci") + ")"},
                      {"MAC", cell(attachment, "/settings/mac")},
                      {"VLAN", cell(attachment, "/settings/vlan/id")},
                      {"trust", cell(attachment, "/settings/trust")},
                      {"spoofchk", cell(attachment, "/settings/spoofchk")},
                      {"network", cell(attachment, "/spec/network")},
                      {"address", cell(attachment, "/address")},
                      {"verified every", every_text(attachment)},
                      {"running VM", cell(attachment, "/live")},
                      {"persistent XML", cell(attachment, "/config")},
                      {"created", cell(attachment, "/created_at")},
                      {"requested by", cell(attachment, "/requested_by")}});
    auto const found = attachment.find("verification");
    if (found != attachment.end() && found->is_object())
        out += "\n" + verification_page(*found, options);
    return out;
}

std::string operation_page(json const& operation, Options const& options) {
    auto out = facts({{"operation", cell(operation, "/id")},
                      {"kind", cell(operation, "/kind")},
                      {"state", cell(operation, "/state")},
                      {"subject", cell(operation, "/subject")},
                      {"requested by", cell(operation, "/requested_by")},
                      {"created", cell(operation, "/created_at")},
                      {"finished", cell(operation, "/finished_at")}});
    if (cell(operation, "/problem") != "-")
        out += facts({{"problem", cell(operation, "/problem/detail")},
                      {"remedy", cell(operation, "/problem/remedy")}});
    if (cell(operation, "/certificate") != "-") {
        auto const settings = operation["certificate"].value("settings", json::object());
        out += facts({{"clean VF", cell(operation, "/certificate/vf_pci")},
                      {"verified clean", cell(operation, "/certificate/observed_at")},
                      {"MAC", cell(settings, "/mac")},
                      {"VLAN", vlan_text(settings)},
                      {"driver", cell(operation, "/certificate/driver")}});
    }
    out += section("steps", step_table(operation), options);
    json remarks = json::array();
    for (auto const& step : list_at(operation, "/steps"))
        for (auto const& remark : list_at(step, "/remarks")) remarks.push_back(remark);
    return out + bullets("remarks", remarks);
}

std::string plan_page(json const& dry_run) {
    auto const steps = list_at(dry_run, "/plan/steps");
    std::string out = steps.empty() ? "nothing to do\n" : "would:\n";
    int number = 0;
    for (auto const& step : steps)
        out += fmt::format("{:>3}. {}\n", ++number, cell(step, "/sentence"));
    out += bullets("affects", list_at(dry_run, "/plan/blast_radius"));
    return out + bullets("notes", list_at(dry_run, "/plan/notes"));
}

void write_out(std::string_view text, Shown as) {
    auto const shown = escaped(text, as);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void print(Table const& table, std::string const& page, std::string const& body,
           Options const& options) {
    if (options.format == Format::table) return write_out(page, Shown::text);
    print(table, body, options);
}

void print(Table const& table, std::string const& body, Options const& options) {
    write_out(rendered(table, body, options),
              options.format == Format::json ? Shown::json : Shown::text);
}

void print_sentence(std::string const& sentence, Options const& options) {
    if (!options.quiet) std::fputs(("vfctl: " + printable(sentence) + "\n").c_str(), stderr);
}

}  // namespace vfmgr
