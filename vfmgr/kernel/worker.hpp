// SPDX-License-Identifier: Apache-2.0
// The daemon's side of one worker process: its socket, and the requests that await its answers. Any
// thread may call.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "api/os/descriptor.hpp"
#include "vfmgr/kernel/worker_messages.hpp"

namespace vfmgr {

struct WorkerProcess {
    FileDescriptor socket;       // a stream; it ends when the process has ended, not before
    std::int32_t pid = 0;        // for display
    std::function<void()> kill;  // a process that hangs in the kernel ends when the kernel lets go
    // After the process has ended: how it ended, "signal 9".
    std::function<std::string()> end;
    // While it hangs: where in the kernel, " in vfio_unregister_group_dev"; empty when unknown.
    std::function<std::string()> where;
};

class Worker {
  public:
    explicit Worker(WorkerProcess process);
    ~Worker();  // kills it, without waiting for one that hangs
    Worker(Worker const&) = delete;
    Worker& operator=(Worker const&) = delete;

    // timed_out when no answer comes by `deadline`: a later one is dropped. unavailable when the
    // process has ended.
    [[nodiscard]] Result<WorkerAnswer> ask(WorkerRequest request, Deadline deadline);

    void kill();
    [[nodiscard]] bool ended() const;
    [[nodiscard]] bool await_end(Deadline deadline);
    [[nodiscard]] std::int32_t pid() const { return process_.pid; }
    [[nodiscard]] std::string where() const { return process_.where(); }

  private:
    void receive();
    [[nodiscard]] bool take(Lines& lines);
    [[nodiscard]] bool send(std::string const& line) const;
    [[nodiscard]] Error ended_error() const;

    WorkerProcess const process_;
    mutable std::mutex mutex_;  // guards the members below
    std::condition_variable changed_;
    std::uint64_t last_id_ = 0;
    std::map<std::uint64_t, std::optional<WorkerAnswer>> asked_;
    bool ended_ = false;
    bool ending_ = false;  // from here its pid may soon be another process's
    bool abandoned_ = false;
    std::string how_;  // how it ended
    std::thread receiver_;
};

}  // namespace vfmgr
