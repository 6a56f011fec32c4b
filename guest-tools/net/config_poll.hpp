// SPDX-License-Identifier: Apache-2.0
// Polls the host for the configuration on a thread of its own, and puts the newest one into a
// mailbox with a descriptor to wait on. Owned by the resident vf-guest.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "api/os/descriptor.hpp"
#include "guest-tools/net/enrolment.hpp"

namespace vfmgr::guest {

class ConfigPoll {
  public:
    [[nodiscard]] static Result<std::unique_ptr<ConfigPoll>> start(HostEnds host);
    // Polls these from the next request on.
    void use(HostEnds host);
    [[nodiscard]] int fd() const { return wake_.get(); }
    // Returns what arrived since the last call: a configuration, or why the host could not be
    // queried.
    [[nodiscard]] std::optional<Result<GuestConfig>> take();

  private:
    ConfigPoll(HostEnds host, FileDescriptor wake);
    void run(std::stop_token const& stop);
    void put(Result<GuestConfig> config);

    FileDescriptor wake_;
    std::mutex mutex_;
    HostEnds host_;
    bool changed_ = false;                 // since the thread took a copy
    std::condition_variable_any pausing_;  // until stopped
    std::optional<Result<GuestConfig>> newest_;
    std::jthread thread_;  // ends before the others
};

}  // namespace vfmgr::guest
