// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stock/share.hpp"

#include <fmt/format.h>

#include <array>

namespace vfmgr::stock {
namespace {

struct Kind {
    std::size_t Taken::* count;
    char const* name;
};
constexpr std::array<Kind, 3> kinds{{{&Taken::pairs, "queue pairs"},
                                     {&Taken::spinning, "tests whose answers take a CPU"},
                                     {&Taken::descriptors, "descriptors"}}};

Result<void> check(Taken const& taken, Taken const& wanted, Taken const& most, char const* whose) {
    for (auto const& [count, name] : kinds) {
        if (taken.*count + wanted.*count <= most.*count) continue;
        return fail(
            Problem::limit_exceeded,
            fmt::format("{} have {} {} already, no more are allowed", whose, taken.*count, name),
            "start it again when others have ended, or with fewer queue pairs (-q)");
    }
    return {};
}

}  // namespace

Shares::Share::Share(Shares& owner, std::string attachment, Taken taken)
    : owner_(&owner, GiveBack{std::move(attachment), taken}) {}

Result<Shares::Share> Shares::take(std::string const& attachment, Taken const& wanted) {
    std::lock_guard const lock(mutex_);
    auto const found = each_.find(attachment);
    auto const mine = found == each_.end() ? Taken{} : found->second;
    VFMGR_CHECK(check(mine, wanted, limits_.each, "this attachment's stock clients"));
    VFMGR_CHECK(check(all_, wanted, limits_.all, "the stock clients of this host"));
    for (auto const& [count, name] : kinds) {
        all_.*count += wanted.*count;
        each_[attachment].*count += wanted.*count;
    }
    return Share(*this, attachment, wanted);
}

void Shares::give_back(std::string const& attachment, Taken const& taken) {
    std::lock_guard const lock(mutex_);
    auto const mine = each_.find(attachment);
    std::size_t left = 0;
    for (auto const& [count, name] : kinds) {
        all_.*count -= taken.*count;
        mine->second.*count -= taken.*count;
        left += mine->second.*count;
    }
    if (left == 0) each_.erase(mine);
}

Taken Shares::taken() const {
    std::lock_guard const lock(mutex_);
    return all_;
}

}  // namespace vfmgr::stock
