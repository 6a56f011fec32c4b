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
    std::chrono::milliseconds grace = step_grace;
    std::chrono::milliseconds end{2'000};  // for a killed worker to be gone
    // For a worker of an earlier vfmgrd to end the step that it is at: the longest one, and its
    // grace.
    std::chrono::milliseconds predecessor = longest_kernel_step + step_grace;
};

// How workers are started: parts of worker_process.hpp.
struct WorkerStarter {
    // At once: pf_stuck while one of an earlier vfmgrd is still there.
    std::function<Result<WorkerProcess>(KernelSubject const&)> start;
    // Until it seems worth another try, at the latest until the deadline.
    std::function<void(KernelSubject const&, Deadline)> await_predecessor;
};

class RemoteKernel final : public Kernel {
  public:
    using ListPfs = std::function<Result<std::vector<PciAddress>>()>;
    // Each by its functions, the first of which its worker is of.
    using ListCards = std::function<Result<std::vector<CardFunctions>>()>;
    RemoteKernel(ListPfs list_pfs, ListCards list_cards, WorkerStarter workers,
                 RemoteKernelTimes times = {});

    // While a worker of an earlier vfmgrd is at its step, its PF is stuck: a look at everything
    // says so at once, whereas who looks at that PF alone, or is to change it, waits for the end.

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
    };

    [[nodiscard]] Slot& slot_of(KernelSubject const& subject);
    [[nodiscard]] Result<std::shared_ptr<Worker>> worker_of(KernelSubject const& subject,
                                                            Slot& slot);
    void await_predecessor(KernelSubject const& subject);
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
    WorkerStarter const workers_;
    RemoteKernelTimes const times_;
    Deadline const no_predecessor_after_;
    std::mutex mutex_;  // guards what follows
    std::map<KernelSubject, std::unique_ptr<Slot>> slots_;
    std::vector<HostRoute> routes_;  // as last seen
};

}  // namespace vfmgr
