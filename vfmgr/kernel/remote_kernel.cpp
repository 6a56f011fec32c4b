// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/remote_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

std::string words_of(WorkerRequest const& request) {
    if (request.step) return sentence(*request.step);
    switch (request.reads) {
        case WorkerReads::view:
            return "observe it";
        case WorkerReads::firmware:
            return "read its card's firmware settings";
        case WorkerReads::traffic:
            return "read its VFs' counters";
    }
    return {};
}

// The kernel holds the PCI subsystem's lock while it makes or removes VFs.
bool holds_pci_lock(std::optional<Step> const& step) {
    return step && as<SetNumVfs>(*step);
}

Error stuck_error(KernelSubject const& subject, std::string const& reason) {
    auto const detail = fmt::format("{}: {}", to_string(subject), reason);
    if (std::holds_alternative<HostNetwork>(subject))
        return {Problem::unavailable, detail,
                "see the kernel's log for what it waits for: journalctl -k; no RDMA link can be "
                "created or deleted until it ends or the host is rebooted"};
    return {Problem::pf_stuck, detail,
            "end the processes that hold its VFs, or reboot the host; VFs of other PFs can be "
            "attached"};
}

std::uint64_t milliseconds_until(Deadline deadline) {
    auto const left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now());
    return left.count() > 0 ? static_cast<std::uint64_t>(left.count()) : 0;
}

// Asks several workers at the same time; the answers will be in the order of `all`.
template <class Asked, class Ask>
auto ask_each(std::vector<Asked> const& all, Ask ask) {
    std::vector<std::future<std::invoke_result_t<Ask, Asked const&>>> answers;
    for (auto const& each : all) answers.push_back(std::async(std::launch::async, ask, each));
    return answers;
}

template <class Answer>
std::vector<Answer> await_all(std::vector<std::future<Answer>> answers) {
    std::vector<Answer> all;
    for (auto& answer : answers) all.push_back(answer.get());
    return all;
}

}  // namespace

RemoteKernel::RemoteKernel(ListPfs list_pfs, ListCards list_cards, WorkerStarter workers,
                           RemoteKernelTimes times)
    : list_pfs_(std::move(list_pfs)),
      list_cards_(std::move(list_cards)),
      workers_(std::move(workers)),
      times_(times),
      no_predecessor_after_(Steady::now() + times.predecessor) {}

RemoteKernel::Slot& RemoteKernel::slot_of(KernelSubject const& subject) {
    std::lock_guard const lock(mutex_);
    auto& slot = slots_[subject];
    if (!slot) slot = std::make_unique<Slot>();
    return *slot;
}

Result<std::shared_ptr<Worker>> RemoteKernel::worker_of(KernelSubject const& subject, Slot& slot) {
    std::lock_guard const lock(slot.mutex);
    if (slot.worker && slot.worker->ended()) {
        slot.worker.reset();
        slot.hang.reset();
    }
    if (slot.hang)
        return fail(stuck_error(
            subject,
            fmt::format("its worker (pid {}) was asked to {} and hangs in the kernel{} since {}",
                        slot.worker->pid(), slot.hang->what, slot.worker->where(),
                        to_rfc3339(slot.hang->since))));
    if (!slot.worker) {
        VFMGR_TRY(auto process, workers_.start(subject));
        slot.worker = std::make_shared<Worker>(std::move(process));
    }
    return slot.worker;
}

// Once the daemon has a worker of its own, no predecessor is left to wait for.
void RemoteKernel::await_predecessor(KernelSubject const& subject) {
    auto& slot = slot_of(subject);
    while (Steady::now() < no_predecessor_after_ && !worker_of(subject, slot)) {
        {
            std::lock_guard const lock(slot.mutex);
            if (slot.worker) return;  // it hangs
        }
        workers_.await_predecessor(subject, no_predecessor_after_);
    }
}

Result<WorkerAnswer> RemoteKernel::ask(KernelSubject const& subject, WorkerRequest request,
                                       Deadline deadline) {
    auto& slot = slot_of(subject);
    VFMGR_TRY(auto const worker, worker_of(subject, slot));
    request.milliseconds = milliseconds_until(deadline);
    auto answer = worker->ask(request, deadline + times_.grace);
    if (answer && answer->error) return fail(std::move(*answer->error));
    if (answer || answer.error().problem != Problem::timed_out) return answer;
    return fail(give_up(subject, slot, *worker,
                        {words_of(request), system_clock().now(), holds_pci_lock(request.step)}));
}

// A late worker could still apply an abandoned request: it must end before another begins.
Error RemoteKernel::give_up(KernelSubject const& subject, Slot& slot, Worker& worker, Hang hang) {
    {
        std::lock_guard const lock(slot.mutex);
        if (slot.worker.get() == &worker && !slot.hang) slot.hang = hang;
    }
    worker.kill();
    if (worker.await_end(Steady::now() + times_.end))
        return {Problem::timed_out,
                fmt::format("{} did not answer in time; it was asked to {}", to_string(subject),
                            hang.what),
                "see the kernel's log for what its driver waited for: journalctl -k"};
    return stuck_error(subject,
                       fmt::format("its worker (pid {}) was asked to {} and hangs in the kernel{}",
                                   worker.pid(), hang.what, worker.where()));
}

