// SPDX-License-Identifier: Apache-2.0
// Checks whether this host's VFs allow unloading drivers. For scripts, and for openibd's unit.
#include "service/cli/drained.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/as_owner.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/server.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/machine/collect.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr {
namespace {

std::string const drain_remedy =
    "detach the VFs first, so that no VM is harmed: vfctl detach VM, for each VM";

using Names = std::set<std::string>;

tl::unexpected<Error> unseen(Error const& why, std::string remedy) {
    Error error{Problem::vf_in_use,
                "it is not known whether a VM has a VF, so one may: " + why.detail,
                std::move(remedy), why.causes};
    return fail(std::move(error));
}

// The one member of an attachment that is needed here; a vfmgrd of another version may send more.
struct NamesVm {
    std::string vm;
};
template <class F, Of<NamesVm> V>
void fields(F& f, V& attachment) {
    f.value("vm", attachment.vm);
}

// Includes VMs that are shut off: their VFs would be missing at their next start.
Result<Names> attached_by_daemon(Options const& options, std::chrono::seconds time_max) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const response,
              connection.list({.path = "/v1/attachments", .timeout = time_max}));
    VFMGR_TRY(auto const body, json_of(response));
    auto const list = from_json_document<ItemList<NamesVm>>(body, UnknownKeys::ignored);
    if (!list)
        return fail(Problem::internal, "the server's answer is not a list of attachments",
                    "check that this is vfmgrd, and that its version matches vfctl's");
    Names names;
    for (auto const& attachment : list->items) names.insert(printable(attachment.vm));
    return names;
}

Result<Names> attached_by_store(std::string const& store) {
    VFMGR_TRY(auto const attachments, read_attachments(store));
    Names names;
    for (auto const& attachment : attachments) names.insert(printable(attachment.vm));
    return names;
}

Result<Names> left_in_store(std::string const& store, std::string const& start_mark,
                            Error const& no_answer) {
    auto names = [&]() -> Result<Names> {
        VFMGR_TRY(auto const as_vfmgrd, as_owner_of(start_mark));
        return attached_by_store(store);
    }();
    if (names) return names;
    names.error().causes.push_back({"GET /v1/attachments", "", no_answer.detail});
    return unseen(names.error(), "start vfmgrd, then try again: systemctl restart vfmgrd");
}

// Returns the VMs that have VFs, running or not. Before vfmgrd's first start of a boot it does not
// query the default socket: that would start vfmgrd, and the VFs that it then attaches would keep
// openibd from loading drivers. Another socket or host is queried anyway.
Result<Names> attached(Options const& options, Server const& server, DrainSources const& sources) {
    auto const mark = [&]() -> Result<std::optional<std::string>> {
        VFMGR_TRY(auto const as_vfmgrd, as_owner_of(sources.start_mark));
        return read_start_mark(sources.start_mark);
    }();
    if (mark && !*mark && server.address == local_address) return Names{};
    auto answer = attached_by_daemon(options, sources.answer_time_max);
    if (answer || answer.error().problem == Problem::invalid_request) return answer;
    if (!is_remote(server) && mark && *mark)
        return left_in_store(**mark, sources.start_mark, answer.error());
    return unseen(answer.error(), answer.error().remedy);
}

Result<Names> held_by_processes(checks::Facts const& facts) {
    auto const machine = checks::read_machine(facts);
    if (!machine.vfio_holders())
        return fail(
            Problem::vf_in_use,
            fmt::format("it is not known which processes hold VFs, so any VF may be in use: {}",
                        checks::to_string(machine.vfio_holders().error())),
            "run it as root");
    Names names;
    for (auto const& holding : *machine.vfio_holders())
        names.insert(printable(holding.vm.empty() ? "process " + holding.process : holding.vm));
    return names;
}

Result<void> drained(Options const& options) {
    VFMGR_CHECK(require_drained(options));
    print_sentence("no VM has a VF of this host", options);
    return {};
}

}  // namespace

Result<void> require_drained(Options const& options, DrainSources const& sources) {
    VFMGR_TRY(auto const server, server_of(options));
    VFMGR_TRY(auto names, attached(options, server, sources));
    if (!is_remote(server)) {  // only its daemon knows about another host
        VFMGR_TRY(auto const holders, held_by_processes(sources.vfio_holders()));
        names.insert(holders.begin(), holders.end());
    }
    if (names.empty()) return {};
    return fail(Problem::vf_in_use, fmt::format("VFs are attached to {}", fmt::join(names, ", ")),
                drain_remedy);
}

void add_drained_command(CLI::App& app, Session& session) {
    add_command(app, session, "drained",
                "succeed if no VM has a VF, so that drivers may be reloaded", drained);
}

}  // namespace vfmgr
