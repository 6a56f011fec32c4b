// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

std::unique_ptr<Control> start(example::TemporaryFolder const& folder) {
    return Control::start(Store::open(folder.path() / "vfmgr.db").value()).value();
}

TEST(Control, ReadersSeeTokensAsSoonAsTheyAreSavedOrErased) {
    example::TemporaryFolder const folder;
    Token const token{"id", "aa", "viewer", "for a test", Time{}, {}};
    {
        auto const control = start(folder);
        EXPECT_TRUE(control->snapshot().tokens->empty());
        ASSERT_TRUE(control->wait([&](Control::State& state) { return state.save_token(token); }));
        EXPECT_EQ(control->snapshot().tokens->at("aa"), token);
    }
    auto const control = start(folder);
    EXPECT_EQ(control->snapshot().tokens->at("aa"), token) << "after a restart";
    auto const erase = [](Control::State& state) { return state.erase_token("id"); };
    EXPECT_EQ(control->wait(erase), true);
    EXPECT_TRUE(control->snapshot().tokens->empty());
    EXPECT_EQ(control->wait(erase), false) << "there was none any more";
}

TEST(Control, AReplacedTokenIsNotKnownByItsOldSecret) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    for (auto const* sha256 : {"aa", "bb"})
        ASSERT_TRUE(control->wait([&](Control::State& state) {
            return state.save_token({"id", sha256, "admin", "", Time{}, {}});
        }));
    EXPECT_EQ(control->snapshot().tokens->size(), 1U);
    EXPECT_TRUE(control->snapshot().tokens->contains("bb"));
}

}  // namespace
}  // namespace vfmgr
