// SPDX-License-Identifier: Apache-2.0
// Starts worker processes, `vfmgrd-worker PF` or `vfmgrd-worker host`. Any thread.
#pragma once

#include <filesystem>

#include "api/os/spare_descriptors.hpp"
#include "vfmgr/kernel/worker.hpp"

namespace vfmgr {

// "0000:01:00.0" or "host": the worker's argument, and the name of its lock.
[[nodiscard]] std::string worker_word(KernelSubject const& subject);
[[nodiscard]] Result<KernelSubject> worker_subject(std::string const& word);

// The worker's end of its socket, in the process that start_worker() makes.
inline constexpr int worker_socket_fd = 3;

// Opens vfmgrd-worker in the folder of this program. It stays open, so this daemon keeps the
// workers that it was built with when a newer package is installed.
[[nodiscard]] Result<FileDescriptor> worker_program();

struct WorkerFiles {
    int program = -1;  // open
    std::filesystem::path locks;
    // Lets a PF be observed, and its VFs guarded, even when other threads use up all descriptors.
    SpareDescriptors& spare;
};
// Descriptors needed to start one worker.
inline constexpr std::size_t worker_start_descriptors = 8;
// A file of `locks` stays locked while the subject's worker lives. After a restart of the daemon
// too, a worker still at a step is found: the Error (pf_stuck for a PF) names it.
[[nodiscard]] Result<WorkerProcess> start_worker(WorkerFiles const& files,
                                                 KernelSubject const& subject);
// Waits until the lock is free, or until the deadline.
void await_predecessor(std::filesystem::path const& locks, KernelSubject const& subject,
                       Deadline deadline);

// --- parts, for tests ---

[[nodiscard]] Result<FileDescriptor> lock_subject(std::filesystem::path const& folder,
                                                  KernelSubject const& subject);
// `program` gets the socket as descriptor 3, and keeps `lock` open. The lock file holds its pid for
// display.
[[nodiscard]] Result<WorkerProcess> spawn_worker(std::filesystem::path const& program,
                                                 std::vector<std::string> const& arguments,
                                                 FileDescriptor lock);

}  // namespace vfmgr
