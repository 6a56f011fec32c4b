// SPDX-License-Identifier: Apache-2.0
#include "service/host_checks.hpp"

#include <gtest/gtest.h>

#include <future>

namespace vfmgr {
namespace {

std::future<std::string> ask_checks(HostChecks& checks) {
    auto const promise = std::make_shared<std::promise<std::string>>();
    checks.query().ask({}, [promise](Result<HostChecks::Shared> const& facts) {
        promise->set_value((*facts)->source);
    });
    return promise->get_future();
}

TEST(HostChecks, OneLookServesAllWhoAskedBeforeItBegan) {
    std::promise<void> first_began, first_may_end;
    int looks = 0;
    HostChecks checks([&] {
        if (++looks == 1) {
            first_began.set_value();
            first_may_end.get_future().wait();
        }
        checks::Facts facts;
        facts.source = std::to_string(looks);
        return facts;
    });
    auto early = ask_checks(checks);
    first_began.get_future().wait();
    auto late = ask_checks(checks);
    auto as_late = ask_checks(checks);
    first_may_end.set_value();
    EXPECT_EQ(early.get(), "1");
    EXPECT_EQ(late.get(), "2");
    EXPECT_EQ(as_late.get(), "2");
}

}  // namespace
}  // namespace vfmgr
