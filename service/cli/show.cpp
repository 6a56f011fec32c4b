// SPDX-License-Identifier: Apache-2.0
#include "service/cli/show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "api/types/test_lines.hpp"

namespace vfmgr {

namespace {

// Returns "RATE 100-1000" or "max 1000": the VF's send rate, in Mbit/s.
std::string rate_text(VfSpec const& settings) {
    auto const most = cell(settings.max_tx_rate_mbps);
    if (settings.min_tx_rate_mbps.value_or(0) == 0) return most == "0" ? "-" : most;
    return cell(settings.min_tx_rate_mbps) + "-" + most;
}

// Returns "bandwidth_mbps=941.2 p50_us=18.3".
std::string figures_text(TestResult const& test) {
    std::string text;
    for (auto const& [name, value] : test.figures)
        text += fmt::format("{}{}={:.6g}", text.empty() ? "" : " ", printable(name), value);
    return text.empty() ? "-" : text;
}

std::vector<TestResult> printable_tests(std::vector<TestResult> tests) {
    for (auto& test : tests)
        for (auto* const text : {&test.name, &test.detail, &test.remedy}) *text = printable(*text);
    return tests;
}

std::string warning_lines(std::string const& detail, std::string const& remedy) {
    return fmt::format("warning: {}\n  remedy: {}\n", cell(detail), cell(remedy));
}

// A fleet's lists are a host's, with the host in each item. The last column has it: the first names
// the object.
Table with_hosts(Table table, std::string const& body) {
    bool const has_them = std::ranges::find(table.columns, "HOST") != table.columns.end();
    if (has_them || table.rows.empty() || body.find("\"host\":\"") == body.npos) return table;
    auto const document = parse_json(body);
    if (!document || !document->is_object() || !document->contains("items")) return table;
    auto const& items = document->at("items");
    if (items.size() != table.rows.size()) return table;
    table.columns.emplace_back("HOST");
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        auto const& item = items[row];
        auto const host = item.is_object() ? item.find("host") : item.end();
        bool const named = item.is_object() && host != item.end() && host->is_string();
        table.rows[row].push_back(named ? cell(host->get<std::string>()) : "-");
    }
    return table;
}

Table interface_table(std::vector<HostInterface> const& interfaces) {
    Table table{{"IFNAME", "VLAN", "UP", "MTU", "ADDRESSES", "OURS"}, {}};
    for (auto const& one : interfaces)
        table.rows.push_back({cell(one.ifname), cell(one.id.vlan), cell(one.up), cell(one.mtu),
                              cell(one.addresses), cell(one.ours)});
    return table;
}

}  // namespace

std::string facts(std::vector<Fact> const& lines) {
    Table table{{"", ""}, {}};
    for (auto const& [key, value] : lines) table.rows.push_back({key + ":", value});
    return as_table(table, Headers::hidden);
}

std::string section(std::string const& title, Table const& table, Options const& options) {
    if (table.rows.empty()) return {};
    auto const headers = options.no_headers ? Headers::hidden : Headers::shown;
    return "\n" + title + ":\n" + as_table(table, headers);
}

std::string bullets(std::string const& title, std::vector<std::string> const& lines) {
    std::string out;
    for (auto const& line : lines) out += "  - " + cell(line) + "\n";
    return out.empty() ? out : title + ":\n" + out;
}

std::string vlan_text(std::optional<Vlan> const& vlan) {
    if (!vlan) return "-";
    return vlan->qos == 0 ? cell(vlan->id) : fmt::format("{}:{}", vlan->id, vlan->qos);
}

Table pf_table(std::vector<PfView> const& pfs) {
    Table table{{"PF", "IFNAME", "DRIVER", "VFS", "MAX", "MODE", "STANDING", "UP", "CARRIER", "MTU",
                 "RDMA", "DEVICE"},
                {}};
    for (auto const& view : pfs) {
        auto const& info = view.pf.info;
        table.rows.push_back({cell(info.pci), cell(info.ifname), cell(info.driver),
                              cell(info.num_vfs), cell(info.total_vfs),
                              cell(view.spec, &PfSpec::mode), cell(view.standing.is), cell(info.up),
                              cell(info.carrier), cell(info.mtu), cell(info.rdma_device),
                              cell(info.device_name)});
    }
    return table;
}

