// SPDX-License-Identifier: Apache-2.0
// What serve finds on its own machine, and the files that it creates.
#include "vfmgr/proof/serve/local_end.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/proof/serve/credentials.hpp"
#include "vfmgr/proof/serve/responder_server.hpp"

namespace vfmgr::serve {
namespace {

using testing::HasSubstr;

auto const in_train = IpAddress::parse("192.168.100.200").value();

std::vector<Netdev> eth0_with_vlan() {
    Netdev parent;
    parent.ifindex = 2;
    parent.name = "eth0";
    Netdev vlan;
    vlan.ifindex = 3;
    vlan.name = "eth0.100";
    vlan.vlan = 100;
    vlan.parent_ifindex = 2;
    return {parent, vlan};
}

TEST(LocalEnds, AVlanDevicesRdmaIsItsParents) {
    auto const end = local_end_among(in_train, {{3, in_train, 24}}, eth0_with_vlan());
    ASSERT_TRUE(end);
    EXPECT_EQ(end->netdev.name, "eth0.100");
    EXPECT_EQ(end->rdma_netdev, "eth0");
    EXPECT_EQ(local_end_among(in_train, {{2, in_train, 24}}, eth0_with_vlan())->rdma_netdev,
              "eth0");
}

TEST(LocalEnds, AnAddressThatNobodyHasIsNamed) {
    auto const none = local_end_among(in_train, {}, eth0_with_vlan());
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().problem, Problem::not_found);
    EXPECT_EQ(none.error().detail, "no netdev of this machine has the address 192.168.100.200");
}

TEST(LocalEnds, LoopbackIsReachedFromLoopback) {
    EXPECT_EQ(address_towards(IpAddress::parse("127.0.0.1").value()),
              IpAddress::parse("127.0.0.1").value());
    auto const end = find_local_end(IpAddress::parse("127.0.0.1").value());
    ASSERT_TRUE(end) << end.error().detail;
    EXPECT_EQ(end->netdev.name, "lo");
}

TEST(Serving, WithoutRdmaSaysHowToMakeIt) {
    test::TemporaryFolder const folder;
    ServeOptions options;
    options.address = "127.0.0.1";
    options.state_folder = folder.file("state");
    auto const refused = serve(options, -1, [](Served const&) { ADD_FAILURE() << "is ready"; });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unsupported);
    EXPECT_THAT(refused.error().remedy, HasSubstr("rdma link add rxe0 type rxe netdev lo"));
}

// --- credentials --------------------------------------------------------------------------------

mode_t mode_of(std::string const& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
}

TEST(ServeCredentials, AreMadeOnceAndKept) {
    test::TemporaryFolder const folder;
    auto const state = folder.file("state");
    auto const made = credentials_in(state, {}, "127.0.0.1");
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_EQ(mode_of(state), 0700U);
    EXPECT_EQ(mode_of(made->key_file), 0600U);
    EXPECT_EQ(mode_of(made->token_file), 0600U);
    EXPECT_EQ(made->token.size(), 68U);
    EXPECT_EQ(made->fingerprint.size(), 64U);
    auto const again = credentials_in(state, {}, "127.0.0.1");
    ASSERT_TRUE(again);
    EXPECT_EQ(again->token, made->token);
    EXPECT_EQ(again->fingerprint, made->fingerprint);
}

TEST(ServeCredentials, AUsersTokenFileMustBeThere) {
    test::TemporaryFolder const folder;
    auto const state = folder.file("state");
    auto const mine = folder.file("token");
    auto const refused = credentials_in(state, mine, "127.0.0.1");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr(mine));
    std::ofstream(mine) << "  secret \n";
    EXPECT_EQ(credentials_in(state, mine, "127.0.0.1")->token, "secret");
    std::ofstream(mine) << "\n";
    EXPECT_EQ(credentials_in(state, mine, "127.0.0.1").error().problem, Problem::invalid_request);
}

}  // namespace
}  // namespace vfmgr::serve
