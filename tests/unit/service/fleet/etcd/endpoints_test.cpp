// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/endpoints.hpp"

#include <gtest/gtest.h>

namespace vfmgr::fleet {
namespace {

TEST(EndpointsTest, AreReadAsTheConfigurationHasThem) {
    auto const read = parse_endpoints(
        {"https://10.0.0.1:2379", "https://etcd-2.example:2379/", "https://[::1]:1"});
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, (Endpoints{{"10.0.0.1:2379", "etcd-2.example:2379", "[::1]:1"}, true}));
    EXPECT_EQ(parse_endpoints({"http://127.0.0.1:2379"}), (Endpoints{{"127.0.0.1:2379"}, false}));
}

TEST(EndpointsTest, AreRefusedByName) {
    for (std::string const url :
         {"10.0.0.1:2379", "https://10.0.0.1", "https://10.0.0.1:0", "https://10.0.0.1:65536",
          "https://:2379", "https://a b:2379", "https://a/b:2379", "ftp://a:1", "https://[]:1",
          "https://[::1:2379", "https://a:1/x"}) {
        auto const read = parse_endpoints({url});
        ASSERT_FALSE(read) << url;
        EXPECT_EQ(read.error().problem, Problem::invalid_request);
        EXPECT_NE(read.error().detail.find(url), std::string::npos) << read.error().detail;
    }
    EXPECT_FALSE(parse_endpoints({}));
    EXPECT_FALSE(parse_endpoints({"https://a:1", "http://b:1"}));
    EXPECT_FALSE(parse_endpoints({"https://a:1", "https://a:1/"}));
}

}  // namespace
}  // namespace vfmgr::fleet
