// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/faults.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::verify {
namespace {

// A pipe of packets: like /dev/kmsg it returns one record per read.
struct Log {
    std::array<int, 2> ends{};
    Log() { EXPECT_EQ(::pipe2(ends.data(), O_DIRECT | O_NONBLOCK), 0); }
    ~Log() {
        for (auto const end : ends) ::close(end);
    }
    Log(Log const&) = delete;
    Log& operator=(Log const&) = delete;
    [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", ends[0]); }
    void say(std::string const& text) const {
        auto const record = fmt::format("6,1234,5678,-;{}\n SUBSYSTEM=pci\n", text);
        EXPECT_EQ(::write(ends[1], record.data(), record.size()),
                  static_cast<ssize_t>(record.size()));
    }
};

TEST(KernelLog, TheTextOfARecordIsBetweenItsHeaderAndItsDictionary) {
    EXPECT_EQ(text_of_record("6,1,2,-;eth0: Link is Down\n SUBSYSTEM=net\n"), "eth0: Link is Down");
    EXPECT_EQ(text_of_record("6,1,2,-;a;b"), "a;b");
    EXPECT_EQ(text_of_record("6,1,2,-;"), "");
    EXPECT_FALSE(text_of_record("no record"));
}

TEST(KernelLog, FindsTheLineThatNamesTheDevice) {
    Log const log;
    auto following = KernelLog::follow(log.path());
    log.say("igbvf 0000:00:06.0: Link is Down");
    log.say("igbvf 0000:00:05.0: Link is Up 1000 Mbps");
    log.say("igbvf 0000:00:05.0: Link is Down");
    auto const said = following.find({"eth0:", "0000:00:05.0"});
    ASSERT_TRUE(said);
    EXPECT_EQ(said->line, "igbvf 0000:00:05.0: Link is Down");
    EXPECT_EQ(said->fault.cause, "the link went down");
    EXPECT_FALSE(following.find({"0000:00:05.0"})) << "said once";
}

TEST(KernelLog, WhatConcernsTheWholeMachineNeedsNoName) {
    Log const log;
    auto following = KernelLog::follow(log.path());
    log.say("neighbour: arp_cache: neighbor table overflow!");
    EXPECT_TRUE(following.find({"0000:00:05.0"}));
}

TEST(KernelLog, WithoutPermissionNothingIsSaid) {
    EXPECT_FALSE(KernelLog::follow("/nowhere/kmsg").find({"eth0:"}));
    EXPECT_FALSE(KernelLog().find({"eth0:"}));
}

TEST(KernelLog, ANetdevIsNamedByItselfAndByItsPciAddress) {
    test::TemporaryFolder const sysfs;
    namespace fs = std::filesystem;
    fs::create_directories(sysfs.file("devices/pci0000:00/0000:00:05.0"));
    fs::create_directories(sysfs.file("class/net/eth0"));
    fs::create_symlink(sysfs.file("devices/pci0000:00/0000:00:05.0"),
                       sysfs.file("class/net/eth0/device"));
    EXPECT_EQ(names_in_log("eth0", sysfs.file("")),
              (std::vector<std::string>{"eth0:", "eth0 ", "0000:00:05.0"}));
    EXPECT_EQ(names_in_log("eth1", sysfs.file("")).size(), 2U);
}

}  // namespace
}  // namespace vfmgr::verify
