// SPDX-License-Identifier: Apache-2.0
#include "api/http/resolver.hpp"

#include <netdb.h>

#include <mutex>

#include "tests/unit/api/http/harness.hpp"

namespace vfmgr::http {
namespace {

// Runs what is posted, on the test's thread, as an io thread would.
struct Posted {
    std::shared_ptr<Mailbox> const mailbox =
        std::make_shared<Mailbox>([this](std::function<void()> work) {
            std::lock_guard const lock(mutex);
            tasks.push_back(std::move(work));
            came.add();
        });
    void run_next() {
        ASSERT_TRUE(came.reaches(++ran));
        std::function<void()> next;
        {
            std::lock_guard const lock(mutex);
            next = std::move(tasks[static_cast<std::size_t>(ran - 1)]);
        }
        next();
    }
    std::mutex mutex;
    std::vector<std::function<void()>> tasks;
    Counter came;
    int ran = 0;
};

TlsTarget named(std::string host) {
    return {.host = std::move(host), .port = 7};
}

TEST(Resolver, AnAddressNeedsNoThread) {
    Posted posted;
    Resolver resolver(posted.mailbox, [](auto const&, auto const&) -> Resolved {
        ADD_FAILURE() << "no name was asked for";
        return {};
    });
    int found = 0;
    for (auto const* host : {"10.0.0.1", "fd00::1"})
        resolver.find(named(host), [&](Resolved const& resolved) {
            ASSERT_EQ(resolved.addresses.size(), 1U);
            EXPECT_TRUE(resolved.addresses.front().address());
            ++found;
        });
    EXPECT_EQ(found, 2);
}

TEST(Resolver, ANameThatHangsHoldsUpNoOtherAndIsAskedForOnce) {
    Posted posted;
    Counter asked_slow;
    auto const go = std::make_shared<Counter>();  // outlives the test with the thread
    Resolver resolver(posted.mailbox, [&, go](std::string const& host, std::string const& port) {
        EXPECT_EQ(port, "7");
        if (host != "slow") return Resolved{EAI_NONAME, {}};
        asked_slow.add();
        EXPECT_TRUE(go->reaches(1));
        return Resolved{EAI_AGAIN, {}};
    });
    std::vector<std::string> order;
    auto const take = [&](std::string const& who, int error) {
        return [&, who, error](Resolved const& resolved) {
            EXPECT_EQ(resolved.error, error);
            order.push_back(who);
        };
    };
    resolver.find(named("slow"), take("first", EAI_AGAIN));
    resolver.find(named("slow"), take("second", EAI_AGAIN));
    resolver.find(named("quick"), take("quick", EAI_NONAME));
    posted.run_next();
    EXPECT_EQ(order, std::vector<std::string>{"quick"});
    go->add();
    posted.run_next();
    EXPECT_EQ(order, (std::vector<std::string>{"quick", "first", "second"}));
    EXPECT_EQ(asked_slow.count(), 1);
}

TEST(Resolver, ManyNamesTakeTurnsOnFewThreads) {
    Posted posted;
    std::atomic<int> now = 0;
    std::atomic<int> most = 0;
    Resolver resolver(posted.mailbox, [&](auto const&, auto const&) {
        int const running = ++now;
        for (int seen = most; running > seen && !most.compare_exchange_weak(seen, running);)
            continue;
        --now;
        return Resolved{EAI_NONAME, {}};
    });
    int found = 0;
    for (int i = 0; i < 200; ++i)
        resolver.find(named("n" + std::to_string(i)), [&](auto const&) { ++found; });
    for (int i = 0; i < 200; ++i) posted.run_next();
    EXPECT_EQ(found, 200);
    EXPECT_LE(most, 32);
}

}  // namespace
}  // namespace vfmgr::http
