// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/bundle.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace vfmgr::checks {
namespace {

Facts some_facts() {
    Facts facts;
    facts.machine = CheckedMachine::guest;
    facts.provenance = Provenance::synthetic;
    facts.source = "a test";
    facts.patterns = {"/proc/cmdline", "/sys/class/net/*/mtu"};
    facts.files = {
        {"/proc/cmdline", {"quiet\n", 0}},
        {"/dev/kmsg", {"", EPERM}},
        {"/sys/bus/pci/devices/0000:01:00.0/config", {std::string("\x86\x80\0\xff", 4), 0}}};
    facts.links = {{"/sys/class/net/eth0/device", {"../../../0000:01:00.0", 0}}};
    facts.folders = {{"/sys/class/net", {{"eth0", "lo"}, 0}}, {"/proc/1/fd", {{}, EACCES}}};
    facts.netlink = {{"RTM_GETADDR", {{std::string("\x02\x18\0\0", 4)}, 0}}};
    facts.commands = {{"ofed_info -s", {"MLNX_OFED_LINUX-5.0-1.0.0.0:\n", "", 0, 0}},
                      {"mst status", {"", "", 0, ENOENT}}};
    return facts;
}

TEST(Bundle, HoldsEveryFactAsItWasRead) {
    auto const facts = some_facts();
    auto const read = from_bundle(to_bundle(facts));
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(*read, facts);
}

// A bundle written by hand may have a finer resolution than vfmgr's.
TEST(Bundle, HasATimeAsExactAsItsText) {
    auto const read = from_bundle(R"({"vfmgr_bundle":1,"machine":"host","provenance":"live",)"
                                  R"("collected_at":"2026-01-31T12:00:00.0005Z"})");
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(from_bundle(to_bundle(*read)), *read);
}

TEST(Bundle, IsForPeopleToRead) {
    auto const text = to_bundle(some_facts());
    EXPECT_NE(text.find(R"("/proc/cmdline": "quiet\n")"), text.npos) << text;
    EXPECT_NE(text.find(R"("errno": "EPERM")"), text.npos) << text;
    EXPECT_NE(text.find(R"("hex": "868000ff")"), text.npos) << text;
}

struct Bad {
    std::string document;  // text that begins with a comma follows a valid beginning
    char const* said;
};

class BadBundle : public testing::TestWithParam<Bad> {};

TEST_P(BadBundle, IsRefusedWithTheReason) {
    constexpr auto good = R"({"vfmgr_bundle":1,"machine":"host","provenance":"live",)"
                          R"("collected_at":"2026-01-31T12:00:00.000Z")";
    auto const& end = GetParam().document;
    auto const read = from_bundle(end.starts_with(',') ? good + end : end);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().problem, Problem::invalid_request);
    EXPECT_NE(read.error().detail.find(GetParam().said), std::string::npos) << read.error().detail;
    EXPECT_FALSE(read.error().remedy.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, BadBundle,
    testing::Values(Bad{"", "not valid JSON"}, Bad{"{}", "/vfmgr_bundle is required"},
                    Bad{R"(,"more":1})", "/more is not known"},
                    Bad{R"(,"files":[]})", "'files' must be an object"},
                    Bad{R"(,"files":{"/a":1}})", "'/a' must be a string"},
                    Bad{R"(,"files":{"/a":{"hex":"0g"}}})", "'/a' must be a string"},
                    Bad{R"(,"files":{"/a":{"errno":"EWHAT"}}})", "errno"},
                    Bad{R"(,"folders":{"/a":"b"}})", "'/a' must be a list"},
                    Bad{R"(,"netlink":{"A":["xx"]}})", "hexadecimal"},
                    Bad{R"(,"commands":{"a":{"exit_status":-1}}})", "exit_status"},
                    Bad{R"(,"commands":{"a":"b"}})", "'a' must be an object"}));

TEST(Secrets, AreTakenOutOfFilesAndOutputs) {
    Facts facts;
    facts.files["/proc/cmdline"] = {"quiet luks.password=hunter2 ip=dhcp\n", 0};
    facts.files["/etc/netplan/a.yaml"] = {"      password: \"s3cret\"\n      mtu: 9000\n", 0};
    facts.files["/sys/class/net/psk0/mtu"] = {"1500\n", 0};
    facts.commands["a"] = {"--token abc --set x", "", 0, 0};
    auto const clean = without_secrets(facts);
    EXPECT_EQ(clean.files.at("/proc/cmdline").bytes, "quiet luks.password=(removed) ip=dhcp\n");
    EXPECT_EQ(clean.files.at("/etc/netplan/a.yaml").bytes,
              "      password: (removed)\n      mtu: 9000\n");
    EXPECT_EQ(clean.files.at("/sys/class/net/psk0/mtu").bytes, "1500\n");
    EXPECT_EQ(clean.commands.at("a").out, "--token (removed) --set x");
}

TEST(Secrets, MayHaveBlanksInQuotes) {
    Facts facts;
    facts.files["/etc/rc.local"] = {
        "a --password='one two' --set x\nb psk \"one two\nc token=\"one two\"three d\n"
        "curl -H 'Authorization: Bearer one' x\n",
        0};
    auto const clean = without_secrets(facts);
    EXPECT_EQ(clean.files.at("/etc/rc.local").bytes,
              "a --password=(removed) --set x\nb psk (removed)\nc token=(removed) d\n"
              "curl -H 'Authorization: (removed)' x\n");
    EXPECT_EQ(without_secrets(clean), clean);
}

TEST(Facts, SayWhatWasAbsentAndWhatNobodyLookedFor) {
    auto const facts = some_facts();
    EXPECT_EQ(facts.text("/proc/cmdline"), "quiet");
    auto const absent = facts.text("/sys/class/net/lo/mtu");
    ASSERT_FALSE(absent);
    EXPECT_TRUE(absent.error().absent());
    auto const unseen = facts.text("/proc/cpuinfo");
    ASSERT_FALSE(unseen);
    EXPECT_EQ(to_string(unseen.error()), "/proc/cpuinfo was not collected");
    auto const forbidden = facts.text("/dev/kmsg");
    ASSERT_FALSE(forbidden);
    EXPECT_EQ(to_string(forbidden.error()), "/dev/kmsg: EPERM");
    auto const no_program = facts.command("mst status");
    ASSERT_FALSE(no_program);
    EXPECT_TRUE(no_program.error().absent());
}

}  // namespace
}  // namespace vfmgr::checks
