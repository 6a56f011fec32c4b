// SPDX-License-Identifier: Apache-2.0
// vfctl interop: its requests and its output.
#include <gmock/gmock.h>

#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;
using testing::HasSubstr;

TEST(Vfctl, ServesInteropClientsForAWhile) {
    Api api;
    std::string const path = "/v1/attachments/3f9c2a1b/interop";
    api.on("GET /v1/attachments", 200,
           test::list<Attachment>({test::attachment("3f9c2a1b", "vm1")}));
    api.on("PUT " + path, 200,
           {{"attachment", "3f9c2a1b"},
            {"address", "192.168.100.3"},
            {"test", "send_echo"},
            {"message_bytes", 64},
            {"open_until", "2026-01-31T12:10:00.000Z"},
            {"commands", {"ib_send_lat 192.168.100.3"}},
            {"rping", "load its kernel module: modprobe rdma_ucm"},
            {"served", 0},
            {"refused", 0}});
    auto const opened =
        vfctl(api, {"interop", "open", "vm1", "--test", "send_echo", "--message-bytes", "64"});
    EXPECT_EQ(opened.code, 0) << opened.err;
    EXPECT_THAT(opened.out, HasSubstr("2026-01-31T12:10:00.000Z"));
    EXPECT_THAT(opened.out, HasSubstr("\n  ib_send_lat 192.168.100.3\n"));
    EXPECT_THAT(opened.out, HasSubstr("load its kernel module: modprobe rdma_ucm"));
    auto const body = nlohmann::json::parse(api.asked("PUT " + path).body);
    EXPECT_EQ(body, (nlohmann::json{{"test", "send_echo"}, {"message_bytes", 64}}));

    EXPECT_EQ(vfctl(api, {"interop", "open", "vm1", "--test", "all"}).code, 2);
    api.on("DELETE " + path, 204, nullptr);
    EXPECT_EQ(vfctl(api, {"interop", "close", "vm1"}).code, 0);
    EXPECT_EQ(vfctl(api, {"interop", "show", "vm1"}).code, 3);
}

}  // namespace
}  // namespace vfmgr
