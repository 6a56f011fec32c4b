// SPDX-License-Identifier: Apache-2.0
// Open file descriptors, waiting for them, and a reserve of them. Any thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// An open file descriptor. Has exactly one owner, and closes with it; any thread.

class FileDescriptor {
  public:
    FileDescriptor() = default;
    explicit FileDescriptor(int fd) : fd_(fd) {}
    FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
    FileDescriptor& operator=(FileDescriptor&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = other.release();
        }
        return *this;
    }
    ~FileDescriptor() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
    // The caller closes it.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    void reset() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

  private:
    int fd_ = -1;
};

// Waits for descriptors, and wakes a thread that waits for them. Any thread.

// Readable while raised. Fails with limit_exceeded if no descriptor is left.
[[nodiscard]] Result<FileDescriptor> make_event();
void raise_event(FileDescriptor const& event);
// Clears a raised event.
void take_event(FileDescriptor const& event);

// Waits until a descriptor is readable or `deadline` passes. Errors are poll's own.
enum class Readiness { readable, deadline_passed };
[[nodiscard]] Result<Readiness> await_readable(std::span<int const> fds, Deadline deadline);

// Returns at once; an absent descriptor (-1) is never readable.
[[nodiscard]] bool is_readable(int fd);

// Reserves file descriptors for work that must succeed even when the process has no others left.
// Any thread.

class SpareDescriptors {
  public:
    explicit SpareDescriptors(std::size_t count) : kept_(count) { keep(); }
    SpareDescriptors(SpareDescriptors const&) = delete;
    SpareDescriptors& operator=(SpareDescriptors const&) = delete;

    // Runs `work`. If it fails with EMFILE or ENFILE, frees the reserve, runs it once more, and
    // refills the reserve.
    template <class Work>
    auto try_with(Work work) -> decltype(work()) {
        {
            std::lock_guard const lock(mutex_);
            keep();  // refills what the last call could not
        }
        auto done = work();
        if (done || !lacks_descriptors(done.error())) return done;
        std::lock_guard const lock(mutex_);
        for (auto& one : kept_) one.reset();
        done = work();
        keep();
        return done;
    }

  private:
    static bool lacks_descriptors(Error const& error) {
        return std::ranges::any_of(error.causes, [](Cause const& cause) {
            return cause.code == "EMFILE" || cause.code == "ENFILE";
        });
    }
    void keep() {
        for (auto& one : kept_)
            if (!one) one = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }

    std::mutex mutex_;
    std::vector<FileDescriptor> kept_;  // guarded by mutex_
};

}  // namespace vfmgr
