// SPDX-License-Identifier: Apache-2.0
// Announces that something has changed, so that it is to be observed again: rung by the broker's
// link, heard by run(). Any thread.
#pragma once

#include <functional>
#include <mutex>

#include "api/types/time.hpp"

namespace vfmgr {

// host: links, addresses, devices, vfmgr's packet filter. vms: libvirt's domains.
enum class News { host, vms };

class Bell {
  public:
    void ring(News news) {
        std::lock_guard const lock(mutex_);
        if (news == News::vms) vms_rung_at_ = std::chrono::system_clock::now();
        if (notify_) notify_(news);
    }
    // Can be compared with the times at which libvirt's views were read.
    [[nodiscard]] Time vms_rung_at() const {
        std::lock_guard const lock(mutex_);
        return vms_rung_at_;
    }
    // `notify` must return at once. None: an empty one.
    void on_ring(std::function<void(News)> notify) {
        std::lock_guard const lock(mutex_);
        notify_ = std::move(notify);
    }

  private:
    mutable std::mutex mutex_;
    std::function<void(News)> notify_;
    Time vms_rung_at_{};
};

}  // namespace vfmgr
