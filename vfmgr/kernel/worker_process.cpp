// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "api/os/process.hpp"
#include "vfmgr/kernel/in_use.hpp"
#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

// Returns "D" from "812 (a b) c) D 1 …": the name may hold anything, parentheses too.
char state_in(std::string const& stat) {
    auto const end = stat.rfind(')');
    return end != stat.npos && end + 2 < stat.size() ? stat[end + 2] : '?';
}

// Computes VF addresses from the PF's capability (SR-IOV 1.1, 2.1.2), whether or not the VFs exist.
struct VfRouting {
    std::uint64_t offset = 0, stride = 0;

    [[nodiscard]] static std::optional<VfRouting> of(LinuxKernelRoots const& roots,
                                                     PciAddress const& pf) {
        auto const offset = read_number(pci_folder(roots, pf) / "sriov_offset");
        auto const stride = read_number(pci_folder(roots, pf) / "sriov_stride");
        if (!offset || !stride) return std::nullopt;
        return VfRouting{*offset, *stride};
    }
    [[nodiscard]] std::optional<PciAddress> address(PciAddress pf, std::uint16_t index) const {
        auto const routing_id = (std::uint64_t{pf.bus} << 8U | std::uint64_t{pf.device} << 3U |
                                 std::uint64_t{pf.function}) +
                                offset + stride * index;
        if (routing_id > 0xffff) return std::nullopt;
        pf.bus = static_cast<std::uint8_t>(routing_id >> 8U);
        pf.device = static_cast<std::uint8_t>(routing_id >> 3U & 0x1fU);
        pf.function = static_cast<std::uint8_t>(routing_id & 7U);
        return pf;
    }
};

}  // namespace

std::string where_it_hangs(fs::path const& proc, std::int32_t pid) {
    auto const tasks = proc / std::to_string(pid) / "task";
    std::string where;
    for (auto const& task : entries(tasks)) {
        auto const symbol = read_text(tasks / task / "wchan").value_or("");
        if (symbol.empty() || symbol == "0") continue;
        bool const uninterruptible = state_in(read_text(tasks / task / "stat").value_or("")) == 'D';
        if (where.empty() || uninterruptible) where = " in " + symbol;
        if (uninterruptible) break;
    }
    return where;
}

std::string describe(LinuxKernelRoots const& roots, NumVfsWriter const& writer) {
    return fmt::format("{} (pid {}) changes the number of VFs of {} and hangs{}", writer.comm,
                       writer.pid, to_string(writer.pf), where_it_hangs(roots.proc, writer.pid));
}

std::optional<HeldRemoval> find_held_removal(LinuxKernelRoots const& roots, PfState const& pf) {
    for (auto const& vf : pf.vfs)
        if (!vf.driver && !vf.holders.empty()) return HeldRemoval{vf.index, vf.holders.front()};
    if (!pf.info.driver.empty()) return std::nullopt;
    auto const routing = VfRouting::of(roots, pf.info.pci);
    if (!routing) return std::nullopt;
    for (std::uint16_t index = 0; index < pf.info.total_vfs; ++index) {
        if (std::ranges::find(pf.vfs, index, &VfState::index) != pf.vfs.end()) continue;
        auto const vf = routing->address(pf.info.pci, index);
        if (!vf || driver_of(roots, *vf)) continue;
        auto const nodes = vfio_nodes_of(roots, *vf);
        auto const holders = nodes.empty() ? Holders{} : find_holders(roots, nodes);
        if (!holders) continue;
        if (auto const all = holders_of(*holders, nodes); !all.empty())
            return HeldRemoval{index, all.front()};
    }
    return std::nullopt;
}

std::string describe(PciAddress const& pf, HeldRemoval const& removal) {
    return fmt::format("the removal of VF {} of {} hangs: {} (pid {}) holds it open", removal.vf,
                       to_string(pf), removal.holder.comm, removal.holder.pid);
}

namespace {

constexpr int worker_lock_fd = 4;

constexpr std::string_view host_word = "host";

constexpr auto make_room = "check that the host has free memory and can start more processes";
constexpr auto free_descriptors = "check that vfmgrd has file descriptors left";

Error no_worker(std::string const& call, int error, char const* remedy) {
    return {Problem::unavailable, "no worker could be started", remedy, {errno_cause(call, error)}};
}

std::int32_t pid_in(int fd) {
    std::array<char, 32> text{};
    auto const got = ::pread(fd, text.data(), text.size() - 1, 0);
    std::int32_t pid = 0;
    if (got > 0) std::from_chars(text.data(), text.data() + got, pid);
    return pid;
}

fs::path lock_file(fs::path const& folder, KernelSubject const& subject) {
    return folder / (worker_word(subject) + ".lock");
}

Error still_there(KernelSubject const& subject, std::int32_t pid) {
    bool const of_pf = std::holds_alternative<PciAddress>(subject);
    return {of_pf ? Problem::pf_stuck : Problem::unavailable,
            fmt::format("{}: a worker of an earlier vfmgrd (pid {}) has not finished its step{}",
                        to_string(subject), pid, where_it_hangs("/proc", pid)),
            !of_pf ? "wait for it; if it does not end, see the kernel's log for what it waits for "
                     "(journalctl -k), or reboot the host"
                   : "wait for it; if it does not end, end the processes that hold its VFs, or "
                     "reboot the host"};
}

// The worker inherits only the socket and the lock from the daemon.
Result<pid_t> start(fs::path const& program, std::vector<std::string> const& arguments, int socket,
                    int lock) {
    ProcessOptions options{.arguments = arguments,
                           .program = program,
                           .descriptors = {{socket, worker_socket_fd}},
                           .close_from = worker_socket_fd + 1};
    if (lock >= 0) {
        options.descriptors.emplace_back(lock, worker_lock_fd);
        options.close_from = worker_lock_fd + 1;
    }
    auto const started = spawn(std::move(options));
    if (started) return *started;
    return fail(no_worker("posix_spawn " + program.string(), started.error(), make_room));
}

}  // namespace

