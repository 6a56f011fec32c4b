// SPDX-License-Identifier: Apache-2.0
// Messages between daemon and worker: one JSON object per line, each way. Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/os/message_lines.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// Time for the answer beyond a step's deadline. A worker that takes longer hangs and is killed.
inline constexpr std::chrono::milliseconds step_grace{3'000};

// view: the worker's subject, observed. firmware: its card's. traffic: its VFs'.
enum class WorkerReads { view, firmware, traffic };

struct WorkerRequest {
    std::uint64_t id = 0;            // repeated in the answer
    std::optional<Step> step;        // of the kernel; absent: see `reads`
    std::uint64_t milliseconds = 0;  // until the step's deadline
    WorkerReads reads = WorkerReads::view;
    bool operator==(WorkerRequest const&) const = default;
};

struct WorkerAnswer {
    std::uint64_t id = 0;
    std::optional<Error> error;        // absent: success
    std::optional<KernelView> view;    // of an observation
    std::vector<std::string> remarks;  // of a step
    std::optional<std::vector<FirmwareCard>> firmware{};
    std::optional<VfCounters> counters{};  // of a step
    std::optional<PfTraffic> traffic{};
    bool operator==(WorkerAnswer const&) const = default;
};

// The line ends with a newline.
[[nodiscard]] std::string to_line(WorkerRequest const& request);
[[nodiscard]] std::string to_line(WorkerAnswer const& answer);
// Parses a line without its newline. invalid_request for anything that to_line() does not make.
[[nodiscard]] Result<WorkerRequest> parse_request(std::string_view line);
[[nodiscard]] Result<WorkerAnswer> parse_answer(std::string_view line);

// The daemon's side of one worker process: its socket, and the requests that await its answers. Any
// thread may call.

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
    [[nodiscard]] bool ended() const { return answers_.ended(); }
    [[nodiscard]] bool await_end(Deadline deadline) { return answers_.await_end(deadline); }
    [[nodiscard]] std::int32_t pid() const { return process_.pid; }
    [[nodiscard]] std::string where() const { return process_.where(); }

  private:
    void receive();
    [[nodiscard]] bool send(std::string const& line);
    [[nodiscard]] Error ended_error() const;

    WorkerProcess const process_;
    std::mutex sending_;  // keeps requests apart on the socket
    Answers<WorkerAnswer> answers_;
    mutable std::mutex mutex_;  // guards the members below
    bool ending_ = false;       // from here its pid may soon be another process's
    bool abandoned_ = false;
    std::string how_;  // how it ended
    std::thread receiver_;
};

// The worker's side: runs the daemon's requests, each on a thread of its own, because any of them
// may hang in the kernel. One for each worker process.

class WorkerService {
  public:
    // Calls `kernel` for `subject` only.
    WorkerService(FileDescriptor socket, Kernel& kernel, KernelSubject const& subject);

    // Runs until the daemon is gone, or sends an invalid message.
    void run();
    // After run(): waits until running steps are done, because no other process would finish them.
    // Observations are not awaited.
    void finish_steps() { threads_.finish_steps(step_grace); }

  private:
    [[nodiscard]] WorkerAnswer answer(WorkerRequest const& request);
    void read(WorkerReads reads, WorkerAnswer& answer);

    FileDescriptor const socket_;
    Kernel& kernel_;
    KernelSubject const subject_;
    std::mutex sending_;  // keeps answers apart on the socket
    RequestThreads threads_;
};

}  // namespace vfmgr
