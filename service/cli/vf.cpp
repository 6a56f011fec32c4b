// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"
#include "service/cli/verification_history.hpp"

namespace vfmgr {
namespace {

Result<void> list_vfs(Options const& options, std::string const& pf_name) {
    if (pf_name.empty()) return print_list<PfView>(options, {.path = "/v1/pfs"}, vf_table);
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const pci, resolve_pf(connection, pf_name));
    auto const path = "/v1/pfs/" + to_string(pci);
    VFMGR_TRY(auto const pf, get<PfView>(connection, path));
    VFMGR_TRY(auto const response, connection.send({.path = path + "/vfs"}));
    return print(vf_table({pf}), response.body, options);
}

std::string path_of(VfId const& vf) {
    return fmt::format("/v1/pfs/{}/vfs/{}", to_string(vf.pf), vf.index);
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
    return print_list<HistoryEvent>(options, {.path = path_of(vf) + "/history"}, history_table);
}

// Adds a command for one VF.
template <class Run>
void add_of_vf(CLI::App& parent, Session& session, std::string const& verb, std::string const& help,
               Run run) {
    auto const [command, vf] = add_command(parent, session, verb, help, run, VfName{});
    command->add_option("VF", vf.text, "PF/NUMBER such as enp1s0/3, or the PF with NUMBER after it")
        ->required();
    command->add_option("NUMBER", vf.index, "number of the VF");
}

Result<void> list_vms(Options const& options) {
    return print_list<VmInfo>(options, {.path = "/v1/vms"}, vm_table);
}

}  // namespace

void add_vf_commands(CLI::App& app, Session& session) {
    auto* const vf = add_group(app, "vf", "show virtual functions, and lift quarantines");
    auto const [list_command, pf] = add_command(
        *vf, session, "list", "list the VFs of one PF, or of all", list_vfs, std::string());
    list_command->add_option("PF", pf, "PCI address or netdev");
    add_of_vf(*vf, session, "history", "show what happened to a VF, whichever VM had it",
              history_of_vf);
    add_of_vf(*vf, session, "verifications",
              "list the runs of the RDMA tests over a VF, whichever VM had it",
              verifications_of_vf);
    add_of_vf(*vf, session, "lift-quarantine",
              "try again to clean a VF, so that it may be attached again", lift_quarantine);

    auto* const vm = add_group(app, "vm", "show virtual machines");
    add_command(*vm, session, "list", "list all VMs that libvirt knows", list_vms);
}

}  // namespace vfmgr
