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

// Gives back on destruction. Must not outlive its Claims.
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
    // `freed` is called whenever keys were given back, on that thread.
    explicit Claims(std::function<void()> freed = [] {}) : tell_freed_(std::move(freed)) {}

    // All keys at once, so that nobody waits while holding some.
    [[nodiscard]] Claim take(std::vector<std::string> keys);
    // For the one who looks at the host: what was claimed at some time since the look began may be
    // seen half done.
    void look_begins();
    [[nodiscard]] std::set<std::string> taken_meanwhile() const;

  private:
    friend class Claim;
    void give_back(std::vector<std::string> const& keys);
    std::function<void()> const tell_freed_;
    mutable std::mutex mutex_;
    std::condition_variable freed_;
    std::set<std::string> taken_;
    std::set<std::string> meanwhile_;
};

}  // namespace vfmgr
