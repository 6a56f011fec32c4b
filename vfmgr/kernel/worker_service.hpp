// SPDX-License-Identifier: Apache-2.0
// The worker's side: runs the daemon's requests, each on a thread of its own, because any of them
// may hang in the kernel. One for each worker process.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "api/os/descriptor.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/worker_messages.hpp"

namespace vfmgr {

class WorkerService {
  public:
    // Calls `kernel` for `subject` only.
    WorkerService(FileDescriptor socket, Kernel& kernel, KernelSubject const& subject);
    ~WorkerService();  // waits for running requests: a process that exits uses _exit()
    WorkerService(WorkerService const&) = delete;
    WorkerService& operator=(WorkerService const&) = delete;

    // Runs until the daemon is gone, or sends an invalid message.
    void run();
    // After run(): waits until running steps are done, because no other process would finish them.
    // Not forever: a step that lasts beyond its deadline hangs. Observations are not awaited.
    void finish_steps();

  private:
    void begin(WorkerRequest request);
    void end(std::optional<Deadline> step);
    [[nodiscard]] WorkerAnswer answer(WorkerRequest const& request);
    void send(WorkerAnswer const& answer);

    FileDescriptor const socket_;
    Kernel& kernel_;
    KernelSubject const subject_;
    std::mutex mutex_;  // guards the members below, and keeps answers apart on the socket
    std::condition_variable ended_;
    std::size_t underway_ = 0;
    std::multiset<Deadline> steps_;  // those of underway_ that change something, by their deadlines
};

}  // namespace vfmgr
