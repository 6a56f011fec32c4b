// SPDX-License-Identifier: Apache-2.0
// vfmgrd: attaches VFs to VMs. All of its work is in run().
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "service/attend.hpp"
#include "service/guest/check_peer.hpp"
#include "service/log.hpp"
#include "service/run.hpp"
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"
#include "vfmgr/kernel/linux_kernel.hpp"
#include "vfmgr/kernel/remote_kernel.hpp"
#include "vfmgr/kernel/worker_process.hpp"
#include "vfmgr/proof/interop/rping.hpp"
#include "vfmgr/store/left_store.hpp"

namespace {

constexpr int arenas = 2;

int failed(vfmgr::Error const& error) {
    vfmgr::log(vfmgr::Severity::error, error.detail, {{"remedy", error.remedy}});
    vfmgr::log_violations(error);
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace vfmgr;
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
    auto const worker = worker_program();
    if (!worker) return failed(worker.error());
    SpareDescriptors spare(worker_start_descriptors);
    WorkerFiles const workers{worker->get(), config->state_dir + "/workers", spare};
    RemoteKernel kernel(
        [](KernelScope const& scope) { return pfs_in({}, scope); }, [] { return list_cards({}); },
        {[&workers](KernelSubject const& subject) { return start_worker(workers, subject); },
         [&workers](KernelSubject const& subject, Deadline deadline) {
             await_predecessor(workers.locks, subject, deadline);
         }});
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
    Bell bell;
    LibvirtHypervisor hypervisor(config->rules.libvirt_uri, [&bell] { bell.ring(); });
    GuestSeam const guests{
        check_peer,
        [port = config->guest_plane_vsock_port](http::Server& server, http::Handler handler) {
            return server.listen(http::VsockListen{port, http::SourcePort::privileged},
                                 std::move(handler));
        }};
    auto const served = run(
        *config, [&paths] { return load_config(paths); }, kernel, hypervisor, guests, bell,
        system_clock());
    return served ? 0 : failed(served.error());
}
