// SPDX-License-Identifier: Apache-2.0
// May drivers be taken from under the VFs of this host? For scripts, and for openibd's unit.
#include "service/cli/drained.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "service/cli/connection.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/checks/collect.hpp"
#include "vfmgr/checks/machine.hpp"

namespace vfmgr {
namespace {

std::string const drain_remedy =
    "give the VFs back first: vfctl detach VM, for each; then nobody is harmed";

// Also those of VMs that are shut off: their VFs would be gone when they start.
Result<std::set<std::string>> lent_by_daemon(Options const& options) {
    std::set<std::string> vms;
    auto const connection = Connection::open(options);
    auto const body =
        connection ? get_json(*connection, "/v1/attachments") : fail(connection.error());
    // A daemon that is down, at boot for one, lends nothing; what VMs hold is seen all the same.
    if (!body && body.error().problem == Problem::unavailable) return vms;
    if (!body) return fail(body.error());
    for (auto const& item : body->at("items")) vms.insert(printable(cell(item, "/vm_name")));
    return vms;
}

Result<std::set<std::string>> held_by_processes() {
    checks::Facts const facts = checks::collect_vfio_holders();
    auto const machine = checks::read_machine(facts);
    if (!machine.vfio_holders)
        return fail(Problem::vf_in_use,
                    fmt::format("it can't be seen who holds VFs, so any may be in use: {}",
                                checks::to_string(machine.vfio_holders.error())),
                    "run it as root");
    std::set<std::string> names;
    for (auto const& holding : *machine.vfio_holders)
        names.insert(printable(holding.vm.empty() ? "process " + holding.process : holding.vm));
    return names;
}

Result<void> drained(Options const& options) {
    VFMGR_CHECK(require_drained(options));
    say("no VM has a VF of this host", options);
    return {};
}

}  // namespace

Result<void> require_drained(Options const& options) {
    VFMGR_TRY(auto names, lent_by_daemon(options));
    if (options.url.empty()) {  // of another host only its daemon tells
        VFMGR_TRY(auto const holders, held_by_processes());
        names.insert(holders.begin(), holders.end());
    }
    if (names.empty()) return {};
    return fail(Problem::vf_in_use, fmt::format("VFs are lent to {}", fmt::join(names, ", ")),
                drain_remedy);
}

void add_drained_command(CLI::App& app, Session& session) {
    app.add_subcommand("drained", "ends well when no VM has a VF: drivers may be reloaded")
        ->fallthrough()
        ->callback([&session] { session.run = [&session] { return drained(session.options); }; });
}

}  // namespace vfmgr
