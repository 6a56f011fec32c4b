// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/config_poll.hpp"

#include <poll.h>

#include <algorithm>

#include "api/os/event.hpp"

namespace vfmgr::guest {
namespace {

// Short, to make stopping fast: the client can't be interrupted while it waits.
constexpr std::chrono::seconds poll_time{30};
constexpr std::chrono::milliseconds pause_min{500};
constexpr std::chrono::milliseconds pause_max{10'000};

}  // namespace

Result<std::unique_ptr<ConfigPoll>> ConfigPoll::start(http::Target const& host) {
    VFMGR_TRY(auto wake, make_event());
    VFMGR_TRY(auto stop, make_event());
    return std::unique_ptr<ConfigPoll>(new ConfigPoll(host, std::move(wake), std::move(stop)));
}

ConfigPoll::ConfigPoll(http::Target const& host, FileDescriptor wake, FileDescriptor stop)
    : host_(host), wake_(std::move(wake)), stop_(std::move(stop)) {
    thread_ = std::thread([this] { run(); });
}

ConfigPoll::~ConfigPoll() {
    raise_event(stop_);
    thread_.join();
}

bool ConfigPoll::stopped_within(std::chrono::milliseconds time) const {
    pollfd stop{stop_.get(), POLLIN, 0};
    return ::poll(&stop, 1, static_cast<int>(time.count())) > 0;
}

void ConfigPoll::run() {
    std::uint64_t revision = 0;
    auto pause = pause_min;
    while (!stopped_within(std::chrono::milliseconds(0))) {
        auto config = host_.config(poll_time, revision);
        if (!config) {
            put(std::move(config));
            if (stopped_within(pause)) return;
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
