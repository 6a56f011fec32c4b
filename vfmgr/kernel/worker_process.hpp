// SPDX-License-Identifier: Apache-2.0
// Finds processes that hang in the kernel, and where. A write of sriov_numvfs holds the PF's device
// lock and the one lock of the PCI subsystem; when the removal of a VF waits for its user, it waits
// forever (KERNEL.md#locks, KERNEL.md#removals-that-hang). Free functions; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/os/descriptor.hpp"
#include "vfmgr/kernel/in_use.hpp"
#include "vfmgr/kernel/sysfs.hpp"
#include "vfmgr/kernel/worker.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// Returns " in vfio_unregister_group_dev", from the task that sleeps deepest; empty when unknown.
[[nodiscard]] std::string where_it_hangs(std::filesystem::path const& proc, std::int32_t pid);

// A VF that is being unbound from its driver while a process has it open. The kernel waits for that
// process, and so does any process that removes the VF or its PF. The driver's link is gone from
// the start. When the PF's driver goes, so are the links between VF and PF [src pci/iov.c,
// pci_iov_remove_virtfn]: `pf` no longer lists such a VF, so it is found by its address.
struct HeldRemoval {
    std::uint16_t vf = 0;
    VfioHolder holder;
    bool operator==(HeldRemoval const&) const = default;
};
[[nodiscard]] std::optional<HeldRemoval> find_held_removal(LinuxKernelRoots const& roots,
                                                           PfState const& pf);
[[nodiscard]] std::string describe(PciAddress const& pf, HeldRemoval const& removal);

// A change of the number of VFs by another program that takes longer counts as a hang: a hundred
// VFs of a driver that loads firmware settings for each take seconds.
inline constexpr std::chrono::seconds hang_time{20};
// The name of vfmgrd's workers (comm). vfmgrd itself detects their hangs.
inline constexpr char const* worker_comm = "vfmgrd-worker";

// "bash (pid 812) changes the number of VFs of 0000:01:00.0 and hangs in …".
[[nodiscard]] std::string describe(LinuxKernelRoots const& roots, NumVfsWriter const& writer);

// Starts worker processes, `vfmgrd-worker PF` or `vfmgrd-worker host`. Any thread.

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
// A file of `locks` stays locked while the subject's worker lives. So a worker that is still at a
// step is found even after a restart of the daemon: the Error (pf_stuck for a PF) names it.
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
