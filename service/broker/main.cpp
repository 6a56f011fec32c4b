// SPDX-License-Identifier: Apache-2.0
// vfmgr-broker: the part of vfmgr that runs as root. systemd starts it when vfmgrd connects; it
// ends on SIGTERM.
#include <malloc.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <list>
#include <thread>

#include "service/broker/serve.hpp"
#include "service/host_rules.hpp"
#include "service/socket_program.hpp"
#include "vfmgr/checks/host/sriov_owners.hpp"
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"
#include "vfmgr/hypervisor/no_libvirt.hpp"
#include "vfmgr/kernel/linux_kernel.hpp"
#include "vfmgr/kernel/remote_kernel.hpp"
#include "vfmgr/kernel/worker_process.hpp"
#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/machine/collect.hpp"
#include "vfmgr/netlink/monitor.hpp"

namespace vfmgr::broker {
namespace {

constexpr char const* records_file = "/var/lib/vfmgr-broker/vfs.json";
constexpr char const* locks_folder = "/run/vfmgr-broker";
constexpr int arenas = 2;
// vfmgrd, and one that is just being restarted, or restores at boot.
constexpr std::size_t fronts_max = 4;

// The connections of fronts. The main thread accepts; any thread passes news on.
class Fronts {
  public:
    Fronts(HostRules rules, ConfigPaths paths, Seams seams)
        : rules_(std::move(rules)), paths_(std::move(paths)), seams_(seams) {}

    void accept(FileDescriptor socket) {
        std::lock_guard const lock(mutex_);
        if (at_work_ >= fronts_max) return;
        ++at_work_;
        read_rules();
        all_.push_back(
            std::make_unique<Service>(std::move(socket), ++connections_, rules_, seams_));
        std::thread([this, service = all_.back().get()] { serve(*service); }).detach();
    }
    void pass_on(News news) {
        std::lock_guard const lock(mutex_);
        for (auto const& service : all_) service->pass_on(news);
    }

  private:
    void serve(Service& service) {
        service.run(VFMGR_VERSION);
        std::unique_ptr<Service> over;
        {
            std::lock_guard const lock(mutex_);
            auto const place = std::ranges::find(all_, &service, &std::unique_ptr<Service>::get);
            over = std::move(*place);
            all_.erase(place);
        }
        over.reset();  // waits for its requests, without the lock
        std::lock_guard const lock(mutex_);
        --at_work_;
    }

    // A mistake that root makes in the files widens nothing: the rules stay as they were.
    void read_rules() {
        auto now = load_host_rules(paths_);
        if (now)
            rules_ = std::move(*now);
        else
            static_cast<void>(failed_to_start(now.error()));
    }

    std::mutex mutex_;  // guards the members below
    HostRules rules_;
    ConfigPaths const paths_;
    Seams const seams_;
    std::list<std::unique_ptr<Service>> all_;
    std::uint64_t connections_ = 0;
    std::size_t at_work_ = 0;  // with those that are over but still wait for a request
};

std::unique_ptr<Hypervisor> hypervisor_of(HostRules const& rules, std::function<void()> changed) {
    if (rules.libvirt_uri == no_libvirt_uri) return std::make_unique<NoLibvirt>();
    return std::make_unique<LibvirtHypervisor>(rules.libvirt_uri, std::move(changed));
}

Result<void> run(HostRules const& rules, ConfigPaths const& paths) {
    if (::sd_listen_fds(1) != 1)
        return fail(Problem::unavailable, "vfmgr-broker got no socket",
                    "systemd starts it: systemctl start vfmgr-broker.socket");
    VFMGR_TRY(auto const keeper, Keeper::open(records_file));
    VFMGR_TRY(auto const worker, worker_program());
    SpareDescriptors spare(worker_start_descriptors);
    WorkerFiles const workers{worker.get(), locks_folder, spare};
    RemoteKernel kernel(
        [](KernelScope const& scope) { return pfs_in({}, scope); }, [] { return list_cards({}); },
        {[&workers](KernelSubject const& subject) { return start_worker(workers, subject); },
         [&workers](KernelSubject const& subject, Deadline deadline) {
             await_predecessor(workers.locks, subject, deadline);
         }});
    Collectors const collectors{
        [] { return checks::to_bundle(checks::collect({CheckedMachine::host})); },
        [] { return checks::to_bundle(checks::collect_owners({})); }};
    Fronts* receiver = nullptr;
    auto const hypervisor = hypervisor_of(rules, [&receiver] {
        if (receiver) receiver->pass_on(News::vms);
    });
    StepsUnderway underway;
    Fronts fronts(rules, paths, {kernel, *hypervisor, collectors, *keeper, underway});
    receiver = &fronts;
    VFMGR_TRY(auto const events, HostEvents::start([&fronts] { fronts.pass_on(News::host); }));
    accept_until_signal(SD_LISTEN_FDS_START,
                        [&fronts](FileDescriptor socket) { fronts.accept(std::move(socket)); });
    // Nothing is waited for: workers finish their steps, libvirtd its jobs, and the front asks the
    // next broker again.
    ::_exit(0);
}

}  // namespace
}  // namespace vfmgr::broker

int main(int argc, char** argv) {
    using namespace vfmgr;
    CLI::App app{"Performs what vfmgrd asks for, within the bounds that root has set."};
    ConfigPaths paths;
    auto const* const named =
        app.add_option("--config", paths.file, "configuration file")->capture_default_str();
    app.add_option("--config-dir", paths.folder, "folder with further configuration files (*.toml)")
        ->capture_default_str();
    app.set_version_flag("--version", VFMGR_VERSION);
    CLI11_PARSE(app, argc, argv);
    paths.named = named->count() > 0;
    auto const rules = load_host_rules(paths);
    if (!rules) return failed_to_start(rules.error());
    ::mallopt(M_ARENA_MAX, broker::arenas);
    block_ending_signals();
    auto const served = broker::run(*rules, paths);
    return served ? 0 : failed_to_start(served.error());
}