Table attachment_table(std::vector<Attachment> const& attachments) {
    Table table{{"ID", "VM", "PF", "VF", "PCI", "MAC", "VLAN", "NETWORK", "ADDRESS", "STATE",
                 "VERIFIED", "GPU", "DISTANCE"},
                {}};
    for (auto const& one : attachments)
        table.rows.push_back(
            {cell(one.id), cell(one.vm), cell(one.vf.pf), cell(one.vf.index), cell(one.vf_pci),
             cell(one.settings.mac), cell(one.settings.vlan, &Vlan::id), cell(one.spec.network),
             cell(one.address), cell(one.state), cell(one.verification, &Verification::verdict),
             cell(one.near, &NearGpu::gpu), cell(one.near, &NearGpu::distance)});
    return table;
}

Table operation_table(std::vector<Operation> const& operations) {
    Table table{{"ID", "KIND", "STATE", "SUBJECT", "BY", "CREATED", "PROBLEM"}, {}};
    for (auto const& one : operations)
        table.rows.push_back({cell(one.id), cell(one.kind), cell(one.state), cell(one.subject),
                              cell(one.requested_by), cell(one.created_at),
                              one.problem ? std::string(code(one.problem->problem)) : "-"});
    return table;
}

Table history_table(std::vector<Event> const& events) {
    Table table{{"EVENT", "AT", "KIND", "VM", "ATTACHMENT", "BECAUSE OF", "DETAIL"}, {}};
    for (auto const& event : events)
        table.rows.push_back({cell(event.number), cell(event.at), cell(event.kind), cell(event.vm),
                              cell(event.attachment), cell(event.because_of), cell(event.detail)});
    return table;
}

Table event_table(Event const& event) {
    return {{"EVENT", "AT", "KIND", "PF", "VF", "VM", "ATTACHMENT", "DETAIL"},
            {{cell(event.number), cell(event.at), cell(event.kind), cell(event.pf), cell(event.vf),
              cell(event.vm), cell(event.attachment), cell(event.detail)}}};
}

Table audit_table(std::vector<AuditEntry> const& entries) {
    Table table{{"AT", "WHO", "FROM", "ACTION", "OUTCOME", "REQUESTS", "OPERATION", "REQUEST ID"},
                {}};
    for (auto const& entry : entries)
        table.rows.push_back({cell(entry.at), cell(entry.who), cell(entry.from), cell(entry.action),
                              cell(entry.outcome), cell(entry.requests), cell(entry.operation),
                              cell(entry.request_id)});
    return table;
}

Table token_table(std::vector<TokenView> const& tokens) {
    Table table{{"ID", "ROLE", "SCOPES", "DESCRIPTION", "CREATED", "EXPIRES", "LAST USED", "FROM",
                 "TENANT"},
                {}};
    for (auto const& token : tokens)
        table.rows.push_back(
            {cell(token.id), cell(token.role), token.scopes ? cell(*token.scopes) : "all",
             cell(token.description), cell(token.created_at),
             token.never_expires ? "never" : cell(token.expires_at), cell(token.last_used_at),
             cell(token.last_used_from), cell(token.tenant)});
    return table;
}

Table interop_table(InteropWindow const& window) {
    return {{"ATTACHMENT", "ADDRESS", "TEST", "BYTES", "UNTIL", "SERVED", "REFUSED"},
            {{cell(window.attachment), cell(window.address), cell(window.test),
              cell(window.message_bytes), cell(window.open_until), cell(window.served),
              cell(window.refused)}}};
}

Table vf_table(std::vector<VfView> const& vfs, std::vector<PfView> const& pfs) {
    std::map<PciAddress, std::string> ifnames;
    for (auto const& view : pfs) ifnames[view.pf.info.pci] = view.pf.info.ifname;
    Table table{{"VF", "PF", "IFNAME", "INDEX", "PCI", "DRIVER", "MAC", "VLAN", "SPOOFCHK", "TRUST",
                 "LINK", "RATE", "VM", "STATE"},
                {}};
    for (auto const& view : vfs) {
        auto const& vf = view.vf;
        auto const& settings = vf.settings;
        table.rows.push_back({to_string(VfId{view.pf, vf.index}), cell(view.pf),
                              cell(ifnames[view.pf]), cell(vf.index), cell(vf.pci), cell(vf.driver),
                              cell(settings.mac), vlan_text(settings.vlan), cell(settings.spoofchk),
                              cell(settings.trust), cell(settings.link_state), rate_text(settings),
                              cell(view.vm), cell(view.state)});
    }
    return table;
}

Table test_table(Verification const& verification) {
    Table table{{"TEST", "VERDICT", "BY", "BYTES", "MISMATCHES", "FIGURES", "DETAIL"}, {}};
    for (auto const& test : verification.tests)
        table.rows.push_back({cell(test.name), cell(test.verdict), cell(test.by),
                              cell(test.bytes_checked), cell(test.mismatches), figures_text(test),
                              cell(test.detail)});
    return table;
}

