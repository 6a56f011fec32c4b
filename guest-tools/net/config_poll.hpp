// SPDX-License-Identifier: Apache-2.0
// Polls the host for the configuration on a thread of its own, and puts the newest one into a
// mailbox with a descriptor to wait on. Owned by the resident vf-guest.
#pragma once

#include <mutex>
#include <optional>
#include <thread>

#include "api/os/descriptor.hpp"
#include "guest-tools/net/host_client.hpp"

namespace vfmgr::guest {

class ConfigPoll {
  public:
    // Creates the eventfds wake_ and stop_.
    [[nodiscard]] static Result<std::unique_ptr<ConfigPoll>> start(http::Target const& host);
    ~ConfigPoll();
    ConfigPoll(ConfigPoll const&) = delete;
    ConfigPoll& operator=(ConfigPoll const&) = delete;

    [[nodiscard]] int fd() const { return wake_.get(); }
    // Returns what arrived since the last call: a configuration, or why the host could not be
    // queried.
    [[nodiscard]] std::optional<Result<GuestConfig>> take();

  private:
    ConfigPoll(http::Target const& host, FileDescriptor wake, FileDescriptor stop);
    void run();
    void put(Result<GuestConfig> config);
    [[nodiscard]] bool stopped_within(std::chrono::milliseconds time) const;

    HostClient host_;
    FileDescriptor wake_;
    FileDescriptor stop_;
    std::mutex mutex_;
    std::optional<Result<GuestConfig>> newest_;
    std::thread thread_;
};

}  // namespace vfmgr::guest
