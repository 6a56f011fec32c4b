// SPDX-License-Identifier: Apache-2.0
#include "service/cli/certificate.hpp"

#include <fmt/format.h>

#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

// Returns "2026-01-31T12:30:00.000Z, requested by uid:0 (operation 01hkz3vb4m)".
std::string mark_text(CertificateMark const& mark) {
    return fmt::format("{}, requested by {} (operation {})", cell(mark.at), cell(mark.requested_by),
                       cell(mark.operation));
}

Table settings_table(Restored const& restored) {
    Table table{{"SETTING", "BEFORE THE DETACH", "NOW"}, {}};
    for_each_member([&](VfAttribute attribute, auto member) {
        auto const& was = restored.was.*member;
        auto const& is = restored.is.*member;
        if (was || is) table.rows.push_back({cell(attribute), setting_text(was), setting_text(is)});
    });
    return table;
}

Table address_table(RotatedAddresses const& rotated) {
    Table table{{"ADDRESS", "WHILE ATTACHED", "NOW"}, {}};
    auto const add = [&](char const* name, auto const& address) {
        if (address) table.rows.push_back({name, cell(address->was), cell(address->is)});
    };
    add("mac", rotated.mac);
    add("node_guid", rotated.node_guid);
    add("port_guid", rotated.port_guid);
    return table;
}

Table counter_table(VfCounters const& counters) {
    Table table{{"COUNTER", "BEFORE THE RESET"}, {}};
    for (auto const& [name, value] : {std::pair{"rx_packets", counters.rx_packets},
                                      {"rx_bytes", counters.rx_bytes},
                                      {"rx_dropped", counters.rx_dropped},
                                      {"tx_packets", counters.tx_packets},
                                      {"tx_bytes", counters.tx_bytes},
                                      {"tx_dropped", counters.tx_dropped},
                                      {"multicast", counters.multicast},
                                      {"broadcast", counters.broadcast}})
        if (value) table.rows.push_back({name, cell(value)});
    return table;
}

}  // namespace

Table certificate_table(Certificate const& certificate) {
    return {{"ATTACHMENT", "VM", "PF", "VF", "ATTACHED", "ATTACHED BY", "DETACHED", "DETACHED BY",
             "RESET", "RESET DONE", "CLEAN AT", "MAC WAS", "MAC"},
            {{cell(certificate.attachment), cell(certificate.vm), cell(certificate.vf.pf),
              cell(certificate.vf.index), cell(certificate.attached.at),
              cell(certificate.attached.requested_by), cell(certificate.detached.at),
              cell(certificate.detached.requested_by), cell(certificate.reset, &VfReset::method),
              cell(certificate.reset, &VfReset::done_at), cell(certificate.observed_at),
              cell(certificate.rotated.mac, &Rotated<MacAddress>::was),
              cell(certificate.settings.mac)}}};
}

std::string certificate_page(Certificate const& certificate, Options const& options) {
    auto const headers = options.no_headers ? Headers::hidden : Headers::shown;
    auto const vf =
        fmt::format("{} ({})", to_string(certificate.vf), to_string(certificate.vf_pci));
    auto const reset = fmt::format("{}, done {}", cell(certificate.reset, &VfReset::method),
                                   cell(certificate.reset, &VfReset::done_at));
    Table const facts{{"", ""},
                      {{"VF:", vf},
                       {"attachment:", cell(certificate.attachment)},
                       {"VM:", cell(certificate.vm)},
                       {"attached:", mark_text(certificate.attached)},
                       {"detached:", mark_text(certificate.detached)},
                       {"reset:", reset},
                       {"verified clean:", cell(certificate.observed_at)},
                       {"driver now:", cell(certificate.driver)}}};
    auto page = as_table(facts, Headers::hidden);
    for (auto const& table :
         {settings_table(certificate.restored), address_table(certificate.rotated),
          counter_table(certificate.counters.value_or(VfCounters{}))})
        if (!table.rows.empty()) page += "\n" + as_table(table, headers);
    return page;
}

}  // namespace vfmgr
