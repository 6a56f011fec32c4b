// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/config_poll.hpp"

namespace vfmgr::guest {
namespace {

// Short, to make stopping fast: the client can't be interrupted while it waits.
constexpr std::chrono::seconds poll_time{30};
constexpr std::chrono::milliseconds pause_min{500};
constexpr std::chrono::milliseconds pause_max{10'000};

}  // namespace

Result<std::unique_ptr<ConfigPoll>> ConfigPoll::start(HostEnds host) {
    VFMGR_TRY(auto wake, make_event());
    return std::unique_ptr<ConfigPoll>(new ConfigPoll(std::move(host), std::move(wake)));
}

ConfigPoll::ConfigPoll(HostEnds host, FileDescriptor wake)
    : wake_(std::move(wake)),
      host_(std::move(host)),
      thread_([this](std::stop_token const& stop) { run(stop); }) {}

void ConfigPoll::use(HostEnds host) {
    {
        std::lock_guard const lock(mutex_);
        host_ = std::move(host);
        changed_ = true;
    }
    pausing_.notify_all();
}

void ConfigPoll::run(std::stop_token const& stop) {
    auto host = [this] {
        std::lock_guard const lock(mutex_);
        return host_;
    }();
    std::uint64_t revision = 0;
    auto pause = pause_min;
    while (!stop.stop_requested()) {
        {
            std::lock_guard const lock(mutex_);
            if (std::exchange(changed_, false)) {
                host = host_;
                revision = 0;
            }
        }
        auto config = host.config(poll_time, revision);
        if (!config) {
            put(std::move(config));
            std::unique_lock lock(mutex_);
            pausing_.wait_for(lock, stop, pause, [this] { return changed_; });
            pause = std::min(pause * 2, pause_max);
            continue;
        }
        pause = pause_min;
        if (config->revision == revision) continue;  // nothing new within poll_time
        revision = config->revision;
        put(std::move(config));
    }
}

void ConfigPoll::put(Result<GuestConfig> config) {
    {
        std::lock_guard const lock(mutex_);
        newest_ = std::move(config);
    }
    raise_event(wake_);
}

std::optional<Result<GuestConfig>> ConfigPoll::take() {
    take_event(wake_);
    std::lock_guard const lock(mutex_);
    return std::exchange(newest_, std::nullopt);
}

}  // namespace vfmgr::guest
