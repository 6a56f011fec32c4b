// SPDX-License-Identifier: Apache-2.0
// An open file, closed when it goes. Owned by whoever holds it.
#pragma once

#include <unistd.h>

#include <utility>

namespace vfmgr {

class FileDescriptor {
  public:
    explicit FileDescriptor(int fd) : fd_(fd) {}
    FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileDescriptor& operator=(FileDescriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~FileDescriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool open() const { return fd_ >= 0; }

  private:
    int fd_;
};

}  // namespace vfmgr
