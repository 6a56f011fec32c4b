// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/pf_edit.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

struct SetArguments {
    std::string pf;
    std::string file;
    std::optional<std::uint16_t> num_vfs;
    std::string mode;
    std::optional<std::string> vf_driver;
    std::vector<std::string> networks;
    std::vector<std::string> networks_removed;
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

Result<PfEdit> edit_of(SetArguments const& arguments) {
    PfEdit desired{
        arguments.num_vfs, {}, arguments.vf_driver, arguments.networks, arguments.networks_removed};
    if (arguments.mode.empty()) return desired;
    VFMGR_TRY(desired.mode,
              parse_choice<PfMode>("mode", arguments.mode, "see vfctl pf set --help"));
    return desired;
}

struct Edited {
    std::string body;
    std::string revision;  // the ETag of the spec it was made from
};

// Returns the current spec with the changes that the arguments name. A PF that is not managed yet
// answers with mode "observe". Changing it starts managing it, unless --mode says otherwise.
Result<Edited> edited_spec(Connection const& connection, std::string const& path,
                           SetArguments const& arguments) {
    VFMGR_TRY(auto const response, connection.send({.path = path}));
    auto const etag = response.headers.find("etag");
    Edited out{{}, etag == response.headers.end() ? "" : etag->second};
    VFMGR_TRY(PfSpec present, from_json_text<PfSpec>(response.body));
    if (out.revision == "\"0\"") present.mode = PfMode::manage;
    VFMGR_TRY(PfEdit const desired, edit_of(arguments));
    VFMGR_TRY(PfSpec const spec, edit(std::move(present), desired));
    out.body = nlohmann::json(spec).dump();
    return out;
}

// Preserves another client's change between our read and our write: reads the spec again and
// repeats the edit. One of several editors wins each round, so this many can edit at once.
Result<Settled> edit_until_written(Connection const& connection, Options const& options,
                                   std::string const& path, SetArguments const& arguments) {
    constexpr int tries_max = 16;
    for (int tries = 1;; ++tries) {
        VFMGR_TRY(Edited const edited, edited_spec(connection, path, arguments));
        ApiRequest request{.method = "PUT", .path = path, .body = edited.body};
        if (!edited.revision.empty()) request.headers["if-match"] = edited.revision;
        auto done = change(connection, options, std::move(request));
        if (done || done.error().problem != Problem::precondition_failed) return done;
        if (tries == tries_max) return done;
        print_sentence(fmt::format("{}; retrying the edit", done.error().detail), options);
    }
}

Result<void> set_pf(Options const& options, SetArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const pci, resolve_pf(connection, arguments.pf));
    auto const pf_path = "/v1/pfs/" + to_string(pci);
    auto const spec_path = pf_path + "/spec";
    Settled settled;
    if (arguments.file.empty()) {
        VFMGR_TRY(settled, edit_until_written(connection, options, spec_path, arguments));
    } else {
        VFMGR_TRY(auto whole, read_text(arguments.file));
        VFMGR_TRY(settled, change(connection, options,
                                  {.method = "PUT", .path = spec_path, .body = std::move(whole)}));
    }
    if (settled.shown) return {};
    print_sentence(settled.done ? fmt::format("{} is configured", arguments.pf)
                                : fmt::format("{} is already configured like this", arguments.pf),
                   options);
    VFMGR_TRY(auto const after, connection.send({.path = pf_path}));
    VFMGR_TRY(auto const pf, value_of<PfView>(after));
    print(pf_table({pf}), after.body, options);
    return {};
}

Result<void> report_pf(Options const& options, ApiRequest request, std::string const& sentence) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const settled, change(connection, options, std::move(request)));
    if (!settled.shown) print_sentence(sentence, options);
    return {};
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

void add_set(CLI::App& pf, Session& session) {
    auto const [command, arguments] =
        add_command(pf, session, "set", "change the configuration of a PF", set_pf, SetArguments{});
    command->add_option("PF", arguments.pf, "PCI address or netdev")->required();
    auto* const file = command->add_option(
        "-f,--file", arguments.file, "read the whole spec as JSON from FILE; - for standard input");
    command->add_option("--num-vfs", arguments.num_vfs, "number of VFs")->excludes(file);
    command->add_option("--mode", arguments.mode, "observe, manage or enforce")->excludes(file);
    command
        ->add_option("--vf-driver", arguments.vf_driver,
                     "driver for unused VFs; none: new VFs get no driver")
        ->excludes(file);
    command
        ->add_option("--network", arguments.networks,
                     "add or change a network: name=…,prefix=…,host=…[,vlan=…|none][,mtu=…]"
                     "[,rdma=auto|rxe|none][,dscp=…|none]")
        ->excludes(file)
        ->expected(1)
        ->take_all();
    command
        ->add_option("--network-remove", arguments.networks_removed,
                     "remove the network of this name")
        ->excludes(file)
        ->expected(1)
        ->take_all();
}

}  // namespace

void add_pf_commands(CLI::App& app, Session& session) {
    auto* const pf = add_group(app, "pf", "show and configure physical functions");
    add_command(*pf, session, "list", "list the PFs of the host", list_pfs);
    add_named(*pf, session, "show", "show one PF with its VFs", pf_by_any_name, show_pf);
    add_set(*pf, session);
    Named const by_address{"PF", "PCI address"};
    add_named(*pf, session, "gone", "end the attachments of a PF that is gone", by_address,
              end_gone);
    add_named(*pf, session, "confirm-gone",
              "delete the stored state of a PF that does not come back", by_address, confirm_gone);
    add_rekey(*pf, session);
}

}  // namespace vfmgr
