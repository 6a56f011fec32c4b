// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/remote_kernel.hpp"

#include <fmt/format.h>

#include <future>

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

std::string words_of(std::optional<KernelStep> const& step) {
    if (!step) return "observe it";
    return std::visit([](auto const& one) { return sentence(Step{one}); }, *step);
}

// The kernel holds the PCI subsystem's lock while it makes or removes VFs.
bool holds_pci_lock(std::optional<KernelStep> const& step) {
    return step && std::holds_alternative<SetNumVfs>(*step);
}

Error stuck_error(PciAddress const& pf, std::string const& reason) {
    return {Problem::pf_stuck, fmt::format("{}: {}", to_string(pf), reason),
            "end what holds its VFs, or reboot the host; VFs of other PFs can be lent"};
}

std::uint64_t milliseconds_until(Deadline deadline) {
    auto const left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now());
    return left.count() > 0 ? static_cast<std::uint64_t>(left.count()) : 0;
}

}  // namespace

RemoteKernel::RemoteKernel(ListPfs list_pfs, StartWorker start_worker, RemoteKernelTimes times)
    : list_pfs_(std::move(list_pfs)), start_worker_(std::move(start_worker)), times_(times) {}

RemoteKernel::Slot& RemoteKernel::slot_of(PciAddress const& pf) {
    std::lock_guard const lock(mutex_);
    auto& slot = slots_[pf];
    if (!slot) {
        slot = std::make_unique<Slot>();
        slot->patience = times_.predecessor;
    }
    return *slot;
}

Result<std::shared_ptr<Worker>> RemoteKernel::worker_of(PciAddress const& pf, Slot& slot) {
    std::lock_guard const lock(slot.mutex);
    if (slot.worker && slot.worker->ended()) {
        slot.worker.reset();
        slot.hang.reset();
    }
    if (slot.hang)
        return fail(stuck_error(
            pf, fmt::format("its worker (pid {}) was to {} and hangs in the kernel{} since {}",
                            slot.worker->pid(), slot.hang->what, slot.worker->where(),
                            to_rfc3339(slot.hang->since))));
    if (!slot.worker) {
        auto const patience = std::exchange(slot.patience, 0ms);
        VFMGR_TRY(auto process, start_worker_(pf, Steady::now() + patience));
        slot.worker = std::make_shared<Worker>(std::move(process));
    }
    return slot.worker;
}

Result<WorkerAnswer> RemoteKernel::ask(PciAddress const& pf, std::optional<KernelStep> const& step,
                                       Deadline deadline) {
    auto& slot = slot_of(pf);
    VFMGR_TRY(auto const worker, worker_of(pf, slot));
    auto answer = worker->ask({0, step, milliseconds_until(deadline)}, deadline + times_.grace);
    if (answer && answer->error) return fail(std::move(*answer->error));
    if (answer || answer.error().problem != Problem::timed_out) return answer;
    return fail(
        give_up(pf, slot, *worker, {words_of(step), system_clock().now(), holds_pci_lock(step)}));
}

// What a late worker would still do nobody expects any more: it must end before another begins.
Error RemoteKernel::give_up(PciAddress const& pf, Slot& slot, Worker& worker, Hang hang) {
    {
        std::lock_guard const lock(slot.mutex);
        if (slot.worker.get() == &worker && !slot.hang) slot.hang = hang;
    }
    worker.kill();
    if (worker.await_end(Steady::now() + times_.end))
        return {Problem::timed_out,
                fmt::format("{} did not answer in time: it was to {}", to_string(pf), hang.what),
                "look in the kernel's log for what its driver waited for"};
    return stuck_error(pf, fmt::format("its worker (pid {}) was to {} and hangs in the kernel{}",
                                       worker.pid(), hang.what, worker.where()));
}

Result<Observed> RemoteKernel::perform(KernelStep const& step, Deadline deadline) {
    VFMGR_TRY(auto answer, ask(pf_of(step), step, deadline));
    return Observed{std::move(answer.remarks)};
}

Result<KernelView> RemoteKernel::observe(KernelScope const& scope) {
    VFMGR_TRY(auto pfs, list_pfs_());
    if (scope) std::erase_if(pfs, [&](PciAddress const& pf) { return pf != *scope; });
    std::vector<std::future<PfState>> states;
    for (auto const& pf : pfs)
        states.push_back(std::async(std::launch::async, [this, pf] { return observe_one(pf); }));
    KernelView view;
    for (auto& state : states) {
        auto pf = state.get();
        view.pfs.insert_or_assign(pf.info.pci, std::move(pf));
    }
    std::lock_guard const lock(mutex_);
    view.routes = routes_;
    return view;
}

PfState RemoteKernel::observe_one(PciAddress const& pf) {
    auto answer = ask(pf, std::nullopt, Steady::now() + times_.observe);
    if (!answer) return last_state(pf, answer.error());
    if (!answer->view || !answer->view->pfs.contains(pf))
        return last_state(pf, {Problem::not_found, fmt::format("{} is gone", to_string(pf)), ""});
    {
        std::lock_guard const lock(mutex_);
        routes_ = std::move(answer->view->routes);
    }
    auto& slot = slot_of(pf);
    std::lock_guard const lock(slot.mutex);
    return slot.last = std::move(answer->view->pfs.at(pf));
}

PfState RemoteKernel::last_state(PciAddress const& pf, Error const& error) {
    auto& slot = slot_of(pf);
    std::lock_guard const lock(slot.mutex);
    auto state = slot.last;
    state.info.pci = pf;
    state.stale = true;
    state.stale_reason = error.detail;
    if (error.problem == Problem::pf_stuck) {
        state.stuck = error.detail;
        state.pci_busy = slot.hang && slot.hang->pci_busy;
    }
    return state;
}

}  // namespace vfmgr
