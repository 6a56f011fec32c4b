// SPDX-License-Identifier: Apache-2.0
// The kernel through worker processes, one for each PF and one for the host's network: any hang in
// the kernel hits a worker, not the daemon. A worker that does not answer in time is killed. While
// the kernel keeps it, its PF is stuck: every request for it is answered at once, with its last
// known state. When it is gone, a new worker takes over. Any thread may call.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "vfmgr/kernel/firmware.hpp"
#include "vfmgr/kernel/worker.hpp"

namespace vfmgr {

struct RemoteKernelTimes {
    std::chrono::milliseconds observe{20'000};
    std::chrono::milliseconds grace = step_grace;
    std::chrono::milliseconds end{2'000};  // for a killed worker to exit
    // Time for a worker of an earlier vfmgrd to finish its step: the longest step plus its grace.
    std::chrono::milliseconds predecessor = longest_kernel_step + step_grace;
};

// How workers are started, from worker_process.hpp.
struct WorkerStarter {
    // Returns at once: pf_stuck while a worker of an earlier vfmgrd is still there.
    std::function<Result<WorkerProcess>(KernelSubject const&)> start;
    // Waits until another try seems worthwhile, at the latest until the deadline.
    std::function<void(KernelSubject const&, Deadline)> await_predecessor;
};

class RemoteKernel final : public Kernel {
  public:
    using ListPfs = std::function<Result<std::vector<PciAddress>>(KernelScope const&)>;
    // Each card with its functions; the card's worker is that of the first one.
    using ListCards = std::function<Result<std::vector<CardFunctions>>()>;
    RemoteKernel(ListPfs list_pfs, ListCards list_cards, WorkerStarter workers,
                 RemoteKernelTimes times = {});

    // While a worker of an earlier vfmgrd runs a step, its PF is stuck. A full observation reports
    // that at once; an observation or a change of that PF alone waits for the step's end.

    [[nodiscard]] Result<KernelView> observe(KernelScope const& scope) override;
    [[nodiscard]] Result<Observed> perform(KernelStep const& step, Deadline deadline) override;
    [[nodiscard]] Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) override;
    [[nodiscard]] Result<std::vector<PfTraffic>> read_traffic(
        std::optional<PciAddress> const& pf) override;

  private:
    // The request that hangs, and since when.
    struct Hang {
        std::string what;
        Time since{};
        bool pci_busy = false;
    };
    struct Slot {
        std::mutex mutex;  // guards the members below; never held during a request to the worker
        std::shared_ptr<Worker> worker;
        std::optional<Hang> hang;  // of that worker
        KernelView last;
    };

    [[nodiscard]] Slot& slot_of(KernelSubject const& subject);
    [[nodiscard]] Result<std::shared_ptr<Worker>> worker_of(KernelSubject const& subject,
                                                            Slot& slot);
    void await_predecessor(KernelSubject const& subject);
    [[nodiscard]] Result<WorkerAnswer> ask(KernelSubject const& subject, WorkerRequest request,
                                           Deadline deadline);
    [[nodiscard]] FirmwareCard read_one(CardFunctions const& card);
    [[nodiscard]] PfTraffic traffic_of(PciAddress const& pf);
    [[nodiscard]] Error give_up(KernelSubject const& subject, Slot& slot, Worker& worker,
                                Hang hang);
    [[nodiscard]] PfState observe_pf(PciAddress const& pf);
    [[nodiscard]] PfState last_state(PciAddress const& pf, Error const& error);
    // Network and places of the host: the last ones, where its worker does not answer.
    void observe_network(KernelView& view);

    ListPfs const list_pfs_;
    ListCards const list_cards_;
    WorkerStarter const workers_;
    RemoteKernelTimes const times_;
    Deadline const no_predecessor_after_;
    std::mutex mutex_;  // guards the members below
    std::map<KernelSubject, std::unique_ptr<Slot>> slots_;
    std::vector<HostRoute> routes_;  // as last observed
};

}  // namespace vfmgr
