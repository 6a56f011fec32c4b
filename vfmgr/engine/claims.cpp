// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/claims.hpp"

#include <algorithm>

namespace vfmgr {

Claim::Claim(Claims& claims, std::vector<std::string> keys)
    : claims_(&claims), keys_(std::move(keys)) {}

Claim::Claim(Claim&& other) noexcept : claims_(other.claims_), keys_(std::move(other.keys_)) {
    other.claims_ = nullptr;
}

Claim::~Claim() {
    if (claims_) claims_->free(keys_);
}

Claim Claims::take(std::vector<std::string> keys) {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [&] {
        return std::none_of(keys.begin(), keys.end(),
                            [&](std::string const& key) { return taken_.contains(key); });
    });
    taken_.insert(keys.begin(), keys.end());
    meanwhile_.insert(keys.begin(), keys.end());
    return Claim(*this, std::move(keys));
}

void Claims::observation_begins() {
    std::lock_guard const lock(mutex_);
    meanwhile_ = taken_;
}

std::set<std::string> Claims::taken_meanwhile() const {
    std::lock_guard const lock(mutex_);
    return meanwhile_;
}

void Claims::free(std::vector<std::string> const& keys) {
    {
        std::lock_guard const lock(mutex_);
        for (auto const& key : keys) taken_.erase(key);
    }
    freed_.notify_all();
    notify_freed_();
}

}  // namespace vfmgr
