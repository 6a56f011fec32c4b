// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/share.hpp"

#include <fmt/format.h>

#include <array>

namespace vfmgr::interop {
namespace {

struct Kind {
    std::size_t Taken::* count;
    char const* name;
};
constexpr std::array<Kind, 3> kinds{{{&Taken::pairs, "queue pairs"},
                                     {&Taken::spinning, "tests whose answers take a CPU"},
                                     {&Taken::descriptors, "descriptors"}}};

Result<void> check(Taken const& taken, Taken const& expected, Taken const& most,
                   char const* whose) {
    for (auto const& [count, name] : kinds) {
        if (taken.*count + expected.*count <= most.*count) continue;
        return fail(
            Problem::limit_exceeded,
            fmt::format("{} already have {} {}, no more are allowed", whose, taken.*count, name),
            "start it again when others have ended, or with fewer queue pairs (-q)");
    }
    return {};
}

}  // namespace

Result<Shares::Share> Shares::take(std::string const& attachment, Taken const& expected) {
    std::lock_guard const lock(mutex_);
    auto const found = each_.find(attachment);
    auto const mine = found == each_.end() ? Taken{} : found->second;
    VFMGR_CHECK(check(mine, expected, limits_.each, "this attachment's interop clients"));
    VFMGR_CHECK(check(all_, expected, limits_.all, "the interop clients of this host"));
    for (auto const& [count, name] : kinds) {
        all_.*count += expected.*count;
        each_[attachment].*count += expected.*count;
    }
    return Share(this, {attachment, expected});
}

void Shares::free(std::string const& attachment, Taken const& taken) {
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

}  // namespace vfmgr::interop
