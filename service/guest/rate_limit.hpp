// SPDX-License-Identifier: Apache-2.0
// How often one VM may ask: a bucket of `burst` that fills with `per_second`. Not synchronised: the
// owner's lock guards it.
#pragma once

#include <cstdint>
#include <map>

#include "api/types/time.hpp"

namespace vfmgr {

struct RateLimit {
    double burst = 1;
    double per_second = 1;
};

class RateLimiter {
  public:
    explicit RateLimiter(RateLimit limit) : limit_(limit) {}
    // Takes one; false when there is none left.
    [[nodiscard]] bool take(std::uint32_t cid, Deadline now);
    // What take() took.
    void give_back(std::uint32_t cid);
    [[nodiscard]] std::size_t tracked() const { return buckets_.size(); }

  private:
    struct Bucket {
        double left = 0;
        Deadline at{};
    };
    void forget_full(Deadline now);
    [[nodiscard]] double filled(Bucket const& bucket, Deadline now) const;

    RateLimit limit_;
    std::map<std::uint32_t, Bucket> buckets_;
};

}  // namespace vfmgr
