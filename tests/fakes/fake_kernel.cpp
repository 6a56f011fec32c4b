// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_kernel.hpp"

#include <algorithm>
#include <cerrno>

#include "tests/fakes/effects.hpp"

namespace vfmgr {

namespace {

std::string name_of(KernelStep const& step) {
    return sentence(step);
}

}  // namespace

tl::unexpected<Error> refused(std::string detail, std::string call, int error) {
    Error answer{Problem::kernel_refused, std::move(detail), "see the cause"};
    answer.causes.push_back(errno_cause(std::move(call), error));
    answer.detail += ": " + answer.causes.front().text;
    return fail(std::move(answer));
}

FakeKernel::FakeKernel(KernelView host) : host_(std::move(host)) {}

DriverModel const& FakeKernel::model(PciAddress const& pf) const {
    auto const named = models.find(pf);
    return named == models.end() ? driver_model("igb") : named->second;
}

Result<KernelView> FakeKernel::observe(KernelScope const& scope) {
    std::lock_guard const lock(mutex_);
    ++observed_;
    if (observe_error) return fail(*observe_error);
    KernelView view;
    if (!scope) {
        view = host_;
        view.complete = true;
        return view;
    }
    view.routes = host_.routes;
    auto const* const address = std::get_if<PciAddress>(&*scope);
    if (!address) {
        view.network = host_.network;
        view.places = host_.places;
        return view;
    }
    if (auto const pf = host_.pfs.find(*address); pf != host_.pfs.end()) view.pfs.insert(*pf);
    return view;
}

Result<Observed> FakeKernel::effect(KernelStep const& step, FaultPoint until) {
    if (until == FaultPoint::before) return Observed{};
    auto const extent = until == FaultPoint::halfway ? Extent::half : Extent::whole;
    auto const subject = subject_of(step);
    auto const* const pf = std::get_if<PciAddress>(&subject);
    return std::visit(Effects{host_, model(pf ? *pf : PciAddress{}), resets_, driver_resets_,
                              guids_, counters, cards_, overrides, extent},
                      step);
}

Result<Observed> FakeKernel::perform(KernelStep const& step, Deadline) {
    if (on_perform) on_perform(step);
    std::lock_guard const lock(mutex_);
    auto const call = steps_.size();
    if (keeps_steps) steps_.push_back(step);
    if (die_at && die_at->call == call) {
        (void)effect(step, die_at->point);
        throw CrashNow{call, die_at->point};
    }
    if (fail_at && fail_at->call == call) {
        VFMGR_CHECK(effect(step, fail_at->point));
        return refused("the fake was told to fail at: " + name_of(step), "fault", EIO);
    }
    return effect(step, FaultPoint::after);
}

Result<std::vector<FirmwareCard>> FakeKernel::read_firmware(
    std::optional<PciAddress> const& function) {
    std::lock_guard const lock(mutex_);
    auto cards = cards_;
    if (function)
        std::erase_if(cards, [&](FirmwareCard const& card) {
            return std::ranges::find(card.functions, *function) == card.functions.end();
        });
    return cards;
}

Result<std::vector<PfTraffic>> FakeKernel::read_traffic(std::optional<PciAddress> const& pf) {
    std::lock_guard const lock(mutex_);
    std::vector<PfTraffic> all;
    for (auto const& [pci, state] : host_.pfs) {
        if (pf && *pf != pci) continue;
        PfTraffic traffic;
        traffic.pf = pci;
        for (auto const& vf : state.vfs)
            if (auto const counted = counters.find({pci, vf.index}); counted != counters.end())
                traffic.vfs.push_back({vf.index, counted->second});
        if (auto const counted = rdma_hw_counters.find(pci); counted != rdma_hw_counters.end())
            traffic.rdma_hw_counters = counted->second;
        all.push_back(std::move(traffic));
    }
    return all;
}

void FakeKernel::count(VfId const& vf, VfCounters const& now) {
    std::lock_guard const lock(mutex_);
    counters[vf] = now;
}

void FakeKernel::count(PciAddress const& pf, std::map<std::string, std::uint64_t> const& now) {
    std::lock_guard const lock(mutex_);
    rdma_hw_counters[pf] = now;
}

void FakeKernel::change_firmware(std::function<void(std::vector<FirmwareCard>&)> const& edit) {
    std::lock_guard const lock(mutex_);
    edit(cards_);
}

void FakeKernel::reboot_cards(std::string const& boot_id) {
    change_firmware([&](std::vector<FirmwareCard>& cards) {
        for (auto& card : cards) {
            if (card.current) card.current = card.next;
            card.boot_id = boot_id;
        }
    });
}

KernelView FakeKernel::view() const {
    std::lock_guard const lock(mutex_);
    return host_;
}

void FakeKernel::change(std::function<void(KernelView&)> const& edit) {
    std::lock_guard const lock(mutex_);
    edit(host_);
}

void FakeKernel::hold(PciAddress const& pci, VfioHolder const& holder) {
    change([&](KernelView& host) {
        for (auto& [address, pf] : host.pfs)
            for (auto& vf : pf.vfs)
                if (vf.pci == pci) vf.holders.push_back(holder);
    });
}

void FakeKernel::release(PciAddress const& pci, std::int32_t pid) {
    change([&](KernelView& host) {
        for (auto& [address, pf] : host.pfs)
            for (auto& vf : pf.vfs)
                if (vf.pci == pci)
                    std::erase_if(vf.holders, [&](auto const& one) { return one.pid == pid; });
    });
}

void FakeKernel::add_netdev(std::string const& name, NetdevState const& netdev) {
    change([&](KernelView& host) { host.network.value().netdevs[name] = netdev; });
}

// The kernel unregisters an rxe or siw device with its netdev [src rxe_notify].
void FakeKernel::remove_netdev(std::string const& name) {
    change([&](KernelView& host) {
        host.network.value().netdevs.erase(name);
        std::erase_if(host.network->rdma,
                      [&](auto const& link) { return link.second.ifname == name; });
    });
}

std::size_t FakeKernel::performed() const {
    std::lock_guard const lock(mutex_);
    return steps_.size();
}

std::size_t FakeKernel::observed() const {
    std::lock_guard const lock(mutex_);
    return observed_;
}

std::vector<KernelStep> FakeKernel::steps() const {
    std::lock_guard const lock(mutex_);
    return steps_;
}

std::size_t FakeKernel::driver_resets(VfId const& vf) const {
    std::lock_guard const lock(mutex_);
    auto const found = driver_resets_.find(vf);
    return found == driver_resets_.end() ? 0 : found->second;
}

std::size_t FakeKernel::resets(VfId const& vf) const {
    std::lock_guard const lock(mutex_);
    auto const found = resets_.find(vf);
    return found == resets_.end() ? 0 : found->second;
}

}  // namespace vfmgr
