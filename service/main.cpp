// SPDX-License-Identifier: Apache-2.0
// vfmgrd: attaches VFs to VMs. All of its work is in run().
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "service/attend.hpp"
#include "service/broker/link.hpp"
#include "service/guest/check_peer.hpp"
#include "service/log.hpp"
#include "service/run.hpp"
#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/proof/interop/rping.hpp"
#include "vfmgr/store/left_store.hpp"

namespace {

using namespace vfmgr;

constexpr int arenas = 2;
// systemd's, of vfmgr-broker.socket.
constexpr char const* broker_socket = "/run/vfmgr-broker.sock";

int failed(Error const& error) {
    log(Severity::error, error.detail, {{"remedy", error.remedy}});
    log_violations(error);
    return 1;
}

GuestSeam guest_seam(Config const& config) {
    return {check_peer,
            [port = config.guest_plane_vsock_port](http::Server& server, http::Handler handler) {
                return server.listen(http::VsockListen{port, http::SourcePort::privileged},
                                     std::move(handler));
            }};
}

// Without the broker nothing was collected, and each check says so.
checks::Facts facts_from(broker::Link& link, broker::Call what) {
    auto const collected = [&]() -> Result<checks::Facts> {
        VFMGR_TRY(auto const bundle, broker::collect(link, what));
        return checks::from_bundle(bundle);
    }();
    if (collected) return *collected;
    log(Severity::warning, "the broker collected no facts",
        {{"detail", collected.error().detail}, {"remedy", collected.error().remedy}});
    return {};
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Attaches SR-IOV virtual functions to virtual machines and proves that RDMA works."};
    ConfigPaths paths;
    bool check = false;
    bool boot = false;
    auto const* const named =
        app.add_option("--config", paths.file, "configuration file")->capture_default_str();
    app.add_option("--config-dir", paths.folder, "folder with further configuration files (*.toml)")
        ->capture_default_str();
    app.add_flag("--check-config", check, "check the configuration and what it names, then exit");
    app.add_flag("--restore", boot,
                 "restore VFs and RDMA links from the stored state, then exit (at boot)");
    std::vector<std::string> rping;
    app.add_option("--rping", rping, "serve rping of one guest for vfmgrd")->group("");
    app.set_version_flag("--version", VFMGR_VERSION);
    CLI11_PARSE(app, argc, argv);

    if (!rping.empty()) return interop::serve_rping(rping);
    paths.named = named->count() > 0;
    auto const config = load_config(paths);
    if (!config) return failed(config.error());
    if (check) {
        auto const usable = check_named(*config);
        return usable ? 0 : failed(usable.error());
    }
    Bell bell;
    broker::Link link(broker_socket, [&bell](News news) { bell.ring(news); });
    broker::BrokerKernel kernel(link);
    if (boot) {
        auto const restored = run_restore(*config, kernel, system_clock());
        return restored ? 0 : failed(restored.error());
    }
    // Threads come and go with operations and connections; each would leave memory behind in its
    // own arena.
    ::mallopt(M_ARENA_MAX, arenas);
    // Leave the mark before anything is attached. Without it, vfctl drained concludes that no
    // vfmgrd has run since the host booted, and that there are no attachments.
    if (auto const marked = leave_start_mark(start_mark_file, store_file(*config)); !marked)
        return failed(marked.error());
    block_signals();
    broker::BrokerHypervisor hypervisor(link);
    HostSeams const seams{kernel, hypervisor, guest_seam(*config),
                          [&link] { return facts_from(link, broker::Call::collect_host); },
                          [&link] { return facts_from(link, broker::Call::collect_owners); }};
    auto const served =
        run(*config, [&paths] { return load_config(paths); }, seams, bell, system_clock());
    return served ? 0 : failed(served.error());
}
