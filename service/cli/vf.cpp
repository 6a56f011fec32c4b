// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/edit_until_written.hpp"
#include "service/cli/pf_edit.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/setting_options.hpp"
#include "service/cli/show.hpp"
#include "service/cli/verification_history.hpp"

namespace vfmgr {
namespace {

// A list of VFs names their PFs by address; tables also name the PFs' netdevs.
Result<void> print_vfs(Connection const& connection, Options const& options,
                       std::string const& path) {
    VFMGR_TRY(auto const response, connection.list({.path = path}));
    if (is_document(options.format)) return print_document(response, options);
    VFMGR_TRY(auto const vfs, value_of<ItemList<VfView>>(response));
    VFMGR_TRY(auto const pfs, get_list<PfView>(connection, "/v1/pfs"));
    return print(vf_table(vfs.items, pfs), response.body, options);
}

Result<void> list_vfs(Options const& options, std::string const& pf_name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    if (pf_name.empty()) return print_vfs(connection, options, "/v1/vfs");
    VFMGR_TRY(auto const pci, resolve_pf(connection, pf_name));
    return print_vfs(connection, options, "/v1/pfs/" + to_string(pci) + "/vfs");
}

std::string path_of(VfId const& vf) {
    return fmt::format("/v1/pfs/{}/vfs/{}", to_string(vf.pf), vf.index);
}

Table setting_table(VfSpec const& settings) {
    Table table{{"SETTING", "VALUE"}, {}};
    for_each_member([&](VfAttribute attribute, auto member) {
        auto const& value = settings.*member;
        if (value) table.rows.push_back({cell(attribute), setting_text(value)});
    });
    return table;
}

std::string holders_text(std::vector<VfioHolder> const& holders) {
    std::string out;
    for (auto const& holder : holders)
        out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", cell(holder.comm), holder.pid);
    return out.empty() ? "-" : out;
}

// Returns "pass, 2026-01-31T12:00:00.000Z, run 9c1f0b7d2e3a4455".
std::string last_run_text(std::vector<Verification> const& runs) {
    if (runs.empty()) return "-";
    auto const& last = runs.front();
    return fmt::format("{}, {}, run {}", cell(last.verdict), cell(last.started_at), cell(last.run));
}

std::string quarantine_text(VfId const& vf, VfQuarantine const& quarantine) {
    return fmt::format("\nquarantined since {}, after VM {}: {}\n", cell(quarantine.since),
                       cell(quarantine.vm), cell(quarantine.reason)) +
           bullets("left over", quarantine.residue) +
           fmt::format("remedy: vfctl vf lift-quarantine {}\n", to_string(vf));
}

// What the daemon knows of a VF, from several answers.
struct VfPage {
    PfView pf;  // with this VF alone
    std::vector<Verification> runs;
    std::vector<Event> events;
};

constexpr std::size_t events_shown = 5;

Result<VfPage> page_of(Connection const& connection, VfId const& id, VfView const& vf) {
    VfPage page;
    VFMGR_TRY(page.pf, get<PfView>(connection, "/v1/pfs/" + to_string(id.pf)));
    page.pf.vfs = {vf};
    VFMGR_TRY(page.runs, get_list<Verification>(connection, path_of(id) + "/verifications", 1));
    VFMGR_TRY(page.events, get_list<Event>(connection, path_of(id) + "/history", events_shown));
    return page;
}

std::string vf_page(VfId const& id, VfPage const& page, Options const& options) {
    auto const& view = page.pf.vfs.front();
    auto const& vf = view.vf;
    auto out = facts({{"VF", fmt::format("{} ({})", to_string(id), to_string(vf.pci))},
                      {"PF's ifname", cell(page.pf.pf.info.ifname)},
                      {"state", cell(view.state)},
                      {"attachment", cell(view.attachment)},
                      {"VM", cell(view.vm)},
                      {"driver", cell(vf.driver)},
                      {"IOMMU group", cell(vf.iommu_group)},
                      {"ifname", cell(vf.ifname)},
                      {"held by", holders_text(vf.holders)},
                      {"last verification", last_run_text(page.runs)}});
    if (view.quarantine) out += quarantine_text(id, *view.quarantine);
    out += bullets("drift", view.drift);
    out += section("settings", setting_table(vf.settings), options);
    return out + section("latest events", history_table(page.events), options);
}

Result<void> print_vf(Connection const& connection, Options const& options, VfId const& id) {
    VFMGR_TRY(auto const response, connection.send({.path = path_of(id)}));
    if (is_document(options.format)) return print_document(response, options);
    VFMGR_TRY(auto const vf, value_of<VfView>(response));
    VFMGR_TRY(auto const page, page_of(connection, id, vf));
    return print(vf_table({vf}, {page.pf}), vf_page(id, page, options), response.body, options);
}

Result<void> show_vf(Options const& options, VfName const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_vf(connection, name));
    return print_vf(connection, options, id);
}

Result<void> lift_quarantine(Options const& options, VfName const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const vf, resolve_vf(connection, name));
    return change_and_report(connection, options,
                             {.method = "DELETE", .path = path_of(vf) + "/quarantine"},
                             fmt::format("VF {} may be attached again", to_string(vf)));
}

