// SPDX-License-Identifier: Apache-2.0
// Reports the kernel's own events: links and addresses change, devices come, go and bind, another
// program changes vfmgr's packet filter. Requests only a new observation, from a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

class HostEvents {
  public:
    // `changed` may be called until the destructor has returned; it must return at once.
    [[nodiscard]] static Result<std::unique_ptr<HostEvents>> start(std::function<void()> changed);
    ~HostEvents();
    HostEvents(HostEvents const&) = delete;
    HostEvents& operator=(HostEvents const&) = delete;

  private:
    explicit HostEvents(FileDescriptor stop) : stop_(std::move(stop)) {}

    FileDescriptor stop_;  // an eventfd
    std::thread thread_;
};

}  // namespace vfmgr
