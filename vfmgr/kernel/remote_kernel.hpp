// SPDX-License-Identifier: Apache-2.0
// The kernel through worker processes, one for each PF and one for the host's network: whatever
// hangs in the kernel hangs there. A worker that does not answer in time is killed; while the
// kernel keeps it, its PF is stuck, every question about it is answered at once, and its last known
// state is shown. When it is gone, a new one takes over. Any thread may call.
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
    std::chrono::milliseconds grace{3'000};  // beyond a step's deadline, for the way back
    std::chrono::milliseconds end{2'000};    // for a killed worker to be gone
    // For a worker of an earlier vfmgrd to end what it does, when the first one is started.
    std::chrono::milliseconds predecessor{30'000};
};

class RemoteKernel final : public Kernel {
  public:
    using ListPfs = std::function<Result<std::vector<PciAddress>>()>;
    // Each by its functions, the first of which its worker is of.
    using ListCards = std::function<Result<std::vector<CardFunctions>>()>;
    // Waits until the deadline for one that is still there, and then says pf_stuck.
    using StartWorker = std::function<Result<WorkerProcess>(KernelSubject const&, Deadline)>;
    RemoteKernel(ListPfs list_pfs, ListCards list_cards, StartWorker start_worker,
                 RemoteKernelTimes times = {});

    [[nodiscard]] Result<KernelView> observe(KernelScope const& scope) override;
    [[nodiscard]] Result<Observed> perform(KernelStep const& step, Deadline deadline) override;
    [[nodiscard]] Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) override;

  private:
    // What hangs: which request, since when.
    struct Hang {
        std::string what;
        Time since{};
        bool pci_busy = false;
    };
    struct Slot {
        std::mutex mutex;  // guards what follows; never held while a worker is asked
        std::shared_ptr<Worker> worker;
        std::optional<Hang> hang;  // of that worker
        KernelView last;
        std::chrono::milliseconds patience{};  // with a predecessor
    };

    [[nodiscard]] Slot& slot_of(KernelSubject const& subject);
    [[nodiscard]] Result<std::shared_ptr<Worker>> worker_of(KernelSubject const& subject,
                                                            Slot& slot);
    [[nodiscard]] Result<WorkerAnswer> ask(KernelSubject const& subject, WorkerRequest request,
                                           Deadline deadline);
    [[nodiscard]] FirmwareCard read_one(CardFunctions const& card);
    [[nodiscard]] Error give_up(KernelSubject const& subject, Slot& slot, Worker& worker,
                                Hang hang);
    [[nodiscard]] PfState observe_pf(PciAddress const& pf);
    [[nodiscard]] PfState last_state(PciAddress const& pf, Error const& error);
    [[nodiscard]] HostNetworkView observe_network();

    ListPfs const list_pfs_;
    ListCards const list_cards_;
    StartWorker const start_worker_;
    RemoteKernelTimes const times_;
    std::mutex mutex_;  // guards what follows
    std::map<KernelSubject, std::unique_ptr<Slot>> slots_;
    std::vector<HostRoute> routes_;  // as last seen
};

}  // namespace vfmgr