std::string worker_word(KernelSubject const& subject) {
    auto const* const pf = std::get_if<PciAddress>(&subject);
    return pf ? to_string(*pf) : std::string(host_word);
}

Result<KernelSubject> worker_subject(std::string const& word) {
    if (word == host_word) return HostNetwork{};
    VFMGR_TRY(auto const pf, PciAddress::parse(word));
    return pf;
}

Result<FileDescriptor> lock_subject(fs::path const& folder, KernelSubject const& subject) {
    std::error_code error;
    fs::create_directories(folder, error);
    auto const file = lock_file(folder, subject);
    FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock) {
        auto none = no_worker("open " + file.string(), errno, make_room);
        none.detail += " for " + to_string(subject);
        return fail(std::move(none));
    }
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
    return fail(still_there(subject, pid_in(lock.get())));
}

Result<WorkerProcess> spawn_worker(fs::path const& program,
                                   std::vector<std::string> const& arguments, FileDescriptor lock) {
    auto ends = socket_pair(SOCK_STREAM);
    if (!ends) return fail(no_worker("socketpair", ends.error(), free_descriptors));
    auto& [ours, end] = *ends;
    // Above the numbers that the worker's descriptors get: dup2 of one must not close the other.
    FileDescriptor const theirs(::fcntl(end.get(), F_DUPFD_CLOEXEC, worker_lock_fd + 1));
    FileDescriptor const kept(lock ? ::fcntl(lock.get(), F_DUPFD_CLOEXEC, worker_lock_fd + 1) : -1);
    if (!theirs || (lock && !kept))
        return fail(no_worker("fcntl F_DUPFD_CLOEXEC", errno, free_descriptors));
    VFMGR_TRY(auto const pid, start(program, arguments, theirs.get(), kept.get()));
    if (lock) {
        auto const text = std::to_string(pid) + "\n";
        if (::ftruncate(lock.get(), 0) == 0)
            static_cast<void>(::pwrite(lock.get(), text.data(), text.size(), 0) > 0);
    }
    return WorkerProcess{std::move(ours), pid, [pid] { ::kill(pid, SIGKILL); },
                         [pid] { return reap(pid).how; },
                         [pid] { return where_it_hangs("/proc", pid); }};
}

Result<FileDescriptor> worker_program() {
    std::error_code error;
    auto const file = fs::read_symlink("/proc/self/exe", error).replace_filename("vfmgrd-worker");
    FileDescriptor program(::open(file.c_str(), O_PATH | O_CLOEXEC));
    if (program) return program;
    return fail({Problem::unavailable,
                 file.string() + " can't be opened, and without it no PF can be observed",
                 "reinstall the package vfmgr",
                 {errno_cause("open " + file.string(), errno)}});
}

void await_predecessor(fs::path const& locks, KernelSubject const& subject, Deadline deadline) {
    FileDescriptor const lock(::open(lock_file(locks, subject).c_str(), O_RDONLY | O_CLOEXEC));
    if (!lock || ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0) return;
    // Waits for the lock, not only for the process that the file names: a program that the worker
    // started may outlive it. flock() takes no deadline, so a process flock(1) waits instead. It
    // must not outlive this call: it would get the lock later, and a new worker could not.
    constexpr int waited_for = 3;
    FileDescriptor const given(::fcntl(lock.get(), F_DUPFD_CLOEXEC, waited_for + 1));
    auto const waiting = spawn({.arguments = {"flock", "--shared", std::to_string(waited_for)},
                                .descriptors = {{given.get(), waited_for}},
                                .close_from = waited_for + 1});
    if (waiting)
        static_cast<void>(end_by(*waiting, deadline));
    else
        static_cast<void>(await_end_of(pid_in(lock.get()), deadline));
}

Result<WorkerProcess> start_worker(WorkerFiles const& files, KernelSubject const& subject) {
    // Uses this process's /proc entry: the child has closed its own when it starts the program.
    auto const program = fmt::format("/proc/{}/fd/{}", ::getpid(), files.program);
    return files.spare.try_with([&]() -> Result<WorkerProcess> {
        VFMGR_TRY(auto lock, lock_subject(files.locks, subject));
        return spawn_worker(program, {"vfmgrd-worker", worker_word(subject)}, std::move(lock));
    });
}

}  // namespace vfmgr