Table step_table(PlanView const& plan) {
    Table table{{"STATE", "STEP"}, {}};
    for (auto const& step : plan.steps) table.rows.push_back({"-", cell(step.sentence)});
    return table;
}

std::string labels_text(std::optional<PfSpec> const& spec) {
    std::vector<std::string> all;
    if (spec)
        for (auto const& [key, value] : spec->labels)
            all.push_back(fmt::format("{}={}", key, value));
    return cell(all);
}

std::string pf_page(PfView const& view, Options const& options) {
    auto const& [pf, vfs, standing, spec, revision, networks, drift] = view;
    auto const& info = pf.info;
    auto out = facts({{"PF", cell(info.pci)},
                      {"ifname", cell(info.ifname)},
                      {"device", cell(info.vendor_name) + " " + cell(info.device_name)},
                      {"driver", cell(info.driver)},
                      {"MAC", cell(info.mac)},
                      {"standing", cell(standing.is)},
                      {"VFs", cell(info.num_vfs) + " of " + cell(info.total_vfs)},
                      {"mode", cell(spec, &PfSpec::mode)},
                      {"VFs configured", cell(spec, &PfSpec::num_vfs)},
                      {"VF driver", cell(spec, &PfSpec::vf_driver)},
                      {"networks", cell(networks)},
                      {"labels", labels_text(spec)},
                      {"variant", cell(info.vfio_variant, &VfioVariant::module)},
                      {"switch", cell(info.eswitch_mode)},
                      {"up", cell(info.up)},
                      {"carrier", cell(info.carrier)},
                      {"part of", cell(info.controller)},
                      {"MTU", cell(info.mtu)},
                      {"NUMA node", cell(info.numa_node)},
                      {"RDMA device", cell(info.rdma_device)},
                      {"RDMA driver", cell(info.rdma_driver)},
                      {"observed", cell(pf.observed_at)}});
    if (standing.detail)
        out += fmt::format("{}: {}: {}\n", cell(standing.is), cell(standing.detail),
                           cell(standing.remedy));
    if (pf.stuck) out += "stuck: " + cell(pf.stuck) + "\n";
    if (pf.stale) out += "can't be read now: " + cell(pf.stale_reason) + "\n";
    out += bullets("drift", drift);
    out += section("host's interfaces", interface_table(pf.interfaces), options);
    return out + section("VFs", vf_table(vfs, {view}), options);
}

std::string verification_page(Verification const& verification, Options const& options) {
    auto out =
        facts({{"verification", cell(verification.run)},
               {"verdict", cell(verification.verdict)},
               {"responder", verification.responder ? cell(verification.responder) : "this host"},
               {"path", verification.path ? cell(verification.path) : "not known"},
               {"DSCP", cell(verification.dscp)},
               {"peer GID", cell(verification.peer_gid)},
               verification.vf_guid ? Fact{"VF's port GUID", cell(verification.vf_guid)}
                                    : Fact{"VF's MAC", cell(verification.vf_mac)}});
    if (!verification.detail.empty()) out += cell(verification.detail) + "\n";
    if (!verification.remedy.empty()) out += "remedy: " + cell(verification.remedy) + "\n";
    for (auto const& loss : verification.losses) out += warning_lines(loss.detail, loss.remedy);
    for (auto const& one : verification.warnings) out += warning_lines(one.detail, one.remedy);
    if (verification.tests.empty()) return out;
    auto const shown = options.verbose ? Figures::all : Figures::important;
    return out + "\ntests:\n" + test_lines(printable_tests(verification.tests), shown);
}

std::string interop_page(InteropWindow const& window, Options const&) {
    auto out = facts({{"attachment", cell(window.attachment)},
                      {"served until", cell(window.open_until)},
                      {"perftest's test", cell(window.test)},
                      {"message bytes", cell(window.message_bytes)},
                      {"served", cell(window.served)},
                      {"refused", cell(window.refused)}});
    if (!window.rping.empty()) out += facts({{"rping is not served", cell(window.rping)}});
    out += "\nIn the VM:\n";
    for (auto const& command : window.commands) out += "  " + command + "\n";
    return out;
}

