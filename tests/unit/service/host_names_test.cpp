// SPDX-License-Identifier: Apache-2.0
#include "service/host_names.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

namespace vfmgr {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

IpAddress ip(char const* text) {
    return IpAddress::parse(text).value();
}

TEST(HostNames, AreThoseOfThisHost) {
    auto const names = host_names({});
    for (auto const* always : {"localhost", "127.0.0.1", "::1"})
        EXPECT_THAT(names, Contains(always));
    char own[256] = {};
    ASSERT_EQ(::gethostname(own, sizeof own - 1), 0);
    EXPECT_EQ(names.front(), own);
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size()) << "each once";
    for (auto const& name : names) {
        auto const address = IpAddress::parse(name);
        if (!address) continue;
        EXPECT_FALSE(IpPrefix::parse("fe80::/10")->contains(*address)) << name;
        if (name != "127.0.0.1" && name != "::1") {
            EXPECT_THAT(host_names({*address}), Not(Contains(name))) << "it is left out";
        }
    }
}

TEST(HostNames, LongerOnesComeFromTheHostsFile) {
    constexpr auto hosts =
        "127.0.0.1 localhost\n"
        "# 10.0.0.1 db1.old.example db1\n"
        "10.0.0.1\tdb1.site.example db1  # db1.comment.example\n"
        "10.0.0.2 db10.site.example db10\n"
        "10.0.0.3 db1.another.example\n"
        "\n"
        "::1 db1 db1.six.example db1.bad/name";
    EXPECT_THAT(full_names(hosts, "db1"), ElementsAre("db1.site.example", "db1.six.example"));
    EXPECT_THAT(full_names("", "db1"), IsEmpty());
}

TEST(HostNames, TemporaryAddressesAreTold) {
    constexpr auto if_inet6 =
        "00000000000000000000000000000001 01 80 10 80       lo\n"
        "20010db8000000000000000000000001 02 40 00 80     eth0\n"
        "20010db800000000abcdabcdabcdabcd 02 40 00 01     eth0\n"
        "20010db8000000000000000000000002 02 40 00 20     eth0\n"
        "nonsense\n"
        "20010db80000000000000000000000zz 02 40 00 01     eth0\n";
    EXPECT_THAT(temporary_addresses(if_inet6),
                ElementsAre(ip("2001:db8::2"), ip("2001:db8::abcd:abcd:abcd:abcd")));
}

}  // namespace
}  // namespace vfmgr
