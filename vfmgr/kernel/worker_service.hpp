// SPDX-License-Identifier: Apache-2.0
// The worker's side: does what the daemon asks, each request on a thread of its own, because any of
// them may hang in the kernel. One for each worker process.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "api/types/file_descriptor.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/worker_messages.hpp"

namespace vfmgr {

class WorkerService {
  public:
    // `kernel` is asked about `subject` only.
    WorkerService(FileDescriptor socket, Kernel& kernel, KernelSubject const& subject);
    ~WorkerService();  // waits for what is still being done: a process that ends leaves by _exit()
    WorkerService(WorkerService const&) = delete;
    WorkerService& operator=(WorkerService const&) = delete;

    // Until the daemon is gone, or says what it never says.
    void run();
    // After run(): until the steps that had begun are done, because nobody else would end what one
    // has begun. Not for ever: a step that lasts beyond its deadline hangs. Observations are left.
    void finish_steps();

  private:
    void begin(WorkerRequest request);
    void end(std::optional<Deadline> step);
    [[nodiscard]] WorkerAnswer answer(WorkerRequest const& request);
    void send(WorkerAnswer const& answer);

    FileDescriptor const socket_;
    Kernel& kernel_;
    KernelSubject const subject_;
    std::mutex mutex_;  // guards what follows, and keeps answers apart on the socket
    std::condition_variable ended_;
    std::size_t underway_ = 0;
    std::multiset<Deadline> steps_;  // those of underway_ that change something, by their deadlines
};

}  // namespace vfmgr