namespace {

// How an external holder, which no XML names, opens its VF.
std::string access_lines(Attachment const& attachment) {
    if (!attachment.access) return {};
    auto const& access = *attachment.access;
    return facts({{"VFIO group", cell(access.group)},
                  {"VFIO device", cell(access.device)},
                  {"QEMU arguments", cell(access.qemu)}});
}

std::string receiver_text(Attachment const& attachment) {
    if (!attachment.holder) return cell(attachment.vm) + " (" + cell(attachment.vm_uuid) + ")";
    auto const& uid = attachment.holder->uid;
    return cell(attachment.vm) +
           (uid ? fmt::format(" (external, uid {})", *uid) : std::string(" (external)"));
}

}  // namespace

std::string attachment_page(Attachment const& attachment, Options const& options) {
    auto const& settings = attachment.settings;
    auto const every = attachment.spec.verify_every_seconds;
    auto out =
        facts({{"attachment", cell(attachment.id)},
               {"state", cell(attachment.state)},
               {"VM", receiver_text(attachment)},
               {"VF", fmt::format("{} ({})", to_string(attachment.vf), cell(attachment.vf_pci))},
               {"MAC", cell(settings.mac)},
               {"VLAN", cell(settings.vlan, &Vlan::id)},
               {"trust", cell(settings.trust)},
               {"spoofchk", cell(settings.spoofchk)},
               {"network", cell(attachment.spec.network)},
               {"address", cell(attachment.address)},
               {"near GPU", attachment.near ? fmt::format("{}, {}", cell(attachment.near->gpu),
                                                          enum_name(attachment.near->distance))
                                            : "-"},
               {"verified every", every == 0 ? "-" : fmt::format("{} s", every)},
               {"running VM", cell(attachment.live)},
               {"persistent XML", cell(attachment.config)},
               {"adopted", cell(attachment.spec.adopt.has_value())},
               {"created", cell(attachment.created_at)},
               {"requested by", cell(attachment.requested_by)}});
    out += access_lines(attachment);
    if (attachment.verification) out += "\n" + verification_page(*attachment.verification, options);
    return out;
}

std::string operation_page(Operation const& operation, Options const& options) {
    auto out = facts({{"operation", cell(operation.id)},
                      {"kind", cell(operation.kind)},
                      {"state", cell(operation.state)},
                      {"subject", cell(operation.subject)},
                      {"requested by", cell(operation.requested_by)},
                      {"created", cell(operation.created_at)},
                      {"finished", cell(operation.finished_at)}});
    if (operation.problem)
        out += facts({{"problem", cell(operation.problem->detail)},
                      {"remedy", cell(operation.problem->remedy)}});
    if (auto const& certificate = operation.certificate)
        out += facts({{"clean VF", cell(certificate->vf_pci)},
                      {"verified clean", cell(certificate->observed_at)},
                      {"MAC", cell(certificate->settings.mac)},
                      {"VLAN", vlan_text(certificate->settings.vlan)},
                      {"driver", cell(certificate->driver)}});
    Table steps{{"STATE", "STEP"}, {}};
    std::vector<std::string> remarks;
    for (auto const& step : operation.steps) {
        steps.rows.push_back({cell(step.state), cell(step.sentence)});
        remarks.insert(remarks.end(), step.remarks.begin(), step.remarks.end());
    }
    return out + section("steps", steps, options) + bullets("remarks", remarks);
}

std::string plan_page(PlanView const& plan) {
    std::string out = plan.steps.empty() ? "nothing to do\n" : "would:\n";
    int number = 0;
    for (auto const& step : plan.steps)
        out += fmt::format("{:>3}. {}\n", ++number, cell(step.sentence));
    return out + bullets("affects", plan.blast_radius) + bullets("notes", plan.notes);
}

void write_out(std::string_view text, Shown as) {
    auto const shown = escaped(text, as);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
}

Result<void> print(Table const& table, std::string const& page, std::string const& body,
                   Options const& options) {
    if (options.format != Format::table || !options.columns.empty())
        return print(table, body, options);
    write_out(page, Shown::text);
    return {};
}

Result<void> print(Table const& table, std::string const& body, Options const& options) {
    VFMGR_TRY(auto const text, rendered(with_hosts(table, body), body, options));
    write_out(text, options.format == Format::json   ? Shown::json
                    : options.format == Format::yaml ? Shown::yaml
                                                     : Shown::text);
    return {};
}

Result<void> print_document(http::Response const& response, Options const& options) {
    VFMGR_CHECK(json_of(response));
    return print({}, response.body, options);
}

void print_sentence(std::string const& sentence, Options const& options) {
    if (!options.quiet) std::fputs(("vfctl: " + printable(sentence) + "\n").c_str(), stderr);
}

}  // namespace vfmgr