// The wait for a predecessor does not count against the step's deadline.
Result<Observed> RemoteKernel::perform(KernelStep const& step, Deadline deadline) {
    auto const came = Steady::now();
    await_predecessor(subject_of(step));
    deadline += Steady::now() - came;
    VFMGR_TRY(auto answer, ask(subject_of(step), {0, step, 0}, deadline));
    return Observed{std::move(answer.remarks), answer.counters};
}

Result<KernelView> RemoteKernel::observe(KernelScope const& scope) {
    VFMGR_TRY(auto const pfs, list_pfs_(scope));
    if (scope) await_predecessor(*scope);
    auto states = ask_each(pfs, [this](PciAddress const& pf) { return observe_pf(pf); });
    KernelView view;
    view.complete = !scope;
    if (!scope || *scope == KernelSubject(HostNetwork{})) observe_network(view);
    for (auto& state : states) {
        auto pf = state.get();
        view.pfs.insert_or_assign(pf.info.pci, std::move(pf));
    }
    std::lock_guard const lock(mutex_);
    view.routes = routes_;
    return view;
}

PfState RemoteKernel::observe_pf(PciAddress const& pf) {
    auto answer = ask(pf, {}, Steady::now() + times_.observe);
    if (!answer) return last_state(pf, answer.error());
    if (!answer->view || !answer->view->pfs.contains(pf))
        return last_state(pf, {Problem::not_found, fmt::format("{} is gone", to_string(pf)), ""});
    {
        std::lock_guard const lock(mutex_);
        routes_ = std::move(answer->view->routes);
    }
    auto& slot = slot_of(pf);
    std::lock_guard const lock(slot.mutex);
    return slot.last.pfs[pf] = std::move(answer->view->pfs.at(pf));
}

void RemoteKernel::observe_network(KernelView& view) {
    auto answer = ask(HostNetwork{}, {}, Steady::now() + times_.observe);
    auto& slot = slot_of(HostNetwork{});
    std::lock_guard const lock(slot.mutex);
    bool const observed = answer && answer->view && answer->view->network;
    if (observed) {
        slot.last.network = std::move(answer->view->network);
        slot.last.places = std::move(answer->view->places);
    }
    view.network = slot.last.network.value_or(HostNetworkView{});
    view.places = slot.last.places;
    if (observed) return;
    view.network->stale = true;
    view.network->stale_reason =
        answer ? "its worker returned no observation" : answer.error().detail;
}

Result<std::vector<FirmwareCard>> RemoteKernel::read_firmware(
    std::optional<PciAddress> const& function) {
    VFMGR_TRY(auto cards, list_cards_());
    if (function)
        std::erase_if(cards, [&](CardFunctions const& card) {
            return std::ranges::find(card.functions, *function) == card.functions.end();
        });
    return await_all(ask_each(cards, [this](CardFunctions const& card) { return read_one(card); }));
}

Result<std::vector<PfTraffic>> RemoteKernel::read_traffic(std::optional<PciAddress> const& pf) {
    VFMGR_TRY(auto const pfs, list_pfs_(pf ? KernelScope(*pf) : KernelScope()));
    return await_all(ask_each(pfs, [this](PciAddress const& each) { return traffic_of(each); }));
}

PfTraffic RemoteKernel::traffic_of(PciAddress const& pf) {
    auto answer =
        ask(pf, {.step = {}, .reads = WorkerReads::traffic}, Steady::now() + times_.observe);
    if (answer && answer->traffic) return std::move(*answer->traffic);
    PfTraffic unread;
    unread.pf = pf;
    unread.read_at = system_clock().now();
    unread.problem = answer ? Error{Problem::not_found, fmt::format("{} is gone", to_string(pf)),
                                    "vfctl pf list shows the PFs of this host"}
                            : answer.error();
    return unread;
}

FirmwareCard RemoteKernel::read_one(CardFunctions const& card) {
    auto answer =
        ask(card.pci, {.step = {}, .reads = WorkerReads::firmware}, Steady::now() + times_.observe);
    if (answer && answer->firmware && answer->firmware->size() == 1)
        return std::move(answer->firmware->front());
    FirmwareCard unread;
    unread.pci = card.pci;
    unread.functions = card.functions;
    unread.problem = answer ? Error{Problem::not_found, to_string(card.pci) + " is gone",
                                    "vfctl firmware list shows the cards of this host"}
                            : answer.error();
    return unread;
}

PfState RemoteKernel::last_state(PciAddress const& pf, Error const& error) {
    auto& slot = slot_of(pf);
    std::lock_guard const lock(slot.mutex);
    auto state = slot.last.pfs[pf];
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
