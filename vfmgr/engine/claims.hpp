// SPDX-License-Identifier: Apache-2.0
// Conflicting operations queue, others run in parallel: an operation claims what it changes, always
// in the order PF, VM; or an RDMA link and its netdev. Any thread; take() blocks.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace vfmgr {

class Claims;

// Drops its keys on destruction. Must not outlive its Claims.
class Claim {
  public:
    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&&) = delete;
    ~Claim();

  private:
    friend class Claims;
    Claim(Claims& claims, std::vector<std::string> keys);
    Claims* claims_;
    std::vector<std::string> keys_;
};

class Claims {
  public:
    // `freed` is called after keys became free, on the thread that freed them.
    explicit Claims(std::function<void()> freed = [] {}) : notify_freed_(std::move(freed)) {}

    // Takes all keys at once: no thread waits while it holds some.
    [[nodiscard]] Claim take(std::vector<std::string> keys);
    // For the observer: a key that was claimed at any time since the observation began may have
    // been observed half done.
    void observation_begins();
    [[nodiscard]] std::set<std::string> taken_meanwhile() const;

  private:
    friend class Claim;
    void free(std::vector<std::string> const& keys);
    std::function<void()> const notify_freed_;
    mutable std::mutex mutex_;
    std::condition_variable freed_;
    std::set<std::string> taken_;
    std::set<std::string> meanwhile_;
};

}  // namespace vfmgr
