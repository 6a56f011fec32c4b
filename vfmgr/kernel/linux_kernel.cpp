// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/linux_kernel.hpp"

#include <algorithm>
#include <future>

#include "vfmgr/kernel/firmware.hpp"
#include "vfmgr/kernel/pci.hpp"
#include "vfmgr/kernel/pf_view.hpp"
#include "vfmgr/kernel/rdma_links.hpp"
#include "vfmgr/kernel/steps.hpp"
#include "vfmgr/kernel/vf_settings.hpp"
#include "vfmgr/kernel/worker_process.hpp"
#include "vfmgr/netlink/devlink.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::seconds observe_seconds_max{10};
constexpr std::chrono::seconds firmware_seconds_max{15};

PfState stale_pf(PciAddress const& pf, Error const& error) {
    PfState state;
    state.info.pci = pf;
    state.stale = true;
    state.stale_reason = error.detail;
    return state;
}

Result<VfSettings> settings_of(LinuxKernelRoots const& roots, NlSocket& socket,
                               NetworkSnapshot const& network, PciAddress const& pf,
                               Deadline deadline) {
    auto const* const netdev = pf_netdev(roots, network.host.netdevs, pf);
    if (netdev == nullptr) return VfSettings{};
    return read_vf_settings(socket, netdev->name, netdev->ifindex, deadline);
}

Result<Switch> switch_of(PciAddress const& pf, Deadline deadline) {
    Switch eswitch;
    auto const device = devlink_device(pf);
    VFMGR_TRY(eswitch.mode, read_eswitch_mode(device, deadline));
    if (eswitch.mode == EswitchMode::switchdev) {
        VFMGR_TRY(eswitch.ports, list_vf_ports(device, deadline));
    }
    return eswitch;
}

// Returns the name of the PF's RDMA device, or of a software device on its netdev; empty without.
std::string rdma_device_of(LinuxKernelRoots const& roots, PciAddress const& pf,
                           Netdev const* netdev, Deadline deadline) {
    if (auto const hardware = rdma_devices_of(roots, pf); !hardware.empty())
        return hardware.front();
    auto rdma = NlSocket::open(NlProtocol::rdma);
    auto const devices = rdma ? list_rdma_devices(*rdma, deadline) : fail(rdma.error());
    auto const* const soft =
        devices && netdev ? rdma_device_on(*devices, netdev->ifindex) : nullptr;
    return soft ? soft->name : std::string();
}

// A PF's device has one port: the other ports of its card are other PFs.
std::map<std::string, std::uint64_t> hw_counters_of(LinuxKernelRoots const& roots,
                                                    std::string const& device) {
    std::map<std::string, std::uint64_t> counters;
    if (device.empty()) return counters;
    auto const folder = roots.sysfs / "class/infiniband" / device / "ports/1/hw_counters";
    for (auto const& name : entries(folder)) {
        if (name == "lifespan") continue;  // for how long the kernel answers with the same counts
        if (auto const count = read_number(folder / name)) counters.emplace(name, *count);
    }
    return counters;
}

// An InfiniBand PF without IPoIB, or one bound to vfio-pci, has no netdev, and its VFs no counters.
PfTraffic traffic_of(LinuxKernelRoots const& roots, NlSocket& socket, HostNetdevs const& host,
                     PciAddress const& pf, Deadline deadline) {
    PfTraffic traffic;
    traffic.pf = pf;
    traffic.read_at = system_clock().now();
    auto const* const netdev = pf_netdev(roots, host.netdevs, pf);
    traffic.rdma_hw_counters = hw_counters_of(roots, rdma_device_of(roots, pf, netdev, deadline));
    if (netdev == nullptr) return traffic;
    if (auto vfs = read_vf_counters(socket, netdev->name, netdev->ifindex, deadline))
        traffic.vfs = std::move(*vfs);
    else
        traffic.problem = vfs.error();
    return traffic;
}

template <class T>
Error const* error_of(Result<T> const& result) {
    return result ? nullptr : &result.error();
}

std::vector<dev_t> nodes_of(ListedVfs const& vfs) {
    std::vector<dev_t> nodes;
    for (auto const& [index, vf] : vfs)
        nodes.insert(nodes.end(), vf.vfio.numbers.begin(), vf.vfio.numbers.end());
    return nodes;
}

struct Reading {
    LinuxKernelRoots const& roots;
    DeviceBooks& books;
    NlSocket& socket;
    NetworkSnapshot const& network;
    std::shared_future<OpenFiles> const& open;  // of all processes
    Deadline deadline;
};

// If one source can't be read, the view still has the others, and the reason.
PfState observe_pf(Reading const& reading, PciAddress const& pf, Result<ListedVfs> const& vfs) {
    auto const& [roots, books, socket, network, open, deadline] = reading;
    if (!vfs) return stale_pf(pf, vfs.error());
    auto const settings = settings_of(roots, socket, network, pf, deadline);
    auto const eswitch = switch_of(pf, deadline);
    // Whatever can't be read of a process, it holds none of a PF without nodes.
    auto const holders = nodes_of(*vfs).empty() ? Holders{} : open.get().holders;
    auto state = view_pf(roots, books,
                         {network, *vfs, settings.value_or(VfSettings{}),
                          holders.value_or(Holders{}), eswitch.value_or(Switch{})},
                         pf);
    if (!state) return stale_pf(pf, state.error());
    for (auto const* const error : {error_of(eswitch), error_of(settings), error_of(holders)}) {
        if (error == nullptr) continue;
        state->stale = true;
        state->stale_reason = error->detail;
    }
    return std::move(*state);
}

}  // namespace

