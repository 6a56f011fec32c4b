// SPDX-License-Identifier: Apache-2.0
// Limits each client's request rate by a token bucket of size `burst` that refills at `per_second`.
// Not synchronised: the owner's lock guards it.
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
    // Applies to all clients at once; a bucket keeps what it has, up to the new size.
    void limit(RateLimit limit) { limit_ = limit; }

    // Takes a token. False if none is left, or if too many clients are tracked.
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
    // Returns how long to hold back the answer to a refused client. A client's refusals are
    // answered one after another, so that more connections make it no faster.
    [[nodiscard]] std::chrono::milliseconds hold(Who const& who, Deadline now) {
        auto const found = buckets_.find(who);
        if (found == buckets_.end()) return hold_max;
        auto& last = found->second.last_answer;
        last = std::min(std::max(last, now) + hold_each, now + hold_max);
        return std::chrono::ceil<std::chrono::milliseconds>(last - now);
    }
    // Returns the token of take().
    void free(Who const& who) {
        auto const found = buckets_.find(who);
        if (found != buckets_.end())
            found->second.left = std::min(limit_.burst, found->second.left + 1);
    }
    [[nodiscard]] std::size_t tracked() const { return buckets_.size(); }

  private:
    static constexpr std::chrono::milliseconds hold_each{250};
    static constexpr std::chrono::seconds hold_max{10};  // below the time-outs of clients
    static constexpr std::size_t tidy_at = 1024;
    static constexpr std::chrono::seconds tidy_each{1};
    static constexpr std::size_t tracked_max = 4096;

    struct Bucket {
        double left = 0;
        Deadline at{};
        Deadline last_answer{};  // when the last held-back refusal is answered
    };
    [[nodiscard]] double filled(Bucket const& bucket, Deadline now) const {
        auto const seconds = std::chrono::duration<double>(now - bucket.at).count();
        return std::min(limit_.burst, bucket.left + std::max(0.0, seconds) * limit_.per_second);
    }
    // Clients come and go; a full bucket equals a new one. Not at each request, since a flood from
    // many addresses would then make every request look at all of them.
    void forget_full(Deadline now) {
        if (buckets_.size() < tidy_at || now < tidied_ + tidy_each) return;
        tidied_ = now;
        std::erase_if(buckets_,
                      [&](auto const& entry) { return filled(entry.second, now) >= limit_.burst; });
    }

    RateLimit limit_;
    Deadline tidied_{};
    std::map<Who, Bucket> buckets_;
};

}  // namespace vfmgr
