// SPDX-License-Identifier: Apache-2.0
// vfmgr-fleetd: one API for many hosts with vfmgrd. All of its work is in run().
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "service/attend.hpp"
#include "service/fleet/begin.hpp"
#include "service/fleet/config.hpp"
#include "service/fleet/etcd/grpc_etcd.hpp"
#include "service/fleet/run.hpp"
#include "service/log_failure.hpp"

namespace {

constexpr int arenas = 4;

vfmgr::Result<std::unique_ptr<vfmgr::fleet::Etcd>> etcd_of(
    vfmgr::fleet::EtcdSettings const& settings) {
    return vfmgr::fleet::grpc_etcd({.endpoints = settings.endpoints,
                                    .prefix = settings.prefix,
                                    .ca_file = settings.ca_file,
                                    .certificate_file = settings.certificate_file,
                                    .key_file = settings.key_file});
}

}  // namespace

int main(int argc, char** argv) {
    namespace fleet = vfmgr::fleet;
    CLI::App app{"Answers for a fleet of hosts that run vfmgrd: one API, kept in etcd."};
    auto paths = fleet::default_paths();
    bool check = false;
    auto const* const named =
        app.add_option("--config", paths.file, "configuration file")->capture_default_str();
    app.add_option("--config-dir", paths.folder, "folder with further configuration files (*.toml)")
        ->capture_default_str();
    app.add_flag("--check-config", check, "check the configuration and what it names, then exit");
    app.set_version_flag("--version", VFMGR_VERSION);
    CLI11_PARSE(app, argc, argv);

    paths.named = named->count() > 0;
    auto const config = fleet::load_config(paths);
    if (!config) return vfmgr::failed(config.error());
    if (check) {
        auto const usable = fleet::check_named(*config);
        return usable ? 0 : vfmgr::failed(usable.error());
    }
    // Each of the many threads would leave memory behind in its own arena.
    ::mallopt(M_ARENA_MAX, arenas);
    vfmgr::block_signals();
    auto const served = fleet::run(
        *config, [&paths] { return fleet::load_config(paths); },
        [&config](fleet::Front const& front) {
            return fleet::begin(*config, front, etcd_of, vfmgr::system_clock());
        },
        vfmgr::system_clock());
    return served ? 0 : vfmgr::failed(served.error());
}