Result<std::vector<PciAddress>> pfs_in(LinuxKernelRoots const& roots, KernelScope const& scope) {
    if (!scope) return list_pfs(roots);
    auto const* const pf = std::get_if<PciAddress>(&*scope);
    if (pf == nullptr) return std::vector<PciAddress>{};
    VFMGR_TRY(bool const there, is_pf(roots, *pf));
    return there ? std::vector{*pf} : std::vector<PciAddress>{};
}

LinuxKernel::LinuxKernel(LinuxKernelRoots roots) : roots_(std::move(roots)) {}

Result<KernelView> LinuxKernel::observe(KernelScope const& scope) {
    auto const deadline = std::chrono::steady_clock::now() + observe_seconds_max;
    KernelView view;
    view.complete = !scope;
    if (!scope || *scope == KernelSubject(HostNetwork{})) {
        VFMGR_TRY(view.network, view_host_network(roots_, modules_, deadline));
        view.places = places_.look_up(roots_);
        if (scope) return view;
    }
    VFMGR_TRY(auto const pfs, pfs_in(roots_, scope));
    auto const observed_at = system_clock().now();  // nothing in the view is older
    std::map<PciAddress, Result<ListedVfs>> vfs;
    std::vector<dev_t> nodes;
    for (auto const& pf : pfs) {
        auto const& listed = vfs.emplace(pf, list_vfs_with_nodes(roots_, pf)).first->second;
        std::ranges::copy(nodes_of(listed.value_or(ListedVfs{})), std::back_inserter(nodes));
    }
    // To read the files of every process takes as long as all the rest, and goes on beside it.
    auto const open = std::async(std::launch::async | std::launch::deferred, [&] {
                          return find_open_files(roots_, nodes);
                      }).share();
    VFMGR_TRY(auto const network, take_snapshot(deadline));
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    view.routes = view_routes(network);
    for (auto const& pf : pfs) {
        auto state = observe_pf({roots_, books_, socket, network, open, deadline}, pf, vfs.at(pf));
        detect_hang(state, open.get().numvfs_writers);
        state.observed_at = observed_at;
        view.pfs.emplace(pf, std::move(state));
    }
    return view;
}

// Detects another program that hangs while it changes the PF's VFs. The daemon detects a hang of
// our own worker: it does not answer.
void LinuxKernel::detect_hang(PfState& pf, std::vector<NumVfsWriter> writers) {
    auto const now = std::chrono::steady_clock::now();
    std::erase_if(writers, [&](NumVfsWriter const& each) { return each.pf != pf.info.pci; });
    std::lock_guard const lock(mutex_);
    std::erase_if(writers_, [&](auto const& observed) {
        return observed.first.first == pf.info.pci &&
               std::ranges::find(writers, observed.first.second, &NumVfsWriter::pid) ==
                   writers.end();
    });
    for (auto const& writer : writers) {
        auto const since = writers_.try_emplace({writer.pf, writer.pid}, now).first->second;
        if (now - since < hang_time) continue;
        pf.stuck = describe(roots_, writer);
        pf.pci_busy = true;
    }
    detect_held_removal(pf, now);
}

// Detects a removal of the card itself, with no process that writes anything. mutex_ is held.
void LinuxKernel::detect_held_removal(PfState& pf, Deadline now) {
    auto const removal = find_held_removal(roots_, pf);
    if (!removal) {
        removals_.erase(pf.info.pci);
        return;
    }
    if (now - removals_.try_emplace(pf.info.pci, now).first->second < hang_time || pf.stuck) return;
    pf.stuck = describe(pf.info.pci, *removal);
    pf.pci_busy = true;
}

Result<std::vector<FirmwareCard>> LinuxKernel::read_firmware(
    std::optional<PciAddress> const& function) {
    auto const deadline = std::chrono::steady_clock::now() + firmware_seconds_max;
    VFMGR_TRY(auto const cards, list_cards(roots_));
    std::vector<FirmwareCard> all;
    for (auto const& card : cards)
        if (!function || std::ranges::find(card.functions, *function) != card.functions.end())
            all.push_back(read_card(roots_, card, deadline));
    return all;
}

Result<std::vector<PfTraffic>> LinuxKernel::read_traffic(std::optional<PciAddress> const& pf) {
    auto const deadline = std::chrono::steady_clock::now() + observe_seconds_max;
    VFMGR_TRY(auto const pfs, pfs_in(roots_, pf ? KernelScope(*pf) : KernelScope()));
    VFMGR_TRY(auto const host, read_host_netdevs(deadline));
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    std::vector<PfTraffic> all;
    for (auto const& each : pfs) all.push_back(traffic_of(roots_, socket, host, each, deadline));
    return all;
}

Result<Observed> LinuxKernel::configure(ConfigureVfs const& step, Deadline deadline) {
    auto pf = take_open(step.pf);
    if (!pf || !pf->unchanged()) {
        VFMGR_TRY(pf, OpenPf::open(roots_, step.pf, deadline));
    }
    VFMGR_TRY(auto observed, perform_step(roots_, *pf, step, deadline));
    std::lock_guard const lock(mutex_);
    open_.insert_or_assign(step.pf, std::move(*pf));
    return observed;
}

// Takes the open PF out of the map for exclusive use: a step that hangs keeps its own.
std::optional<OpenPf> LinuxKernel::take_open(PciAddress const& pf) {
    std::lock_guard const lock(mutex_);
    auto kept = open_.extract(pf);
    return kept ? std::optional(std::move(kept.mapped())) : std::nullopt;
}

Result<Observed> LinuxKernel::perform(KernelStep const& step, Deadline deadline) {
    return std::visit(
        [&]<class Step>(Step const& each) -> Result<Observed> {
            if constexpr (std::is_same_v<Step, ConfigureVfs>)
                return configure(each, deadline);
            else
                return perform_step(roots_, each, deadline);
        },
        step);
}

}  // namespace vfmgr
