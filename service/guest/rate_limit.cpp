// SPDX-License-Identifier: Apache-2.0
#include "service/guest/rate_limit.hpp"

#include <algorithm>

namespace vfmgr {

double RateLimiter::filled(Bucket const& bucket, Deadline now) const {
    auto const seconds = std::chrono::duration<double>(now - bucket.at).count();
    return std::min(limit_.burst, bucket.left + std::max(0.0, seconds) * limit_.per_second);
}

bool RateLimiter::take(std::uint32_t cid, Deadline now) {
    forget_full(now);
    auto& bucket = buckets_.try_emplace(cid, Bucket{limit_.burst, now}).first->second;
    bucket = {filled(bucket, now), now};
    if (bucket.left < 1) return false;
    bucket.left -= 1;
    return true;
}

void RateLimiter::give_back(std::uint32_t cid) {
    auto const found = buckets_.find(cid);
    if (found != buckets_.end())
        found->second.left = std::min(limit_.burst, found->second.left + 1);
}

// CIDs come and go; a full bucket says nothing that a new one would not.
void RateLimiter::forget_full(Deadline now) {
    constexpr std::size_t tracked_max = 1024;
    if (buckets_.size() < tracked_max) return;
    std::erase_if(buckets_,
                  [&](auto const& entry) { return filled(entry.second, now) >= limit_.burst; });
}

}  // namespace vfmgr
