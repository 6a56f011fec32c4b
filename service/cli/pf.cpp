// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/edit_until_written.hpp"
#include "service/cli/pf_edit.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

struct PfSetArguments {
    std::string pf;
    std::string file;
    std::optional<std::uint16_t> num_vfs;
    std::string mode;
    std::optional<std::string> vf_driver;
    std::vector<std::string> labels;
};

Result<void> list_pfs(Options const& options) {
    return print_list<PfView>(options, {.path = "/v1/pfs"}, pf_table);
}

Result<void> show_pf(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const pci, resolve_pf(connection, name));
    VFMGR_TRY(auto const response, connection.send({.path = "/v1/pfs/" + to_string(pci)}));
    return print_answer<PfView>(
        response, options, [](PfView const& one) { return pf_table({one}); }, pf_page);
}

Result<PfEdit> edit_of(PfSetArguments const& arguments) {
    PfEdit desired{arguments.num_vfs, {}, arguments.vf_driver};
    if (!arguments.labels.empty()) {
        VFMGR_TRY(desired.labels, labels_of(arguments.labels));
    }
    if (arguments.mode.empty()) return desired;
    VFMGR_TRY(desired.mode,
              parse_choice<PfMode>("mode", arguments.mode, "see vfctl pf set --help"));
    return desired;
}

// Returns the current spec with the changes that the arguments name. A PF that is not managed yet
// answers with mode "observe". Changing it starts managing it, unless --mode says otherwise.
Result<std::string> edited_spec(Found const& found, PfSetArguments const& arguments) {
    VFMGR_TRY(PfSpec present, from_json_text<PfSpec>(found.body));
    if (found.revision == "\"0\"") present.mode = PfMode::manage;
    VFMGR_TRY(PfEdit const desired, edit_of(arguments));
    return nlohmann::json(edit(std::move(present), desired)).dump();
}

Result<void> set_pf(Options const& options, PfSetArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const pci, resolve_pf(connection, arguments.pf));
    auto const pf_path = "/v1/pfs/" + to_string(pci);
    auto const spec_path = pf_path + "/spec";
    Settled settled;
    if (arguments.file.empty()) {
        VFMGR_TRY(settled, edit_until_written(
                               connection, options, spec_path,
                               [&](Found const& found) { return edited_spec(found, arguments); },
                               pf_table({})));
    } else {
        VFMGR_TRY(auto whole, read_document(arguments.file));
        VFMGR_TRY(settled, change(connection, options,
                                  {.method = "PUT", .path = spec_path, .body = std::move(whole)},
                                  pf_table({})));
    }
    if (settled.shown) return {};
    print_sentence(settled.done ? fmt::format("{} is configured", arguments.pf)
                                : fmt::format("{} is already configured like this", arguments.pf),
                   options);
    VFMGR_TRY(auto const after, connection.send({.path = pf_path}));
    VFMGR_TRY(auto const pf, value_of<PfView>(after));
    return print(pf_table({pf}), after.body, options);
}

Result<void> report_pf(Options const& options, ApiRequest request, std::string const& sentence) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return change_and_report(connection, options, std::move(request), sentence);
}

Result<void> forget(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const pci, resolve_pf(connection, name));
    return change_and_report(
        connection, options,
        {.method = "DELETE", .path = fmt::format("/v1/pfs/{}/spec", to_string(pci))},
        fmt::format("{} is not managed any more; it stays as it is", to_string(pci)));
}

// Identifies the PF by address only: an absent PF has no name.
Result<PciAddress> address(std::string const& text) {
    auto const pci = PciAddress::parse(text);
    if (pci) return *pci;
    return fail(Problem::invalid_request, fmt::format("'{}' is not a PCI address", text),
                "name the PF by its address: vfctl pf list");
}

Result<void> end_gone(Options const& options, std::string const& pf) {
    VFMGR_TRY(auto const pci, address(pf));
    return report_pf(
        options, {.method = "POST", .path = fmt::format("/v1/pfs/{}/gone", to_string(pci))},
        fmt::format("the attachments of {} have ended; their addresses stay reserved until "
                    "vfctl pf confirm-gone {}",
                    to_string(pci), to_string(pci)));
}

Result<void> confirm_gone(Options const& options, std::string const& pf) {
    VFMGR_TRY(auto const pci, address(pf));
    return report_pf(
        options, {.method = "POST", .path = fmt::format("/v1/pfs/{}/confirm-gone", to_string(pci))},
        fmt::format("the stored state of {} is deleted", to_string(pci)));
}

Result<void> rekey(Options const& options, std::string const& from, std::string const& to) {
    VFMGR_TRY(auto const old_pci, address(from));
    VFMGR_TRY(auto const new_pci, address(to));
    return report_pf(options,
                     {.method = "POST",
                      .path = fmt::format("/v1/pfs/{}/rekey", to_string(old_pci)),
                      .body = nlohmann::json(RekeyRequest{new_pci}).dump()},
                     fmt::format("the stored state of {} has moved to {}", to_string(old_pci),
                                 to_string(new_pci)));
}

void add_rekey(CLI::App& pf, Session& session) {
    auto const [command, from, to] =
        add_command(pf, session, "rekey", "move the stored state of a PF to its new PCI address",
                    rekey, std::string(), std::string());
    command->add_option("FROM", from, "old PCI address")->required();
    command->add_option("TO", to, "new PCI address")->required();
}

void add_pf_set(CLI::App& pf, Session& session) {
    auto const [command, arguments] = add_command(
        pf, session, "set", "change the configuration of a PF", set_pf, PfSetArguments{});
    command->add_option("PF", arguments.pf, "PCI address or netdev")->required();
    auto* const file =
        command
            ->add_option("-f,--file", arguments.file,
                         "read the whole spec as YAML or JSON from FILE; - for standard "
                         "input")
            ->type_name("FILE");
    command->add_option("--num-vfs", arguments.num_vfs, "number of VFs")->excludes(file);
    command->add_option("--mode", arguments.mode, "how much is changed")
        ->check(one_of<PfMode>())
        ->excludes(file);
    command
        ->add_option("--vf-driver", arguments.vf_driver,
                     "driver for unused VFs; none: new VFs get no driver")
        ->excludes(file);
    command
        ->add_option("--label", arguments.labels,
                     "KEY=VALUE for pools to select by; replaces all labels; none: no labels")
        ->excludes(file)
        ->expected(1)
        ->take_all();
}

}  // namespace

void add_pf_commands(CLI::App& app, Session& session) {
    auto* const pf = add_group(app, "pf", "show and configure physical functions");
    add_command(*pf, session, "list", "list the PFs of the host", list_pfs);
    add_named(*pf, session, "show", "show one PF with its VFs", pf_by_any_name, show_pf);
    add_pf_set(*pf, session);
    add_named(*pf, session, "forget", "stop managing a PF, and leave it as it is", pf_by_any_name,
              forget);
    Named const by_address{"PF", "PCI address"};
    add_named(*pf, session, "gone", "end the attachments of a PF that is gone", by_address,
              end_gone);
    add_named(*pf, session, "confirm-gone",
              "delete the stored state of a PF that does not come back", by_address, confirm_gone);
    add_rekey(*pf, session);
}

}  // namespace vfmgr
