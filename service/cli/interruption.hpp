// SPDX-License-Identifier: Apache-2.0
// While it lives, Ctrl-C ends the program and prints a sentence about what continues without it.
#pragma once

#include <mutex>
#include <string>
#include <thread>

#include "api/os/descriptor.hpp"

namespace vfmgr {

class Interruption {
  public:
    explicit Interruption(std::string farewell);
    ~Interruption();
    Interruption(Interruption const&) = delete;
    Interruption& operator=(Interruption const&) = delete;
    void set_farewell(std::string farewell);

  private:
    void watch();

    std::mutex mutex_;
    std::string farewell_;  // mutex_
    FileDescriptor signals_;
    FileDescriptor over_;
    std::thread thread_;
};

}  // namespace vfmgr
