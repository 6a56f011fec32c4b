// SPDX-License-Identifier: Apache-2.0
// What is refused before it is sent.
#include <gtest/gtest.h>

#include "service/fleet/etcd/etcd.hpp"

namespace vfmgr::fleet {
namespace {

std::string numbered(std::size_t number) {
    return "k" + std::to_string(number);
}

TEST(TransactionTest, EachOfItsListsHasTheLimitOfEtcd) {
    for (auto const list : {0, 1, 2}) {
        Transaction full;
        for (std::size_t i = 0; i < transaction_operations_max; ++i) {
            if (list == 0) full.compares.push_back(absent(numbered(i)));
            if (list == 1) full.writes.emplace_back(Put{numbered(i), "v"});
            if (list == 2) full.otherwise.push_back(numbered(i));
        }
        EXPECT_TRUE(check(full)) << list;
        if (list == 0) full.compares.push_back(absent("more"));
        if (list == 1) full.writes.emplace_back(Erase{"more"});
        if (list == 2) full.otherwise.emplace_back("more");
        auto const refused = check(full);
        ASSERT_FALSE(refused) << list;
        EXPECT_EQ(refused.error().problem, Problem::limit_exceeded);
        EXPECT_NE(refused.error().detail.find("129"), std::string::npos);
    }
}

TEST(TransactionTest, IsNotLargerThanEtcdTakes) {
    Transaction large{.compares = {},
                      .writes = {Put{"k", std::string(request_bytes_max / 2, 'v')}}};
    EXPECT_TRUE(check(large));
    large.writes.emplace_back(Put{"l", std::string(request_bytes_max / 2, 'v')});
    auto const refused = check(large);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::limit_exceeded);
}

TEST(TransactionTest, WritesNoKeyTwice) {
    auto const written = [](std::vector<Write> writes) {
        return check({.compares = {}, .writes = std::move(writes)});
    };
    EXPECT_TRUE(written({Put{"a", ""}, Put{"b", ""}, Erase{"c"}}));
    EXPECT_TRUE(written({Put{"a", ""}, Erase{"ab", Match::prefix}, Erase{"abc"}}));
    EXPECT_FALSE(written({Put{"a", ""}, Put{"a", "x"}}));
    EXPECT_FALSE(written({Put{"a", ""}, Erase{"a"}}));
    EXPECT_FALSE(written({Erase{"a", Match::prefix}, Put{"ab", ""}}));
}

TEST(TransactionTest, ComparisonsSayWhatTheirNamesDo) {
    EXPECT_EQ(absent("k"), (Compare{"k", Compare::On::create_revision, Compare::Is::equal, 0}));
    EXPECT_EQ(present("k"),
              (Compare{"k", Compare::On::create_revision, Compare::Is::not_equal, 0}));
    EXPECT_EQ(unchanged("k", 7), (Compare{"k", Compare::On::mod_revision, Compare::Is::equal, 7}));
    EXPECT_EQ(created_at("k", 7),
              (Compare{"k", Compare::On::create_revision, Compare::Is::equal, 7}));
}

}  // namespace
}  // namespace vfmgr::fleet
