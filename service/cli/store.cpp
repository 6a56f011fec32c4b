// SPDX-License-Identifier: Apache-2.0
// The store of this host's stopped daemon: puts a backup in its place. No request is sent.
#include <fmt/format.h>

#include "api/types/time.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/as_owner.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/store/left_store.hpp"
#include "vfmgr/store/restore_store.hpp"

namespace vfmgr {
namespace {

constexpr auto default_store = "/var/lib/vfmgr/vfmgr.db";

// Where the daemon that ran since this host booted has it.
Result<std::string> place_of_store(std::string const& given) {
    if (!given.empty()) return given;
    VFMGR_TRY(auto const marked, read_start_mark(start_mark_file));
    return marked.value_or(default_store);
}

Result<void> restore(Options const& options, std::string const& file, std::string const& given) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const store, place_of_store(given));
    VFMGR_TRY(auto backup, open_backup(file));
    VFMGR_TRY(auto const as_vfmgrd, as_owner_of(store));
    VFMGR_TRY(auto const restored, restore_store(backup, store, system_clock().now()));
    print_sentence(fmt::format("{} is restored from {}; {}. Start vfmgrd, then compare the VMs: "
                               "vfctl attachment list; in a fleet: vfctl fleet confirm",
                               store, file,
                               restored.kept ? "the store that was there is " + *restored.kept
                                             : "there was none"),
                   options);
    return {};
}

}  // namespace

void add_store_commands(CLI::App& app, Session& session) {
    auto* const store = add_group(app, "store", "restore what vfmgrd keeps, from a backup");
    auto const [command, file, place] = add_named(
        *store, session, "restore",
        "put the backup of a store in its place; vfmgrd must be stopped, and this be root",
        {"FILE", "the copy of a vfmgr.db"}, restore, std::string());
    command
        ->add_option(
            "--store", place,
            fmt::format("the store; default: the one that vfmgrd had last, or {}", default_store))
        ->type_name("FILE");
}

}  // namespace vfmgr
