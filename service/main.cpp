// SPDX-License-Identifier: Apache-2.0
// vfmgrd: attaches VFs to VMs. All of its work is in run().
#include <fmt/format.h>
#include <malloc.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <cerrno>

#include "api/os/socket_address.hpp"
#include "service/attend.hpp"
#include "service/broker/link.hpp"
#include "service/log.hpp"
#include "service/log_failure.hpp"
#include "service/run.hpp"
#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/store/left_store.hpp"

namespace {

using namespace vfmgr;

constexpr int arenas = 2;
// systemd's, of vfmgr-broker.socket and vfmgr-guestd.socket.
constexpr char const* broker_socket = "/run/vfmgr-broker.sock";
constexpr char const* guestd_socket = "/run/vfmgr-guestd.sock";

Result<FileDescriptor> connect_guestd() {
    auto const address = SocketAddress::of_unix(guestd_socket).value();
    FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket && ::connect(socket.get(), address.get(), address.length) == 0) return socket;
    return fail(Problem::unavailable,
                fmt::format("VMs can't report: {}: {}", guestd_socket, errno_name(errno)),
                "see why nothing listens there: systemctl status vfmgr-guestd.socket");
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
    app.set_version_flag("--version", VFMGR_VERSION);
    CLI11_PARSE(app, argc, argv);

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
    HostSeams const seams{kernel, hypervisor, connect_guestd,
                          [&link] { return facts_from(link, broker::Call::collect_host); },
                          [&link] { return facts_from(link, broker::Call::collect_owners); }};
    auto const served =
        run(*config, [&paths] { return load_config(paths); }, seams, bell, system_clock());
    return served ? 0 : failed(served.error());
}
