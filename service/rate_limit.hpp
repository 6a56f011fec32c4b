// SPDX-License-Identifier: Apache-2.0
// How often each of many may ask: a bucket of `burst` that fills with `per_second`. Not
// synchronised: the owner's lock guards it.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

#include "api/types/time.hpp"

namespace vfmgr {

struct RateLimit {
    double burst = 1;
    double per_second = 1;
    bool operator==(RateLimit const&) const = default;
};

template <class Who>
class RateLimiter {
  public:
    explicit RateLimiter(RateLimit limit) : limit_(limit) {}

    // Takes one; false when there is none left, or when too many others are known to ask.
    [[nodiscard]] bool take(Who const& who, Deadline now) {
        forget_full(now);
        if (buckets_.size() >= tracked_max && !buckets_.contains(who)) return false;
        auto& bucket = buckets_.try_emplace(who, Bucket{limit_.burst, now, {}}).first->second;
        bucket.left = filled(bucket, now);
        bucket.at = now;
        if (bucket.left < 1) return false;
        bucket.left -= 1;
        return true;
    }
    // How long the answer to who was refused is held back. They are answered one after another: a
    // client is not faster for having many connections.
    [[nodiscard]] std::chrono::milliseconds hold(Who const& who, Deadline now) {
        auto const found = buckets_.find(who);
        if (found == buckets_.end()) return hold_max;
        auto& last = found->second.last_answer;
        last = std::min(std::max(last, now) + hold_each, now + hold_max);
        return std::chrono::ceil<std::chrono::milliseconds>(last - now);
    }
    // What take() took.
    void give_back(Who const& who) {
        auto const found = buckets_.find(who);
        if (found != buckets_.end())
            found->second.left = std::min(limit_.burst, found->second.left + 1);
    }
    [[nodiscard]] std::size_t tracked() const { return buckets_.size(); }

  private:
    static constexpr std::chrono::milliseconds hold_each{250};
    static constexpr std::chrono::seconds hold_max{10};  // less than clients wait for an answer
    static constexpr std::size_t tidy_at = 1024;
    static constexpr std::size_t tracked_max = 4096;

    struct Bucket {
        double left = 0;
        Deadline at{};
        Deadline last_answer{};  // of those that are held back
    };
    [[nodiscard]] double filled(Bucket const& bucket, Deadline now) const {
        auto const seconds = std::chrono::duration<double>(now - bucket.at).count();
        return std::min(limit_.burst, bucket.left + std::max(0.0, seconds) * limit_.per_second);
    }
    // They come and go; a full bucket says nothing that a new one would not.
    void forget_full(Deadline now) {
        if (buckets_.size() < tidy_at) return;
        std::erase_if(buckets_,
                      [&](auto const& entry) { return filled(entry.second, now) >= limit_.burst; });
    }

    RateLimit limit_;
    std::map<Who, Bucket> buckets_;
};

}  // namespace vfmgr