Result<void> verifications_of_vf(Options const& options, VfName const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const vf, resolve_vf(connection, name));
    return show_verifications(connection, options, path_of(vf) + "/verifications");
}

Result<void> history_of_vf(Options const& options, VfName const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const vf, resolve_vf(connection, name));
    return print_list<Event>(connection, options, {.path = path_of(vf) + "/history"},
                             history_table);
}

struct VfSetArguments {
    VfName vf;
    AttachArguments settings;
};

Result<std::string> edited_spec(Found const& found, VfId const& vf, NamedSettings const& settings) {
    VFMGR_TRY(PfSpec spec, from_json_text<PfSpec>(found.body));
    if (found.revision == "\"0\"") spec.mode = PfMode::manage;
    return nlohmann::json(edit(std::move(spec), vf.index, settings)).dump();
}

// The settings are part of the PF's spec.
Result<void> set_vf(Options const& options, VfSetArguments const& arguments) {
    constexpr auto help = "see vfctl vf set --help";
    VFMGR_TRY(auto const settings, named_settings(arguments.settings, help));
    if (empty(settings.set) && settings.unset.empty())
        return fail(Problem::invalid_request, "there is nothing to set", help);
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const vf, resolve_vf(connection, arguments.vf));
    VFMGR_TRY(auto const settled,
              edit_until_written(
                  connection, options, "/v1/pfs/" + to_string(vf.pf) + "/spec",
                  [&](Found const& found) { return edited_spec(found, vf, settings); },
                  vf_table({}, {})));
    if (settled.shown) return {};
    print_sentence(settled.done
                       ? fmt::format("VF {} has its settings", to_string(vf))
                       : fmt::format("VF {} is already configured like this", to_string(vf)),
                   options);
    return print_vf(connection, options, vf);
}

void add_name(CLI::App& command, VfName& vf) {
    command.add_option("VF", vf.text, "PF/NUMBER such as enp1s0/3, or the PF with NUMBER after it")
        ->required();
    command.add_option("NUMBER", vf.index, "number of the VF");
}

// Adds a command for one VF.
template <class Run>
void add_of_vf(CLI::App& parent, Session& session, std::string const& verb, std::string const& help,
               Run run) {
    auto const [command, vf] = add_command(parent, session, verb, help, run, VfName{});
    add_name(*command, vf);
}

void add_vf_set(CLI::App& parent, Session& session) {
    auto const [command, arguments] = add_command(
        parent, session, "set", "set what a VF has while no VM has it", set_vf, VfSetArguments{});
    add_name(*command, arguments.vf);
    add_settings(*command, arguments.settings);
    add_unset(*command, arguments.settings, "setting that the spec is to leave alone");
}

}  // namespace

void add_vf_commands(CLI::App& app, Session& session) {
    auto* const vf = add_group(app, "vf", "show and set virtual functions, and lift quarantines");
    auto const [list_command, pf] = add_command(
        *vf, session, "list", "list the VFs of one PF, or of all", list_vfs, std::string());
    list_command->add_option("PF", pf, "PCI address or netdev");
    add_of_vf(*vf, session, "show", "show one VF: settings, owner, last verification and history",
              show_vf);
    add_vf_set(*vf, session);
    add_of_vf(*vf, session, "history", "show what happened to a VF, whichever VM had it",
              history_of_vf);
    add_of_vf(*vf, session, "verifications",
              "list the runs of the RDMA tests over a VF, whichever VM had it",
              verifications_of_vf);
    add_of_vf(*vf, session, "lift-quarantine",
              "try again to clean a VF, so that it may be attached again", lift_quarantine);
}

}  // namespace vfmgr
